"""Which genes lie within k hops of the perturbed ones, for a batch of mutants at once.

Legend: n genes · B mutants · W words of 64 mutants · S perturbed genes of a mutant.

Bit b of word w at gene v is set if v is within reach of mutant 64 w + b: one pass over the graph serves 64
mutants. The first hop is read off the rows of S.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.compiled import njit
from wildtype.errors import ConfigError, GeneSetError

Ints = NDArray[np.int64]
COMPILED = {"cache": True, "nogil": True}


def _start(indptr: Any, indices: Any, gene: Any, offsets: Any, neighbours: bool, words: Any) -> None:
    """Set the bit of every mutant at its perturbed genes and, if `neighbours`, at their neighbours.

    ``words`` is uint64 [W, n] and zero on entry. Costs the degrees of the perturbed genes.
    """
    for mutant in range(len(offsets) - 1):
        row = words[mutant >> 6]
        bit = np.uint64(1) << np.uint64(mutant & 63)
        for k in range(offsets[mutant], offsets[mutant + 1]):
            row[gene[k]] |= bit
            if neighbours:
                for e in range(indptr[gene[k]], indptr[gene[k] + 1]):
                    row[indices[e]] |= bit


def _widen(indptr: Any, indices: Any, now: Any, after: Any) -> bool:
    """Write to ``after`` [n] what is one hop further than ``now`` [n]; return whether anything was added.

    A gene that every mutant of the word already reaches cannot change: its remaining neighbours are skipped,
    so that a dense neighbourhood costs a few words per gene instead of its degree.
    """
    # Bits of mutants that still search: no gene can gain any other bit.
    everyone = np.uint64(0)
    for v in range(len(now)):
        everyone |= now[v]
    grown = False
    for v in range(len(now)):
        seen = now[v]
        if seen != everyone:
            for e in range(indptr[v], indptr[v + 1]):
                seen |= now[indices[e]]
                if seen == everyone:
                    break
        after[v] = seen
        grown |= seen != now[v]
    return grown


start = njit(**COMPILED)(_start)
widen = njit(**COMPILED)(_widen)


def reach(union: sparse.csr_array, gene: Ints, offsets: Ints, hops: int) -> NDArray[np.uint64]:
    """Return the genes within ``hops`` of each mutant's genes as packed bits.

    Parameters
    ----------
    union : csr [n, n]
        Symmetric pattern of who is whose neighbour; its values do not matter.
    gene : int64 [Σk]
        Perturbed genes.
    offsets : int64 [B+1]
        Mutant i owns ``gene[offsets[i]:offsets[i+1]]``; a mutant without genes reaches none.
    hops : int
        How far, at least 0; hop 0 is the genes themselves.

    Returns
    -------
    uint64 [W, n]
        Bit b of word w belongs to mutant 64 w + b; ``unpack`` makes a mask of it.

    Raises
    ------
    ConfigError
        If ``hops`` is negative.
    GeneSetError
        If a gene is outside 0 … n-1.

    Notes
    -----
    O(degrees of the perturbed genes) for one hop; every further hop O(e) per 64 mutants at most, and less
    where neighbourhoods fill up. Stops early when nothing is added.
    """
    n = union.shape[0]
    if hops < 0:
        raise ConfigError(f"{hops} hops are not possible: give 0 or more")
    check_genes(gene, n)
    words = np.zeros((-(-(len(offsets) - 1) // 64), n), np.uint64)
    start(union.indptr, union.indices, gene, offsets, hops > 0, words)
    for w in range(len(words)):
        now, after = words[w], np.empty(n, np.uint64)
        for _ in range(hops - 1):
            if not widen(union.indptr, union.indices, now, after):
                break
            now, after = after, now
        words[w] = now
    return words


def unpack(words: NDArray[np.uint64], mutants: int) -> NDArray[np.bool_]:
    """Return packed bits [W, n] of B ``mutants`` as a mask, bool [n, B]."""
    # Little-endian words put bit b of word w at bit 64 w + b of the byte stream, on every machine.
    by_gene = np.ascontiguousarray(words.T.astype("<u8")).view(np.uint8)
    return np.unpackbits(by_gene, axis=1, count=mutants, bitorder="little").view(np.bool_)


def reach_reference(union: sparse.csr_array, gene: Ints, offsets: Ints, hops: int) -> NDArray[np.bool_]:
    """The definition, bool [n, B]: k products of the adjacency, with loops, with the mutants' indicators."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    within = sparse.csr_array(
        (np.ones(len(gene), bool), (gene, row)), shape=(union.shape[0], len(offsets) - 1)
    )
    step = sparse.csr_array(union.astype(bool) + sparse.eye_array(union.shape[0], dtype=bool))
    for _ in range(hops):
        within = sparse.csr_array(step @ within).astype(bool)
    return within.toarray()


def check_genes(gene: Ints, n: int) -> None:
    """Raise ``GeneSetError`` unless all positions are those of n genes: compiled loops do not look."""
    if gene.size and (gene.min() < 0 or gene.max() >= n):
        wrong = int(gene[(gene < 0) | (gene >= n)][0])
        raise GeneSetError(f"a mutant perturbs gene {wrong}, outside 0 … {n - 1}: map it to this gene index")
