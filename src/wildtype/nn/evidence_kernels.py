"""The loop of `EvidenceAttention.pool`, compiled by numba and kept on disk: one query against its tokens.

Legend: q queries · T tokens of all · h heads · w width of a head's value · p phenotypes.
"""

from __future__ import annotations

from math import exp
from typing import Any

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
    heads, phenotypes = len(null), value.shape[1]
    measured = heads * width
    sums = measured + heads * phenotypes
    for i in range(first, last):
        pooled[i] = 0
        for h in range(heads):
            # The largest logit becomes 0: no exponential overflows.
            largest = null[h]
            for t in range(offsets[i], offsets[i + 1]):
                largest = max(largest, read[t, h])
            total = pooled[i, 0] * 0  # 0 in the precision of the result
            for t in range(offsets[i], offsets[i + 1]):
                weight = exp(read[t, h] - largest)
                total += weight
                for c in range(width):
                    pooled[i, h * width + c] += weight * read[t, heads + h * width + c]
                for c in range(phenotypes):
                    pooled[i, measured + h * phenotypes + c] += weight * value[t, c]
            scale = 1 / (total + exp(null[h] - largest))
            for c in range(width):
                pooled[i, h * width + c] *= scale
            for c in range(phenotypes):
                pooled[i, measured + h * phenotypes + c] *= scale
            pooled[i, sums + h] = total * scale
