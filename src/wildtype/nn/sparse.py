"""A fixed sparse matrix as an operator: its product, and backwards the product of its stored transpose.

Legend: n rows · m columns · e edges (stored entries) · d width · B mutants.

In float32 on a CPU the product is our own (`sparse_kernels`), in float64 and elsewhere torch's CSR with int32
indices (MKL on CPU), in tiles of 256 columns. So are small products, which are not worth compiling for, and
those of few columns, unless these are a power of two. Measured on an AMD EPYC (AVX2, torch 2.13, float32,
n = 6,607, e = 280,000, milliseconds, shortest of 5 to 40; ``mutants`` is the same number of columns as
[m, B, 64] with one mutant after the other). One thread of a busy machine; up to 64 columns unit weights and
processor time, above weights and the clock:

    columns         8      16      32      64     512   1,792
    our own      0.24    0.32    0.57    1.32    15.0    85.9
    ``mutants``                                  10.6    68.6
    weighted     0.29    0.39    0.61    1.36    15.0    85.9
    MKL          0.38    0.71    1.48    3.08    30.3   153.7

Two threads of an idle one, the loops alone, unit weights:

    our own      0.20    0.28    0.40    0.71     5.6    20.9
    ``mutants``                                   5.1    17.5
    MKL          0.26    0.56    1.00    2.18    15.2    70.0

A row belongs to one thread, so a product repeats bit by bit on CPU.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from wildtype.errors import ShapeError, WildtypeError
from wildtype.nn.shapes import expect_shape

_TILE = 256
_WORTH_COMPILING = 2**20  # multiplications of a product
_WIDE = 12  # columns from which on any number suits our own kernel; below, powers of two
_LANES = 8  # columns that are added in place side by side: a multiple of these
_WORTH_MASKING = 8  # narrowest columns of a mutant that are masked while they are multiplied


class GraphError(WildtypeError, ValueError):
    """A sparse operator that cannot do what is asked of it: no edges, or weights that are not positive."""


@dataclass(frozen=True)
class _Csr:
    """Compressed rows of one orientation: `starts` int32 [n + 1], `columns` int32 [e], `values` float [e]."""

    starts: Tensor
    columns: Tensor
    values: Tensor
    shape: tuple[int, int]
    _matrices: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def compress(cls, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> _Csr:
        """Sort edges by row, then column; equal pairs are summed."""
        # In float64, and rounded once: repeated edges lose nothing, in whatever order a file lists them.
        pairs, owner = torch.unique(rows * shape[1] + columns, sorted=True, return_inverse=True)
        summed = values.new_zeros(len(pairs), dtype=torch.float64).index_add_(0, owner, values.double())
        counts = torch.bincount(pairs // max(shape[1], 1), minlength=shape[0])
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(starts.int(), (pairs % max(shape[1], 1)).int(), summed.to(values.dtype), shape)

    @cached_property
    def counts(self) -> Tensor:
        return self.starts.diff().long()

    @cached_property
    def rows(self) -> Tensor:
        return torch.repeat_interleave(self.counts)

    def with_values(self, values: Tensor) -> _Csr:
        return _Csr(self.starts, self.columns, values, self.shape)

    def to(self, device: torch.device, dtype: torch.dtype) -> _Csr:
        return _Csr(
            self.starts.to(device), self.columns.to(device), self.values.to(device, dtype), self.shape
        )

    def matrix(self, dtype: torch.dtype) -> Tensor:
        if dtype not in self._matrices:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                self._matrices[dtype] = torch.sparse_csr_tensor(
                    self.starts, self.columns, self.values.to(dtype), self.shape, check_invariants=True
                )
        return self._matrices[dtype]

    @cached_property
    def _weights(self) -> Tensor | None:
        """The values in float32, None where all are one."""
        return None if bool((self.values == 1).all()) else self.values.float()

    def _compiled(self, x: Tensor, width: int) -> bool:
        """Whether our own kernel multiplies x, ``width`` columns wide in all."""
        return (
            x.device.type == "cpu"
            and x.dtype == torch.float32
            and len(self.columns) * width >= _WORTH_COMPILING
            and (width >= _WIDE or width.bit_count() == 1)
        )

    def add_product(self, x: Tensor, out: Tensor) -> None:
        """Add A x to out [n, d], for x [m, d]."""
        if self._compiled(x, x.shape[1]) and not x.shape[1] % _LANES and out.stride(1) == 1:
            from wildtype.nn.sparse_kernels import product

            product(self.starts, self.columns, self._weights, x.unsqueeze(1), add_to=out.unsqueeze(1))
        else:
            out += self.product(x)

    def product(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """[m, ...] -> [n, ...], float32 or float64; keep ∘ (A (keep ∘ x)) for x [n, B, d] and keep [n, B]."""
        width = math.prod(x.shape[1:])
        compiled = self._compiled(x, width)
        if keep is not None and not (compiled and x.shape[2] >= _WORTH_MASKING):
            gone = ~keep.unsqueeze(-1)
            return self.product(x.masked_fill(gone, 0.0)).masked_fill(gone, 0.0)
        if compiled:
            # Compiling needs numba, which is slow to import: not before it is used.
            from wildtype.nn.sparse_kernels import product

            x_mbd = x if x.ndim == 3 else x.reshape(self.shape[1], 1, -1)
            out = product(self.starts, self.columns, self._weights, x_mbd, keep)
            return out if x.ndim == 3 else out.reshape(self.shape[0], *x.shape[1:])
        flat = x.reshape(self.shape[1], math.prod(x.shape[1:]))
        if not len(self.columns):
            return x.new_zeros(self.shape[0], *x.shape[1:])
        # A tile of 256 columns of the source stays in the caches of a CPU while MKL walks the rows; all
        # columns do not.
        out = flat.new_empty(self.shape[0], flat.shape[1])
        wide = _TILE if x.device.type == "cpu" else max(flat.shape[1], 1)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, flat.shape[1], wide):
                tile = slice(start, start + wide)
                torch.mm(self.matrix(x.dtype), flat[:, tile], out=out[:, tile])
        return out.reshape(self.shape[0], *x.shape[1:])


class _Product(torch.autograd.Function):
    """x -> A x, whose backward is g -> Aᵀ g with the transpose that the operator holds; masked if asked."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor | None, forward: _Csr, backward: _Csr) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.forward_csr, ctx.backward_csr = forward, backward
        return forward.product(x, keep)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (keep,) = ctx.saved_tensors
        # d(Ax)/dx is Aᵀ, masked alike. Through `_apply` again, so that second derivatives exist.
        return _apply(grads[0], keep, ctx.backward_csr, ctx.forward_csr), None, None, None


