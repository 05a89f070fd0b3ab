from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from wildtype.errors import ShapeError
from wildtype.nn.reconstruction import reconstruction_loss, reconstruction_loss_reference
from wildtype.nn.sparse import SparseOperator


def problem(
    n: int, d: int, edges: int, seed: int, *, weighted: bool = False, dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], SparseOperator]:
    stream = torch.Generator().manual_seed(seed)
    rows, cols = torch.randint(0, n, (2, edges), generator=stream)
    values = torch.randn(edges, generator=stream, dtype=torch.float64).abs() + 0.1 if weighted else None
    tensors = [torch.randn(*size, generator=stream, dtype=dtype) for size in ((n, d), (n, d), (n,))]
    op = SparseOperator.from_edges(rows, cols, n, values)
    return [x.requires_grad_() for x in tensors], op if weighted else op.pattern()


def gradients(loss: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss * 3, tensors))


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 9),
    edges=st.integers(0, 40),
    zeros=st.sampled_from([0.0, 0.1, 0.37, 1.0, 2.5]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_equals_the_dense_definition(
    n: int, d: int, edges: int, zeros: float, weighted: bool, seed: int
) -> None:
    tensors, op = problem(n, d, edges, seed, weighted=weighted)
    fast = reconstruction_loss(*tensors, op, zeros=zeros)
    plain = reconstruction_loss_reference(*tensors, op, zeros=zeros)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradients(fast, tensors), gradients(plain, tensors), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("zeros", [0.0, 0.1, 1.0])
def test_genes_without_edges_and_stored_zeros(zeros: float) -> None:
    tensors, _ = problem(6, 3, 0, 1)
    rows, cols, values = [0, 0, 2, 5], [1, 3, 3, 5], [1.0, 0.0, 2.0, -1.0]
    op = SparseOperator.from_edges(rows, cols, 6, torch.tensor(values, dtype=torch.float64))
    fast = reconstruction_loss(*tensors, op, zeros=zeros)
    # Written out entry by entry: the stored zero at (0, 3) is no edge.
    h, weight, bias = tensors
    expected = torch.zeros((), dtype=torch.float64)
    edges = {(0, 1): 1.0, (2, 3): 2.0, (5, 5): -1.0}
    for i in range(6):
        for j in range(6):
            share = 1.0 if (i, j) in edges else zeros
            expected = expected + share * (h[i] @ weight[j] + bias[j] - edges.get((i, j), 0.0)) ** 2 / 36
    torch.testing.assert_close(fast, expected)
    torch.testing.assert_close(gradients(fast, tensors), gradients(expected, tensors))


@pytest.mark.parametrize("zeros", [0.1, 1.0])
def test_only_the_gradients_that_are_asked_for(zeros: float) -> None:
    tensors, op = problem(7, 4, 20, 2)
    whole = gradients(reconstruction_loss(*tensors, op, zeros=zeros), tensors)
    for position, expected in enumerate(whole):
        parts = [x if i == position else x.detach() for i, x in enumerate(tensors)]
        (alone,) = gradients(reconstruction_loss(*parts, op, zeros=zeros), [parts[position]])
        torch.testing.assert_close(alone, expected)


@pytest.mark.parametrize("zeros", [0.1, 1.0])
def test_float32_is_close_and_repeats_bit_by_bit(zeros: float) -> None:
    tensors, op = problem(300, 32, 4000, 3, dtype=torch.float32)
    loss = reconstruction_loss(*tensors, op, zeros=zeros)
    exact = [x.detach().double().requires_grad_() for x in tensors]
    plain = reconstruction_loss_reference(*exact, op, zeros=zeros)
    torch.testing.assert_close(loss.double(), plain, rtol=1e-6, atol=0)
    found = gradients(loss, tensors)
    torch.testing.assert_close([x.double() for x in found], gradients(plain, exact), rtol=1e-4, atol=1e-6)
    again = reconstruction_loss(*tensors, op, zeros=zeros)
    assert torch.equal(loss, again)
    assert all(torch.equal(a, b) for a, b in zip(found, gradients(again, tensors), strict=True))


def test_autocast_and_halves_compute_in_float32() -> None:
    tensors, op = problem(40, 8, 100, 4, dtype=torch.float32)
    expected = reconstruction_loss(*tensors, op, zeros=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = reconstruction_loss(*tensors, op, zeros=0.1)
        torch.testing.assert_close(gradients(loss, tensors), gradients(expected, tensors))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    halves = [x.detach().bfloat16().requires_grad_() for x in tensors]
    loss = reconstruction_loss(*halves, op, zeros=0.1)
    assert loss.dtype == torch.float32
    assert all(x.dtype == torch.bfloat16 for x in gradients(loss, halves))


def test_a_second_derivative_is_refused() -> None:
    tensors, op = problem(5, 2, 6, 5)
    with pytest.raises(RuntimeError, match="use reconstruction_loss_reference"):
        torch.autograd.grad(reconstruction_loss(*tensors, op, zeros=0.1), tensors, create_graph=True)
    plain = reconstruction_loss_reference(*tensors, op, zeros=0.1)
    (first,) = torch.autograd.grad(plain, tensors[:1], create_graph=True)
    assert torch.autograd.grad(first.sum(), tensors)[1].any()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (((5,), (5, 2), (5,), 5), r"h: received \[5\]"),
        (((0, 2), (0, 2), (0,), 0), r"h: received \[0, 2\]"),
        (((5, 2), (5, 3), (5,), 5), r"weight: received \[5, 3\], expected \[5, 2\]"),
        (((5, 2), (5, 2), (4,), 5), r"bias: received \[4\], expected \[5\]"),
        (((5, 2), (5, 2), (5,), 6), r"op: received \[6, 6\], expected \[5, 5\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], message: str
) -> None:
    op = SparseOperator.from_edges([], [], sizes[3])
    tensors = [torch.zeros(size) for size in sizes[:3]]
    with pytest.raises(ShapeError, match=message):
        reconstruction_loss(*tensors, op, zeros=1.0)
