"""The loop of `EvidenceAttention.pool`, compiled by numba and kept on disk: one query against its tokens.

Legend: q queries · T tokens of all · h heads · w width of a head's value · p phenotypes.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from wildtype.compiled import njit

COMPILED = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def pool_tokens(
    first: int, last: int, read: Any, value: Any, offsets: Any, null: Any, width: int, pooled: Any
) -> None:
    """Write what queries first … last - 1 pool to pooled [q, h (w + p + 1)].

    ``read`` [T, h (1 + w)] holds a logit of each head and then its values, ``value`` [T, p] what was
    measured, ``offsets`` [q + 1] where the tokens of a query begin, and ``null`` [h] the logits of null keys.
    """
    # Unsigned: every place by a number that could be negative asks first whether it is.
    heads, phenotypes, w = np.uint64(len(null)), np.uint64(value.shape[1]), np.uint64(width)
    measured = heads * w
    sums = measured + heads * phenotypes
    for i in range(np.uint64(first), np.uint64(last)):
        begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + np.uint64(1)])
        for c in range(np.uint64(pooled.shape[1])):
            pooled[i, c] = 0
        for h in range(heads):
            # The largest logit becomes 0: no exponential overflows.
            largest = null[h]
            for t in range(begin, end):
                largest = max(largest, read[t, h])
            own, known = h * w, measured + h * phenotypes
            total = null[h] * 0  # 0 in the precision of the result
            for t in range(begin, end):
                weight = exp(read[t, h] - largest)
                total += weight
                for c in range(w):
                    pooled[i, own + c] += weight * read[t, heads + own + c]
                for c in range(phenotypes):
                    pooled[i, known + c] += weight * value[t, c]
            scale = 1 / (total + exp(null[h] - largest))
            for c in range(w):
                pooled[i, own + c] *= scale
            for c in range(phenotypes):
                pooled[i, known + c] *= scale
            pooled[i, sums + h] = total * scale
