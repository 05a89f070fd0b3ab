"""Which perturbed genes are taken out of the graph: by what was done to them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.representations.reach import check_genes
from wildtype.mutants.table import Kind

Ints = NDArray[np.int64]
REMOVES = ("absent", "reduced")


class Removal:
    """Genes of some kinds of perturbation are removed; all others stay.

    Parameters
    ----------
    removes : iterable of str
        Names of kinds (``Kind``).

    Raises
    ------
    ConfigError
        If a kind does not exist.
    """

    def __init__(self, removes: Iterable[str] = REMOVES) -> None:
        self.kinds = tuple(Kind.parse(name) for name in removes)
        self._flag = np.zeros(256, bool)
        self._flag[list(self.kinds)] = True

    def marks(self, kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which perturbations [Σk] remove their gene."""
        return self._flag[kind]

    def pairs(self, batch: MutantBatch, n: int) -> tuple[Ints, Ints]:
        """Return the removed genes of a batch and the mutants that lack them, both int64 [e].

        Raises
        ------
        GeneSetError
            If a perturbed gene is outside 0 … n-1.
        """
        gene = batch.gene.numpy(force=True)
        check_genes(gene, n)
        # Compiled loops and scatter writes do not check bounds: positions were checked above.
        out = np.flatnonzero(self.marks(batch.kind.numpy(force=True)))
        # offsets rise, so the owner of a perturbation is found by its place
        row = np.searchsorted(batch.offsets.numpy(force=True), out, side="right") - 1
        return gene[out], row
