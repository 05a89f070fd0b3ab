"""The loops of `reach`, compiled by numba and kept on disk: breadth-first search, 64 mutants per word.

Legend: n genes · e edges of the union · B mutants · W words of 64 mutants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

COMPILED = {"cache": True, "nogil": True}


def _start(indptr: Any, indices: Any, gene: Any, offsets: Any, neighbours: bool, words: Any) -> None:
    """Set the bit of every mutant at its perturbed genes and, if wanted, at their neighbours.

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

    A gene that already stands in every search of the word has nothing to gain: its remaining neighbours are
    not looked at, so that a dense neighbourhood costs a few words per gene instead of its degree.
    """
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
