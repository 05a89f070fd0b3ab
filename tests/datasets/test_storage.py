"""Datasets on disk, and the cache of datasets built from a store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.datasets.stages.made import ORGANISM, measured, one
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.reading import StageReport
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import (
    dataset_key,
    materialise,
    materialised_folder,
    read_dataset,
    save_dataset,
)
from wildtype.errors import ConfigError, DatasetError, OutputError
from wildtype.files import sha256_of_file
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.selection import Selection
from wildtype.mutants.table import save_table
from wildtype.organism import Organism


def small() -> Dataset:
    organism = tiny_dataset().organism
    table = MutantTable.from_sets(
        [[0], [2, 1], []],
        kind=np.array([3, 0, 1]),
        phenotype=[0, 1, 0],
        value=[0.5, -0.25, 1],
        sd=[0.1, np.nan, 0.2],
        dose=[2, np.nan, np.nan],
    )
    stage = StageReport("convert", "genes", "known", 5, 3, dropped={"unknown": 2})
    phenotypes = (Phenotype("fitness", source="a:fitness + b:fitness"), Phenotype("epsilon"))
    return Dataset("small", organism, table, phenotypes, stages=(stage,))


def test_the_table_for_people(tmp_path: Path) -> None:
    save_dataset(small(), tmp_path / "d")
    frame = pd.read_parquet(tmp_path / "d" / "table.parquet")
    assert frame.drop(columns=["value", "sd"]).to_dict("list") == {
        "genes": ["G000", "G001,G002", ""],
        "kinds": ["added", "reduced,absent", ""],
        "order": [1, 2, 0],
        "phenotype": ["fitness", "epsilon", "fitness"],
        "condition": ["reference"] * 3,
        "doses": ["2", ",", ""],
    }
    assert frame["value"].tolist() == [0.5, -0.25, 1]
    assert frame["sd"].isna().tolist() == [False, True, False]
    pd.testing.assert_frame_equal(frame, small().to_pandas())


def test_stages_and_sources_are_read_back(tmp_path: Path) -> None:
    save_dataset(small(), tmp_path / "d")
    again = read_dataset(tmp_path / "d", small().organism)
    assert again.card() == small().card()
    assert again.stages == small().stages
    assert again.phenotypes[0].sources == ("a:fitness", "b:fitness")
    assert again.phenotypes[1].sources == ()


def test_a_folder_of_format_1_still_loads(tmp_path: Path) -> None:
    """Written by hand as version 1 laid it out: no stages, no Parquet table, no hash of the record."""
    dataset = tiny_dataset()
    save_table(dataset.table, tmp_path / "table.npz")
    np.savez(tmp_path / "singles.npz", single_fitness=dataset.single_fitness)  # type: ignore[arg-type]
    record = {
        "format_version": 1, "name": "tiny-growth", "organism": "tiny",
        "genes": dataset.organism.genes.to_json(),
        "phenotypes": [
            {"name": p.name, "unit": p.unit, "source": p.source, "min_order": p.min_order, "strong": p.strong,
             "description": p.description} for p in dataset.phenotypes
        ],
        "conditions": ["reference"], "targets": ["epsilon"], "excluded": {"lost": 2}, "policies": {},
        "single_fitness_source": "tiny:fitness", "noise": "none", "notes": ["made up"], "citation": "nobody",
        "table_sha256": sha256_of_file(tmp_path / "table.npz"),
        "singles_sha256": sha256_of_file(tmp_path / "singles.npz"), "sha256": dataset.sha256,
    }  # fmt: skip
    (tmp_path / "dataset.json").write_text(json.dumps(record))
    again = read_dataset(tmp_path, dataset.organism)
    assert again.sha256 == dataset.sha256
    assert (again.excluded, again.notes, again.stages) == ({"lost": 2}, ("made up",), ())
    (tmp_path / "table.npz").write_bytes(b"")
    with pytest.raises(DatasetError, match="table.npz does not match its recorded sha256"):
        read_dataset(tmp_path, dataset.organism)


def test_p_values_are_stored_as_format_3(tmp_path: Path) -> None:
    plain = small()
    save_dataset(plain, tmp_path / "plain")
    assert json.loads((tmp_path / "plain" / "dataset.json").read_text())["format_version"] == 2
    valued = replace(plain, table=replace(plain.table, p=np.float32([0.5, np.nan, 0])))
    save_dataset(valued, tmp_path / "valued")
    assert json.loads((tmp_path / "valued" / "dataset.json").read_text())["format_version"] == 3
    again = read_dataset(tmp_path / "valued", plain.organism)
    assert again.sha256 == valued.sha256 != plain.sha256
    np.testing.assert_array_equal(again.table.p, valued.table.p)  # type: ignore[arg-type]
    assert pd.read_parquet(tmp_path / "valued" / "table.parquet")["p"].isna().tolist() == [False, True, False]
    assert read_dataset(tmp_path / "plain", plain.organism).table.p is None


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    save_dataset(small(), tmp_path / "d")
    path = tmp_path / "d" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 6}))
    with pytest.raises(DatasetError, match="has format 6, .* reads up to 5: update wildtype"):
        read_dataset(tmp_path / "d", small().organism)


@pytest.mark.parametrize(
    "change",
    [
        {"notes": ["measured with care"]},
        {"excluded": {"lost": 1}},
        {"sha256": "0" * 64},
        {"phenotypes": []},
        {"more": 1},
    ],
)
def test_a_record_that_was_changed_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    save_dataset(small(), tmp_path / "d")
    path = tmp_path / "d" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(
        DatasetError, match=r"dataset.json does not match its recorded sha256: remove the folder"
    ):
        read_dataset(tmp_path / "d", small().organism)


def test_a_changed_table_for_people_is_refused(tmp_path: Path) -> None:
    save_dataset(small(), tmp_path / "d")
    path = tmp_path / "d" / "table.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DatasetError, match=r"table.parquet does not match its recorded sha256"):
        read_dataset(tmp_path / "d", small().organism)


def test_doses_decide_the_hash_and_not_the_order_of_rows() -> None:
    dataset = small()
    rows = MutantTable.from_sets([[0], [0]], kind=Kind.OVEREXPRESSED, value=[1, 1], sd=[0, 0], dose=[2, 4])
    one_way, other_way = (replace(dataset, table=rows.take(order)) for order in ([0, 1], [1, 0]))
    assert one_way.sha256 == other_way.sha256
    assert replace(dataset, table=replace(rows, dose=rows.dose[::-1] / 2)).sha256 != one_way.sha256  # type: ignore[index]


QUERY, STORE, POLICIES = "SELECT id FROM measurements", "ab" * 32, Policies()
KEY = dataset_key(QUERY, STORE, POLICIES, ORGANISM)


class Builder:
    """Builds a dataset, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Dataset:
        self.calls += 1
        rows = measured(one("G1", value=0.9), one("G1", value=0.8), one("G2", "G1"), one("X9"))
        return build_dataset(rows, ORGANISM, name="toy", single_fitness=np.ones(5, np.float32))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))


