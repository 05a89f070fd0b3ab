"""Compiled loops, buffers and threads against torch's operations, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tests.models.difference_gnn.problems import batch_of, build, organism
from tests.models.difference_gnn.test_reference import SETS
from wildtype.models.difference_gnn import gradients
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.fused import Buffers, gelu
from wildtype.models.difference_gnn.layers import RelationGIN
from wildtype.nn.threads import each


def test_gelu_is_as_exact_as_torchs():
    x = torch.cat([torch.linspace(-40, 40, 20_001), torch.tensor([0.0, -0.0, 1e-30, -1e-30, 1e4, -1e4])])
    x = x.requires_grad_()
    exact = F.gelu(x.detach().double())
    exact_slope = torch.autograd.functional.jvp(F.gelu, x.detach().double(), torch.ones_like(exact))[1]
    ours = gelu(x.view(1, -1))
    (slope,) = torch.autograd.grad(ours.sum(), x)
    assert float((ours.detach().view(-1) - exact).abs().max()) < 2e-6
    assert float((slope - exact_slope).abs().max()) < 1e-6


def test_gelu_of_other_layouts_and_dtypes():
    x = torch.randn(3, 4, 5).transpose(0, 2)
    torch.testing.assert_close(gelu(x), F.gelu(x))
    torch.testing.assert_close(gelu(x.double()), F.gelu(x.double()), rtol=0, atol=0)
    assert gelu(torch.zeros(0, 4)).shape == (0, 4)


@settings(max_examples=20)
@given(
    st.integers(1, 4), st.integers(0, 7), st.integers(1, 3), st.sampled_from([1, 5, 16]), st.integers(0, 999)
)
def test_one_step_equals_plain_operations(linears, rows, mutants, width, seed):
    torch.manual_seed(seed)
    fused = RelationGIN(DifferenceGNNConfig(width=width, gin_layers=linears))
    for parameter in fused.parameters():
        torch.nn.init.normal_(parameter)
    x, message = (torch.randn(mutants, rows, width).requires_grad_() for _ in range(2))
    weight = torch.randn(mutants, rows, width)
    results = []
    for dtype in (torch.float32, torch.float64):  # the loops serve float32 alone
        layer = fused.to(dtype)
        inputs = [a.detach().to(dtype).requires_grad_() for a in (x, message)]
        # Messages come as the transposed view of [n, T, d].
        out = layer(inputs[0], inputs[1].transpose(0, 1).contiguous().transpose(0, 1))
        results.append([out, *torch.autograd.grad((out * weight).sum(), [*inputs, *layer.parameters()])])
    for ours, exact in zip(*results, strict=True):
        scale = max(1.0, float(exact.detach().abs().max()) if exact.numel() else 1.0)
        torch.testing.assert_close(ours.double() / scale, exact / scale, rtol=1e-3, atol=1e-4)


def test_buffers_hand_out_the_same_memory_again():
    buffers = Buffers()
    pointers = []
    for _ in range(2):
        with buffers:
            pointers.append([buffers.array(torch.empty(3, d)).data_ptr() for d in (4, 5)])
    assert pointers[0] == pointers[1]
    assert len(set(pointers[0])) == 2
    with buffers:
        assert buffers.array(torch.empty(2, 2)).shape == (2, 2)


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def how(together: bool) -> Callable[..., None]:
    return lambda count, work, **_: each(count, work, together=together)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("aggregation", ["sum", "pairwise"])
def test_mutants_beside_each_other_are_as_one_by_one(monkeypatch, aggregation):
    model = build(aggregation=aggregation, tile=1)
    tensors, batch = organism(), batch_of(SETS)
    grads = []
    for together in (True, False):
        monkeypatch.setattr(gradients, "each", how(together))
        model.zero_grad()
        out = model(model.encode(tensors), batch).mean
        out.sum().backward()
        grads.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    for one, several in zip(*grads, strict=True):
        torch.testing.assert_close(one, several)
