"""Random graphs to measure on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct_pairs(draw: np.random.Generator, n: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ends [count] each of different edges between different ones of n nodes, in random order."""
    pairs = np.unique(draw.integers(0, n * n, count + count // 8 + 16))
    pairs = pairs[pairs // n != pairs % n]
    pairs = draw.permutation(pairs)[:count]
    return pairs // n, pairs % n
