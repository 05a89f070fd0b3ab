"""The masked layer against itself on every mutant's induced subgraph, and the first layer against both."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.layers import RelationLayer, changed_rows, encode_first_layer
from wildtype.nn.sparse import SparseOperator

F64 = torch.float64
WIDTH = 4


def layer_of(relations, aggregation="sum"):
    config = DifferenceGNNConfig(width=WIDTH, gin_layers=2, heads=2, aggregation=aggregation)
    layer = RelationLayer(config, relations).double()
    for parameter in layer.parameters():  # zeros hide mistakes
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return layer


@st.composite
def problems(draw):
    """Relations over up to seven nodes, and up to four mutants, also of nothing and of everything."""
    nodes = draw(st.integers(1, 7))
    node = st.integers(0, nodes - 1)
    torch.manual_seed(draw(st.integers(0, 1000)))
    operators = []
    for _ in range(draw(st.integers(1, 3))):
        pairs = draw(st.lists(st.tuples(node, node), max_size=20))
        rows, cols = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        weights = torch.rand(len(pairs), dtype=F64) + 0.1 if draw(st.booleans()) else None
        operators.append(SparseOperator.from_edges(rows, cols, nodes, weights))
    sets = draw(st.lists(st.sets(node).map(sorted), min_size=1, max_size=4))
    gene = torch.tensor([g for s in sets for g in s], dtype=torch.int64)
    offsets = torch.tensor([0] + [len(s) for s in sets]).cumsum(0)
    gone = torch.zeros(len(sets), nodes, dtype=torch.bool)
    for b, s in enumerate(sets):
        gone[b, s] = True
    return operators, gene, offsets, gone


def masked(layer, operators, x, gone):
    """The layer as the model calls it: deleted nodes enter and leave it as zeros."""
    return layer(x.masked_fill(gone[..., None], 0.0), operators).masked_fill(gone[..., None], 0.0)


def on_subgraphs(layer, operators, x, gone):
    """The definition: one dense induced subgraph per mutant."""
    out = []
    for states, lacking in zip(x, gone, strict=True):
        kept = (~lacking).nonzero().flatten()
        h = states[kept]
        adjacencies = [(op @ torch.eye(len(states), dtype=F64))[kept][:, kept] for op in operators]
        new = layer.aggregate([gin(h, a @ h) for gin, a in zip(layer.gins, adjacencies, strict=True)])
        out.append(torch.zeros_like(states).index_put((kept,), new))
    return torch.stack(out)


def equal_with_gradients(ours, plain, inputs):
    torch.testing.assert_close(ours, plain)
    weight = torch.randn_like(plain)
    for a, b in zip(
        *(torch.autograd.grad(y, inputs, weight, materialize_grads=True) for y in (ours, plain)), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("aggregation", ["sum", "mean", "attention", "pairwise"])
@settings(max_examples=20, deadline=None)
@given(problem=problems())
def test_the_layer_equals_that_on_induced_subgraphs(aggregation, problem):
    operators, _, _, gone = problem
    layer = layer_of(len(operators), aggregation)
    x = torch.randn(*gone.shape, WIDTH, dtype=F64, requires_grad=True)
    ours, plain = (form(layer, operators, x, gone) for form in (masked, on_subgraphs))
    equal_with_gradients(ours, plain, [x, *layer.parameters()])


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_the_first_layer_equals_the_layer_on_repeated_states(problem):
    operators, gene, offsets, gone = problem
    layer = layer_of(len(operators))
    x = torch.randn(gone.shape[1], WIDTH, dtype=F64, requires_grad=True)
    first = encode_first_layer(layer, x, operators)
    changed = changed_rows(layer, first, operators, gene, offsets)
    rows = first.output.repeat(len(gone), 1).index_copy(0, changed.keys, changed.states)
    ours = rows.view(*gone.shape, WIDTH).masked_fill(gone[..., None], 0.0)
    plain = masked(layer, operators, x.expand(len(gone), -1, -1), gone)
    equal_with_gradients(ours, plain, [x, *layer.parameters()])


def test_only_neighbours_of_deleted_nodes_are_computed_again():
    op = SparseOperator.from_edges(
        torch.tensor([1, 3]), torch.tensor([0, 2]), 5
    )  # 1 receives from 0, 3 from 2
    layer, x = layer_of(1), torch.randn(5, WIDTH, dtype=F64)
    found = changed_rows(
        layer, encode_first_layer(layer, x, [op]), [op], torch.tensor([0, 2, 3]), torch.tensor([0, 1, 3])
    )
    assert found.keys.tolist() == [1]  # of the second mutant, node 3 is itself deleted


def test_nan_of_deleted_nodes_reaches_no_gradient():
    op = SparseOperator.from_edges(torch.tensor([1, 2]), torch.tensor([0, 1]), 3)
    layer, x = layer_of(1), torch.randn(1, 3, WIDTH, dtype=F64)
    x[0, 1] = torch.nan
    gone = torch.tensor([[False, True, False]])
    masked(layer, [op], x, gone).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_a_node_deleted_twice_is_named():
    op = SparseOperator.from_edges(torch.tensor([1]), torch.tensor([0]), 3)
    layer, x = layer_of(1), torch.randn(3, WIDTH, dtype=F64)
    first = encode_first_layer(layer, x, [op])
    with pytest.raises(ShapeError, match="received node 2 more than once in mutant 0"):
        changed_rows(layer, first, [op], torch.tensor([2, 2]), torch.tensor([0, 2]))