def _apply(x: Tensor, keep: Tensor | None, forward: _Csr, backward: _Csr) -> Tensor:
    result: Tensor = _Product.apply(x, keep, forward, backward)  # type: ignore[no-untyped-call]
    return result


class SparseOperator:
    """An immutable sparse matrix A [n, m] with its transpose; `op @ x` is differentiable in x.

    The product is computed in the dtype of x: float64 as float64, float32 as float32, halves in float32 and
    returned as halves, inside or outside of autocast. Build with `SparseOperator.from_edges`.
    """

    def __init__(self, forward: _Csr, backward: _Csr, *, name: str = "", merged: int = 0) -> None:
        self._forward = forward
        self._backward = backward
        self.name = name
        self.merged = merged
        self._normalised: dict[float, SparseOperator] = {}

    @classmethod
    def from_edges(
        cls,
        rows: Tensor | Sequence[int],
        cols: Tensor | Sequence[int],
        n: int | tuple[int, int],
        values: Tensor | Sequence[float] | None = None,
        *,
        name: str = "",
    ) -> SparseOperator:
        """Operator with A[rows[e], cols[e]] += values[e].

        Parameters
        ----------
        rows, cols
            int [e], 0 ≤ rows < n and 0 ≤ cols < n (or n[0] and n[1]).
        n
            Number of rows and columns, or the pair of both.
        values
            float [e]; ones when left out. Kept as float64 if given so, as float32 otherwise.
        name
            Used in error messages.

        Notes
        -----
        Repeated pairs are summed, as in every coordinate format; `merged` counts how many went into others.

        Raises
        ------
        ShapeError
            Lengths differ, or a position lies outside the matrix.
        """
        shape = (n, n) if isinstance(n, int) else (int(n[0]), int(n[1]))
        rows_e, cols_e = _positions("rows", rows, shape[0]), _positions("cols", cols, shape[1])
        expect_shape("cols", cols_e, len(rows_e))
        values_e = (
            torch.ones(len(rows_e), device=rows_e.device) if values is None else torch.as_tensor(values)
        )
        expect_shape("values", values_e, len(rows_e))
        if values_e.dtype != torch.float64:
            values_e = values_e.float()
        values_e = values_e.detach()
        forward = _Csr.compress(rows_e, cols_e, values_e, shape)
        backward = _Csr.compress(cols_e, rows_e, values_e, (shape[1], shape[0]))
        return cls(forward, backward, name=name, merged=len(rows_e) - len(forward.columns))

    def __matmul__(self, x: Tensor) -> Tensor:
        """A x for x [m], [m, d] or [m, B, d]: the first dimension is multiplied, the others ride along.

        Raises
        ------
        ShapeError
            x does not have m rows, or is not floating point.
        """
        if x.ndim == 0 or x.shape[0] != self.shape[1]:
            raise ShapeError(f"x: received {list(x.shape)}, expected [{self.shape[1]}, ...] for {self!r}")
        if not x.is_floating_point():
            raise ShapeError(f"x: received dtype {x.dtype}, expected a floating dtype")
        return _apply(promoted(x), None, self._forward, self._backward).to(x.dtype)

    def within(self, keep: Tensor, x: Tensor) -> Tensor:
        """Compute keep ∘ (A (keep ∘ x)) for bool keep [n, B] and x [n, B, d], A square.

        Differentiable in x, whose rows where keep is false are never used. `shared_propagate` is this with
        its arguments checked.
        """
        return _apply(promoted(x), keep, self._forward, self._backward).to(x.dtype)

    def add_product(self, x: Tensor, out: Tensor) -> None:
        """Add A x to out, in place and unseen by autograd: x [m, d], out [n, d], of one floating dtype."""
        self._forward.add_product(x.detach(), out)

    def t(self) -> SparseOperator:
        """The transpose; shares all arrays with this operator."""
        return SparseOperator(self._backward, self._forward, name=self.name, merged=self.merged)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SparseOperator:
        """A copy on another device or with values stored in another dtype; itself if nothing changes."""
        device_to = self.device if device is None else torch.device(device)
        dtype_to = self.dtype if dtype is None else dtype
        if device_to == self.device and dtype_to == self.dtype:
            return self
        return SparseOperator(
            self._forward.to(device_to, dtype_to),
            self._backward.to(device_to, dtype_to),
            name=self.name,
            merged=self.merged,
        )

    def row_normalised(self, epsilon: float = 0.0) -> SparseOperator:
        """Ã_ij = A_ij / (Σ_j A_ij + ε), in float64; computed once for an ε and kept.

        Raises
        ------
        GraphError
            A weight is zero, negative or not finite.
        """
        if epsilon not in self._normalised:
            self._normalised[epsilon] = self._divided_by_row_sums(epsilon)
        return self._normalised[epsilon]

    def only(self, keep: Tensor) -> SparseOperator:
        """Return the operator with the entries where bool ``keep`` [e] is true, in the order of `edges()`."""
        expect_shape("keep", keep, self.nnz)
        rows, cols = self.edges()
        return SparseOperator.from_edges(
            rows[keep], cols[keep], self.shape, self.values[keep], name=self.name
        )

    def pattern(self) -> SparseOperator:
        """The same edges with all values one; computed once and kept."""
        return self._pattern

    def edges(self) -> tuple[Tensor, Tensor]:
        """Rows and columns of the stored entries, int64 [e] each, sorted by row, then column."""
        return self._forward.rows, self._forward.columns.long()

    def entries(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Stored entries of some rows, one row after the other.

        Parameters
        ----------
        rows
            int64 [r], positions of rows; a row may be named more than once.

        Returns
        -------
        which, columns, values
            int64 [D], int64 [D] and [D]: the entry lies in row rows[which] and in this column.
        """
        counts = self.row_counts[rows]
        which = torch.repeat_interleave(counts)
        # Position in the stored arrays less position in the answer, constant within a row.
        first = self._forward.starts[rows].long() - (counts.cumsum(0) - counts)
        at = torch.arange(len(which), device=which.device) + first[which]
        return which, self._forward.columns[at].long(), self.values[at]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self._forward.shape

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self._forward.columns)

    @property
    def device(self) -> torch.device:
        """Where the arrays are."""
        return self._forward.values.device

    @property
    def dtype(self) -> torch.dtype:
        """Dtype in which the values are stored; the product follows the dtype of x."""
        return self._forward.values.dtype

    @property
    def values(self) -> Tensor:
        """Stored values [e], in the order of `edges()`."""
        return self._forward.values

    @property
    def row_counts(self) -> Tensor:
        """Stored entries per row, int64 [n]."""
        return self._forward.counts

    @cached_property
    def rows_with_edges(self) -> Tensor:
        """Positions of the rows that have at least one entry, int64."""
        return self.row_counts.nonzero().flatten()

    @cached_property
    def row_sums(self) -> Tensor:
        """Σ_j A_ij per row, float64 [n]."""
        values = self.values.double()
        return values.new_zeros(self.shape[0]).index_add_(0, self._forward.rows, values)

    @cached_property
    def row_entropy_constant(self) -> Tensor:
        """Σ_j A_ij log A_ij per row, float64 [n], 0 for an empty row; of Ã, minus the row's entropy."""
        values = self.values.double()
        terms = torch.xlogy(values, values)
        return terms.new_zeros(self.shape[0]).index_add_(0, self._forward.rows, terms)

    def _divided_by_row_sums(self, epsilon: float) -> SparseOperator:
        values = self.values.double()
        bad = ~((values > 0) & values.isfinite())
        if bad.any():
            rows, cols = self.edges()
            first = int(bad.nonzero()[0])
            raise GraphError(
                f"{self!r} has {int(bad.sum())} weights that are not positive and finite, the first "
                f"{float(values[first]):g} at ({int(rows[first])}, {int(cols[first])}): "
                "drop these edges or give them positive weights"
            )
        sums = self.row_sums + epsilon
        return SparseOperator(
            self._forward.with_values(values / sums[self._forward.rows]),
            # A column of the transpose is a row here: the same sums divide both.
            self._backward.with_values(self._backward.values.double() / sums[self._backward.columns.long()]),
            name=self.name,
            merged=self.merged,
        )

    @cached_property
    def _pattern(self) -> SparseOperator:
        return SparseOperator(
            self._forward.with_values(torch.ones_like(self._forward.values)),
            self._backward.with_values(torch.ones_like(self._backward.values)),
            name=self.name,
            merged=self.merged,
        )

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        return f"SparseOperator{label} of {self.shape[0]} x {self.shape[1]} with {self.nnz} edges"


def promoted(x: Tensor) -> Tensor:
    """Halves as float32, others as they are: logs, sums and graph products are kept in at least float32."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _positions(argument: str, received: Tensor | Sequence[int], size: int) -> Tensor:
    positions = torch.as_tensor(received)
    expect_shape(argument, positions, "e")
    if positions.numel() and (positions.is_floating_point() or positions.dtype == torch.bool):
        raise ShapeError(f"{argument}: received dtype {positions.dtype}, expected integers")
    positions = positions.long()
    wrong = ((positions < 0) | (positions >= size)).nonzero()
    if len(wrong):
        first = int(wrong[0])
        raise ShapeError(f"{argument}[{first}]: received {int(positions[first])}, expected 0 to {size - 1}")
    return positions
