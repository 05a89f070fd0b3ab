"""Sparse times dense in float32 on a CPU: loops whose sums stay in vector registers, compiled by numba.

A row of the result is summed 64 columns at a time in eight registers of eight floats, edge by edge in stored
order, while the source rows of later edges are fetched ahead. Source rows that lie far apart or are masked
are first packed side by side, one tile of columns after the other, so that a tile stays in the near caches.
The work, a line of all tiles times all rows, is cut into one piece per thread; a row is summed by one thread
in one order, so a product repeats bit by bit for any number of threads.

numba's own inner loops would keep the sums in memory, so these are written in LLVM's language. They are
compiled when first used, a few seconds once per machine.

Legend: n rows · m columns · e edges · B mutants (or 1) · d width · w = width of a tile, a power of two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from torch import Tensor

from wildtype.cache_lines import fetch_line
from wildtype.compiled import njit
from wildtype.nn.threads import loops

TILE = 64
_LANES = 8
_AHEAD = 16  # edges between a fetch and its use
_ROW_COST = 4  # what a row costs besides its edges, in edges
_FAR = 128  # floats between source rows from which on packing pays
_WORTH_THREADS = 2**23  # multiplications from which on waking a thread pays
COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def sum_of_rows(
    typing: Any,
    width: Any,
    weighted: Any,
    added: Any,
    out: Any,
    x: Any,
    stride: Any,
    columns: Any,
    start: Any,
    end: Any,
    edges: Any,
    values: Any,
) -> Any:
    """Write Σ_{start ≤ e < end} value_e · x[columns_e · stride + c] to out[c] for c < width.

    ``width`` (a power of two), ``weighted`` (0: every value is one, ``values`` is not read) and ``added`` (1:
    the sum is added to what out holds) are constants; ``out``, ``x``, ``columns`` and ``values`` are
    addresses, ``edges`` the length of ``columns``.
    """
    floats, has_values, adds = width.literal_value, weighted.literal_value, added.literal_value
    lanes = min(floats, _LANES)
    vector = ir.VectorType(_FLOAT, lanes)
    offsets = range(0, floats, lanes)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, out, x, stride, columns, start, end, edges, values = arguments
        x, out, values = (builder.inttoptr(a, _FLOAT.as_pointer()) for a in (x, out, values))
        columns = builder.inttoptr(columns, _INT.as_pointer())

        def row(edge: Any) -> Any:
            column = builder.sext(builder.load(builder.gep(columns, [edge])), _LONG)
            return builder.gep(x, [builder.mul(column, stride)])

        def part(pointer: Any, offset: int) -> Any:
            moved = builder.gep(pointer, [ir.Constant(_LONG, offset)])
            return builder.bitcast(moved, vector.as_pointer())

        none = ir.Constant(vector, [0.0] * lanes)
        held = [builder.load(part(out, offset), align=4) if adds else none for offset in offsets]
        before = builder.block
        head, body, done = (builder.append_basic_block(f"edges.{name}") for name in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        edge = builder.phi(_LONG)
        edge.add_incoming(start, before)
        sums = [builder.phi(vector) for _ in offsets]
        for total, first in zip(sums, held, strict=True):
            total.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", edge, end), body, done)

        builder.position_at_end(body)
        source = row(edge)
        # Rows of x are read in the order of the columns, which no hardware prefetcher can guess.
        if floats > 2 * _LANES:
            later = builder.add(edge, ir.Constant(_LONG, _AHEAD))
            ahead = row(builder.select(builder.icmp_signed("<", later, edges), later, edge))
            for offset in range(0, floats, 16):  # a cache line is 16 floats
                fetch_line(builder, builder.gep(ahead, [ir.Constant(_LONG, offset)]))
        if has_values:
            value = builder.load(builder.gep(values, [edge]))
            unset = ir.Constant(vector, ir.Undefined)
            value = builder.insert_element(unset, value, ir.Constant(_INT, 0))
            value = builder.shuffle_vector(value, unset, ir.Constant(ir.VectorType(_INT, lanes), [0] * lanes))
        for offset, total in zip(offsets, sums, strict=True):
            term = builder.load(part(source, offset), align=4)
            if has_values:
                # "contract" allows one fused multiply-add, and no other change of order.
                term = builder.fmul(term, value, flags=["contract"])
            total.add_incoming(builder.fadd(total, term, flags=["contract"]), body)
        edge.add_incoming(builder.add(edge, ir.Constant(_LONG, 1)), body)
        builder.branch(head)

        builder.position_at_end(done)
        for offset, total in zip(offsets, sums, strict=True):
            builder.store(total, part(out, offset), align=4)
        return context.get_dummy_value()

    return types.void(width, weighted, added, *[types.int64] * 8), emit


@njit(inline="always")  # type: ignore[untyped-decorator]
def first_row(starts: Any, cost: Any) -> Any:
    """First row before which at least ``cost`` lies."""
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        if starts[middle] + _ROW_COST * middle < cost:
            low = middle + 1
        else:
            high = middle
    return low


@cache
def kernel(w: int, weighted: int, added: int) -> Callable[..., None]:
    """Return the loop over one piece of a product whose tiles are ``w`` columns wide, at most as wide as x.

    Its arrays are flat, with strides in elements. ``values``, ``keep`` and ``scratch`` [m · w] may be empty:
    weights of one, no mask, no packing. Where w does not divide the width, the last two tiles overlap, and
    write the same numbers; so it must, where sums are ``added`` to what ``out`` holds.
    """

    @njit(**COMPILED)  # type: ignore[untyped-decorator]
    def multiply(
        starts: Any,
        columns: Any,
        values: Any,
        x: Any,
        x_node: int,
        x_mutant: int,
        m: int,
        keep: Any,
        keep_node: int,
        keep_mutant: int,
        out: Any,
        out_node: int,
        out_mutant: int,
        mutants: int,
        width: int,
        scratch: Any,
        piece: int,
        pieces: int,
    ) -> None:
        n, edges = len(starts) - 1, len(columns)
        whole = edges + _ROW_COST * n  # of one tile
        tiles = (width + w - 1) // w
        line = mutants * tiles * whole
        # Pieces of equal cost, not of equal rows: rows differ in edges by orders of magnitude. A row is
        # never cut, since its edges are summed in stored order.
        first, last = line * piece // pieces, line * (piece + 1) // pieces
        for tile in range(first // whole, (last + whole - 1) // whole):
            b, c = tile // tiles, min(tile % tiles * w, width - w)
            low, high = first_row(starts, first - tile * whole), first_row(starts, last - tile * whole)
            source, stride = x.ctypes.data + 4 * (b * x_mutant + c), x_node
            if len(scratch):
                for j in range(m):
                    at, of = j * w, j * x_node + b * x_mutant + c
                    if len(keep) and not keep[j * keep_node + b * keep_mutant]:
                        for k in range(w):
                            scratch[at + k] = 0
                    else:
                        for k in range(w):
                            scratch[at + k] = x[of + k]
                source, stride = scratch.ctypes.data, w
            for i in range(low, high):
                at = i * out_node + b * out_mutant + c
                if len(keep) and not keep[i * keep_node + b * keep_mutant]:
                    for k in range(w):
                        out[at + k] = 0
                else:
                    sum_of_rows(
                        w,
                        weighted,
                        added,
                        out.ctypes.data + 4 * at,
                        source,
                        stride,
                        columns.ctypes.data,
                        starts[i],
                        starts[i + 1],
                        edges,
                        values.ctypes.data,
                    )

    return multiply  # type: ignore[no-any-return]


def product(
    starts: Tensor,
    columns: Tensor,
    values: Tensor | None,
    x: Tensor,
    keep: Tensor | None = None,
    add_to: Tensor | None = None,
) -> Tensor:
    """Return A x, or keep ∘ (A (keep ∘ x)), for x float32 on the CPU; the result is laid out as x is.

    Parameters
    ----------
    starts, columns
        int32 [n + 1] and [e], the compressed rows of A [n, m]; positions are trusted.
    values
        float32 [e]; ones when left out.
    x
        [m, B, d], any strides; fastest if each [m, d] or each [B, d] lies in one piece.
    keep
        bool [n, B] with n = m, True = present; where it is not, x is never read and the result is zero.
    add_to
        float32 [n, B, d], columns side by side: A x is added to it, and it is the result; not with ``keep``.
    """
    n, m, mutants, width = len(starts) - 1, *x.shape
    apart = x.stride(1) > x.stride(0)  # one mutant after the other
    if add_to is not None:
        out = add_to
    else:
        out = torch.empty(mutants, n, width).transpose(0, 1) if apart else torch.empty(n, mutants, width)
    if not out.numel():
        return out
    if not len(columns):
        return out if add_to is not None else out.zero_()
    if width > 1 and x.stride(2) != 1:
        x = x.contiguous()
    of, to = x.detach(), out
    if (
        keep is None and not apart and x.is_contiguous() and out.is_contiguous()
    ):  # columns of all mutants are one row of columns
        of, to = of.reshape(m, 1, mutants * width), out.reshape(n, 1, mutants * width)
    empty = torch.empty(0)  # numba takes arrays, not None
    mask = torch.empty(0, 0, dtype=torch.uint8) if keep is None else keep.view(torch.uint8)
    packed = keep is not None or of.stride(0) > _FAR
    threads = torch.get_num_threads() if len(columns) * mutants * width >= _WORTH_THREADS else 1
    columns_wide = to.shape[2]
    # The largest power of two within the columns; one that divides them where no column may be added twice.
    tile = 2 ** (columns_wide.bit_length() - 1) if add_to is None else columns_wide & -columns_wide
    tile = min(TILE, tile)
    run = kernel(tile, int(values is not None), int(add_to is not None))
    arguments = (
        starts.numpy(), columns.numpy(), (empty if values is None else values).numpy(),
        _flat(of), of.stride(0), of.stride(1), m,
        _flat(mask), mask.stride(0), mask.stride(1),
        _flat(to), to.stride(0), to.stride(1),
        to.shape[1], to.shape[2],
    )  # fmt: skip

    def work(piece: int) -> None:
        run(*arguments, (torch.empty(m * tile) if packed else empty).numpy(), piece, threads)

    loops(threads, work)
    return out


def _flat(x: Tensor) -> Any:
    """All memory from the first to the last element of a tensor, as one array."""
    if not x.numel():
        return x.reshape(0).numpy()
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.as_strided((extent,), (1,)).numpy()
