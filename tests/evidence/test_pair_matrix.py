"""The matrix of strain pairs: dense maps, grids, several strains of a gene, hidden crosses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.screened import screened_dataset, strain_crosses
from wildtype.errors import ShapeError
from wildtype.evidence import pair_matrix
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.mutants import Kind, MutantTable, grid
from wildtype.mutants.grid import TRAIN, CrossSides, VisibleCrosses, gene_hashes


def visible_crosses(seed: int = 0) -> tuple[VisibleCrosses, MutantTable]:
    """Return the training crosses of a tiny screen, and the listed ones among them."""
    dataset = screened_dataset()
    sides = CrossSides(gene_hashes(dataset.organism.genes.names, seed), "random", 0.2, 0.2)
    listed = dataset.table.take(sides.of_table(dataset.table) == TRAIN)
    assert dataset.grid is not None
    return VisibleCrosses(dataset.grid, sides, listed), listed


def test_a_dense_map_knows_measured_cells_only_and_averages_repeats() -> None:
    table = MutantTable.from_matrix([[2, 5], [5, 9], [2, 5]], value=[1.0, 4.0, 2.0])
    matrix = PairMatrix.of(table)
    np.testing.assert_array_equal(matrix.gene, [2, 5, 9])
    np.testing.assert_array_equal(matrix.values, [[0, 1.5, 0], [1.5, 0, 4], [0, 4, 0]])
    np.testing.assert_array_equal(matrix.known, matrix.values != 0)


def test_strains_of_a_gene_are_rows_of_their_own_and_stand_in_for_each_other() -> None:
    kinds = np.array([[0, 0], [1, 0], [0, 1]], np.uint8).reshape(-1)
    table = MutantTable.from_matrix([[2, 5], [2, 5], [2, 9]], kind=kinds, value=[1.0, 2.0, 3.0])
    matrix = PairMatrix.of(table)
    np.testing.assert_array_equal(matrix.gene, [2, 2, 5, 9])
    np.testing.assert_array_equal(matrix.kind, [0, 1, 0, 1])
    asked = MutantTable.from_matrix(
        [[2, 9], [5, 7], [1, 2]], kind=[Kind.REDUCED, Kind.ABSENT, Kind.REDUCED, Kind.ABSENT, 0, 4]
    )
    # Gene 9 has only a hypomorph, gene 5 only a deletion; the first strain of gene 2 stands for others.
    np.testing.assert_array_equal(matrix.cells(asked), [[1, 3], [2, -1], [-1, 0]])


def test_visible_crosses_that_are_not_listed_are_zeros_and_others_unknown() -> None:
    crosses, listed = visible_crosses()
    matrix = PairMatrix.of(listed, crosses)
    every = strain_crosses(crosses.grid)
    trained = crosses.sides.of_table(every) == TRAIN
    i, j = matrix.cells(every.take(trained)).T
    assert matrix.known[i, j].all()
    assert matrix.known.sum() == 2 * trained.sum()
    np.testing.assert_array_equal(matrix.known, matrix.known.T)
    np.testing.assert_array_equal(matrix.values, matrix.values.T)
    a, b = matrix.cells(listed).T
    np.testing.assert_array_equal(matrix.values[a, b], listed.value)
    assert (matrix.values != 0).sum() == 2 * len(listed)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crosses, listed = visible_crosses()
    whole = PairMatrix.of(listed.take(np.arange(3)), crosses)
    measured = crosses.grid.measured(listed)
    for module in (pair_matrix, grid):
        monkeypatch.setattr(module, "BLOCK", 2)
    found = PairMatrix.of(listed.take(np.arange(3)), crosses)
    for name in ("gene", "kind", "values", "known"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    np.testing.assert_array_equal(crosses.grid.measured(listed), measured)
    assert measured.all()


def test_nothing_measured_is_an_empty_matrix() -> None:
    empty = PairMatrix.of(MutantTable.from_matrix(np.zeros((0, 2), np.int64)))
    assert len(empty) == 0
    assert empty.values.shape == (0, 0)


def test_sampled_unlisted_rows_change_nothing() -> None:
    crosses, listed = visible_crosses()
    every = strain_crosses(crosses.grid)
    rest = every.take((crosses.sides.of_table(every) == TRAIN) & (crosses.state(every) == 1))
    zeros = replace(rest.take(np.arange(0, len(rest), 3)), value=np.zeros(-(-len(rest) // 3), np.float32))
    one, two = (PairMatrix.of(table, crosses) for table in (listed, MutantTable.concatenate([listed, zeros])))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.known, two.known)


def test_listed_crosses_without_a_row_are_no_zeros() -> None:
    crosses, listed = visible_crosses()
    few = listed.take(np.arange(0, len(listed), 4))
    assert len(few) < len(listed)
    one, two = PairMatrix.of(listed, crosses), PairMatrix.of(few, crosses)
    np.testing.assert_array_equal(one.values, two.values)


def test_listed_crosses_of_other_sides_stay_unknown() -> None:
    crosses, listed = visible_crosses()
    one, two = (
        PairMatrix.of(listed, replace(crosses, listed=table)) for table in (listed, screened_dataset().table)
    )
    np.testing.assert_array_equal(one.known, two.known)
    np.testing.assert_array_equal(one.values, two.values)


def test_a_strain_without_a_visible_cross_is_unseen() -> None:
    crosses, listed = visible_crosses()
    gene = crosses.grid.query_gene[0]
    held = np.zeros(crosses.grid.genes, np.uint8)
    held[gene] = 2
    sides = CrossSides(crosses.sides.word, "one-unseen", held=held)
    kept = listed.take(sides.of_table(listed) == TRAIN)
    matrix = PairMatrix.of(kept, VisibleCrosses(crosses.grid, sides, kept))
    assert gene not in matrix.gene
    assert matrix.find(np.array([gene]), np.zeros(1, np.uint8))[0] == -1


def test_part_is_the_matrix_of_some_strains_and_other_orders_are_refused() -> None:
    crosses, listed = visible_crosses()
    matrix, some = PairMatrix.of(listed, crosses), np.array([0, 3, 7])
    part = matrix.part(some)
    np.testing.assert_array_equal(part.values, matrix.values[some][:, some])
    np.testing.assert_array_equal(part.gene, matrix.gene[some])
    assert len(part) == 3
    with pytest.raises(ShapeError, match="order"):
        PairMatrix.of(MutantTable.from_sets([(0, 1), (2,)], value=[0.0, 1.0]))
