"""What a training mutant may not see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evidence.examples import MANY, SIMILARITY, measured, same, sets_of
from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.out_of_fold import OutOfFold


@pytest.mark.parametrize("scheme", ["seen", "one", "none", "pair"])
def test_a_training_mutant_never_sees_its_own_label(scheme: str) -> None:
    rng = np.random.default_rng(2)
    table = measured(rng, 60)
    folds = OutOfFold(EvidenceIndex(SIMILARITY, table, 1, MANY), {scheme: 1.0}, seed=3)
    for row in range(0, 60, 9):
        asked = table.take([row])
        own = np.array([s == sets_of(asked)[0] for s in sets_of(table)])
        changed = replace(table, value=np.where(own, -9, table.value).astype(np.float32))
        other = OutOfFold(EvidenceIndex(SIMILARITY, changed, 1, MANY), {scheme: 1.0}, seed=3)
        assert same(folds.tokens_of(asked), other.tokens_of(asked))


def test_what_a_scheme_hides() -> None:
    rng = np.random.default_rng(4)
    table = measured(rng, 200)
    table = table.take(table.order == 2)
    index = EvidenceIndex(SIMILARITY, table, 1, MANY)
    none = OutOfFold(index, {"none": 1.0}, seed=0).tokens_of(table)
    assert not none.one.mask.any()
    assert not none.genes.statistics.any()
    one = OutOfFold(index, {"one": 1.0}, seed=0).tokens_of(table)
    hidden = (
        (one.genes.statistics[:, 1] == 0).reshape(-1, 2).sum(1)
    )  # pairs of which that many genes are unseen
    assert (hidden >= 1).all()
    seen = OutOfFold(index, {"seen": 1.0}, seed=0).tokens_of(table)
    assert seen.one.mask.any()


def test_epochs_differ_and_repeat_whatever_the_batches() -> None:
    table = measured(np.random.default_rng(5), 120)
    folds = OutOfFold(EvidenceIndex(SIMILARITY, table, 1), {"seen": 0.5, "one": 0.5}, seed=1)
    first = folds.tokens_of(table)
    folds.set_epoch(1)
    assert not same(first, folds.tokens_of(table))
    folds.set_epoch(0)
    assert same(first, folds.tokens_of(table))
    rows = np.arange(30, 60)
    part = folds.tokens_of(table.take(rows))
    assert torch.equal(part.one.value, first.one.value[rows])
    assert torch.equal(part.two.pooled, first.two.pooled[rows])


def test_unknown_schemes_are_refused() -> None:
    index = EvidenceIndex(SIMILARITY, measured(np.random.default_rng(6), 10), 1)
    with pytest.raises(ConfigError, match="known holdout schemes are seen, one, none, pair"):
        OutOfFold(index, {"some": 1.0}, 0)
    with pytest.raises(ConfigError, match="gives no holdout scheme a fraction above 0"):
        OutOfFold(index, {"one": 0.0}, 0)


@pytest.mark.parametrize("scheme", ["seen", "one", "none"])
def test_the_additive_model_of_a_training_mutant_is_without_its_own_value(scheme: str) -> None:
    table = measured(np.random.default_rng(10), 60)
    row = 7
    value = table.value.copy()
    value[[s == sets_of(table)[row] for s in sets_of(table)]] += 100
    effects = []
    for one in (table, replace(table, value=value)):
        hidden = OutOfFold(EvidenceIndex(SIMILARITY, one, 1, EvidenceSizes(0, 0, 0, 0)), {scheme: 1.0}, 0)
        effects.append(hidden.tokens_of(one.take([row])).genes.additive)
    assert torch.equal(*effects)
    assert bool(effects[0].any()) == (scheme != "none")
