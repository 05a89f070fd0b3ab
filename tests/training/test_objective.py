"""The loss of a batch: which error, how rows are weighed, and what auxiliary losses add."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.models.interface import Output, Prediction, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.training.micro_batches import micro_batches
from wildtype.training.objective import log_cosh, objective
from wildtype.training.weights import TargetWeights, evidence_weights, mean_weight


def wild_type(losses: dict[str, float], weights: dict[str, float]) -> WildType:
    return WildType(
        torch.zeros(1), torch.zeros(1, 1), {k: torch.tensor(v) for k, v in losses.items()}, weights
    )


def table(p: list[float] | None = None) -> MutantTable:
    values = None if p is None else np.array(p, np.float32)
    return MutantTable.from_sets([[0], [1], [2]], value=[0.0, 1.0, 2.0], p=values)


@given(st.floats(-300, 300))
def test_log_cosh_is_its_definition(x: float) -> None:
    expected = math.log(math.cosh(x))
    assert float(log_cosh(torch.tensor(x, dtype=torch.float64))) == pytest.approx(expected, abs=1e-12)


def test_log_cosh_does_not_overflow() -> None:
    x = torch.tensor([-1e6, 1e6], requires_grad=True)
    loss = log_cosh(x).sum()
    loss.backward()
    assert float(loss) == pytest.approx(2e6, rel=1e-5)
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, 1.0]


def test_losses_are_weighed_and_shares_add_up() -> None:
    batch = MutantBatch.from_table(table())
    prediction = Prediction(torch.tensor([[1.0], [1.0], [0.0]]))
    seen = wild_type(
        {"physical": 3.0, "reconstruction/a": 5.0}, {"data": 0.25, "physical": 0.1, "reconstruction/a": 2.0}
    )
    result = objective(prediction, seen, batch)
    assert float(result.terms["data"]) == pytest.approx(5 / 3)
    assert float(result.total) == pytest.approx(0.25 * 5 / 3 + 0.3 + 10)
    assert set(result.terms) == {"data", "prior/physical", "reconstruction/a"}
    shares = [value for name, value in result.log_record().items() if name.startswith("share/")]
    assert float(torch.stack(shares).sum()) == pytest.approx(1)


def test_rows_count_as_their_evidence() -> None:
    rows = table([1e-3, 0.1, float("nan")])
    assert evidence_weights(torch.tensor(rows.p)).tolist() == pytest.approx([3, 1, 1])
    mean = mean_weight(rows)
    assert mean == pytest.approx(5 / 3)
    prediction = Prediction(torch.tensor([[1.0], [1.0], [0.0]]))
    weights = TargetWeights.fit(rows, [Output("tau")], weighting="p")
    result = objective(prediction, wild_type({}, {}), MutantBatch.from_table(rows), weights=weights)
    assert float(result.total) == pytest.approx((3 * 1 + 1 * 0 + 1 * 4) / 5)


def test_the_mean_weight_is_over_the_mutants_that_rows_stand_for() -> None:
    rows = replace(table([1e-3, 0.1, float("nan")]), weight=COUNTS.astype(np.float32))
    assert mean_weight(rows) == pytest.approx((1 * 3 + 3 * 1 + 2 * 1) / 6)
    assert mean_weight(rows) == pytest.approx(mean_weight(repeated(rows)))


def test_weights_are_bounded_and_never_negative() -> None:
    assert evidence_weights(torch.tensor([0.0, 1e-30, 1.0])).tolist() == pytest.approx([10, 10, 0])


@pytest.mark.parametrize("p", [None, [float("nan")] * 3, [1.0, 1.0, 1.0]])
def test_weighing_without_evidence_is_refused(p: list[float] | None) -> None:
    with pytest.raises(DatasetError, match=r"training\.weighting=p"):
        mean_weight(table(p))


COUNTS = np.array([1, 3, 2])


def repeated(one: MutantTable) -> MutantTable:
    """Return every row as often as its weight says, without weights."""
    return replace(one.take(np.repeat(np.arange(len(one)), COUNTS)), weight=None)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("balance", ["rows", "phenotypes"])
def test_a_weighted_row_counts_as_the_rows_that_it_stands_for(classes: bool, balance: str) -> None:
    form = "class" if classes else "scalar"
    outputs = (Output("a", form), Output("b"))
    one = MutantTable.from_sets([[0], [1], [2]], value=[0.0, 1.0, 2.0], phenotype=[0, 0, 1], weight=COUNTS)
    found = []
    for rows in (one, repeated(one)):
        batch = MutantBatch.from_table(rows)
        weights = TargetWeights.fit(rows, outputs, balance=balance)
        mean = torch.tensor([0.3, -0.2])[None].repeat(len(rows), 1) * (1 + batch.gene[:, None])
        found.append(objective(Prediction(mean), wild_type({}, {}), batch, weights=weights).total)
    assert float(found[0]) == pytest.approx(float(found[1]), rel=1e-6)


def test_micro_batches_of_weighted_rows_add_up() -> None:
    one = MutantTable.from_sets([[0], [1], [2]], value=[0.0, np.nan, 2.0], weight=COUNTS)
    batch = MutantBatch.from_table(one)
    mean = torch.tensor([[0.3], [5.0], [1.0]])
    whole = objective(Prediction(mean), wild_type({}, {}), batch).total
    parts = micro_batches(batch, 2)
    assert float(parts[0].step_targets) == 3  # type: ignore[arg-type]
    ends = [0, len(parts[0]), 3]
    total = sum(
        objective(Prediction(mean[a:b]), wild_type({}, {}), part).total
        for a, b, part in zip(ends, ends[1:], parts, strict=False)
    )
    assert float(total) == pytest.approx(float(whole), rel=1e-6)
    assert float(whole) == pytest.approx((0.3**2 + 2 * 1.0) / 3, rel=1e-6)


def test_precision_weights_are_normalised_over_the_rows_that_rows_stand_for() -> None:
    one = MutantTable.from_sets([[0], [1], [2]], value=[0.0, 1.0, 2.0], sd=[0.1, 0.1, 1.0], weight=COUNTS)
    weights = TargetWeights.fit(one, (Output("a"),), weighting="sd").of(MutantBatch.from_table(one))
    assert float((weights * torch.from_numpy(COUNTS)).sum()) == pytest.approx(COUNTS.sum(), rel=1e-5)