def test_the_second_time_it_is_read() -> None:
    build = Builder()
    first, hit = materialise(KEY, build, ORGANISM)
    again, second_hit = materialise(KEY, build, ORGANISM)
    assert (hit, second_hit, build.calls) == (False, True, 1)
    assert again.card() == first.card()
    for name in ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd"):
        assert getattr(again.table, name).tobytes() == getattr(first.table, name).tobytes()
    assert again.stages == first.stages
    np.testing.assert_array_equal(again.single_fitness, first.single_fitness)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["dataset.json", "table.npz", "singles.npz", "table.parquet"])
@pytest.mark.parametrize("how", ["cut", "flipped", "removed"])
def test_a_damaged_entry_is_built_again(name: str, how: str) -> None:
    build = Builder()
    materialise(KEY, build, ORGANISM)
    path = materialised_folder(KEY) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(content if how == "flipped" else content[: len(content) // 2])
    rebuilt, hit = materialise(KEY, build, ORGANISM)
    assert (hit, build.calls) == (False, 2)
    assert rebuilt.sha256 == Builder()().sha256
    assert materialise(KEY, build, ORGANISM)[1]


def test_everything_that_a_dataset_is_made_from_is_in_its_key() -> None:
    others = Organism("toy", ORGANISM.genes.restrict(np.arange(4)), essential=np.ones(4, bool))
    keys = [
        KEY,
        dataset_key(QUERY + " LIMIT 1", STORE, POLICIES, ORGANISM),
        dataset_key(QUERY, "cd" * 32, POLICIES, ORGANISM),
        dataset_key(QUERY, STORE, replace(POLICIES, replicates="inverse variance"), ORGANISM),
        dataset_key(QUERY, STORE, replace(POLICIES, neutral=("HO",)), ORGANISM),
        dataset_key(QUERY, STORE, POLICIES, others),
        dataset_key(QUERY, STORE, POLICIES, replace(ORGANISM, essential=None)),
        dataset_key(QUERY, STORE, POLICIES, ORGANISM, name="other"),
    ]
    assert len(set(keys)) == len(keys)
    assert dataset_key(QUERY, STORE, Policies(), replace(ORGANISM, description="told otherwise")) == KEY


@pytest.mark.parametrize("key", ["../../etc", "", "toy", KEY.upper()])
def test_a_key_is_never_a_path(key: str) -> None:
    with pytest.raises(ConfigError, match="is not the key of a dataset"):
        materialise(key, Builder(), ORGANISM)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    with pytest.raises(OutputError, match="not a folder|in the way"):
        materialise(KEY, Builder(), ORGANISM)


def test_another_process_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()

    def meanwhile() -> Dataset:
        dataset, _ = materialise(KEY, build, ORGANISM)

        def refused(*_: object) -> None:
            raise OutputError("cannot write: the directory is not empty")

        monkeypatch.setattr("wildtype.datasets.storage.save_dataset", refused)
        return dataset

    assert materialise(KEY, meanwhile, ORGANISM)[0].sha256 == build().sha256


def test_a_selection_is_stored_and_changes_no_hash(tmp_path: Path) -> None:
    plain, chosen = small(), Selection(-0.12, 0.16, 0.05, -0.007, 0.046, "elsewhere")
    fitness, epsilon = plain.phenotypes
    listed = replace(plain, phenotypes=(fitness, replace(epsilon, selection=chosen)))
    assert listed.sha256 == plain.sha256
    assert plain.card()["selection"] == {}
    assert listed.card()["selection"] == {"epsilon": chosen.sentence("epsilon")}
    for name, dataset in (("plain", plain), ("listed", listed)):
        save_dataset(dataset, tmp_path / name)
        assert read_dataset(tmp_path / name, dataset.organism).phenotypes == dataset.phenotypes
    records = json.loads((tmp_path / "plain" / "dataset.json").read_text())["phenotypes"]
    assert "selection" not in records[0]  # as versions before this one wrote it
