"""The grid of a screen, the sides of its crosses, and what may be known of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.screened import strain_crosses, tiny_grid
from wildtype.errors import ConfigError, ShapeError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.grid import (
    DROPPED,
    LISTED,
    TEST,
    TRAIN,
    UNKNOWN,
    UNLISTED,
    VALIDATION,
    CrossSides,
    ScreenGrid,
    VisibleCrosses,
    gene_hashes,
    pair_codes,
)

NAMES = [f"G{i:03d}" for i in range(24)]


def sides(rule: str = "random", **options: object) -> CrossSides:
    return CrossSides(gene_hashes(NAMES, 3), rule, **options)  # type: ignore[arg-type]


def test_a_cross_is_of_strains_in_either_direction() -> None:
    grid = tiny_grid()
    crosses = {
        frozenset(zip(genes, kinds, strict=True))
        for genes, kinds in zip(
            strain_crosses(grid).matrix(2).tolist(),
            strain_crosses(grid).kind.reshape(-1, 2).tolist(),
            strict=True,
        )
    }
    by_hand = set()
    for a, ka in zip(grid.query_gene.tolist(), grid.query_kind.tolist(), strict=True):
        for b in grid.array_gene.tolist():
            if abs(a - b) > 1:
                by_hand.add(frozenset(((a, ka), (b, 0))))
    assert crosses == by_hand
    assert grid.counts()[0] == len(by_hand)
    assert grid.measured(strain_crosses(grid)).all()


def test_counts_name_known_and_unknown_crosses() -> None:
    grid = tiny_grid()
    known, unknown = grid.counts()
    more = grid.without(np.array([pair_codes(np.array([3]), np.array([20]), 24)[0]]))
    # Gene 3 is crossed with gene 20 as a deletion and as a hypomorph.
    assert more.counts() == (known - 2, unknown + 2)


def test_codes_of_strains_tell_a_hypomorph_from_a_deletion() -> None:
    grid = tiny_grid()
    table = MutantTable.from_sets(
        [[3, 20], [3, 20], [20, 3], [1, 2]], kind=np.array([0, 0, 1, 0, 0, 1, 4, 0])
    )
    codes = grid.cross_codes(table)
    assert codes[1] == codes[2] != codes[0]
    assert codes[3] == -1


@pytest.mark.parametrize("rule", ["random", "one-unseen", "unseen", "any-unseen"])
def test_stored_sides_and_grids_are_read_back(rule: str) -> None:
    held = np.zeros(24, np.uint8)
    held[:4], held[4:8] = TEST, VALIDATION
    hidden = pair_codes(np.array([9, 10]), np.array([20, 20]), 24)
    one = sides(rule, validation=0.2, test=0.3, held=None if rule == "random" else held, hidden=hidden)
    again = CrossSides.from_arrays({name: np.array(x) for name, x in one.to_arrays().items()})
    left, right = np.triu_indices(24, 1)
    np.testing.assert_array_equal(one.of(left, right), again.of(left, right))
    assert (one.of(np.array([9, 10]), np.array([20, 20])) == DROPPED).all()
    grid = tiny_grid()
    same = ScreenGrid.from_arrays(24, grid.to_arrays())
    np.testing.assert_array_equal(same.crosses(), grid.crosses())


def test_a_side_does_not_depend_on_the_order_of_genes_or_on_the_gene_index() -> None:
    left, right = np.triu_indices(24, 1)
    side = sides(test=0.3).of(left, right)
    np.testing.assert_array_equal(side, sides(test=0.3).of(right, left))
    order = np.random.default_rng(0).permutation(24)
    place = np.argsort(order)
    moved = CrossSides(gene_hashes([NAMES[i] for i in order], 3), test=0.3)
    np.testing.assert_array_equal(moved.of(place[left], place[right]), side)


def test_folds_of_random_crosses_test_each_once() -> None:
    left, right = np.triu_indices(24, 1)
    found = [sides(fold=i, folds=5, validation=0.1, test=0.2).of(left, right) for i in range(5)]
    np.testing.assert_array_equal(sum((side == TEST).astype(int) for side in found), 1)
    for side in found:
        assert 0.05 < (side == VALIDATION).mean() < 0.16
        assert (side == TRAIN).any()


def test_a_split_that_crosses_cannot_have_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="cannot be split by 'screen'; known splits of crosses: random, one-"
    ):
        sides("screen")
    with pytest.raises(ShapeError, match="needs the side of each of 24 genes"):
        sides("unseen")


def test_visible_crosses_are_known_training_crosses() -> None:
    grid, split = tiny_grid(), sides(test=0.3, validation=0.2)
    table = strain_crosses(grid)
    listed = table.take(np.flatnonzero(split.of_table(table) == TRAIN)[::3])
    crosses = VisibleCrosses(grid, split, listed)
    visible = crosses.visible()
    np.testing.assert_array_equal(visible, visible.T)
    number = grid.strain_numbers[table.matrix(2), table.kind.reshape(-1, 2)]
    np.testing.assert_array_equal(visible[number[:, 0], number[:, 1]], split.of_table(table) == TRAIN)
    assert visible.sum() == 2 * (split.of_table(table) == TRAIN).sum()


def test_the_state_of_a_cross_is_unknown_unless_it_is_a_training_cross() -> None:
    grid, split = tiny_grid(), sides(test=0.3, validation=0.2)
    table = strain_crosses(grid)
    trained = split.of_table(table) == TRAIN
    # A list with crosses of all sides: those that do not train must be unknown all the same.
    listed = table.take(np.arange(0, len(table), 3))
    state = VisibleCrosses(grid, split, listed).state(table)
    expected = np.where(np.arange(len(table)) % 3 == 0, LISTED, UNLISTED)
    np.testing.assert_array_equal(state, np.where(trained, expected, UNKNOWN))
    others = MutantTable.from_sets(
        [[0], [1, 2], [6, 7], [2, 12], [0, 8, 9]], kind=np.array([0] * 5 + [1, 0, 0, 0, 0])
    )
    assert (VisibleCrosses(grid, split, listed).state(others) == UNKNOWN).all()
    assert int(Kind.REDUCED) == 1


def test_an_index_with_fewer_genes_has_fewer_crosses() -> None:
    grid = tiny_grid()
    mapping = np.full(24, -1)
    kept = np.array([3, 8, 9, 20, 12])
    mapping[kept] = np.arange(5)
    moved = grid.remap(mapping, 5)
    table = strain_crosses(moved)
    names = {tuple(sorted(kept[row].tolist())) for row in table.matrix(2)}
    assert names == {(3, 8), (3, 9), (3, 20), (3, 12), (8, 20), (8, 12), (9, 20), (9, 12), (12, 20)}
    assert replace(moved).genes == 5


@pytest.mark.parametrize("rule", ["random", "one-unseen"])
def test_genes_at_the_end_change_no_side(rule: str) -> None:
    n, names = 12, [f"G{i}" for i in range(12)]
    left, right = np.triu_indices(n, 1)
    held = np.where(np.arange(n) < 3, 2, 0).astype(np.uint8)
    hidden = np.unique(pair_codes(left, right, n)[::7])
    sides = CrossSides(gene_hashes(names, 0), rule, held=held, hidden=hidden)
    wider = sides.extended(5)
    np.testing.assert_array_equal(wider.of(left, right), sides.of(left, right))
    assert (np.diff(wider.hidden) > 0).all()
    assert len(wider.word) == n + 5


def test_crossed_genes_are_those_of_strains_of_any_kind() -> None:
    grid = tiny_grid()
    left, right = np.triu_indices(grid.genes, 1)
    kinds = range(len(Kind))
    wanted = np.zeros(len(left), bool)
    for a in kinds:
        for b in kinds:
            wanted |= grid.crossed(
                left, right, np.full(len(left), a, np.uint8), np.full(len(left), b, np.uint8)
            )
    assert np.array_equal(grid.crossed_genes(left, right), wanted)
    assert np.array_equal(grid.crossed_genes(right, left), wanted)
    assert 0 < wanted.sum() < len(left)
