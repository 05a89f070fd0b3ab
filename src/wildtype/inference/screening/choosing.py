"""Which mutants make the list of a screen: the best, the best of many genes, or those that may be better.

A list is what is built next. The best predictions are often of few genes, and of mutants that are alike: a
batch of them finds one biology many times. Two other choices are made among ``RESERVE`` times as many of the
best:

* ``explore`` ranks by the end of the prediction interval that is extreme in the direction of the list, as an
  upper confidence bound does (Auer 2002, J. Mach. Learn. Res. 3, 397–422), and calls by how close their
  probability is to one half;
* ``diverse`` takes the mutant of largest strength × ½^(rows that its genes have already), again and again.
  Strength is the distance from the weakest of the best.

Legend: m ranked mutants · k genes per mutant.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHOICES = ("best", "explore", "diverse")
RESERVE = 50
"""Mutants to keep per mutant of a list that may pass some of them over."""
LEVEL = 0.9
"""Coverage of the intervals by whose ends ``explore`` ranks, where the request names none."""


def choose(
    how: str, strength: Floats, genes: Ints, top: int, max_per_gene: int | None, exempt: frozenset[int]
) -> Ints:
    """Return the positions of the mutants of a list, in its order.

    Parameters
    ----------
    how : str
        One of ``CHOICES``; for ``explore``, mutants must be ranked as it ranks them.
    strength : float64 [m]
        How extreme ranked mutants are, at least 0; of ``diverse``.
    genes : int64 [m, k]
        Their genes.
    top : int
        Most mutants of the list.
    max_per_gene : int or None
        Most of them that a gene may be in.
    exempt : frozenset of int
        Genes that may be in any number.
    """
    used: Counter[int] = Counter()
    chosen: list[int] = []
    counted = [[gene for gene in row if gene not in exempt] for row in genes.tolist()]
    order = _diverse(strength, counted, used) if how == "diverse" else iter(range(len(counted)))
    for i in order:
        if len(chosen) == top:
            break
        if max_per_gene is None or all(used[gene] < max_per_gene for gene in counted[i]):
            used.update(counted[i])
            chosen.append(i)
    return np.array(chosen, np.int64)


def _diverse(strength: Floats, genes: list[list[int]], used: Counter[int]) -> Iterator[int]:
    """Yield mutants by strength, halved for every row that one of their genes has in ``used`` by then."""

    def worth(i: int) -> float:
        return float(strength[i]) * 0.5 ** sum(used[gene] for gene in genes[i])

    waiting = [(-worth(i), i) for i in range(len(genes))]
    heapq.heapify(waiting)
    while waiting:
        was, i = heapq.heappop(waiting)
        now = -worth(i)
        # Worth only falls: a mutant that is worth what it was when it was put there is the first.
        if now > was:
            heapq.heappush(waiting, (now, i))
        else:
            yield i
