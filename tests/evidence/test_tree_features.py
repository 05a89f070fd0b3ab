"""Features for trees: those of a mutant do not depend on its batch, and means are weighted by similarity."""

from __future__ import annotations

import pytest
import torch

from tests.models.test_trees import ASKED, TRAITS, asked
from wildtype.evidence.edits import REPLACED
from wildtype.evidence.tree_features import EvidenceFeatures
from wildtype.mutants.batch import MutantBatch


def features(batch: MutantBatch, conditions: int = 2) -> torch.Tensor:
    found = EvidenceFeatures(batch, TRAITS, conditions)
    return torch.cat([found.shared, found.labels(0), found.labels(1)], dim=1)


def test_features_of_a_mutant_are_its_own() -> None:
    whole = features(asked(ASKED))
    assert not whole.isinf().any()
    for i, genes in enumerate(ASKED):
        alone = features(asked([genes]))[0]
        torch.testing.assert_close(alone, whole[i], rtol=1e-4, atol=1e-5, equal_nan=True)
        torch.testing.assert_close(
            features(asked([genes[::-1]]))[0], whole[i], rtol=1e-4, atol=1e-5, equal_nan=True
        )


def test_means_are_weighted_by_likeness() -> None:
    batch = asked([[0, 5], [1, 4, 9]])
    tokens = batch.evidence
    assert tokens is not None
    found = EvidenceFeatures(batch, TRAITS, 1)
    channels = tokens.one.similarity.shape[-1]
    column = found.labels(1)[:, 3 * 3 + 1 + 4 * (channels + 2) :]
    for q in range(2):
        for c in range(channels):
            total = weight = 0.0
            for t in range(tokens.one.similarity.shape[1]):
                if tokens.one.mask[q, t] and tokens.one.edit[q, t] == REPLACED and tokens.one.known[q, t, 1]:
                    w = max(float(tokens.one.similarity[q, t, c]), 0.0)
                    total, weight = total + w * float(tokens.one.value[q, t, 1]), weight + w
            expected = total / weight if weight > 1e-9 else float("nan")
            assert float(column[q, c]) == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True)
