"""The compiled product against the dense matrix in float64: values, masks, layouts, threads."""

import math
import multiprocessing

import numpy as np
import pytest
import torch

from wildtype.nn import sparse, sparse_kernels
from wildtype.nn.message_passing import shared_propagate, shared_propagate_reference
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.sparse_kernels import product

F64 = torch.float64
WIDTHS = [1, 3, 8, 64, 65, 200]  # tiles of 1, 2, 8 and 64 columns, whole and overlapping


@pytest.fixture
def _always(monkeypatch):
    monkeypatch.setattr(sparse, "_WORTH_COMPILING", 1)
    monkeypatch.setattr(sparse, "_WIDE", 1)
    monkeypatch.setattr(sparse, "_WORTH_MASKING", 1)
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)


@pytest.fixture
def calls(monkeypatch):
    seen = []
    real = sparse_kernels.product
    monkeypatch.setattr(sparse_kernels, "product", lambda *a: seen.append(a) or real(*a))
    return seen


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def operator(n=50, m=50, edges=400, weighted=True, seed=0):
    """Random, with rows that have no edges at both ends and one row that has an edge from every column."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(2, n - 2, (edges,), generator=generator)
    columns = torch.randint(m, (edges,), generator=generator)
    rows, columns = torch.cat([rows, torch.full((m,), 5)]), torch.cat([columns, torch.arange(m)])
    pairs = (rows * m + columns).unique()
    values = torch.randn(len(pairs), generator=generator) if weighted else None
    return SparseOperator.from_edges(pairs // m, pairs % m, (n, m), values)


def dense(op):
    rows, columns = op.edges()
    return torch.zeros(op.shape, dtype=F64).index_put((rows, columns), op.values.double())


def arrays(op):
    csr = op._forward
    return csr.starts, csr.columns, csr._weights


def layouts(m, mutants, width):
    """The same numbers in every layout."""
    x = torch.randn(m, mutants, width)
    yield x
    yield x.transpose(0, 1).contiguous().transpose(0, 1)
    yield x.transpose(0, 2).contiguous().transpose(0, 2)
    wide = torch.full((m + 1, 2 * mutants, width + 3), math.nan)
    part = wide[1:, ::2, 2 : width + 2]
    part.copy_(x)
    yield part
    yield x[:, :1].expand(-1, mutants, -1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("far", [0, 128])
def test_equals_the_dense_matrix_in_every_layout(width, weighted, far, threads, monkeypatch):
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)
    monkeypatch.setattr(sparse_kernels, "_FAR", far)
    torch.manual_seed(width)
    op = operator(40, 30, weighted=weighted)
    for x in layouts(30, 3, width):
        expected = torch.einsum("nm,mbd->nbd", dense(op), x.double())
        torch.testing.assert_close(product(*arrays(op), x).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_masked_product_in_every_layout(width, weighted, share, threads, monkeypatch):
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)
    torch.manual_seed(width)
    op = operator(weighted=weighted)
    keep = torch.bernoulli(torch.full((3, 50), share)).bool().T
    for x in layouts(50, 3, width):
        clean = x.double().masked_fill(~keep.unsqueeze(-1), 0.0)
        expected = torch.einsum("nm,mbd->nbd", dense(op), clean).masked_fill(~keep.unsqueeze(-1), 0.0)
        dirty = x.clone().masked_fill(~keep.unsqueeze(-1), math.nan)
        for states in (x, dirty):
            for mask in (keep, keep.contiguous()):
                ours = product(*arrays(op), states, mask)
                torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 3, 8, 24, 64, 65, 200])
def test_sums_are_added_in_place(width, weighted, threads, monkeypatch):
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)
    torch.manual_seed(width)
    op = operator(40, 30, weighted=weighted)
    for x in layouts(30, 3, width):
        for out in layouts(40, 3, width):
            if out.stride(2) != 1 or out.stride(1) == 0:
                continue
            before = out.double()
            expected = before + torch.einsum("nm,mbd->nbd", dense(op), x.double())
            assert product(*arrays(op), x, add_to=out) is out
            torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)


def test_without_edges_nothing_is_added():
    op, out = SparseOperator.from_edges([], [], (3, 4)), torch.ones(3, 2, 8)
    assert torch.equal(product(*arrays(op), torch.ones(4, 2, 8), add_to=out), torch.ones(3, 2, 8))


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("width", [3, 16])
def test_an_operator_adds_its_product(dtype, width):
    op = operator(40, 30)
    x, out = torch.randn(30, width, dtype=dtype), torch.randn(40, width, dtype=dtype)
    expected = out.double() + dense(op) @ x.double()
    op.add_product(x, out)
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [1, 65])
def test_repeats_bit_by_bit_for_any_number_of_threads(width, monkeypatch):
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)
    op, x = operator(edges=1500), torch.randn(50, 3, width)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2, 3, 7, 80):
        torch.set_num_threads(threads)
        results.append(product(*arrays(op), x))
    torch.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results[1:])


def test_the_layout_is_kept():
    op = operator()
    for x in layouts(50, 3, 8):
        apart = x.stride(1) > x.stride(0)
        for keep in (None, torch.rand(50, 3) < 0.5):
            out = product(*arrays(op), x, keep)
            assert (out.transpose(0, 1) if apart else out).is_contiguous()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_reach_their_neighbours_only(bad):
    op = SparseOperator.from_edges([0, 1, 1], [1, 0, 2], 4)
    x = torch.ones(4, 1, 64)
    x[2, 0, 7] = bad
    out = product(*arrays(op), x)
    touched = torch.zeros(4, 1, 64, dtype=torch.bool)
    touched[1, 0, 7] = True
    assert torch.equal(~out.isfinite(), touched)
    assert out[0].unique().tolist() == [1.0]
    assert not out[3].any()


@pytest.mark.parametrize("shape", [(50, 0, 8), (50, 3, 0), (50, 3, 8)])
def test_nothing_to_multiply(shape):
    empty = torch.zeros(51, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), None
    assert not product(*empty, torch.ones(shape)).any()
    assert product(*arrays(operator()), torch.ones(shape)).shape == shape


def test_no_rows_and_no_columns():
    none = torch.zeros(0, dtype=torch.int32)
    assert product(torch.zeros(1, dtype=torch.int32), none, None, torch.ones(5, 1, 2)).shape == (0, 1, 2)
    assert not product(torch.zeros(4, dtype=torch.int32), none, None, torch.ones(0, 1, 2)).any()


def test_read_only_states():
    array = np.ones((50, 3, 8), np.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(array)
    op = operator(weighted=False)
    assert torch.equal(product(*arrays(op), x)[:, 0, 0].long(), op.row_counts)


def _in_child(arguments, queue):
    torch.set_num_threads(2)
    queue.put(product(*arguments).tolist())


def test_works_after_a_fork(monkeypatch):
    monkeypatch.setattr(sparse_kernels, "_WORTH_THREADS", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    arguments = (*arrays(operator()), torch.randn(50, 3, 8))
    expected = product(*arguments).tolist()
    torch.set_num_threads(before)
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    child = fork.Process(target=_in_child, args=(arguments, queue))
    child.start()
    assert queue.get() == expected
    child.join()


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("trailing", [(), (64,), (3, 8), (2, 2, 2)])
@pytest.mark.parametrize("autocast", [False, True])
def test_operators_use_it_forwards_and_backwards(trailing, autocast, calls):
    op = operator(40, 30)
    x = torch.randn(30, *trailing, requires_grad=True)
    weight = torch.randn(40, *trailing)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        out = op @ x
        (gradient,) = torch.autograd.grad(out, x, weight)
    assert len(calls) == 2
    assert out.dtype == gradient.dtype == torch.float32
    for ours, plain in (
        (out, torch.tensordot(dense(op), x.detach().double(), 1)),
        (gradient, torch.tensordot(dense(op).T, weight.double(), 1)),
    ):
        torch.testing.assert_close(ours.double(), plain, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("_always")
def test_halves_are_multiplied_in_float32_and_float64_is_left_alone(calls):
    op = operator()
    x = torch.randn(50, 64)
    assert torch.equal(op @ x.bfloat16(), (op @ x.bfloat16().float()).bfloat16())
    assert len(calls) == 2
    assert (op @ x.double()).dtype == F64
    assert (op.to(dtype=F64) @ x).dtype == torch.float32
    assert len(calls) == 3


def test_small_and_oddly_narrow_products_are_left_alone(calls):
    op = operator()
    op @ torch.randn(50, 64)
    big = torch.arange(400_000)
    odd = SparseOperator.from_edges(big % 1000, big // 400, 1000)
    odd @ torch.randn(1000, 7)
    assert not calls
    odd @ torch.randn(1000, 8)
    assert calls


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("width", [1, 8, 65])
def test_messages_of_mutants_and_their_gradients(width, apart, threads, calls):
    op = operator()
    keep = torch.rand(50, 4) < 0.7
    x = torch.randn(50, 4, width)
    if apart:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    weight = torch.randn_like(x)
    results = []
    for propagate, dtype in ((shared_propagate, torch.float32), (shared_propagate_reference, F64)):
        states = x.to(dtype).requires_grad_()
        out = propagate(op, states, keep)
        results.append((out, *torch.autograd.grad(out, states, weight.to(dtype))))
    assert len(calls) == 2
    assert all(call[4] is keep for call in calls)
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours.double(), plain, rtol=1e-5, atol=1e-5)
    dirty = x.masked_fill(~keep.unsqueeze(-1), math.nan).requires_grad_()
    out = shared_propagate(op, dirty, keep)
    assert torch.equal(out, results[0][0])
    assert (
        torch.autograd.grad(out, dirty, weight.masked_fill(~keep.unsqueeze(-1), math.nan))[0].isfinite().all()
    )
