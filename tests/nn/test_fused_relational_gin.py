"""The fused layer against the plain one: values, gradients, threads, and which layers it takes."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wildtype.nn import masked_layers, sparse, sparse_kernels
from wildtype.nn.fused_relational_gin import linear_maps
from wildtype.nn.masked_layers import MaskedGIN, MaskedRelationalGIN
from wildtype.nn.sparse import SparseOperator

F64 = torch.float64


def mlp(depth, width=4, out=3):
    """Widths width, 3, 5, 2, … out."""
    widths = [width, *[3, 5, 2][: depth - 1], out]
    parts = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths[:-1])]
    return nn.Sequential(*parts, nn.Linear(*widths[-2:]))


def problem(depth, mutants, seed, *, relations=2, nodes=6, dtype=F64):
    torch.manual_seed(seed)
    ops = []
    for _ in range(relations):
        rows, cols = (torch.rand(nodes, nodes) < 0.4).nonzero().T
        ops.append(SparseOperator.from_edges(rows, cols, nodes, torch.randn(len(rows), dtype=F64)))
    parts = [MaskedGIN(mlp(depth), eps=0.3 * r).to(dtype) for r in range(relations)]
    layer = MaskedRelationalGIN(parts)
    return ops, layer, torch.randn(nodes, mutants, 4, dtype=dtype), torch.rand(nodes, mutants) > 0.3


def plainly(monkeypatch):
    monkeypatch.setattr(masked_layers, "linear_maps", lambda mlp: [])


def with_gradients(layer, ops, x, keep, weight):
    x = x.detach().requires_grad_()
    out = layer(ops, x, keep)
    return [out.detach(), *torch.autograd.grad(out, [x, *layer.parameters()], weight)]


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(0, 5), st.sampled_from([1, 2, 3]), st.booleans(), st.integers(0, 10**6))
def test_equals_the_plain_layer_in_float64(depth, mutants, threads, mutant_major, seed):
    ops, layer, x, keep = problem(depth, mutants, seed)
    if mutant_major:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    weight = torch.randn(*x.shape[:2], 3, dtype=F64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        fused = with_gradients(layer, ops, x, keep, weight)
        again = with_gradients(layer, ops, x, keep, weight)
    finally:
        torch.set_num_threads(before)
    with pytest.MonkeyPatch.context() as patch:
        plainly(patch)
        plain = with_gradients(layer, ops, x, keep, weight)
    for ours, same, theirs in zip(fused, again, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
        assert torch.equal(ours, same)  # sums do not depend on which thread comes first


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gradients_are_those_of_finite_differences(depth):
    ops, layer, x, keep = problem(depth, 3, 1)
    names = [name for name, _ in layer.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (ops, x, keep))

    inputs = [x.requires_grad_(), *layer.parameters()]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_compiled_product_is_used_and_exact_enough_in_float32(depth, monkeypatch):
    monkeypatch.setattr(sparse, "_WORTH_COMPILING", 1)
    torch.manual_seed(0)
    rows, cols = (torch.rand(40, 40) < 0.3).nonzero().T
    op = SparseOperator.from_edges(rows, cols, 40)
    maps = [nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8)] if depth == 2 else [nn.Linear(16, 8)]
    layer = MaskedRelationalGIN([MaskedGIN(nn.Sequential(*maps), eps=0.1)])
    x, keep = torch.randn(40, 3, 16), torch.rand(40, 3) > 0.2
    added = []
    real = sparse_kernels.product
    monkeypatch.setattr(
        sparse_kernels, "product", lambda *a, add_to=None: added.append(add_to) or real(*a, add_to=add_to)
    )
    weight = torch.randn(40, 3, 8)
    ours = with_gradients(layer, [op], x, keep, weight)
    assert len(added) == 6
    assert all(out is not None for out in added)
    exact = with_gradients(layer.double(), [op], x.double(), keep, weight.double())
    for a, b in zip(ours, exact, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth", [1, 2])
def test_what_deleted_nodes_hold_does_not_matter(depth):
    ops, layer, x, keep = problem(depth, 4, 2)
    weight = torch.randn(6, 4, 3, dtype=F64)
    clean = with_gradients(layer, ops, x, keep, weight)
    gone = ~keep.unsqueeze(-1)
    dirty = with_gradients(
        layer, ops, x.masked_fill(gone, torch.nan), keep, weight.masked_fill(gone, torch.nan)
    )
    for a, b in zip(clean, dirty, strict=True):
        assert torch.equal(a, b)


def test_states_that_need_no_gradient_get_none():
    ops, layer, x, keep = problem(2, 3, 3)
    layer(ops, x, keep).sum().backward()
    assert x.grad is None
    assert all(p.grad is not None for p in layer.parameters())


def test_which_modules_are_linear_maps_with_relus():
    a, b = nn.Linear(4, 4), nn.Linear(4, 9)
    assert linear_maps(a) == [a]
    assert linear_maps(nn.Sequential(nn.Sequential(a, nn.ReLU()), b)) == [a, b]
    for other in (
        nn.Sequential(),
        b,  # widens: messages would cost more behind it
        nn.Linear(4, 4, bias=False),
        nn.Sequential(a, nn.Tanh(), b),
        nn.Sequential(a, b),
        nn.Sequential(a, nn.ReLU()),
        nn.Sequential(a, nn.ReLU(), nn.Dropout(), b),
        nn.Bilinear(4, 4, 4),
    ):
        assert linear_maps(other) == []


def test_parts_of_different_widths_are_summed_all_the_same(monkeypatch):
    ops, _, x, keep = problem(2, 3, 5)
    parts = [
        MaskedGIN(nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))).double()
        for hidden in (4, 2)
    ]
    ours = MaskedRelationalGIN(parts)(ops, x, keep)
    plain = sum(part(op, x, keep) for part, op in zip(parts, ops, strict=True))
    torch.testing.assert_close(ours, plain)


def test_parts_of_different_depth_and_halves_go_the_plain_way(monkeypatch):
    monkeypatch.setattr(masked_layers, "fused_relational_gin", lambda *a: pytest.fail("fused"))
    ops, _, x, keep = problem(1, 2, 4)
    MaskedRelationalGIN([MaskedGIN(mlp(1)), MaskedGIN(mlp(2))]).double()(ops, x, keep)
    layer = MaskedRelationalGIN([MaskedGIN(mlp(1)), MaskedGIN(mlp(1))])
    with torch.autocast("cpu", torch.bfloat16):
        layer(ops, x.float(), keep)
    layer.bfloat16()(ops, x.bfloat16(), keep)
