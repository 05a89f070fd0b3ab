"""Baselines of pairs as a matrix: what they recover, what they may see of a grid, how settings are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planted import World
from tests.screened import screened_dataset, strain_crosses
from wildtype.errors import ConfigError
from wildtype.evidence.completion import Additive, low_rank, profile_completion
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.models.baselines.pair_matrices import DEFAULT_RANK, DEFAULT_WEIGHTS, RANKS, PairBaseline
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TEST, TRAIN, VALIDATION, CrossSides, VisibleCrosses, gene_hashes

NAMES = [
    "screen_constant",
    "screen_additive",
    "low_rank",
    "two_step_ridge",
    "pairwise_ridge",
    "matrix",
    "matrix_screens",
]
EVERY = pytest.mark.parametrize("name", NAMES)


def screen(rule: str = "random"):
    """Return a tiny screen with the side of every cross, and rows of all its crosses with listed values."""
    dataset = screened_dataset(48)
    names, held = dataset.organism.genes.names, None
    if rule != "random":
        held = np.zeros(48, np.uint8)
        held[[1, 13, 20, 41]], held[[2, 14, 22, 40]] = VALIDATION, TEST
    sides = CrossSides(gene_hashes(names, 3), rule, 0.15, 0.15, held)
    every = strain_crosses(dataset.grid)
    value, codes = np.zeros(len(every), np.float32), dataset.grid.cross_codes(dataset.table)
    place = {int(code): at for at, code in enumerate(dataset.grid.cross_codes(every))}
    value[[place[int(code)] for code in codes]] = dataset.table.value
    return dataset, sides, replace(every, value=value)


def listed_of(table: MutantTable, sides: CrossSides, side: int) -> MutantTable:
    return table.take((sides.of_table(table) == side) & (table.value != 0))


def fitted(name: str, dataset, sides, every, fixed=None):
    train = listed_of(every, sides, TRAIN)
    crosses = VisibleCrosses(dataset.grid, sides, train)
    validation = every.take(sides.of_table(every) == VALIDATION)
    return make_baseline(name, fixed).fit(dataset.organism, train, validation, crosses=crosses)


def test_they_are_registered_for_pairs_only() -> None:
    assert [b.name for b in BASELINES.values() if issubclass(b, PairBaseline)] == NAMES
    assert [b.name for b in BASELINES.values() if b.order is not None] == NAMES


@EVERY
@pytest.mark.parametrize("rule", ["random", "one-unseen"])
def test_values_and_listing_of_hidden_crosses_change_no_bit(name: str, rule: str) -> None:
    dataset, sides, every = screen(rule)
    fixed = fitted(name, dataset, sides, every).chosen
    hidden = np.flatnonzero(sides.of_table(every) != TRAIN)
    value = every.value.copy()
    value[hidden] = np.random.default_rng(0).permutation(value[hidden]) * 3
    other = replace(every, value=value)
    assert ((value != 0) != (every.value != 0)).any()
    test = every.take(sides.of_table(every) == TEST)
    one, two = (fitted(name, dataset, sides, table, fixed).predict(test) for table in (every, other))
    np.testing.assert_array_equal(one, two)


@EVERY
def test_zeros_of_the_grid_are_seen_and_sampled_rows_of_them_change_no_bit(name: str) -> None:
    dataset, sides, every = screen()
    train, test = listed_of(every, sides, TRAIN), every.take(sides.of_table(every) == TEST)
    crosses = VisibleCrosses(dataset.grid, sides, train)
    rest = every.take((sides.of_table(every) == TRAIN) & (every.value == 0)).take(np.arange(100))
    both = MutantTable.concatenate([train, rest])
    none = test.take([])
    with_grid, sampled, without = (
        make_baseline(name).fit(dataset.organism, rows, none, crosses=visible).predict(test)
        for rows, visible in ((train, crosses), (both, crosses), (train, None))
    )
    np.testing.assert_array_equal(with_grid, sampled)
    assert not np.array_equal(with_grid, without)


def test_matrix_is_profile_completion_times_the_least_squares_scale() -> None:
    dataset, sides, every = screen()
    train = listed_of(every, sides, TRAIN)
    crosses = VisibleCrosses(dataset.grid, sides, train)
    validation, test = (every.take(sides.of_table(every) == side) for side in (VALIDATION, TEST))
    matrix = PairMatrix.of(train, crosses)
    full = profile_completion(matrix, Additive.of(matrix)).astype(np.float64)
    i, j = matrix.cells(validation).T
    scale = float(full[i, j] @ validation.value / (full[i, j] @ full[i, j]))
    baseline = make_baseline("matrix").fit(dataset.organism, train, validation, crosses=crosses)
    assert baseline.chosen["scale"] == pytest.approx(scale, rel=1e-6)
    a, b = matrix.cells(test).T
    np.testing.assert_allclose(baseline.predict(test), scale * full[a, b], rtol=1e-5)
    bare = make_baseline("matrix").fit(dataset.organism, train, test.take([]), crosses=crosses)
    np.testing.assert_allclose(bare.predict(test), full[a, b], rtol=1e-5)
    against = replace(validation, value=-validation.value)
    assert make_baseline("matrix").fit(dataset.organism, train, against).chosen == {"scale": 0.0}


def dense_map(s: int = 40):
    """Return rows of a dense map of rank 2 beside additive effects, in three parts."""
    rng = np.random.default_rng(2)
    factors, effect = rng.normal(size=(s, 2)), rng.normal(size=s)
    left, right = np.triu_indices(s, 1)
    value = (factors[left] * factors[right] * [1, -1]).sum(1) + 0.5 * (effect[left] + effect[right]) + 0.2
    value += 0.05 * rng.normal(size=len(value))
    table = MutantTable.from_matrix(np.stack([left, right], 1), value=value).take(rng.permutation(len(left)))
    a, b = int(0.7 * len(table)), int(0.8 * len(table))
    return table.take(np.arange(a)), table.take(np.arange(a, b)), table.take(np.arange(b, len(table)))


def test_low_rank_recovers_a_dense_map_and_takes_the_best_rank(world: World) -> None:
    train, validation, test = dense_map()
    baseline = make_baseline("low_rank").fit(world.organism, train, validation)
    assert np.corrcoef(baseline.predict(test), test.value)[0, 1] > 0.95
    additive = make_baseline("screen_additive").fit(world.organism, train, validation)
    assert np.corrcoef(additive.predict(test), test.value)[0, 1] < 0.8
    matrix = PairMatrix.of(train)
    model, (i, j) = Additive.of(matrix), matrix.cells(validation).T
    residual = np.where(matrix.known, matrix.values - model.matrix(), np.float32(0))
    errors = [
        np.mean(
            ((model.matrix() + low_rank(residual, matrix.known, r).matrix())[i, j] - validation.value) ** 2
        )
        for r in RANKS
    ]
    assert baseline.chosen == {"rank": RANKS[int(np.argmin(errors))]}
    assert make_baseline("low_rank").fit(world.organism, train, test.take([])).chosen == {
        "rank": DEFAULT_RANK
    }


def test_constant_and_additive_are_those_of_known_cells(world: World) -> None:
    train, validation, test = dense_map()
    constant = make_baseline("screen_constant").fit(world.organism, train, validation)
    np.testing.assert_allclose(constant.predict(test), train.value.astype(np.float64).mean(), rtol=1e-6)
    dataset, sides, every = screen()
    seen = every.take(sides.of_table(every) == TRAIN)
    found = fitted("screen_constant", dataset, sides, every).predict(seen)
    np.testing.assert_allclose(found, seen.value.astype(np.float64).mean(), rtol=1e-5)


@pytest.mark.parametrize("name", ["two_step_ridge", "pairwise_ridge"])
def test_ridge_of_pairs_predicts_unseen_genes_by_their_module(name: str, module_world: World) -> None:
    # Genes of a module share a complex; labels follow from the modules of both genes.
    held = np.arange(0, 8)
    unseen = np.isin(module_world.pairs.matrix(2), held).sum(1)
    train, rest = module_world.pairs.take(unseen == 0), module_world.pairs.take(unseen > 0)
    validation, test = rest.take(np.arange(0, len(rest), 2)), rest.take(np.arange(1, len(rest), 2))
    predicted = make_baseline(name).fit(module_world.organism, train, validation).predict(test)
    one = np.isin(test.matrix(2), held).sum(1) == 1
    for rows in (one, ~one):
        assert np.corrcoef(predicted[rows], test.value[rows])[0, 1] > 0.6
    additive = make_baseline("screen_additive").fit(module_world.organism, train, validation).predict(test)
    assert np.mean((predicted - test.value) ** 2) < 0.7 * np.mean((additive - test.value) ** 2)


def elsewhere(every: MutantTable, noise: float, seed: int = 5) -> OtherScreen:
    """Return most crosses as another laboratory measured them: in another unit, with noise of its own."""
    rng = np.random.default_rng(seed)
    rows = every.take(rng.random(len(every)) < 0.7)
    value = 30 * rows.value + rng.normal(0, noise, len(rows)).astype(np.float32)
    return OtherScreen("another", PairMatrix.of(replace(rows, value=value)))


def test_matrix_of_several_screens_adds_what_another_measured_of_the_pair() -> None:
    dataset, sides, every = screen()
    train, validation, test = (every.take(sides.of_table(every) == s) for s in (TRAIN, VALIDATION, TEST))
    crosses = VisibleCrosses(dataset.grid, sides, train.take(train.value != 0))

    def predicted(name: str, screens=()) -> np.ndarray:
        made = make_baseline(name).fit(dataset.organism, train, validation, crosses=crosses, screens=screens)
        return made.predict(test)

    one, other = predicted("matrix"), elsewhere(every, noise=0.1)
    found, alone = predicted("matrix_screens", [other]), predicted("matrix_screens")
    assert np.corrcoef(one, alone)[0, 1] > 0.999  # without other screens it is MATRIX
    cells = other.matrix.cells(test)
    measured = (cells >= 0).all(axis=1) & other.matrix.known[cells[:, 0], cells[:, 1]]
    assert 0 < measured.sum() < len(test)
    listed = test.value != 0
    error = [np.abs(x - test.value)[measured & listed].mean() for x in (one, found)]
    assert error[1] < 0.5 * error[0]
    # What it measured of a pair says nothing where it is noise.
    noise = predicted("matrix_screens", [elsewhere(every, noise=1000.0)])
    assert np.abs(noise - one).mean() < 0.5 * np.abs(found - one).mean()


def test_what_others_measured_of_a_training_pair_changes_no_prediction_of_it_alone() -> None:
    dataset, sides, every = screen()
    train = listed_of(every, sides, TRAIN)
    crosses, none = VisibleCrosses(dataset.grid, sides, train), every.take([])
    other = elsewhere(every, noise=0.1)
    made = make_baseline("matrix_screens").fit(
        dataset.organism, train, none, crosses=crosses, screens=[other]
    )
    assert made.chosen == DEFAULT_WEIGHTS
    _, measured = made._said(train)
    assert np.isnan(measured).all()


def test_matrix_of_several_screens_refuses_a_setting_that_it_does_not_have() -> None:
    dataset, sides, every = screen()
    with pytest.raises(ConfigError, match="has no setting 'rank'"):
        fitted("matrix_screens", dataset, sides, every, {"rank": 3.0})
    assert fitted("matrix_screens", dataset, sides, every, {"scale": 2.0}).chosen["scale"] == 2.0
