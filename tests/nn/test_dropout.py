"""Dropout with few draws: which share is dropped, means, gradients, seeds."""

from __future__ import annotations

import pytest
import torch

from wildtype.nn.dropout import Dropout


@pytest.mark.parametrize("p", [0.05, 0.1, 1 / 3, 0.5, 0.9])
def test_the_share_is_dropped_and_the_others_make_up_for_it(p: float) -> None:
    torch.manual_seed(0)
    n = 1_000_000
    found = Dropout(p)(torch.ones(n, dtype=torch.float64))
    kept = found > 0
    # Four standard errors of a share of n draws.
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=4 * (p * (1 - p) / n) ** 0.5)
    assert torch.unique(found[kept]).tolist() == pytest.approx([1 / (1 - p)], rel=2e-4)


def test_neighbouring_entries_are_drawn_independently() -> None:
    torch.manual_seed(1)
    n = 1_000_000
    kept = (Dropout(0.5)(torch.ones(n)) > 0).double() - 0.5
    for lag in (1, 2, 3, 4, 5, 8):
        assert abs((kept[lag:] * kept[:-lag]).mean().item()) < 4 * 0.25 / n**0.5, lag


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_gradients_are_the_factors(dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    x = torch.randn(33, 7, dtype=dtype).t().requires_grad_()  # not contiguous, and no multiple of four
    found = Dropout(0.25)(x)
    (slope,) = torch.autograd.grad(found.sum(), x)
    assert found.dtype == dtype
    assert set(slope.unique().tolist()) == {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    torch.testing.assert_close(found, x * slope)


def test_what_needs_no_gradient_is_dropped_alike() -> None:
    x, drop = torch.randn(40, 5), Dropout(0.4)
    torch.manual_seed(3)
    plain = drop(x)
    torch.manual_seed(3)
    torch.testing.assert_close(plain, drop(x.clone().requires_grad_()).detach(), rtol=0, atol=0)
    assert not torch.equal(plain, drop(x))


def test_outside_of_training_and_at_the_ends() -> None:
    x = torch.randn(6, 3)
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros(6, 3))
    assert Dropout(0.5)(torch.zeros(0, 3)).shape == (0, 3)
