"""The loss of a batch: which error, how rows are weighed, and what auxiliary losses add."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.models.interface import Output, Prediction, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
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


def test_weights_are_bounded_and_never_negative() -> None:
    assert evidence_weights(torch.tensor([0.0, 1e-30, 1.0])).tolist() == pytest.approx([10, 10, 0])


@pytest.mark.parametrize("p", [None, [float("nan")] * 3, [1.0, 1.0, 1.0]])
def test_weighing_without_evidence_is_refused(p: list[float] | None) -> None:
    with pytest.raises(DatasetError, match=r"training\.weighting=p"):
        mean_weight(table(p))
