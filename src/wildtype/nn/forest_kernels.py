"""The loop of `Forest`, compiled by numba and kept on disk."""

from __future__ import annotations

from math import isnan
from typing import Any

from numba import njit

COMPILED = {"cache": True, "nogil": True}


@njit(**COMPILED)
def add_trees(x: Any, feature: Any, child: Any, split: Any, missing_left: Any, root: Any, out: Any) -> None:
    """Add the leaves that the rows of x [b, f] fall into to ``out`` [b], tree by tree."""
    for t in range(len(root)):
        for i in range(len(x)):
            node = root[t]
            while feature[node] >= 0:
                value = x[i, feature[node]]
                left = missing_left[node] if isnan(value) else value <= split[node]
                node = child[node, 0] if left else child[node, 1]
            out[i] += split[node]
