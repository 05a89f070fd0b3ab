"""Pinned splits: another build of the dataset gets the same sides, genotype by genotype."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from wildtype.datasets import Dataset, Phenotype, Split
from wildtype.datasets.pinned import NO_SIDE, NOT_LISTED, UNTAUGHT, read_pinned, write_pinned
from wildtype.errors import OutputError, SplitError
from wildtype.files import content_hash
from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex

Factory = Callable[..., Dataset]
NAMES = ["random", "one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order"]
Genotype = tuple[object, ...]


def genotypes(dataset: Dataset, rows: np.ndarray) -> set[Genotype]:
    """What stands in some rows, by names."""
    t, names = dataset.table, dataset.organism.genes.names
    dose = np.full(len(t.gene), np.nan) if t.dose is None else t.dose
    return {
        (
            frozenset((names[t.gene[k]], int(t.kind[k]), str(dose[k])) for k in range(*t.offsets[i : i + 2])),
            dataset.conditions[t.condition[i]],
            dataset.phenotypes[t.phenotype[i]].name,
        )
        for i in rows
    }


def sides(dataset: Dataset, split: Split) -> dict[str, set[Genotype]]:
    return {part: genotypes(dataset, getattr(split, part)) for part in ("train", "validation", "test")}


def another_build(dataset: Dataset, seed: int, *, keep: float = 1.0, more: int = 0) -> Dataset:
    """Return the dataset with genes, rows, conditions and phenotypes in another order, and rows more or less.

    Every new row has a gene that the dataset lacks.
    """
    rng = np.random.default_rng(seed)
    old, t = dataset.organism.genes, dataset.table
    t = t.take(rng.permutation(len(t))[: round(keep * len(t))])
    if more:
        new = [[len(old) + int(rng.integers(0, 3)), int(rng.integers(0, len(old)))] for _ in range(more)]
        t = MutantTable.concatenate([t, MutantTable.from_sets(new, value=np.ones(more))])
        t = t.take(rng.permutation(len(t)))
    names = [*old.names, "new1", "new2", "new3"]
    place = rng.permutation(len(names))
    genes = GeneIndex([names[i] for i in np.argsort(place)], organism=old.organism)
    conditions, phenotypes = (rng.permutation(len(x)) for x in (dataset.conditions, dataset.phenotypes))
    t = replace(t.remap(place), condition=conditions[t.condition], phenotype=phenotypes[t.phenotype])
    return replace(
        dataset,
        organism=replace(dataset.organism, genes=genes),
        table=t,
        conditions=tuple(dataset.conditions[i] for i in np.argsort(conditions)),
        phenotypes=tuple(dataset.phenotypes[i] for i in np.argsort(phenotypes)),
    )


def try_split(dataset: Dataset, name: str, seed: int) -> Split:
    try:
        return dataset.split(name, seed)
    except SplitError as error:
        assume("leaves no" not in str(error))
        raise


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(make_random_dataset: Factory, tmp_path: Path, name: str, suffix: str) -> None:
    dataset = make_random_dataset(1, 25, 300)
    split = dataset.split(name, 4)
    write_pinned(split, dataset, tmp_path / f"split{suffix}")
    reused = read_pinned(tmp_path / f"split{suffix}", dataset)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(reused.split, part), getattr(split, part))
    assert (reused.unknown, sum(reused.missing.values())) == (0, 0)
    assert sum(reused.split.dropped.values()) == sum(split.dropped.values())
    assert (reused.split.name, reused.split.seed) == (name, 4)
    assert reused.split.held_out_genes == split.held_out_genes
    assert reused.split.held_out_pairs == split.held_out_pairs
    assert len(str(reused.split.options.pop("pinned"))) == 64
    assert reused.split.options == split.options
    assert [p.name for p in tmp_path.iterdir()] == [f"split{suffix}"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1000), st.sampled_from(NAMES), st.sampled_from([".json", ".parquet"]))
def test_another_order_and_more_rows_give_the_same_sides(
    make_random_dataset: Factory, tmp_path: Path, seed: int, name: str, suffix: str
) -> None:
    dataset = make_random_dataset(seed, 25, 200, (0, 1, 2, 3))
    split = try_split(dataset, name, seed)
    write_pinned(split, dataset, tmp_path / f"a{suffix}")
    other = another_build(dataset, seed, more=17)
    reused = read_pinned(tmp_path / f"a{suffix}", other)
    assert sides(other, reused.split) == sides(dataset, split)
    assert reused.unknown == reused.split.dropped[NOT_LISTED] == 17
    assert sum(reused.missing.values()) == 0
    reused.split.check(other)
    # What is pinned from the other build is the same again.
    write_pinned(reused.split, other, tmp_path / f"b{suffix}")
    assert sides(dataset, read_pinned(tmp_path / f"b{suffix}", dataset).split) == sides(dataset, split)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1000), st.sampled_from(NAMES))
def test_rows_that_are_gone_are_counted(
    make_random_dataset: Factory, tmp_path: Path, seed: int, name: str
) -> None:
    dataset = make_random_dataset(seed, 25, 200, (0, 1, 2, 3))
    split = try_split(dataset, name, seed)
    write_pinned(split, dataset, tmp_path / "a.json")
    other = another_build(dataset, seed, keep=0.8, more=5)
    try:
        reused = read_pinned(tmp_path / "a.json", other)
    except SplitError as error:
        assume("lists no" not in str(error))
        raise
    here = genotypes(other, np.arange(len(other)))
    before = sides(dataset, split)
    after = sides(other, reused.split)
    untaught = reused.split.dropped.get(UNTAUGHT, 0)
    assert untaught == 0 or name == "one-unseen"
    for part, expected in before.items():
        assert after[part] <= expected & here
        assert reused.missing[part] == len(expected - here)
    lost = sum(len(before[part] & here) - len(after[part]) for part in before)
    assert lost <= untaught
    assert untaught == 0 or lost > 0
    assert reused.unknown == 5


def test_a_one_unseen_row_whose_other_gene_is_taught_no_more_is_dropped(
    make_dataset: Factory, tmp_path: Path
) -> None:
    sets = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    dataset = make_dataset(sets, 8)
    split = dataset.split("Q", 0)
    write_pinned(split, dataset, tmp_path / "q.json")
    names = dataset.organism.genes.names
    held = {names.index(g) for part in ("validation", "test") for g in split.held_out_genes[part]}
    lost = next(g for g in range(8) if g not in held)
    train = set(split.train.tolist())
    rows = [i for i, s in enumerate(sets) if i not in train or lost not in s]
    other = replace(dataset, table=dataset.table.take(rows))
    reused = read_pinned(tmp_path / "q.json", other)
    assert reused.split.dropped[UNTAUGHT] == 2
    assert reused.missing["train"] == 5
    assert all(lost not in other.table.sets()[i] for i in reused.split.test)


def test_the_file_says_what_is_where(make_dataset: Factory, tmp_path: Path) -> None:
    dataset = make_dataset(
        [(0,), (1,), (0, 1), (1, 2), (2, 3), (3, 4), ()],
        5,
        kind=np.array([0, 1, 0, 1, 0, 0, 0, 0, 2, 3]),
        dose=np.array([np.nan] * 8 + [0.1, 2.5]),
    )
    names = ["a b", "c:d", "é%", "x", "Y(z)-1,A"]
    dataset = replace(
        dataset,
        organism=replace(dataset.organism, genes=GeneIndex(names, organism="toy")),
        conditions=("YPD, 30 °C",),
        phenotypes=(Phenotype("epsilon", source="s:epsilon"),),
    )
    split = Split.from_json(dataset.split("R", 0, validation=0.2, test=0.2).to_json())
    write_pinned(split, dataset, tmp_path / "a.json")
    record = json.loads((tmp_path / "a.json").read_text())
    listed = [
        m for side in record["sides"].values() for by in side.values() for ms in by.values() for m in ms
    ]
    assert sorted(listed) == sorted(
        [
            "",
            "a%20b",
            "c%3Ad:reduced",
            "a%20b c%3Ad:reduced",
            "%C3%A9%25 c%3Ad",
            "%C3%A9%25 x",
            "Y(z)-1,A:added:2.5 x:present:0.10000000149011612",
        ]
    )
    assert record["sides"]["train"].keys() == {"epsilon"}
    assert record["sides"]["train"]["epsilon"].keys() == {"YPD, 30 °C"}
    assert record["leakage"]["shared"]["test"]["gene_set"] == 0
    other = another_build(dataset, 3)
    assert sides(other, read_pinned(tmp_path / "a.json", other).split) == sides(dataset, split)


def test_genes_conditions_and_phenotypes_that_are_gone(make_random_dataset: Factory, tmp_path: Path) -> None:
    dataset = make_random_dataset(5, 25, 300)
    split = dataset.split("G", 1)
    write_pinned(split, dataset, tmp_path / "a.json")
    one = dataset.select(["phenotype 1"])
    reused = read_pinned(tmp_path / "a.json", one)
    assert sides(one, reused.split)["test"] == genotypes(dataset, split.test) & genotypes(
        one, np.arange(len(one))
    )
    others = np.flatnonzero(dataset.table.phenotype == 0)
    assert sum(reused.missing.values()) == len(genotypes(dataset, others))
    assert reused.unknown == 0
    renamed = replace(dataset, conditions=("condition 0", "heat"))
    reused = read_pinned(tmp_path / "a.json", renamed)
    assert reused.unknown == int((dataset.table.condition == 1).sum())
    # A build without one of the held-out genes.
    gone = dataset.organism.genes.names.index(split.held_out_genes["test"][0])
    rows = np.flatnonzero([gone not in s for s in dataset.table.sets()])
    fewer = replace(dataset, table=dataset.table.take(rows)).restrict_genes(np.delete(np.arange(25), gone))
    reused = read_pinned(tmp_path / "a.json", fewer)
    assert reused.split.held_out_genes["test"] == split.held_out_genes["test"][1:]
    assert sum(reused.missing.values()) == len(
        genotypes(dataset, np.setdiff1d(np.arange(len(dataset)), rows))
    )
    assert "pinned but not in this build: " in str(reused)
    assert f"{len(fewer):,} of {len(fewer):,} rows are in the pinned split, 0 are not" in str(reused)


def test_query_strains_of_genes_that_are_gone(make_random_dataset: Factory, tmp_path: Path) -> None:
    dataset = make_random_dataset(5, 25, 300)
    split = dataset.split("screen", 1, by="query")
    write_pinned(split, dataset, tmp_path / "a.json")
    gone = dataset.organism.genes.names.index(split.strains[0][0])
    rows = np.flatnonzero([gone not in s for s in dataset.table.sets()])
    fewer = replace(dataset, table=dataset.table.take(rows)).restrict_genes(np.delete(np.arange(25), gone))
    reused = read_pinned(tmp_path / "a.json", fewer)
    here = genotypes(fewer, np.arange(len(fewer)))
    assert sides(fewer, reused.split) == {part: of & here for part, of in sides(dataset, split).items()}


def test_dropped_rows_stay_dropped(make_random_dataset: Factory, tmp_path: Path) -> None:
    dataset = make_random_dataset(5, 25, 300)
    split = dataset.split("G", 1)
    write_pinned(split, dataset, tmp_path / "a.json")
    reused = read_pinned(tmp_path / "a.json", dataset)
    assert reused.split.dropped == {NO_SIDE: sum(split.dropped.values())}


def test_rows_of_one_genotype_on_two_sides_cannot_be_pinned(make_dataset: Factory, tmp_path: Path) -> None:
    sets = [tuple(range(start, start + 5)) for start in range(10)]
    dataset = make_dataset(sets * 3, 20, phenotype=np.repeat([0, 1, 2], 10))
    sizes = tuple(Phenotype("size", source=f"study{i}:size") for i in range(3))
    dataset = replace(dataset, phenotypes=sizes)
    split = dataset.split("screen", by="study")
    with pytest.raises(SplitError, match="mutant G000 G001 .* is in several rows on two sides"):
        write_pinned(split, dataset, tmp_path / "a.json")
    assert not list(tmp_path.iterdir())
    named = replace(dataset, phenotypes=tuple(replace(p, name=f"{p.name} in {p.source}") for p in sizes))
    split = named.split("screen", by="study")
    write_pinned(split, named, tmp_path / "a.json")
    assert sides(named, read_pinned(tmp_path / "a.json", named).split) == sides(named, split)


@pytest.fixture
def pinned(make_dataset: Factory, tmp_path: Path) -> tuple[Dataset, Path]:
    dataset = make_dataset([(g, g + 1) for g in range(30)], 31)
    write_pinned(dataset.split("R"), dataset, tmp_path / "a.json")
    return dataset, tmp_path / "a.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not a complete pinned split"),
        (lambda text: text.replace("G001", "G002", 1), "does not match its recorded sha256"),
        (lambda text: text.replace('"seed": 0', '"seed": 1'), "does not match its recorded sha256"),
        (lambda text: text.replace("pinned split", "other file"), "it is another kind of file"),
        (lambda text: text.replace('"format_version": 1', '"format_version": 9'), "has format 9, expected 1"),
        (lambda text: "[1, 2]", "it is another kind of file"),
        (lambda text: "[" * 100_000, "is not a complete pinned split"),
        (lambda text: "", "is not a complete pinned split"),
    ],
)
def test_damaged_files_are_refused(
    pinned: tuple[Dataset, Path], change: Callable[[str], str], message: str
) -> None:
    dataset, path = pinned
    path.write_text(change(path.read_text()))
    with pytest.raises(SplitError, match=message):
        read_pinned(path, dataset)


def forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a pinned file and give it the sha256 that fits."""
    record = json.loads(path.read_text())
    change(record)
    record.pop("sha256")
    sides = record.pop("sides")
    path.write_text(json.dumps({**record, "sides": sides, "sha256": content_hash(record, sides)}))


