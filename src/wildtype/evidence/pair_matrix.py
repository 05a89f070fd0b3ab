"""`PairMatrix`: the measurements of pairs of genes as one symmetric matrix of strains, with what is unknown.

Legend: n genes · s strains · m rows or pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.grid import TRAIN, VisibleCrosses
from wildtype.mutants.ragged import BLOCK

Ints = NDArray[np.int64]
KINDS = len(Kind)


def _strain_codes(tables: Sequence[MutantTable]) -> Iterator[Ints]:
    """Yield the strains of the rows of tables of pairs, gene · kinds + kind, as [b, 2] of a block of rows."""
    for table in tables:
        gene, kind = table.matrix(2), table.kind.reshape(-1, 2)
        for block in table.blocks(BLOCK):
            yield gene[block] * KINDS + kind[block]


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Measured values of pairs of strains.

    Attributes
    ----------
    gene : int64 [s]
        Gene of each strain; strains are in ascending order of gene and then of kind.
    kind : uint8 [s]
        ``Kind`` of each strain.
    values : float32 [s, s]
        Symmetric; to be read where ``known`` only: other cells are 0 in a matrix that was made of a table,
        and may hold what is hidden in one that was made of another matrix.
    known : bool [s, s]
        Symmetric: cells that were measured and may be seen. No cell of the diagonal is.
    of_grid : bool
        Whether known cells are the crosses of a grid, most of them zeros; else it is a map of measured pairs.
    """

    gene: Ints
    kind: NDArray[np.uint8]
    values: NDArray[np.float32]
    known: NDArray[np.bool_]
    of_grid: bool = False

    @classmethod
    def of(cls, table: MutantTable, crosses: VisibleCrosses | None = None) -> PairMatrix:
        """Return the matrix of a table whose rows all have two genes.

        Rows of one cell are averaged, whatever their condition, dose and weight. Without a grid, only cells
        that have a row are known (a dense map). With a grid, a visible cross that is not listed is a known
        zero. Strains without a known cell are left out.

        Parameters
        ----------
        table : MutantTable
            Visible rows [m], with finite values. With a grid, they may be a sample of its training crosses.
        crosses : VisibleCrosses, optional
            The training crosses of the screen, the listed ones with their label of the phenotype of the
            rows. Crosses of other sides are unknown, listed or not.

        Raises
        ------
        ShapeError
            If a row has not two genes.
        """
        tables = [table]
        if crosses is not None:
            # A listed cross that no sampled row stands for is no zero: all that are listed are cells. Those
            # of other sides stay out even where a caller hands them over.
            tables.append(crosses.listed.take(crosses.sides.of_table(crosses.listed) == TRAIN))
        labels = np.concatenate([each.value for each in tables])
        occurs = np.zeros(1 + max(int(each.gene.max(initial=-1)) for each in tables), bool).repeat(KINDS)
        for rows in _strain_codes(tables):
            occurs[rows] = True
        if crosses is not None:
            visible, (gene, kind) = crosses.visible(), crosses.grid.strains
            kept = np.flatnonzero(visible.any(axis=1))
            screened = gene[kept] * KINDS + kind[kept]
            occurs = np.append(occurs, np.zeros(max(crosses.grid.genes * KINDS - len(occurs), 0), bool))
            occurs[screened] = True
        codes, place = np.flatnonzero(occurs), np.cumsum(occurs) - 1
        s = len(codes)
        cells = [place[rows[:, 0]] * s + place[rows[:, 1]] for rows in _strain_codes(tables)]
        cell, row_cell = np.unique(np.concatenate([*cells, np.zeros(0, np.int64)]), return_inverse=True)
        del cells  # of a screen with a score for every cross as large as its table
        # Sums per listed cell, not s² of them: 4,400 strains would cost 155 MB more in float64.
        sums = np.bincount(row_cell.reshape(-1), labels, minlength=len(cell))
        i, j = cell // s, cell % s
        values, known = np.zeros((s, s), np.float32), np.zeros((s, s), bool)
        # Genes ascend within a row, so every cell stands above the diagonal.
        values[i, j] = values[j, i] = sums / np.bincount(row_cell.reshape(-1), minlength=len(cell))
        known[i, j] = known[j, i] = True
        if crosses is not None:
            at = place[screened]
            known[np.ix_(at, at)] |= visible[np.ix_(kept, kept)]
        return cls(codes // KINDS, (codes % KINDS).astype(np.uint8), values, known, crosses is not None)

    def __len__(self) -> int:
        """Return the number of strains s."""
        return len(self.gene)

    @cached_property
    def codes(self) -> Ints:
        """Number of each strain [s], gene · kinds + kind, ascending."""
        return self.gene * KINDS + self.kind

    def find(self, gene: Ints, kind: NDArray[np.uint8]) -> Ints:
        """Return the position of each strain: itself, else another strain of its gene, else -1.

        Parameters
        ----------
        gene : int64 [...]
        kind : uint8 [...]
        """
        if not len(self):
            return np.full(np.shape(gene), -1, np.int64)
        codes = gene * KINDS + kind
        at = np.minimum(np.searchsorted(self.codes, codes), len(self) - 1)
        other = np.minimum(np.searchsorted(self.gene, gene), len(self) - 1)
        found = np.where(self.gene[other] == gene, other, -1)
        return np.asarray(np.where(self.codes[at] == codes, at, found), np.int64)

    def cells(self, table: MutantTable) -> Ints:
        """Return the positions [m, 2] of both strains of every row, -1 for an unseen gene.

        Raises
        ------
        ShapeError
            If a row has not two genes.
        """
        return self.find(table.matrix(2), table.kind.reshape(-1, 2))

    def part(self, strains: Ints) -> PairMatrix:
        """Return the matrix of some strains, at ascending positions [k]."""
        both = np.ix_(strains, strains)
        return replace(
            self,
            gene=self.gene[strains],
            kind=self.kind[strains],
            values=self.values[both],
            known=self.known[both],
        )
