"""What another screen says of a pair: its own measurement, and its completion where it has none.

A laboratory that crossed the same genes in another assay measured the same biology with noise of its own, so
its value of a pair is evidence, and not a look at the answer. Units differ (an S-score is no ε): trees learn
the link, which rises.

Legend: n genes · s strains of the other screen · m pairs · f columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.column_families import ALIKE, BY_KERNEL, COMPLETED, SCREEN
from wildtype.evidence.completion import (
    Additive,
    Spectrum,
    low_rank,
    mixed_neighbours,
    residuals,
    smoothed,
    spectrum,
    write_unknown,
)
from wildtype.evidence.learned_kernel import ComputedKernel
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pieces import Run, one_after_the_other
from wildtype.evidence.row_products import row_products
from wildtype.organism.similarity import unit_rows

RANK = 60
COMPLETED_RANK = 100
"""Rank of the completed matrix, whose vectors kernel ridge predicts for genes that the screen lacks."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


class ScreenColumns:
    """Columns of pairs from another screen.

    * ``screen NAME``: its measurement of the pair; NaN without one.
    * ``screen NAME completed``: of two genes of the screen, the additive model and the mean residual of the
      pair with either gene replaced by similar ones (`completion.mixed_neighbours`); nothing of the pair.
    * ``screen NAME by kernel``: the completed residual, with kernel ridge for genes that the screen lacks.
    * ``screen NAME alike``: cosine of both genes' completed profiles.

    Parameters
    ----------
    screen : OtherScreen
    learned : ComputedKernel
        Of all genes with those of the screen, at least.
    measured : bool
        Whether the first column is there. Without it the values of the screen are written over.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.
    seed : int
        Of the subspace iterations.

    Attributes
    ----------
    completed : float32 [s, s]
        What completion says of every pair of strains; of a screen without strains it is not there.
    """

    def __init__(
        self,
        screen: OtherScreen,
        learned: ComputedKernel,
        *,
        measured: bool = True,
        run: Run = one_after_the_other,
        seed: int = 0,
    ) -> None:
        self.name, self._measured = f"{SCREEN}{screen.name}", measured
        self.matrix = screen.matrix
        if not measured:  # its cells are for that column alone, and a screen of a grid has s² of them
            nothing = np.zeros((0, 0), np.float32)
            self.matrix = replace(screen.matrix, values=nothing, known=nothing.astype(bool))
        if not len(screen.matrix):  # all its genes are hidden: nothing is known of any pair
            return
        matrix, additive = screen.matrix, Additive.of(screen.matrix)
        # Matrices of s² numbers are written over as soon as nobody reads them: ten would be there otherwise.
        residual = residuals(matrix, additive, into=None if measured else matrix.values)
        solution = low_rank(residual, matrix.known, RANK, seed=seed)
        kernel = learned.strains(matrix.gene)
        near = mixed_neighbours(solution, kernel)
        found = smoothed(residual, matrix.known, near, run)
        write_unknown(residual, matrix.known, found)
        self._unit = unit_rows(solution.profiles())
        whole: Spectrum = spectrum(smoothed(residual, None, near, run), COMPLETED_RANK, seed=seed)
        del residual
        found += additive.matrix()
        self.completed = found
        self._values = whole.values
        self._vectors = kernel.predict(whole.vectors)
        # A gene of the screen keeps its own vector: ridge would draw it to what its features say.
        self._vectors[matrix.gene[::-1]] = whole.vectors[::-1]

    def __call__(self, gene: Ints, kind: NDArray[np.uint8]) -> list[tuple[str, Floats]]:
        """Return names and values [m] of the columns of pairs of genes [m, 2], perturbed by ``kind``."""
        ends = (*([""] if self._measured else []), COMPLETED, BY_KERNEL, ALIKE)
        names = [f"{self.name}{what}" for what in ends]
        if not len(self.matrix):
            return [(name, np.full(len(gene), np.nan, np.float32)) for name in names]
        strain = self.matrix.find(gene, kind)
        both = np.asarray((strain >= 0).all(axis=1))
        left, right = np.maximum(strain, 0).T
        values = [
            np.where(both, self.completed[left, right], np.nan),
            row_products(self._vectors, gene[:, 0], self._vectors, gene[:, 1], self._values),
            row_products(self._unit, strain[:, 0], self._unit, strain[:, 1]),
        ]
        if self._measured:
            known = both & self.matrix.known[left, right]
            values.insert(0, np.where(known, self.matrix.values[left, right], np.nan))
        return [(name, value.astype(np.float32)) for name, value in zip(names, values, strict=True)]
