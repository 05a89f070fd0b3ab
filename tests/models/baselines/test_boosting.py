from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wildtype.models.baselines import make_baseline
from wildtype.mutants import MutantTable


def error(name, world, split, **options):
    train, validation, test = split
    baseline = make_baseline(name).fit(world.organism, train, validation, **options)
    return float(np.mean((baseline.predict(test) - test.value) ** 2) / np.var(test.value))


def by_genes(table, held, mode):
    """Training rows without held genes; other rows with one ('one') or only ('none') held genes."""
    inside = np.bincount(table.row, np.isin(table.gene, held), minlength=len(table))
    rest = np.flatnonzero(inside == (1 if mode == "one" else 2))
    return table.take(inside == 0), table.take(rest[::2]), table.take(rest[1::2])


@pytest.mark.slow
def test_boosting_learns_from_single_fitness_and_graphs(additive_world):
    assert (
        error("boosting", additive_world, additive_world.split(), single_fitness=additive_world.fitness) < 0.3
    )


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "held"), [("seen", ()), ("one", range(6)), ("none", range(16))])
def test_propagation_beats_boosting_where_labels_follow_a_graph(module_world, mode, held):
    split = module_world.split() if mode == "seen" else by_genes(module_world.pairs, list(held), mode)
    plain, propagated = (error(name, module_world, split) for name in ("boosting", "boosting_propagation"))
    assert propagated < 0.7
    assert propagated < 0.85 * plain


def test_propagation_learns_triples_from_rows_that_share_a_pair(module_world):
    rng = np.random.default_rng(2)
    sets = np.unique(np.sort([rng.choice(16, 3, replace=False) for _ in range(500)], axis=1), axis=0)
    value = module_world.label(MutantTable.from_matrix(sets))
    table = MutantTable.from_matrix(sets, value=value).take(rng.permutation(len(sets)))
    a, b = int(0.7 * len(table)), int(0.85 * len(table))
    split = tuple(table.take(np.arange(*span)) for span in ((0, a), (a, b), (b, len(table))))
    assert error("boosting_propagation", module_world, split) < 0.3


@pytest.mark.slow
def test_pure_noise_is_not_learnt_from_leaking_labels(world):
    # Label features that held a row's own label would be trusted in training, and would ruin the test rows.
    rng = np.random.default_rng(5)
    noise = replace(world.pairs, value=rng.normal(size=len(world.pairs)).astype(np.float32))
    order = rng.permutation(len(noise))
    split = tuple(noise.take(part) for part in np.split(order, [500, 640]))
    assert error("boosting_propagation", world, split) < 1.15
    train, validation, _ = split
    settings = {"leaves": 15, "iterations": 30}
    baseline = make_baseline("boosting_propagation", settings).fit(world.organism, train, validation)
    assert baseline.scheme == "seen"
