from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.selection import Selection
from wildtype.organism import GeneIndex


def test_hash_ignores_the_order_of_rows_and_sees_every_column() -> None:
    dataset = tiny_dataset()
    order = np.random.default_rng(0).permutation(len(dataset))
    assert replace(dataset, table=dataset.table.take(order)).sha256 == dataset.sha256
    for column in ("value", "sd", "kind", "phenotype"):
        values = getattr(dataset.table, column).copy()
        values[3] = 0 if column in ("kind", "phenotype") and values[3] else 1
        assert replace(dataset, table=replace(dataset.table, **{column: values})).sha256 != dataset.sha256, (
            column
        )


def test_hashes_from_before_there_were_p_values() -> None:
    dataset = tiny_dataset()
    assert dataset.sha256 == "f938c692ee30d27ae560aa16fa71f395bc2d17663fc0d4930c6f5381493c7816"
    unknown = np.full(len(dataset), np.nan, np.float32)
    assert replace(dataset, table=replace(dataset.table, p=unknown)).sha256 == dataset.sha256


def test_hash_sees_p_values_and_not_the_order_of_rows() -> None:
    organism = tiny_dataset().organism
    rows = MutantTable.from_sets([[0, 1]] * 3 + [[2]], value=[1, 1, 1, 0], p=[0.5, np.nan, 0.25, 0.5])
    orders = ([0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3])
    hashes = [Dataset("x", organism, rows.take(order), (Phenotype("f"),)).sha256 for order in orders]
    assert len(set(hashes)) == 1
    for p in (None, [0.5, 0.25, 0.25, 0.5], [0.5, np.nan, 0.25, 0.75]):
        table = replace(rows, p=None if p is None else np.float32(p))
        assert Dataset("x", organism, table, (Phenotype("f"),)).sha256 != hashes[0]


def test_p_values_stay_with_their_rows() -> None:
    dataset = tiny_dataset()
    p = np.linspace(0, 1, len(dataset), dtype=np.float32)
    p[:24] = np.nan
    valued = replace(dataset, table=replace(dataset.table, p=p))
    epsilon = dataset.table.phenotype == 1
    np.testing.assert_array_equal(valued.select(["epsilon"]).table.p, p[epsilon])  # type: ignore[arg-type]
    turned = valued.restrict_genes(np.arange(23, -1, -1))
    np.testing.assert_array_equal(turned.table.p, p)  # type: ignore[arg-type]
    frame = valued.to_pandas()
    np.testing.assert_array_equal(frame["p"].to_numpy(np.float32), p)
    assert valued.to_arrow()["p"].null_count == 24
    assert "p" not in dataset.to_pandas()


def test_hash_of_rows_that_differ_in_kind_only() -> None:
    organism = tiny_dataset().organism
    kinds = [Kind.ABSENT, Kind.REDUCED, Kind.REDUCED, Kind.ABSENT]
    rows = MutantTable.build([0, 1, 0, 1], [0, 2, 4], kind=kinds, value=[1.0, 1.0])
    a, b = (Dataset("x", organism, rows.take(order), (Phenotype("f"),)) for order in ([0, 1], [1, 0]))
    assert a.sha256 == b.sha256


def test_select_renumbers_phenotypes() -> None:
    dataset = tiny_dataset().select(["epsilon"])
    assert [p.name for p in dataset.phenotypes] == ["epsilon"]
    assert set(dataset.table.phenotype) == {0}
    assert len(dataset) == 24 * 23 // 2
    with pytest.raises(DatasetError, match="no phenotype 'tau'; it has fitness, epsilon"):
        tiny_dataset().select(["tau"])


def test_label_that_is_no_number_is_refused() -> None:
    dataset = tiny_dataset()
    value = dataset.table.value.copy()
    value[7] = np.nan
    with pytest.raises(DatasetError, match="row 7 has a label that is not a number"):
        replace(dataset, table=replace(dataset.table, value=value))


