"""`NearestGenes`: the measured genes most like each gene, found when a gene is first asked about.

Legend: n genes · r neighbours per gene · c contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence import neighbour_kernels
from wildtype.evidence.edits import Ranking
from wildtype.evidence.neighbour_kernels import Csr
from wildtype.evidence.pieces import Run

CHUNK = 512
"""Genes per piece of work."""


class NearestGenes:
    """Ranks measured genes by how much they are like each gene.

    Out of fold, many parts of the measurements answer few queries each: ranking all genes in advance would
    take as long as the answers, and the first batch of an epoch would wait for all parts.

    Parameters
    ----------
    known : bool [n]
        Which genes are measured.
    embedded, profiles, transpose : Csr
        Nearest genes by what is known before labels are [n, n]; label profiles [n, c] with rows of unit
        length, and their transpose.
    r : int
        Neighbours per gene.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.
    """

    def __init__(
        self, known: NDArray[np.bool_], embedded: Csr, profiles: Csr, transpose: Csr, r: int, run: Run
    ) -> None:
        n = len(known)
        self._similarity: tuple[Any, ...] = (known, embedded, profiles, transpose)
        self._run = run
        self._ranking = _empty(n, r)
        self._made = np.zeros(n, bool)

    def of(self, genes: NDArray[np.int64] | None = None) -> Ranking:
        """Return the ranking, in which the rows of ``genes`` are made (-1: none); without, those of all."""
        todo = not_made(self._made, np.arange(len(self._made)) if genes is None else genes)
        if not len(todo):
            return self._ranking
        n, r = self._ranking.gene.shape
        # Rows are whole when they are put in their place: another thread may read or make the same ones.
        rows = _empty(len(todo), r)

        def work(i: int) -> None:
            scratch = (np.zeros(n, np.float32), np.zeros(n if r > neighbour_kernels.MANY else r, np.float32))
            span = (i * CHUNK, min((i + 1) * CHUNK, len(todo)))
            neighbour_kernels.neighbours(*span, todo, *self._similarity, *scratch, *rows)

        self._run(-(-len(todo) // CHUNK), work)
        if len(todo) == n:
            self._ranking = rows
        else:
            for all_rows, made in zip(self._ranking, rows, strict=True):
                all_rows[todo] = made
        self._made[todo] = True
        return self._ranking


def not_made(made: NDArray[np.bool_], genes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of ``genes`` (-1: none) have no row yet, each once and ascending; ``made`` [n]."""
    asked = np.zeros(len(made) + 1, bool)
    asked[genes] = True  # -1 is the place after the last gene
    return np.flatnonzero(asked[:-1] & ~made)


def _empty(genes: int, r: int) -> Ranking:
    return Ranking(np.full((genes, r), -1, np.int64), np.zeros((genes, r), np.float32))
