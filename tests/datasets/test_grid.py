"""Datasets with the grid of a screen: storage, hashes, gene indices, cards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.screened import PHENOTYPES, screened_dataset, strain_crosses
from tests.tiny import tiny_dataset
from wildtype.datasets import Phenotype
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable


def same(a: object, b: object) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in type(a).ARRAYS)  # type: ignore[attr-defined]


def test_the_grid_is_stored_beside_the_listed_crosses(tmp_path: Path) -> None:
    dataset = screened_dataset()
    save_dataset(dataset, tmp_path / "d")
    again = read_dataset(tmp_path / "d", dataset.organism)
    assert same(again.grid, dataset.grid)
    assert again.sha256 == dataset.sha256
    assert again.phenotypes == PHENOTYPES
    assert again.card() == dataset.card()
    assert json.loads((tmp_path / "d" / "dataset.json").read_text())["format_version"] == 5


def test_a_damaged_grid_is_refused(tmp_path: Path) -> None:
    dataset = screened_dataset()
    save_dataset(dataset, tmp_path / "d")
    (tmp_path / "d" / "grid.npz").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"grid\.npz does not match its recorded sha256"):
        read_dataset(tmp_path / "d", dataset.organism)


def test_a_dataset_without_a_grid_is_written_as_before(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    save_dataset(dataset, tmp_path / "d")
    record = json.loads((tmp_path / "d" / "dataset.json").read_text())
    assert record["format_version"] == 2
    assert "grid_sha256" not in record
    assert "of_cross" not in record["phenotypes"][0]
    # Computed before datasets had grids.
    assert dataset.sha256 == "f938c692ee30d27ae560aa16fa71f395bc2d17663fc0d4930c6f5381493c7816"


def test_the_grid_enters_the_hash() -> None:
    dataset = screened_dataset()
    assert dataset.grid is not None
    listed = set(dataset.grid.cross_codes(dataset.table).tolist())
    crosses = strain_crosses(dataset.grid)
    unlisted = [i for i, c in enumerate(dataset.grid.cross_codes(crosses).tolist()) if c not in listed]
    codes = np.array([np.sort(crosses.take([i]).gene) @ [dataset.grid.genes, 1] for i in unlisted[:3]])
    fewer = replace(dataset, grid=dataset.grid.without(np.unique(codes)))
    assert len({dataset.sha256, fewer.sha256, replace(dataset, grid=None).sha256}) == 3


def test_the_grid_moves_with_the_gene_index(tmp_path: Path) -> None:
    dataset = screened_dataset()
    assert dataset.grid is not None
    save_dataset(dataset, tmp_path / "d")
    positions = np.random.default_rng(1).permutation(24)
    other = dataset.organism.restrict(positions)
    again = read_dataset(tmp_path / "d", other)
    moved = dataset.restrict_genes(positions)
    assert again.grid is not None
    assert moved.grid is not None
    assert same(again.grid, moved.grid)
    assert again.sha256 == moved.sha256

    def crosses(grid_of: object, names: tuple[str, ...]) -> set[frozenset[tuple[str, int]]]:
        table = strain_crosses(grid_of)  # type: ignore[arg-type]
        return {
            frozenset(
                (names[g], int(k)) for g, k in zip(table.gene[i : i + 2], table.kind[i : i + 2], strict=True)
            )
            for i in range(0, 2 * len(table), 2)
        }

    assert crosses(again.grid, other.genes.names) == crosses(dataset.grid, dataset.organism.genes.names)


def test_a_row_that_the_screen_did_not_measure_is_refused() -> None:
    dataset = screened_dataset()
    for genes, kinds in (([0, 1], [0, 0]), ([7, 8], [0, 0]), ([2, 9], [1, 0])):
        row = MutantTable.from_sets([genes], kind=np.array(kinds), value=[0.2])
        with pytest.raises(DatasetError, match=rf"row 0 \(G00{genes[0]}, G00{genes[1]}\) is no cross"):
            replace(dataset, table=row)
    with pytest.raises(DatasetError, match=r"row 0 \(G003\) is no cross"):
        replace(dataset, table=MutantTable.from_sets([[3]], value=[0.2]))


def test_rows_of_phenotypes_that_follow_from_the_list_are_not_stored(tmp_path: Path) -> None:
    dataset = screened_dataset()
    table = replace(dataset.table, phenotype=np.full(len(dataset), 3))
    with pytest.raises(DatasetError, match="rows of 'epsilon_listed', which follow from its listed crosses"):
        save_dataset(replace(dataset, table=table), tmp_path / "d")


def test_the_card_counts_crosses() -> None:
    dataset = screened_dataset()
    assert dataset.grid is not None
    # 17 query strains of 16 genes (0 … 15, gene 3 twice) by 18 arrays (6 … 23): 17 · 18 pairs, of which
    # those of two genes among 6 … 15 are met twice (10 · 9 / 2) and 10 are selfs. Linked: 17 with a query and
    # an array (5-6, …, 15-16 are 11).
    total, unknown = 17 * 18 - 45 - 10, 11
    counts = dataset.card()["crosses"]
    assert counts["unknown"] == unknown
    assert counts["listed"] == len(dataset) > 50
    assert sum(counts.values()) == total
    assert "crosses" not in tiny_dataset().card()


@pytest.mark.parametrize(
    ("of_cross", "form", "message"),
    [
        ("sum", "scalar", "has of_cross 'sum'; known: effect, negative, positive, listed, or empty"),
        ("negative", "scalar", "must have form 'class', not 'scalar'"),
        ("effect", "class", "must have form 'scalar', not 'class'"),
    ],
)
def test_of_cross_is_checked(of_cross: str, form: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Phenotype("x", form=form, of_cross=of_cross)