@pytest.mark.parametrize(
    "change",
    [
        {"sides": {}},
        {"sides": {"train": 3}},
        {"split": "plates"},
        {"held_out_genes": None},
        {"seed": None},
        {"strains": 3},
    ],
)
def test_records_with_a_right_hash_and_wrong_content_are_refused(
    pinned: tuple[Dataset, Path], change: dict[str, object]
) -> None:
    dataset, path = pinned
    forge(path, lambda record: record.update(change))
    with pytest.raises(SplitError, match="is not a complete pinned split|'plates' is not a split"):
        read_pinned(path, dataset)


@pytest.mark.parametrize(
    ("mutants", "wrong"),
    [
        (["G001 G009"], ""),
        (["G001:odd"], "'odd'"),
        ([":absent"], "':absent' is not a gene"),
        (["G001:added:1:2"], "'G001:added:1:2' is not a gene"),
        (["G001 G001"], "perturbs gene 1 twice"),
        (["G001 G009", "G009 G001"], "it lists a genotype twice"),
        (["G001:added:x"], "could not convert string to float"),
        ([1], "has no attribute 'split'"),
    ],
)
def test_mutants_that_are_none_are_refused(
    pinned: tuple[Dataset, Path], mutants: list[object], wrong: str
) -> None:
    dataset, path = pinned
    forge(path, lambda record: record["sides"]["train"]["phenotype 0"]["condition 0"].extend(mutants))
    if not wrong:
        assert read_pinned(path, dataset).missing["train"] == 1
        return
    with pytest.raises(SplitError, match=f"is not a complete pinned split .*{wrong}"):
        read_pinned(path, dataset)


