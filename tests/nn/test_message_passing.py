"""One shared adjacency against one induced subgraph per mutant."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.message_passing import first_layer_propagate, shared_propagate, shared_propagate_reference
from wildtype.nn.sparse import SparseOperator

F64 = torch.float64


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_messages_equal_those_of_induced_subgraphs(data):
    nodes, mutants, width = (data.draw(st.integers(1, top)) for top in (7, 4, 3))
    node = st.integers(0, nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=20))
    rows, cols = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    op = SparseOperator.from_edges(rows, cols, nodes, torch.rand(len(pairs), dtype=F64))
    keep = torch.rand(nodes, mutants) < data.draw(st.sampled_from([0.0, 0.6, 1.0]))
    x = torch.randn(nodes, mutants, width, dtype=F64, requires_grad=True)
    ours, plain = shared_propagate(op, x, keep), shared_propagate_reference(op, x, keep)
    torch.testing.assert_close(ours, plain)
    weight = torch.randn_like(x)
    for a, b in zip(
        torch.autograd.grad(ours, x, weight),
        torch.autograd.grad(plain, x, weight, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_shared_states_are_propagated_once_and_corrected(data):
    nodes = data.draw(st.integers(1, 7))
    node = st.integers(0, nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=20))
    rows, cols = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    op = SparseOperator.from_edges(rows, cols, nodes, torch.rand(len(pairs), dtype=F64))
    sets = data.draw(st.lists(st.sets(node).map(sorted), min_size=1, max_size=4))
    gene = torch.tensor([g for s in sets for g in s], dtype=torch.int64)
    offsets = torch.tensor([0] + [len(s) for s in sets]).cumsum(0)
    keep = torch.ones(nodes, len(sets), dtype=torch.bool)
    for b, s in enumerate(sets):
        keep[s, b] = False
    x = torch.randn(nodes, 3, dtype=F64, requires_grad=True)
    ours = first_layer_propagate(op, x, gene, offsets)
    plain = shared_propagate_reference(op, x.unsqueeze(1).expand(-1, len(sets), -1), keep)
    torch.testing.assert_close(ours, plain)
    assert ours.transpose(0, 1).is_contiguous()
    weight = torch.randn_like(plain)
    for a, b in zip(
        *(torch.autograd.grad(y, x, weight, materialize_grads=True) for y in (ours, plain)), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_no_mutants():
    op, x = SparseOperator.from_edges([0], [1], 2), torch.ones(2, 3)
    none = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    assert first_layer_propagate(op, x, *none).shape == (2, 0, 3)
    assert shared_propagate(op, torch.ones(2, 0, 3), torch.ones(2, 0, dtype=torch.bool)).shape == (2, 0, 3)


def test_a_mask_changed_after_its_use_is_noticed():
    op, keep = SparseOperator.from_edges([0], [1], 2), torch.ones(2, 1, dtype=torch.bool)
    out = shared_propagate(op, torch.ones(2, 1, 1, requires_grad=True), keep)
    keep[1] = False
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_what_deleted_nodes_hold_does_not_matter():
    op = SparseOperator.from_edges([0, 1], [1, 0], 2)
    x = torch.tensor([[[1.0]], [[float("nan")]]])
    keep = torch.tensor([[True], [False]])
    assert shared_propagate(op, x, keep).flatten().tolist() == [0.0, 0.0]


def test_wrong_shapes_are_named():
    op = SparseOperator.from_edges([0], [0], 2)
    with pytest.raises(ShapeError, match=r"keep: received \[2, 3\], expected \[2, 1\]"):
        shared_propagate(op, torch.ones(2, 1, 1), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"keep: received torch.float32"):
        shared_propagate(op, torch.ones(2, 1, 1), torch.ones(2, 1))
    with pytest.raises(ShapeError, match=r"x: received \[2, 1\], expected \[2, B, d\]"):
        shared_propagate(op, torch.ones(2, 1), torch.ones(2, 1, dtype=torch.bool))
    with pytest.raises(ShapeError, match="x: received dtype torch.int64, expected a floating dtype"):
        shared_propagate(op, torch.ones(2, 1, 1).long(), torch.ones(2, 1, dtype=torch.bool))
