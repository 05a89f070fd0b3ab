from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from wildtype.models.baselines import make_baseline
from wildtype.models.baselines.linear import ALPHAS, Design, ridge
from wildtype.mutants import MutantTable


@given(st.integers(0, 1000), st.floats(1e-2, 1e2))
@settings(max_examples=30, deadline=None)
def test_ridge_equals_its_closed_form_with_an_unpenalised_intercept(seed, alpha):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (30, 6)).astype(np.float64)
    y = rng.normal(size=30) + 5
    weights, intercept = ridge(sparse.csr_array(x), y, alpha)
    centred = x - x.mean(0)
    want = np.linalg.solve(centred.T @ centred + alpha * np.eye(6), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(weights, want, atol=1e-6)
    np.testing.assert_allclose(intercept, y.mean() - x.mean(0) @ want, atol=1e-6)


def test_mean_is_the_training_mean(world):
    train, validation, test = world.split()
    predicted = make_baseline("mean").fit(world.organism, train, validation).predict(test)
    np.testing.assert_allclose(predicted, train.value.astype(np.float64).mean())


def test_additive_ridge_recovers_additive_labels_of_other_orders(additive_world):
    world = additive_world
    train, validation, test = world.split()
    baseline = make_baseline("additive_ridge").fit(world.organism, train, validation)
    assert np.corrcoef(baseline.predict(test), test.value)[0, 1] > 0.98
    triples = MutantTable.from_sets([(0, 1, 2), (5, 9, 30), (7, 8, 39)])
    np.testing.assert_allclose(baseline.predict(triples), world.label(triples), atol=0.3)


def test_pair_ridge_learns_repeated_pairs_and_equals_additive_ridge_where_none_repeats(module_world, world):
    rng = np.random.default_rng(1)
    sets = np.stack([rng.choice(12, 3, replace=False) for _ in range(600)])
    value = module_world.label(MutantTable.from_matrix(sets))
    table = MutantTable.from_matrix(sets, value=value)
    train, validation, test = (table.take(np.arange(a, b)) for a, b in ((0, 400), (400, 500), (500, 600)))
    additive, pairs = (
        make_baseline(name).fit(module_world.organism, train, validation)
        for name in ("additive_ridge", "pair_ridge")
    )
    error = [np.mean((b.predict(test) - test.value) ** 2) for b in (additive, pairs)]
    assert error[1] < 0.1 * error[0]

    train, validation, test = world.split()
    same = [
        make_baseline(name).fit(world.organism, train, validation).predict(test)
        for name in ("additive_ridge", "pair_ridge")
    ]
    np.testing.assert_allclose(same[0], same[1])


def test_kinds_and_conditions_get_their_own_effects_only_where_there_are_several(world):
    sets, kind, condition = [(0,), (0,), (1,), (1,)], [0, 1, 0, 1], [0, 0, 1, 1]
    plain = Design(MutantTable.from_sets(sets), 40, pairs=False)
    assert plain.matrix(MutantTable.from_sets(sets)).shape == (4, 2)
    table = MutantTable.from_sets(sets, kind=kind, condition=condition, value=[0.0, 1.0, 4.0, 5.0])
    assert Design(table, 40, pairs=False).matrix(table).shape == (4, 2 + 4 + 2 + 2)
    baseline = make_baseline("additive_ridge", {"alpha": 1e-4}).fit(
        world.organism, table, table.take(np.arange(0))
    )
    np.testing.assert_allclose(baseline.predict(table), table.value, atol=1e-2)


def test_every_penalty_of_additive_ridge_gives_its_closed_form(additive_world):
    # A solver that is started at the weights of another penalty must not penalise the distance to them.
    train, validation, test = additive_world.split()
    few = train.take(np.arange(0, len(train), 12))
    fitted = make_baseline("additive_ridge").fit(additive_world.organism, few, validation)
    assert fitted.chosen["alpha"] < ALPHAS[-2]
    x = Design(few, len(additive_world.organism.genes), pairs=False)
    centred = x.matrix(few).toarray() - x.matrix(few).toarray().mean(0)
    y = few.value.astype(np.float64)
    gram = centred.T @ centred + fitted.chosen["alpha"] * np.eye(centred.shape[1])
    want = (x.matrix(test).toarray() - x.matrix(few).toarray().mean(0)) @ np.linalg.solve(
        gram, centred.T @ (y - y.mean())
    ) + y.mean()
    np.testing.assert_allclose(fitted.predict(test), want, atol=1e-5)