def test_damaged_parquet_is_refused(pinned: tuple[Dataset, Path], tmp_path: Path) -> None:
    import pandas as pd

    dataset, _ = pinned
    path = tmp_path / "a.parquet"
    write_pinned(dataset.split("R"), dataset, path)
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], data[:-1], b"", b"PAR1" + b"\0" * 50 + b"PAR1"):
        path.write_bytes(damaged)
        with pytest.raises(SplitError, match="is not a complete pinned split"):
            read_pinned(path, dataset)
    pd.DataFrame({"side": ["train"]}).to_parquet(path)
    with pytest.raises(SplitError, match="it is another kind of file"):
        read_pinned(path, dataset)


def test_files_that_do_not_fit(pinned: tuple[Dataset, Path], tmp_path: Path) -> None:
    dataset, path = pinned
    with pytest.raises(SplitError, match="pins a split of dataset 'toy' .toy., not of 'other'"):
        read_pinned(path, replace(dataset, name="other"))
    with pytest.raises(SplitError, match="there is no pinned split at .*none.json: check the path"):
        read_pinned(tmp_path / "none.json", dataset)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(SplitError, match=r"folder.json cannot be read \(Is a directory\)"):
        read_pinned(tmp_path / "folder.json", dataset)
    for name in ("a.csv", "a"):
        with pytest.raises(SplitError, match="is a .json or .parquet file"):
            read_pinned(tmp_path / name, dataset)
        with pytest.raises(SplitError, match="is a .json or .parquet file"):
            write_pinned(dataset.split("R"), dataset, tmp_path / name)
    other = replace(dataset, phenotypes=(replace(dataset.phenotypes[0], name="size"),))
    with pytest.raises(SplitError, match="lists no train row that dataset 'toy' has"):
        read_pinned(path, other)


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_writing_is_whole_or_not_at_all(pinned: tuple[Dataset, Path], tmp_path: Path, suffix: str) -> None:
    dataset, path = pinned
    before = path.read_bytes()
    with pytest.raises(OutputError, match="a file of that name is in the way"):
        write_pinned(dataset.split("R"), dataset, path / f"b{suffix}")
    leaking = dataset.split("R")
    leaking = replace(leaking, train=leaking.train[1:])
    with pytest.raises(SplitError, match="counted dropped rows"):
        write_pinned(leaking, dataset, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
