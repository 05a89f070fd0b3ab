"""One shared adjacency against one induced subgraph per mutant."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.message_passing import kept_degrees, shared_propagate, shared_propagate_reference
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
    ones = torch.ones(nodes, mutants, 1, dtype=F64)
    degrees = shared_propagate_reference(op, ones, keep).squeeze(-1)
    torch.testing.assert_close(kept_degrees(op, keep, dtype=F64), degrees)


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
    with pytest.raises(ShapeError, match=r"x: received \[2, 1\], expected \[N, B, d\]"):
        shared_propagate(op, torch.ones(2, 1), torch.ones(2, 1, dtype=torch.bool))
