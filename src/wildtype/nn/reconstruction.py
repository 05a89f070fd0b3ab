"""How well states reconstruct a graph: weighted squared error over all pairs, without an [N, N] array.

Legend: N nodes · e edges · d width · A [N, N] adjacency · R = H Wᵀ + b, its reconstruction.

The definition is L = Σ_ij ω_ij (R_ij − A_ij)² / N², with ω = 1 where A is not zero and ω = λ where it is.
With Ĥ = [H 1] and Ŵ = [W b], R = Ĥ Ŵᵀ, and Σ_ij R_ij² = Σ (ĤᵀĤ ∘ ŴᵀŴ), [d + 1, d + 1] each. So

    N² L = λ Σ (ĤᵀĤ ∘ ŴᵀŴ) + Σ_edges [(R − A)² − λ R²]

exactly, in O(N d² + e d) time. R on the edges alone is a sampled product; the gradient of the edge term is
2 C Ŵ and 2 Cᵀ Ĥ for the sparse C = (1 − λ) R − A on the edges. With λ = 1 that is −A: R on the edges is not
needed either. Memory is O(N d + e), and the e are gone when forward and backward return.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from wildtype.errors import ShapeError
from wildtype.nn.shapes import expect_not_empty, expect_shape
from wildtype.nn.sparse import SparseOperator, promoted

_NO_DOUBLE_BACKWARD = (
    "reconstruction_loss: there is no double backward (create_graph=True); "
    "use reconstruction_loss_reference for second derivatives"
)


def reconstruction_loss(
    h: Tensor, weight: Tensor, bias: Tensor, op: SparseOperator, *, zeros: float
) -> Tensor:
    """Mean over all N² pairs of the weighted squared error of the reconstruction, differentiable once.

    Parameters
    ----------
    h
        States H [N, d].
    weight, bias
        W [N, d] and b [N] of the linear layer whose output j is column j of the adjacency.
    op
        A [N, N], binary or weighted. A stored zero counts as no edge.
    zeros
        λ, the weight of the pairs without an edge.

    Returns
    -------
    Scalar, in at least float32.

    Raises
    ------
    ShapeError
        Shapes do not agree, or there are no nodes.
    RuntimeError
        A second derivative is asked for.

    Notes
    -----
    Values and gradients repeat bit by bit on CPU.
    """
    _check(h, weight, bias, op)
    loss: Tensor = _Reconstruction.apply(  # type: ignore[no-untyped-call]
        promoted(h), promoted(weight), promoted(bias), op, zeros
    )
    return loss


def reconstruction_loss_reference(
    h: Tensor, weight: Tensor, bias: Tensor, op: SparseOperator, *, zeros: float
) -> Tensor:
    """The definition, on dense [N, N] arrays; arguments as `reconstruction_loss`."""
    _check(h, weight, bias, op)
    adjacency = op @ torch.eye(len(h), dtype=h.dtype, device=h.device)
    errors = (h @ weight.T + bias - adjacency) ** 2
    return torch.where(adjacency == 0, zeros * errors, errors).mean()


class _Reconstruction(torch.autograd.Function):
    """The loss, whose backward repeats the edge term on the transposed graph."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, op: SparseOperator, zeros: float
    ) -> Tensor:
        with torch.autocast(h.device.type, enabled=False):
            # Σ_ij R_ij² = ⟨HᵀH, WᵀW⟩ + 2 ⟨Σ_i h_i, Wᵀb⟩ + N |b|², the blocks of ⟨ĤᵀĤ, ŴᵀŴ⟩.
            of_h, of_weight, sum_h, crossed = h.T @ h, weight.T @ weight, h.sum(0), bias @ weight
            squares = _inner(of_h, of_weight) + 2 * _inner(sum_h, crossed) + len(h) * _inner(bias, bias)
            residuals = _Residuals(op, h, weight, bias, zeros, transposed=False)
            pulls = residuals @ weight
            if residuals.on_edges is None:  # C = −A, so that Σ_edges A ∘ R is minus the following
                crosses = _inner(h, pulls) - _inner(bias, op.t() @ torch.ones_like(bias))
                edges = _inner(op.values, op.values) + 2 * crosses
            else:
                edges = residuals.edge_sum()
        ctx.save_for_backward(h, weight, bias, of_h, of_weight, sum_h, crossed, pulls)
        ctx.op, ctx.zeros = op, zeros
        return ((zeros * squares + edges) / len(h) ** 2).to(h.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(_NO_DOUBLE_BACKWARD)
        h, weight, bias, of_h, of_weight, sum_h, crossed, pulls = ctx.saved_tensors
        zeros, scale = ctx.zeros, 2 * grad / len(h) ** 2
        to_h = to_weight = to_bias = None
        with torch.autocast(h.device.type, enabled=False):
            if ctx.needs_input_grad[0]:
                to_h = scale * (pulls + zeros * crossed).addmm_(h, of_weight, alpha=zeros)
            if any(ctx.needs_input_grad[1:3]):
                residuals = _Residuals(ctx.op.t(), weight, h, bias, zeros, transposed=True)
                pulls = (residuals @ h).addr_(bias, sum_h, alpha=zeros)
                to_weight = scale * pulls.addmm_(weight, of_h, alpha=zeros)
                to_bias = residuals @ torch.ones_like(bias) + zeros * (weight @ sum_h + len(h) * bias)
                to_bias = scale * to_bias
        return to_h, to_weight, to_bias, None, None


class _Residuals:
    """The sparse C = (1 − λ) R − A of all edges, where R = rows colsᵀ + b.

    `transposed` says that op is Aᵀ, rows are W and cols are H, so that this is Cᵀ; b belongs to W either way.
    """

    def __init__(
        self, op: SparseOperator, rows: Tensor, cols: Tensor, bias: Tensor, zeros: float, *, transposed: bool
    ) -> None:
        self.op = op
        self.on_edges: Tensor | None = None
        if zeros == 1 or not op.nnz:
            return
        of_row, of_col = op.edges()
        self.starts = torch.cat([op.row_counts.new_zeros(1), op.row_counts.cumsum(0)]).int()
        self.columns = of_col.int()
        self.adjacency = op.values.to(rows.dtype)
        constant = self._matrix(bias[of_row if transposed else of_col])
        self.on_edges = torch.sparse.sampled_addmm(constant, rows, cols.T).values()
        self.missing = torch.where(self.adjacency == 0, 0.0, (1 - zeros) * self.on_edges)
        self.matrix = self._matrix(self.missing - self.adjacency)

    def __matmul__(self, x: Tensor) -> Tensor:
        """C x for x [N, d] or [N]."""
        return -(self.op @ x) if self.on_edges is None else self.matrix @ x

    def edge_sum(self) -> Tensor:
        """Σ_edges [(R − A)² − λ R²], float64."""
        assert self.on_edges is not None
        squares = _inner(self.adjacency, self.adjacency)
        return squares + _inner(self.on_edges, self.missing - 2 * self.adjacency)

    def _matrix(self, values: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(
                self.starts, self.columns, values, self.op.shape, check_invariants=False
            )


def _inner(x: Tensor, y: Tensor) -> Tensor:
    """Σ x ∘ y, summed in float64: the loss is a difference of sums over N² pairs and over edges."""
    return (x * y).sum(dtype=torch.float64)


def _check(h: Tensor, weight: Tensor, bias: Tensor, op: SparseOperator) -> None:
    expect_shape("h", h, "N", "d")
    expect_not_empty("h", h)
    expect_shape("weight", weight, *h.shape)
    expect_shape("bias", bias, len(h))
    if op.shape != (len(h), len(h)):
        raise ShapeError(
            f"op: received {list(op.shape)}, expected [{len(h)}, {len(h)}] for h {list(h.shape)}"
        )
