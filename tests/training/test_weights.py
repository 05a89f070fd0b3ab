"""How much targets count: by sd, by phenotype, by head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.models.interface import GeneProfile, Output, Prediction, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.training.objective import objective
from wildtype.training.validation import ScoredRows, pearson_by_gene
from wildtype.training.weights import TargetWeights

WILD_TYPE = WildType(torch.zeros(1), torch.zeros(1, 1))
SDS = st.lists(st.one_of(st.floats(0, 10), st.just(float("nan"))), min_size=1, max_size=30)


def singles(phenotype: list[int], **columns: object) -> MutantTable:
    return MutantTable.from_matrix(np.arange(len(phenotype))[:, None], phenotype=phenotype, **columns)  # type: ignore[arg-type]


@given(SDS)
@settings(max_examples=40)
def test_inverse_variance_weights_have_mean_one_and_are_bounded(sd: list[float]) -> None:
    table = singles([0] * len(sd), value=np.zeros(len(sd)), sd=sd)
    if np.isnan(sd).all():
        with pytest.raises(DatasetError, match=r"training\.weighting=sd"):
            TargetWeights.fit(table, [Output("f")], weighting="sd")
        return
    weights = TargetWeights.fit(table, [Output("f")], weighting="sd").of(MutantBatch.from_table(table))
    assert float(weights.mean()) == pytest.approx(1, rel=1e-4)
    median = np.nanmedian(np.float64(np.float32(sd)) ** 2)
    if median > 1e-20:  # no row counts more than twice as much as one of the median sd
        plain = 1 / (np.where(np.isnan(sd), median, np.float64(np.float32(sd)) ** 2) + median)
        np.testing.assert_allclose(weights.numpy(), plain / plain.mean(), rtol=1e-3)
        assert float(weights.max()) <= 2.01 * (1 / (2 * median)) / plain.mean()


def test_a_phenotype_without_noise_is_not_weighed() -> None:
    table = singles([0, 0, 1], value=[0, 0, 0], sd=[0.0, 0.0, np.nan])
    weights = TargetWeights.fit(table, Output.of(2), weighting="sd").of(MutantBatch.from_table(table))
    assert weights.tolist() == [1, 1, 1]


def test_balance_gives_phenotypes_or_heads_equal_weight() -> None:
    phenotype = [0] * 6 + [1] * 2 + [2] * 4
    table = singles(phenotype, value=np.zeros(12))
    outputs = [Output("fitness"), Output("size", group="shape"), Output("round", group="shape")]
    batch, which = MutantBatch.from_table(table), np.array(phenotype)
    for balance, shares in (
        ("rows", [0.5, 1 / 6, 1 / 3]),
        ("phenotypes", [1 / 3] * 3),
        ("heads", [0.5, 0.25, 0.25]),
    ):
        weights = TargetWeights.fit(table, outputs, balance=balance).of(batch).numpy()
        np.testing.assert_allclose(np.bincount(which, weights=weights) / 12, shares, rtol=1e-6)


def test_targets_that_are_not_a_number_change_neither_loss_nor_gradient() -> None:
    table = singles([0, 1, 0], value=[1.0, np.nan, 0.5])
    mean = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    result = objective(Prediction(mean), WILD_TYPE, MutantBatch.from_table(table)).total
    result.backward()
    expected = ((mean[0, 0] - 1) ** 2 + (mean[2, 0] - 0.5) ** 2) / 2
    assert float(result) == pytest.approx(float(expected), rel=1e-6)
    assert mean.grad is not None
    assert mean.grad[1].tolist() == [0, 0]
    assert torch.isfinite(mean.grad).all()


def test_classes_and_profiles_in_one_loss() -> None:
    """Against the sum written out: squared errors, cross-entropy, and the entries of a masked profile."""
    truth = np.array([[1.0, np.nan, 0.0]], np.float32)
    table = MutantTable.concatenate(
        [
            MutantTable.from_sets([[0], [1]], value=[2.0, 1.0], phenotype=[0, 1]),
            MutantTable.from_sets([[1]], phenotype=[2], profile=[0], profiles=truth),
        ]
    )
    outputs = [Output("f"), Output("call", "class"), Output("mRNA", "gene")]
    batch = MutantBatch.grouped(table)
    assert len(batch) == 2
    mean = torch.tensor([[1.5, 9.0, 0.0], [9.0, 0.25, 0.0]])
    left, right = torch.randn(2, 2), torch.randn(3, 2)
    profile = GeneProfile(left, right, torch.tensor([0.0, 0.5]), batch.gene, batch.offsets)
    weights = TargetWeights.fit(table, outputs)
    found = objective(Prediction(mean, {2: profile}), WILD_TYPE, batch, weights=weights).total
    said = left @ right.T
    said[1, 1] += 0.5
    entries = (said[1, [0, 2]] - torch.tensor([1.0, 0.0])) ** 2
    expected = (0.25 + np.log1p(np.exp(-0.25)) + float(entries.sum())) / 4
    assert float(found) == pytest.approx(expected, rel=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 1000))
def test_pearson_by_gene_is_its_definition(m: int, n: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    said, truth = draw.normal(size=(m, n)), draw.normal(size=(m, n))
    truth[draw.random((m, n)) < 0.3] = np.nan
    found = pearson_by_gene(said, truth)
    for j in range(n):
        there = np.isfinite(truth[:, j])
        if there.sum() < 2:
            assert np.isnan(found[j])
        else:
            assert found[j] == pytest.approx(np.corrcoef(said[there, j], truth[there, j])[0, 1])


def test_score_is_the_mean_over_heads() -> None:
    outputs = [Output("f"), Output("a", group="v"), Output("b", group="v"), Output("call", "class")]
    table = singles([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], value=[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0])
    mean = torch.zeros(12, 4)
    mean[torch.arange(12), torch.from_numpy(table.phenotype)] = torch.tensor(
        [0.0, 1, 2, 2, 1, 0, 0, 1, 2, 3, 2, 1]
    )
    score = ScoredRows(outputs)
    score.add(Prediction(mean), MutantBatch.from_table(table))
    assert score.result()[0] == pytest.approx((1 + (-1 + 1) / 2 + 0.5) / 3)  # the call stands second: AP 1/2


@pytest.mark.parametrize("weights", [False, True])
def test_one_phenotype_has_the_plain_mean_to_the_last_bit(weights: bool) -> None:
    table = singles([0] * 37, value=np.random.default_rng(0).normal(size=37))
    batch, mean = MutantBatch.grouped(table), torch.randn(37, 1, requires_grad=True)
    rules = TargetWeights.fit(table, Output.of(1)) if weights else None
    found = objective(Prediction(mean), WILD_TYPE, batch, weights=rules).total
    plain = torch.square(mean[:, 0] - batch.value).mean()
    assert torch.equal(found, plain)
    ours, theirs = (torch.autograd.grad(loss, mean)[0] for loss in (found, plain))
    assert torch.equal(ours, theirs)
