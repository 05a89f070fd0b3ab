from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from wildtype.datasets import Dataset
from wildtype.evaluation.noise import noise_guide

Factory = Callable[..., Dataset]


def test_ceiling_is_the_correlation_with_the_truth(make_pairs: Factory) -> None:
    dataset = make_pairs(rows=10)
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.2, 10_000)
    labels = truth + rng.normal(0, 0.1, truth.size)
    rows = np.zeros(truth.size, np.int64)
    noisy = replace(
        dataset, table=replace(dataset.table.take(rows), value=labels, sd=np.full(truth.size, 0.1))
    )
    guide = noise_guide(noisy, np.arange(truth.size))
    assert guide.ceiling == pytest.approx(np.corrcoef(truth, labels)[0, 1], abs=0.01)
    assert guide.stated == "as told"
    assert "rough guide" in str(guide)
    assert "too high" in str(guide)


@pytest.mark.parametrize(
    ("value", "sd", "reason"),
    [
        ([0.1, 0.2], [np.nan, np.nan], "0 rows have a known sd"),
        ([0.1, 0.2], [0.0, 0.0], "all known sd are 0"),
        ([0.1, 0.1], [0.1, 0.1], "all labels are equal"),
        ([0.1, 0.2], [1.0, 1.0], "exceeds the variance"),
    ],
)
def test_no_ceiling_has_a_reason(
    make_pairs: Factory, value: list[float], sd: list[float], reason: str
) -> None:
    dataset = make_pairs()
    table = replace(
        dataset.table.take([0, 1]), value=np.array(value, np.float32), sd=np.array(sd, np.float32)
    )
    guide = noise_guide(replace(dataset, table=table), [0, 1])
    assert np.isnan(guide.ceiling)
    assert reason in guide.reason
    assert guide.reason in str(guide)
