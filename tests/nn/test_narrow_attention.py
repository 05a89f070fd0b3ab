"""The compiled kernel for narrow heads against the explicit map in float64: values and gradients."""

import math

import pytest
import torch

from wildtype.nn import attention, narrow_attention
from wildtype.nn.attention import attention_with_lse, attention_with_lse_reference
from wildtype.nn.narrow_kernels import BLOCK, exp2

F64 = torch.float64


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(attention, "_WORTH_COMPILING", 0)


@pytest.fixture
def calls(monkeypatch):
    seen = []
    real = narrow_attention.forward
    monkeypatch.setattr(narrow_attention, "forward", lambda *a: seen.append(1) or real(*a))
    return seen


def compare(q, k, v, tolerance=2e-5, **options):
    results = []
    for attend, dtype in ((attention_with_lse, torch.float32), (attention_with_lse_reference, F64)):
        inputs = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        out, lse = attend(*inputs, **options)
        torch.manual_seed(1)
        loss = (out * torch.randn(out.shape).to(dtype)).sum() + (lse * torch.randn(lse.shape).to(dtype)).sum()
        results.append([out, lse, *torch.autograd.grad(loss, inputs)])
    for ours, plain in zip(*results, strict=True):
        assert ours.dtype == torch.float32
        error = (ours.double() - plain).abs().max() / plain.abs().max().clamp_min(1e-30)
        assert error < tolerance


@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (3, BLOCK - 1), (4, BLOCK), (9, BLOCK + 1), (2, 2 * BLOCK + 17), (BLOCK, 5)]
)
@pytest.mark.parametrize("threads", [1, 5])
def test_agrees_with_the_definition(queries, keys, threads, calls):
    torch.manual_seed(queries)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)  # more threads than heads share a head, and its keys
    try:
        compare(*(torch.randn(2, 2, n, 8) for n in (queries, keys, keys)))
    finally:
        torch.set_num_threads(before)
    assert calls


@pytest.mark.parametrize(("width", "values"), [(8, 5), (6, 7)])
def test_widths_are_padded(width, values, calls):
    torch.manual_seed(0)
    compare(*(torch.randn(1, 3, n, d) for n, d in ((7, width), (300, width), (300, values))), scale=0.9)
    assert calls


def test_outside_keys_are_merged(calls):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 300, 8) for _ in range(3))
    compare(q, k, v, outside=torch.tensor([0, 299]))
    assert calls


@pytest.mark.parametrize("shift", [-300.0, 300.0])
def test_logits_far_from_zero(shift):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3 * BLOCK, 8) for _ in range(3))
    q[..., 0], k[..., 0] = 1.0, shift + torch.linspace(0, 60, 3 * BLOCK)  # every block has a larger maximum
    compare(q, k, v, scale=1.0, tolerance=1e-4)


def test_gradient_through_one_result_only():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 30, 8, requires_grad=True) for _ in range(3))
    for pick in (0, 1):
        ours = torch.autograd.grad(attention_with_lse(q, k, v)[pick].sum(), (q, k, v), allow_unused=True)
        plain = attention_with_lse_reference(*(x.double() for x in (q, k, v)))[pick]
        expected = torch.autograd.grad(plain.sum(), (q, k, v), allow_unused=True)
        for x, y in zip(ours, expected, strict=True):
            torch.testing.assert_close(x, torch.zeros_like(x) if y is None else y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
def test_wild_numbers_are_left_to_the_other_kernel_and_stay_visible(bad, calls):
    q, k, v = (torch.randn(1, 1, 20, 8, requires_grad=True) for _ in range(3))
    with torch.no_grad():
        k[0, 0, 3, 2] = bad
    attention_with_lse(q, k, v)
    with torch.no_grad():
        k[0, 0, 3, 2] = 0
        v[0, 0, 3, 2] = bad
    out, _ = attention_with_lse(q, k, v)
    assert not calls or math.isfinite(bad)
    assert not torch.isfinite(out).all() or math.isfinite(bad)


def test_not_trained_wide_or_double_are_left_to_the_other_kernels(calls):
    narrow = [torch.randn(1, 1, 20, 8) for _ in range(3)]
    attention_with_lse(*narrow)
    attention_with_lse(*(x.double().requires_grad_() for x in narrow))
    attention_with_lse(*(torch.randn(1, 1, 20, 24).requires_grad_() for _ in range(3)))
    with torch.no_grad():
        attention_with_lse(*(x.requires_grad_() for x in narrow))
    assert not calls


def test_second_derivatives_are_refused():
    q, k, v = (torch.randn(1, 1, 20, 8, requires_grad=True) for _ in range(3))
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(attention_with_lse(q, k, v)[0].sum(), q, create_graph=True)


def test_exponential_over_its_range():
    for x in [*torch.linspace(-125, 126, 4001).tolist(), 0.0, 0.5, -0.5]:
        rounded = float(torch.tensor(x, dtype=torch.float32))
        assert exp2.py_func(torch.tensor(rounded).numpy()[()]) == pytest.approx(2.0**rounded, rel=4e-7)
