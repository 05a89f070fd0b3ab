"""Which genes each of many contexts has, one bit per gene, and which number a gene has among them.

Legend: n genes · c contexts · g genes of all contexts · w words of 64 genes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED

WORD = 64


class GeneBits(NamedTuple):
    """Genes of contexts, by context and ascending: of context i ``begin[i]`` … ``begin[i + 1]``-1.

    Attributes
    ----------
    gene : int32 [g]
    begin : int64 [c + 1]
    row : int64 [c]
        A context's row of bits; -1 where it has few genes, among which a gene is searched for.
    bits : uint64 [rows, w]
    before : int32 [rows, w]
        How many genes of the context come before those of the word.
    """

    gene: Any
    begin: Any
    row: Any
    bits: Any
    before: Any


def gene_bits(gene: NDArray[np.int32], begin: NDArray[np.int64], n: int) -> GeneBits:
    """Return the bits of all contexts with a gene for each word; O(g + n) time, at most 12 g bytes."""
    words = -(-n // WORD)
    many = np.diff(begin) >= max(words, 1)
    row = np.where(many, np.cumsum(many) - 1, -1)
    shape = (int(many.sum()), words)
    found = GeneBits(gene, begin, row, np.zeros(shape, np.uint64), np.zeros(shape, np.int32))
    _set_bits(found)
    return found


@intrinsic  # type: ignore[untyped-decorator]
def ones(typing: Any, word: Any) -> Any:
    """Count the bits of a word of 64, in compiled loops."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


def _set_all(found: GeneBits) -> None:
    """Set the bit of every gene, and the counts; both are zero on entry."""
    gene, begin, rows, bits, before = found
    for context in range(len(rows)):
        row = rows[context]
        if row < 0:
            continue
        for i in range(begin[context], begin[context + 1]):
            bits[row, gene[i] // WORD] |= np.uint64(1) << np.uint64(gene[i] % WORD)
        for word in range(1, bits.shape[1]):
            before[row, word] = before[row, word - 1] + ones(bits[row, word - 1])


_set_bits = njit(**COMPILED)(_set_all)
