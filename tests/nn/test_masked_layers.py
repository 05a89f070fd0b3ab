"""Masked layers against the same layer on every mutant's induced subgraph, and first layers against both."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wildtype.errors import ShapeError
from wildtype.nn.masked_layers import MaskedGIN, MaskedRelationalGIN, MaskedSAGE
from wildtype.nn.message_passing import MutantRows
from wildtype.nn.sparse import SparseOperator

F64 = torch.float64


def gin(width=3, out=2):
    mlp = nn.Sequential(nn.Linear(width, 4), nn.Tanh(), nn.Linear(4, out))
    return MaskedGIN(mlp, eps=0.3).double()


def sage(width=3, out=2):
    return MaskedSAGE(width, out).double()


def on_subgraphs(layer, adjacency, x, keep):
    """The definition: one dense induced subgraph per mutant."""
    out = []
    for b in range(keep.shape[1]):
        kept = keep[:, b].nonzero().flatten()
        a, h = adjacency[kept][:, kept], x[kept, b]
        if isinstance(layer, MaskedGIN):
            new = layer.mlp((1 + layer.eps) * h + a @ h)
        else:
            degree = a.sum(1, keepdim=True)
            mean = torch.where(degree > 0, a @ h / torch.where(degree > 0, degree, 1.0), 0.0)
            new = h @ layer.root.weight.T + layer.root.bias + mean @ layer.neighbours.weight.T
        out.append(new.new_zeros(len(x), new.shape[1]).index_put((kept,), new))
    return torch.stack(out, 1)


def equal_with_gradients(ours, plain, inputs):
    torch.testing.assert_close(ours, plain)
    weight = torch.randn_like(plain)
    for a, b in zip(
        *(torch.autograd.grad(y, inputs, weight, materialize_grads=True) for y in (ours, plain)), strict=True
    ):
        torch.testing.assert_close(a, b)


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 7))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=20))
    rows, cols = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    torch.manual_seed(draw(st.integers(0, 1000)))
    weights = torch.rand(len(pairs), dtype=F64) + 0.1 if draw(st.booleans()) else None
    return SparseOperator.from_edges(rows, cols, nodes, weights)


@st.composite
def deletions(draw, nodes):
    """Up to four mutants, also of nothing and of everything."""
    sets = draw(st.lists(st.sets(st.integers(0, nodes - 1)).map(sorted), min_size=1, max_size=4))
    gene = torch.tensor([g for s in sets for g in s], dtype=torch.int64)
    offsets = torch.tensor([0] + [len(s) for s in sets]).cumsum(0)
    keep = torch.ones(nodes, len(sets), dtype=torch.bool)
    for b, s in enumerate(sets):
        keep[s, b] = False
    return gene, offsets, keep


@pytest.mark.parametrize("make", [gin, sage])
@settings(max_examples=40, deadline=None)
@given(op=graphs(), data=st.data())
def test_layers_equal_those_on_induced_subgraphs(make, op, data):
    nodes, mutants = op.shape[0], data.draw(st.integers(1, 4))
    keep = torch.rand(nodes, mutants) < data.draw(st.sampled_from([0.0, 0.6, 1.0]))
    x = torch.randn(nodes, mutants, 3, dtype=F64)
    if data.draw(st.booleans()):
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    layer = make()
    inputs = [x.requires_grad_(), *layer.parameters()]
    adjacency = op @ torch.eye(nodes, dtype=F64)
    ours = layer(op, x, keep)
    assert ours.transpose(0, 1).is_contiguous() or not x.transpose(0, 1).is_contiguous()
    equal_with_gradients(ours, on_subgraphs(layer, adjacency, x, keep), inputs)


@pytest.mark.parametrize("make", [gin, sage])
@settings(max_examples=40, deadline=None)
@given(op=graphs(), data=st.data())
def test_first_layers_equal_the_layer_on_repeated_states(make, op, data):
    gene, offsets, keep = data.draw(deletions(op.shape[0]))
    x = torch.randn(op.shape[0], 3, dtype=F64, requires_grad=True)
    layer = make()
    ours = layer.first(op, x, gene, offsets).stack()
    plain = layer(op, x.unsqueeze(1).expand(-1, keep.shape[1], -1), keep)
    equal_with_gradients(ours, plain, [x, *layer.parameters()])


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_sum_over_relations_is_the_sum_of_the_stacks(data):
    nodes = data.draw(st.integers(2, 6))
    node = st.integers(0, nodes - 1)
    relations = []
    for _ in range(data.draw(st.integers(1, 3))):
        pairs = data.draw(st.lists(st.tuples(node, node), max_size=8))
        relations.append(SparseOperator.from_edges([a for a, _ in pairs], [b for _, b in pairs], nodes))
    gene, offsets, _ = data.draw(deletions(nodes))
    layer, x = gin(), torch.randn(nodes, 3, dtype=F64, requires_grad=True)
    ours = MutantRows.total([layer.first(op, x, gene, offsets) for op in relations]).stack()
    plain = sum(layer.first(op, x, gene, offsets).stack() for op in relations)
    equal_with_gradients(ours, plain, [x, *layer.parameters()])


def test_only_neighbours_of_deleted_nodes_are_computed_again():
    # 0 and 1 receive from 2, 2 from 3; without 2, rows 0 and 1 change, without 3, row 2.
    op = SparseOperator.from_edges([0, 1, 2], [2, 2, 3], 5)
    seen = []

    def count(own, messages):
        seen.append(len(own))
        return own + messages

    layer = gin(1, 1)
    layer.update = count
    x = torch.arange(5, dtype=F64).unsqueeze(1)
    rows = layer.first(op, x, torch.tensor([2, 3]), torch.tensor([0, 1, 2]))
    assert rows.changed.tolist() == [0, 1, 5 + 2]
    assert seen == [5 + 3]
    assert rows.stack().squeeze(-1).T.tolist() == [[0, 1, 0, 3, 4], [2, 3, 2, 0, 4]]


@pytest.mark.parametrize("make", [gin, sage])
def test_nan_of_deleted_nodes_reaches_no_gradient(make):
    op = SparseOperator.from_edges([0, 1, 1], [1, 0, 2], 3)
    keep = torch.tensor([[True], [True], [False]])
    x = torch.ones(3, 1, 3, dtype=F64)
    x[2] = float("nan")
    layer = make()
    out = layer(op, x.requires_grad_(), keep)
    gradients = torch.autograd.grad(out.sum(), [x, *layer.parameters()])
    assert all(g.isfinite().all() for g in [out, *gradients])


def test_weights_that_do_not_cancel_leave_a_mean_over_none_zero():
    op = SparseOperator.from_edges([0, 0, 0], [1, 2, 3], 4, [0.1, 0.2, 0.3])
    layer = MaskedSAGE(2, 2)
    x = torch.randn(4, 2)
    first = layer.first(op, x, torch.tensor([1, 2, 3]), torch.tensor([0, 3])).stack()
    torch.testing.assert_close(first[0, 0], layer.root(x[0]))


def test_wrong_deletions_are_named():
    op, x = SparseOperator.from_edges([0], [1], 2), torch.ones(2, 3)
    layer = gin().float()
    with pytest.raises(ShapeError, match="node 1 more than once in mutant 0"):
        layer.first(op, x, torch.tensor([1, 1]), torch.tensor([0, 2]))
    with pytest.raises(ShapeError, match="gene: received positions 2 to 2, expected 0 to 1"):
        layer.first(op, x, torch.tensor([2]), torch.tensor([0, 1]))
    with pytest.raises(ShapeError, match=r"x: received \[3, 3\], expected \[2, d\]"):
        layer.first(op, torch.ones(3, 3), torch.tensor([1]), torch.tensor([0, 1]))
    with pytest.raises(ShapeError, match="expected a square operator"):
        layer.first(SparseOperator.from_edges([0], [1], (2, 3)), x, torch.tensor([1]), torch.tensor([0, 1]))


@settings(max_examples=40)
@given(graphs(), graphs(), st.integers(0, 3), st.integers(0, 1000))
def test_relations_are_summed_and_masked_once(first, second, mutants, seed):
    torch.manual_seed(seed)
    nodes = min(first.shape[0], second.shape[0])
    ops = [
        SparseOperator.from_edges(*(ends % nodes for ends in op.edges()), nodes, op.values)
        for op in (first, second)
    ]
    parts = [gin(), gin()]
    layer = MaskedRelationalGIN(parts)
    x = torch.randn(nodes, mutants, 3, dtype=F64, requires_grad=True)
    keep = torch.rand(nodes, mutants) > 0.3
    ours = layer(ops, x, keep)
    if not mutants:
        assert ours.shape[:2] == (nodes, 0)
        return
    plain = sum(
        on_subgraphs(part, op @ torch.eye(nodes, dtype=F64), x, keep)
        for part, op in zip(parts, ops, strict=True)
    )
    equal_with_gradients(ours, plain, [x, *layer.parameters()])


def test_a_relational_layer_wants_an_operator_per_relation():
    op = SparseOperator.from_edges([0], [1], 2)
    with pytest.raises(ShapeError, match="received 1 operators, expected 2"):
        MaskedRelationalGIN([gin(), gin()])([op], torch.zeros(2, 1, 3, dtype=F64), torch.ones(2, 1) > 0)
