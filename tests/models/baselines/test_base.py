from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wildtype.errors import ConfigError, DatasetError, ShapeError
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneFeatures, GeneGraphs

EVERY = pytest.mark.parametrize("name", list(BASELINES))
ANY_ORDER = pytest.mark.parametrize("name", [b.name for b in BASELINES.values() if b.order is None])
OF_PAIRS = pytest.mark.parametrize("name", [b.name for b in BASELINES.values() if b.order == 2])


def test_registry_names_are_the_class_names_and_an_unknown_one_is_refused_with_the_known():
    assert [b.name for b in BASELINES.values()] == list(BASELINES)
    assert all(b.description for b in BASELINES.values())
    with pytest.raises(ConfigError, match=r"'forest'.*additive_ridge.*boosting_propagation"):
        make_baseline("forest")


@pytest.mark.slow
@EVERY
def test_repeats_exactly_and_ignores_labels_of_the_rows_asked(name, world):
    train, validation, test = world.split()
    train = train.take(np.arange(0, len(train), 3))
    one, two = (
        make_baseline(name).fit(world.organism, train, validation, single_fitness=world.fitness, seed=3)
        for _ in range(2)
    )
    assert one.chosen == two.chosen
    np.testing.assert_array_equal(one.predict(test), two.predict(test))
    shuffled = replace(test, value=test.value[::-1] * 9, sd=np.ones(len(test), np.float32))
    np.testing.assert_array_equal(one.predict(test), one.predict(shuffled))
    # A row's prediction does not depend on which rows are asked with it.
    some = np.arange(0, len(test), 3)
    np.testing.assert_allclose(one.predict(test.take(some)), one.predict(test)[some], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@EVERY
def test_validation_labels_act_through_the_chosen_settings_only(name, world):
    train, validation, test = world.split()
    fit = {"single_fitness": world.fitness, "seed": 1}
    train = train.take(np.arange(0, len(train), 3))
    fixed = make_baseline(name).fit(world.organism, train, validation, **fit).chosen
    if "epochs" in fixed:
        fixed = {**fixed, "epochs": 3}
    one = make_baseline(name, fixed).fit(world.organism, train, validation, **fit)
    rng = np.random.default_rng(0)
    shuffled = replace(validation, value=rng.permutation(validation.value) * 5 + 2)
    two = make_baseline(name, fixed).fit(world.organism, train, shuffled, **fit)
    assert one.chosen == two.chosen == fixed
    np.testing.assert_array_equal(one.predict(test), two.predict(test))


@ANY_ORDER
def test_other_orders_singles_empty_rows_kinds_conditions_and_unseen_genes(name, world):
    rng = np.random.default_rng(0)
    sets = [tuple(rng.choice(30, size=rng.integers(0, 5), replace=False)) for _ in range(150)]
    kind = rng.integers(0, 2, sum(len(s) for s in sets))
    columns = {"kind": kind, "condition": rng.integers(0, 3, len(sets)), "value": rng.normal(size=len(sets))}
    table = MutantTable.from_sets(sets, **columns)
    baseline = make_baseline(name).fit(
        world.organism, table.take(np.arange(120)), table.take(np.arange(120, 150))
    )
    asked = MutantTable.from_sets(
        [(), (1,), (35,), (1, 36), (38, 39), (0, 1, 2), (3, 37, 38, 39), tuple(range(8))],
        kind=Kind.OVEREXPRESSED,
        condition=[0, 1, 2, 3, 0, 1, 2, 9],
    )
    predicted = baseline.predict(asked)
    assert predicted.shape == (8,)
    assert predicted.dtype == np.float64
    assert np.isfinite(predicted).all()
    assert baseline.predict(asked.take(np.arange(0))).shape == (0,)


@OF_PAIRS
def test_baselines_of_pairs_take_kinds_conditions_and_unseen_genes_and_refuse_other_orders(name, world):
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.choice(30, 2, replace=False) for _ in range(150)])
    kind, condition = rng.integers(0, 2, 300), rng.integers(0, 3, 150)
    table = MutantTable.from_matrix(pairs, kind=kind, condition=condition, value=rng.normal(size=150))
    train, validation = table.take(np.arange(120)), table.take(np.arange(120, 150))
    baseline = make_baseline(name).fit(world.organism, train, validation)
    asked = MutantTable.from_matrix([(1, 2), (1, 36), (38, 39)], kind=Kind.OVEREXPRESSED, condition=[9, 9, 9])
    assert np.isfinite(baseline.predict(asked)).all()
    assert baseline.predict(asked.take(np.arange(0))).shape == (0,)
    mixed = MutantTable.from_sets([(0, 1), (2, 3, 4)], value=[0.0, 1.0])
    assert not BASELINES.find(name).applies(train, mixed)
    assert BASELINES.find(name).applies(train, validation)
    with pytest.raises(ConfigError, match=rf"{name!r} is for rows of 2 genes, queried row 1 has 3: leave"):
        baseline.predict(mixed)
    with pytest.raises(ConfigError, match=r"training row 1 has 3"):
        make_baseline(name).fit(world.organism, mixed, validation)
    with pytest.raises(ConfigError, match=r"validation row 1 has 3"):
        make_baseline(name).fit(world.organism, train, mixed)


