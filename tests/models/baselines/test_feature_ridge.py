"""Ridge on gene features against its closed form, for genes that no training row has, and shared work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.evidence.pair_features import PairFeatures
from wildtype.models.baselines import BASELINES, feature_ridge, make_baseline
from wildtype.models.baselines.feature_ridge import ALPHAS, Spectrum
from wildtype.models.baselines.groundwork import BaselineFeatures
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.identity import mutant_keys
from wildtype.organism import GeneFeatures, Organism


@given(st.integers(0, 1000), st.integers(2, 12))
def test_one_spectrum_gives_the_closed_form_of_every_label_and_penalty(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5)) @ np.diag([1, 1, 1, 1, 0.0]) + 3  # more columns than rank
    spectrum, alphas = Spectrum.of(x), (0.1, 1.0, 30.0)
    for y in rng.normal(size=(2, rows)) + 7:
        weights, intercepts = spectrum.solve(y, alphas)
        centred = x - x.mean(0)
        for at, alpha in enumerate(alphas):
            want = np.linalg.solve(centred.T @ centred + alpha * np.eye(5), centred.T @ (y - y.mean()))
            np.testing.assert_allclose(weights[:, at], want, atol=1e-8)
            assert intercepts[at] == pytest.approx(y.mean() - x.mean(0) @ want)


def feature_sums(world, rng):
    """Return a table of unseen and seen singles whose label is linear in their features."""
    genes = GeneFeatures([world.organism.features["profile"]]).matrix(40)[0]
    label = genes @ rng.normal(size=genes.shape[1])
    return MutantTable.from_matrix(np.arange(40)[:, None], value=label + 0.01 * rng.normal(size=40))


def test_it_predicts_genes_that_no_training_row_has(world) -> None:
    table = feature_sums(world, np.random.default_rng(0))
    train, validation, test = (table.take(rows) for rows in (range(26), range(26, 32), range(32, 40)))
    ridge = make_baseline("feature_ridge").fit(world.organism, train, validation)
    assert ridge.chosen["alpha"] in ALPHAS
    assert np.corrcoef(ridge.predict(test), test.value)[0, 1] > 0.95
    # the penalty is all that validation labels decide
    fixed = make_baseline("feature_ridge", ridge.chosen).fit(world.organism, train, validation.take([]))
    np.testing.assert_allclose(fixed.predict(test), ridge.predict(test), rtol=1e-9)


def test_pairs_are_sums_and_orders_and_kinds_have_columns(world) -> None:
    rng = np.random.default_rng(1)
    singles = feature_sums(world, rng)
    sets = [[], *([i] for i in range(40)), *([i, i + 1] for i in range(0, 39, 2))]
    value = np.array([sum(singles.value[g] for g in genes) + 5 * len(genes) for genes in sets])
    table = MutantTable.from_sets(sets, value=value)
    kinds = table.kind.copy()
    kinds[::3] = Kind.REDUCED
    value = table.value - 2 * np.bincount(table.row, kinds == Kind.REDUCED, minlength=len(table))
    mixed = MutantTable.build(table.gene, table.offsets, kind=kinds, value=value)
    order = rng.permutation(len(mixed))
    train, test = mixed.take(order[:50]), mixed.take(order[50:])
    ridge = make_baseline("feature_ridge", {"alpha": 1e-3}).fit(world.organism, train, train.take([]))
    assert np.corrcoef(ridge.predict(test), test.value)[0, 1] > 0.99


def test_blocks_of_rows_change_nothing(world, monkeypatch: pytest.MonkeyPatch) -> None:
    train, validation, test = world.split()
    train = replace(train, weight=np.linspace(1, 9, len(train), dtype=np.float32))
    predicted = []
    for block in (1 << 15, 7):
        monkeypatch.setattr(feature_ridge, "BLOCK", block)
        ridge = make_baseline("feature_ridge").fit(world.organism, train, validation)
        predicted.append(ridge.predict(test))
    np.testing.assert_allclose(*predicted, rtol=1e-9)
    x, y = ridge._design(train), train.value.astype(np.float64)
    # Weighted least squares of all rows at once, on columns and labels less their weighted means.
    w, alpha = train.weight.astype(np.float64), ridge.chosen["alpha"]
    centred, level = x - np.average(x, axis=0, weights=w), np.average(y, weights=w)
    gram = centred.T @ (centred * w[:, None]) + alpha * np.eye(x.shape[1])
    np.testing.assert_allclose(
        ridge._weights, np.linalg.solve(gram, centred.T @ (w * (y - level))), atol=1e-8
    )


def test_an_organism_without_features_leaves_the_mean(world) -> None:
    bare = Organism("bare", world.organism.genes)
    table = MutantTable.from_matrix(np.arange(40)[:, None], value=np.arange(40.0))
    ridge = make_baseline("feature_ridge").fit(bare, table.take(range(20)), table.take(range(20, 30)))
    np.testing.assert_allclose(ridge.predict(table), 9.5)


def test_features_are_those_made_without_groundwork(world) -> None:
    train, validation, test = world.split()
    work = BaselineFeatures(world.organism, train, world.fitness)
    plain = PairFeatures(world.organism, train, world.fitness)
    for table in (train.take(range(50)), test, validation, train, test.take([3, 3, 1]), test.take([])):
        np.testing.assert_array_equal(work.features(table), plain(table))


def test_kinds_and_conditions_are_other_mutants() -> None:
    sets = [[0, 1], [0, 1], [0, 1], [1], []]
    table = MutantTable.from_sets(sets, kind=[0, 0, 0, 0, 1, 0, 0], condition=[0, 0, 0, 1, 0])
    keys = mutant_keys(table, 3)
    assert keys[0] == keys[1]
    assert len(np.unique(keys)) == 4


@pytest.mark.parametrize("name", ["feature_ridge", "boosting_propagation"])
def test_sharing_changes_no_prediction(world, name: str) -> None:
    train, validation, test = (part.take(range(60)) for part in world.split())
    work = BaselineFeatures(world.organism, train, world.fitness)
    other = MutantTable(**{**vars(train), "value": train.value[::-1].copy()})
    fixed = {"leaves": 15, "iterations": 10} if name == "boosting_propagation" else None
    for labels in (other, train):
        shared = make_baseline(name, fixed).fit(
            world.organism, labels, validation, single_fitness=world.fitness, groundwork=work
        )
    alone = make_baseline(name, fixed).fit(world.organism, train, validation, single_fitness=world.fitness)
    np.testing.assert_array_equal(shared.predict(test), alone.predict(test))


def test_it_stands_in_every_table() -> None:
    assert "feature_ridge" in BASELINES
