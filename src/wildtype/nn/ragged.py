"""Ragged sets: Σk rows of B sets, one after the other, with offsets [B + 1]; empty sets are allowed.

Legend: B sets · Σk rows in all · k rows of the largest set · d width.

Every function is differentiable and repeats bit by bit on CPU: rows are gathered by embedding and summed by
index_add, never by index_put.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from wildtype.errors import ShapeError
from wildtype.nn.shapes import expect_shape


def check_offsets(offsets: Tensor, rows: int) -> None:
    """Raise ShapeError unless offsets are int64 [B + 1], start at 0, never fall and end at `rows`."""
    expect_shape("offsets", offsets, "B + 1")
    if offsets.dtype != torch.int64 or not len(offsets):
        raise ShapeError(
            f"offsets: received {offsets.dtype} {list(offsets.shape)}, expected torch.int64 [B + 1]"
        )
    if int(offsets[0]) != 0 or int(offsets[-1]) != rows or bool((offsets.diff() < 0).any()):
        raise ShapeError(
            f"offsets: received {int(offsets[0])} to {int(offsets[-1])}, "
            f"expected to rise (or stay) from 0 to the number of rows, {rows}"
        )


def segment_ids(offsets: Tensor) -> Tensor:
    """The set that each row belongs to, int64 [Σk]."""
    return torch.repeat_interleave(offsets.diff())


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """x[index] for x [N, ...] and int64 index of any shape, with a deterministic backward."""
    # x[index] has index_put as its backward, whose order of sums is not fixed; that of embedding is.
    taken = F.embedding(index, x.reshape(x.shape[0], math.prod(x.shape[1:])))
    return taken.reshape(*index.shape, *x.shape[1:])


def segment_sum(x: Tensor, offsets: Tensor) -> Tensor:
    """Sum over each set: [Σk, ...] -> [B, ...]; 0 for an empty set.

    Raises
    ------
    ShapeError
        Offsets do not fit x.
    """
    check_offsets(offsets, x.shape[0])
    return x.new_zeros(len(offsets) - 1, *x.shape[1:]).index_add(0, segment_ids(offsets), x)


def segment_mean(x: Tensor, offsets: Tensor) -> Tensor:
    """Mean over each set: [Σk, ...] -> [B, ...]; 0 for an empty set. ShapeError as in `segment_sum`."""
    sizes = offsets.diff().clamp(min=1).to(x.dtype)
    return segment_sum(x, offsets) / sizes.reshape(-1, *[1] * (x.ndim - 1))


def segment_prod(x: Tensor, offsets: Tensor) -> Tensor:
    """Elementwise product over each set: [Σk, ...] -> [B, ...]; 1 for an empty set.

    The gradient of a factor is the product of the others, also where factors are zero. ShapeError as in
    `segment_sum`.
    """
    # prod over a rectangle: exp Σ log would lose signs and zeros, and its gradient divides by the factors.
    return pad_ragged(x, offsets, fill=1.0)[0].prod(1)


def pad_ragged(x: Tensor, offsets: Tensor, *, fill: float = 0.0) -> tuple[Tensor, Tensor]:
    """Sets as a rectangle: [Σk, ...] -> [B, k, ...] with `fill` in the gaps, and its mask.

    The mask is bool [B, k], True = a row of the set.

    Raises
    ------
    ShapeError
        Offsets do not fit x.
    """
    check_offsets(offsets, x.shape[0])
    sizes = offsets.diff()
    place = torch.arange(int(sizes.max()) if len(sizes) else 0, device=x.device)
    mask = place < sizes.unsqueeze(1)
    padded = take_rows(x, torch.where(mask, offsets[:-1].unsqueeze(1) + place, 0))
    return padded.masked_fill(~mask.reshape(*mask.shape, *[1] * (x.ndim - 1)), fill), mask
