"""Checks that print the argument, what was received and what was expected.

Legend: `expected` lists one entry per dimension, an int for a fixed size, a name for a free one.
"""

from __future__ import annotations

from torch import Tensor, int64

from wildtype.errors import ShapeError


def expect_shape(argument: str, received: Tensor, *expected: int | str) -> None:
    """Raise ShapeError unless `received` has the dimensions `expected` (ints are fixed, names are free)."""
    matches = received.ndim == len(expected) and all(
        isinstance(want, str) or want == size for want, size in zip(expected, received.shape, strict=True)
    )
    if not matches:
        wanted = ", ".join(map(str, expected))
        raise ShapeError(f"{argument}: received {list(received.shape)}, expected [{wanted}]")


def expect_not_empty(argument: str, received: Tensor) -> None:
    """Raise ShapeError if any dimension of `received` is zero."""
    if received.numel() == 0:
        raise ShapeError(
            f"{argument}: received {list(received.shape)}, expected every dimension to be at least 1"
        )


def expect_index(argument: str, received: Tensor, size: int) -> None:
    """Raise ShapeError unless `received` is a 1-D int64 tensor of positions 0 ≤ i < size."""
    expect_shape(argument, received, "any length")
    if received.dtype != int64:
        raise ShapeError(f"{argument}: received dtype {received.dtype}, expected torch.int64")
    if received.numel():
        low, high = int(received.min()), int(received.max())
        if low < 0 or high >= size:
            raise ShapeError(f"{argument}: received positions {low} to {high}, expected 0 to {size - 1}")