def test_restriction_keeps_names() -> None:
    dataset = tiny_dataset()
    pairs = replace(dataset, table=dataset.table.take(dataset.table.order == 2))
    genes = np.arange(23, -1, -1)
    restricted = pairs.restrict_genes(genes)
    assert restricted.organism.genes.names[0] == "G023"
    a, b = (d.to_pandas() for d in (pairs, restricted))
    assert (
        a["genes"].map(lambda g: frozenset(g.split(","))).tolist()
        == b["genes"].map(lambda g: frozenset(g.split(","))).tolist()
    )
    assert restricted.single_fitness is not None
    assert pairs.single_fitness is not None
    assert restricted.single_fitness[0] == pairs.single_fitness[23]


def test_card_counts_every_row() -> None:
    card = tiny_dataset().card()
    assert card["rows_by_phenotype_and_order"] == {"fitness": {"1": 24, "2": 276}, "epsilon": {"2": 276}}
    assert card["rows"] == 576


def test_storage_round_trip_and_remapping_by_name(tmp_path) -> None:  # type: ignore[no-untyped-def]
    dataset = tiny_dataset()
    save_dataset(dataset, tmp_path / "d")
    again = read_dataset(tmp_path / "d", dataset.organism)
    assert again.sha256 == dataset.sha256
    assert again.card() == dataset.card()
    order = np.random.default_rng(1).permutation(24)
    other = dataset.organism.restrict(order)
    moved = read_dataset(tmp_path / "d", other)
    names, new = dataset.organism.genes.names, other.genes.names
    assert [{names[g] for g in s} for s in dataset.table.sets()] == [
        {new[g] for g in s} for s in moved.table.sets()
    ]
    assert moved.single_fitness is not None
    assert dataset.single_fitness is not None
    np.testing.assert_array_equal(moved.single_fitness, dataset.single_fitness[order])


def test_kinds_of_single_fitness_are_stored_with_it(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    kind = np.arange(24, dtype=np.uint8) % 3
    stated = replace(dataset, single_fitness_kind=kind)
    assert stated.sha256 == dataset.sha256  # of labels and what they are of
    save_dataset(stated, tmp_path / "d")
    order = np.random.default_rng(1).permutation(24)
    moved = read_dataset(tmp_path / "d", dataset.organism.restrict(order))
    for one in (moved, stated.restrict_genes(order)):
        np.testing.assert_array_equal(one.single_fitness_kind, kind[order])


@pytest.mark.parametrize("name", ["table.npz", "dataset.json", "singles.npz"])
def test_damaged_dataset_is_refused(tmp_path, name: str) -> None:  # type: ignore[no-untyped-def]
    dataset = tiny_dataset()
    save_dataset(dataset, tmp_path / "d")
    content = (tmp_path / "d" / name).read_bytes()
    (tmp_path / "d" / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(DatasetError, match="build it again"):
        read_dataset(tmp_path / "d", dataset.organism)


def test_gene_that_left_the_organism_is_an_error(tmp_path) -> None:  # type: ignore[no-untyped-def]
    dataset = tiny_dataset()
    save_dataset(dataset, tmp_path / "d")
    smaller = replace(dataset.organism.restrict(np.arange(23)))
    with pytest.raises(DatasetError, match="not in the other gene index"):
        read_dataset(tmp_path / "d", smaller)
    assert isinstance(smaller.genes, GeneIndex)


def test_labels_of_a_list_are_remarked_on() -> None:
    dataset = tiny_dataset()
    assert dataset.selection_remarks() == []
    value = dataset.table.value.copy()
    epsilon = dataset.table.phenotype == 1
    value[epsilon] += np.where(value[epsilon] > 0, 0.2, -0.2)
    gap = replace(dataset, table=replace(dataset.table, value=value))
    (remark,) = gap.selection_remarks()
    assert remark.startswith("no epsilon lies between -0.2")
    fitness, of_pairs = gap.phenotypes
    chosen = Selection(-0.2, 0.2)
    declared = replace(gap, phenotypes=(fitness, replace(of_pairs, selection=chosen)))
    assert declared.selection_remarks() == [chosen.sentence("epsilon")]