@EVERY
@pytest.mark.parametrize("rows", [1, 2])
def test_one_or_two_training_rows_without_validation_relations_features_or_fitness(name, rows, world):
    bare = replace(world.organism, graphs=GeneGraphs(), features=GeneFeatures(), essential=None)
    train = world.pairs.take(np.arange(rows))
    baseline = make_baseline(name).fit(bare, train, world.pairs.take(np.arange(0)))
    assert np.isfinite(baseline.predict(world.pairs.take(np.arange(20)))).all()


@pytest.mark.slow
@EVERY
def test_works_without_relations_and_without_features(name, world):
    train, validation, test = world.split()
    bare = replace(world.organism, graphs=GeneGraphs(), features=GeneFeatures(), essential=None)
    assert np.isfinite(make_baseline(name).fit(bare, train, validation).predict(test)).all()


def test_refusals(world):
    train, validation, test = world.split()
    fresh = make_baseline("mean")
    with pytest.raises(ConfigError, match="not been fitted"):
        fresh.predict(test)
    with pytest.raises(DatasetError, match="no training row"):
        fresh.fit(world.organism, train.take(np.arange(0)), validation)
    bad = replace(train, value=np.where(np.arange(len(train)) == 4, np.nan, train.value).astype(np.float32))
    with pytest.raises(DatasetError, match="training row 4"):
        fresh.fit(world.organism, bad, validation)
    with pytest.raises(ShapeError, match=r"expected \(40,\)"):
        fresh.fit(world.organism, train, validation, single_fitness=np.ones(3, np.float32))
    fresh.fit(world.organism, train, validation)
    with pytest.raises(ShapeError, match="gene 40"):
        fresh.predict(MutantTable.from_sets([(0, 40)]))
    with pytest.raises(ConfigError, match=r"no setting 'beta'; it has alpha"):
        make_baseline("additive_ridge", {"beta": 1.0}).fit(world.organism, train, validation)


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("mean", None),
        ("additive_ridge", {"alpha": 0.5}),
        ("pair_ridge", {"alpha": 0.5}),
        ("feature_ridge", {"alpha": 2.0}),
    ],
)
def test_a_weighted_row_counts_as_the_rows_that_it_stands_for(
    world, name: str, fixed: dict[str, float] | None
) -> None:
    train, validation, test = world.split()
    counts = np.random.default_rng(0).integers(1, 4, len(train))
    if name == "pair_ridge":  # pairs count as repeated where they are in several rows
        train, counts = MutantTable.concatenate([train, train]), np.concatenate([counts, counts])
    many = train.take(np.repeat(np.arange(len(train)), counts))
    weighted = replace(train, weight=counts.astype(np.float32))
    predicted = [
        make_baseline(name, fixed).fit(world.organism, rows, validation).predict(test)
        for rows in (weighted, many, train)
    ]
    np.testing.assert_allclose(predicted[0], predicted[1], atol=1e-5)
    assert not np.allclose(predicted[0], predicted[2], atol=1e-5)


@pytest.mark.parametrize("name", ["boosting", "boosting_propagation", "embedding_mlp", "low_rank_bilinear"])
def test_rows_of_large_weight_decide_the_level_of_predictions(world, name: str) -> None:
    fixed = {"leaves": 15, "iterations": 30} if name.startswith("boosting") else {"epochs": 20}
    train, validation, test = (part.take(range(60)) for part in world.split())
    # Rows of one half have the label 0, the others 1; the weights make the second half nearly all there is.
    half = np.arange(len(train)) % 2
    train = replace(train, value=half.astype(np.float32))
    levels = []
    for weight in (None, np.where(half, 100.0, 1.0).astype(np.float32)):
        baseline = make_baseline(name, fixed)
        levels.append(
            baseline.fit(world.organism, replace(train, weight=weight), validation).predict(test).mean()
        )
    assert levels[1] > levels[0] + 0.1
