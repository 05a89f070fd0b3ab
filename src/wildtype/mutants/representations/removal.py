"""Which genes a mutant lacks: perturbed ones by what was done to them, foreign ones that it does not name."""

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
    """Genes of some kinds of perturbation are removed, and foreign genes that a mutant does not name.

    Parameters
    ----------
    removes : iterable of str
        Names of kinds (``Kind``).
    foreign : bool [n], optional
        Genes that the wild type does not have.

    Raises
    ------
    ConfigError
        If a kind does not exist.
    """

    def __init__(self, removes: Iterable[str] = REMOVES, foreign: NDArray[np.bool_] | None = None) -> None:
        self.foreign = np.zeros(0, np.int64) if foreign is None else np.flatnonzero(foreign)
        self.kinds = tuple(Kind.parse(name) for name in removes)
        self._flag = np.zeros(256, bool)
        self._flag[list(self.kinds)] = True

    def marks(self, kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which perturbations [Σk] remove their gene."""
        return self._flag[kind]

    def pairs(self, batch: MutantBatch, n: int) -> tuple[Ints, Ints]:
        """Return the genes that mutants of a batch lack, and the mutants, both int64 [e], by mutant.

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
        offsets = batch.offsets.numpy(force=True)
        row = np.searchsorted(offsets, out, side="right") - 1
        if not len(self.foreign):
            return gene[out], row
        lacks, of = self.lacking(gene, offsets)
        both = np.concatenate([row, of])
        order = np.argsort(both, kind="stable")
        return np.concatenate([gene[out], lacks])[order], both[order]

    def lacking(self, gene: Ints, offsets: Ints) -> tuple[Ints, Ints]:
        """Return the foreign genes that mutants do not name, and the mutants, both int64 [e]."""
        rows = len(offsets) - 1
        missing = np.ones((rows, len(self.foreign)), bool)
        row = np.repeat(np.arange(rows), np.diff(offsets))
        place = np.minimum(np.searchsorted(self.foreign, gene), len(self.foreign) - 1)
        named = self.foreign[place] == gene if len(self.foreign) else np.zeros(len(gene), bool)
        missing[row[named], place[named]] = False
        of, at = np.nonzero(missing)
        return self.foreign[at], of
