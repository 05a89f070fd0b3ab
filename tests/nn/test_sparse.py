"""SparseOperator against the dense matrix it stands for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.sparse import GraphError, SparseOperator

F64 = torch.float64


@st.composite
def edge_lists(draw):
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), max_size=20))
    values = draw(st.lists(st.floats(0.1, 4), min_size=len(pairs), max_size=len(pairs)))
    rows, cols = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    return rows, cols, (n, m), torch.tensor(values, dtype=F64)


def dense_of(rows, cols, shape, values):
    return torch.zeros(shape, dtype=values.dtype).index_put((rows, cols), values, accumulate=True)


@settings(max_examples=60, deadline=None)
@given(edges=edge_lists(), trailing=st.sampled_from([(), (1,), (3,), (2, 3), (0,), (2, 2, 2)]))
def test_product_and_gradient_equal_the_dense_matrix(edges, trailing):
    rows, cols, shape, values = edges
    op, dense = SparseOperator.from_edges(rows, cols, shape, values), dense_of(*edges)
    x = torch.randn(shape[1], *trailing, dtype=F64, requires_grad=True)
    expected = torch.tensordot(dense, x, dims=1)
    torch.testing.assert_close(op @ x, expected)
    weight = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad(y, x, weight)[0] for y in (op @ x, expected))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(op.t() @ weight, torch.tensordot(dense.T, weight, dims=1))


@settings(max_examples=30, deadline=None)
@given(edges=edge_lists())
def test_facts_about_rows(edges):
    rows, cols, shape, values = edges
    op, dense = SparseOperator.from_edges(rows, cols, shape, values), dense_of(*edges)
    assert op.shape == shape
    assert op.nnz + op.merged == len(rows)
    assert op.rows_with_edges.tolist() == sorted(set(rows.tolist()))
    assert torch.equal(op.row_counts, (dense > 0).sum(1))
    assert torch.equal(
        dense_of(*op.edges(), shape, op.values), dense_of(*op.edges(), shape, dense[op.edges()])
    )
    torch.testing.assert_close(op.pattern() @ torch.ones(shape[1], dtype=F64), (dense > 0).sum(1).double())
    normal = dense / dense.sum(1, keepdim=True).clamp(min=1e-30)
    torch.testing.assert_close(op.row_normalised() @ torch.eye(shape[1], dtype=F64), normal)
    torch.testing.assert_close(op.row_normalised().t() @ torch.eye(shape[0], dtype=F64), normal.T)
    torch.testing.assert_close(op.row_normalised().row_entropy_constant, torch.xlogy(normal, normal).sum(1))
    assert op.row_normalised() is op.row_normalised()


@settings(max_examples=30, deadline=None)
@given(edges=edge_lists(), data=st.data())
def test_entries_of_rows(edges, data):
    op = SparseOperator.from_edges(*edges)
    chosen = data.draw(st.lists(st.integers(0, op.shape[0] - 1), max_size=5))
    which, columns, values = op.entries(torch.tensor(chosen, dtype=torch.int64))
    rows, cols = op.edges()
    expected = [
        (i, int(c), float(v))
        for i, row in enumerate(chosen)
        for r, c, v in zip(rows, cols, op.values, strict=True)
        if r == row
    ]
    assert list(zip(which.tolist(), columns.tolist(), values.tolist(), strict=True)) == expected


def test_second_derivatives_are_those_of_a_linear_map():
    op = SparseOperator.from_edges([0, 1, 1], [1, 0, 2], 3)
    x = torch.randn(3, 2, dtype=F64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: (op @ x) ** 2, x)


def test_wide_products_are_tiled_and_repeat_bit_by_bit():
    generator = torch.Generator().manual_seed(0)
    rows, cols = torch.randint(50, (2, 400), generator=generator)
    op = SparseOperator.from_edges(rows, cols, 50)
    x = torch.randn(50, 7, 83, generator=generator)
    columns = torch.stack([op @ x[:, b] for b in range(7)], 1)
    torch.testing.assert_close(op @ x, columns)
    assert torch.equal(op @ x, op @ x)
    strided = torch.randn(83, 50).T
    torch.testing.assert_close(op @ strided, op @ strided.contiguous())


@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.bfloat16, torch.float16])
def test_product_follows_the_dtype_of_x_inside_autocast_too(dtype):
    op = SparseOperator.from_edges([0, 0, 2], [1, 2, 0], 3, [0.5, 2.0, 1.0])
    x = torch.tensor([[1.0], [2.0], [4.0]], dtype=dtype, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = op @ x
        y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype
    assert y.flatten().tolist() == [9.0, 0.0, 1.0]
    assert x.grad.flatten().tolist() == [1.0, 0.5, 2.0]


def test_no_edges_and_single_node():
    empty = SparseOperator.from_edges([], [], 1)
    x = torch.ones(1, 2, requires_grad=True)
    (empty @ x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert empty.row_normalised().nnz == 0
    assert SparseOperator.from_edges([], [], (0, 3)) @ torch.ones(3, 2) is not None
    assert (SparseOperator.from_edges([0], [0], 1) @ torch.tensor([3.0])).tolist() == [3.0]


def test_to_converts_values_and_returns_itself_when_nothing_changes():
    op = SparseOperator.from_edges([0], [1], 2, name="physical")
    assert op.to("cpu") is op
    wide = op.to(dtype=F64)
    assert (wide.dtype, wide.name, wide.device.type) == (F64, "physical", "cpu")
    assert wide.t().dtype == F64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 5], [0, 0], 3), r"rows\[1\]: received 5, expected 0 to 2"),
        (([0], [-1], 3), r"cols\[0\]: received -1, expected 0 to 2"),
        (([0, 1], [0], 3), r"cols: received \[1\], expected \[2\]"),
        (([0], [0], 3, [1.0, 2.0]), r"values: received \[2\], expected \[1\]"),
        (([0.5], [0], 3), r"rows: received dtype torch.float32, expected integers"),
    ],
)
def test_wrong_edges_are_named(arguments, message):
    with pytest.raises(ShapeError, match=message):
        SparseOperator.from_edges(*arguments)


def test_wrong_operands_and_weights_are_named():
    op = SparseOperator.from_edges([0, 1], [1, 0], 2, [1.0, -2.0], name="physical")
    with pytest.raises(
        ShapeError, match=r"x: received \[3, 1\], expected \[2, ...\] for SparseOperator 'physical'"
    ):
        op @ torch.ones(3, 1)
    with pytest.raises(ShapeError, match="expected a floating dtype"):
        op @ torch.ones(2, dtype=torch.int64)
    with pytest.raises(GraphError, match=r"'physical'.* 1 weights .* first -2 at \(1, 0\)"):
        op.row_normalised()
