"""The rows on their way: measurements whose codes already mean the same in every order they may come in.

Legend: m rows · k perturbations of one mutant · Σk perturbations of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.datasets.stages.ranks import ragged_ranks, ranks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """Mutants of one organism and what was measured on them.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the organism's genes, ascending within a row; -1 where it lacks the gene.
    recorded, kind : int64 [Σk]
        ``PerturbationKind`` as the publisher has it, and the ``Kind`` that a model sees.
    allele, dose : int64 [Σk]
        Ranks, by content, of kind and name of the allele, and of the dose; a rank stands in for its content
        wherever rows are compared or sorted.
    offsets : int64 [m+1]
        Where each mutant's perturbations begin.
    phenotype, condition : int64 [m]
        Positions in the dataset's phenotypes and conditions.
    value, sd : float64 [m]
        The number and its standard deviation (NaN: not known).
    p : float64 [m]
        Two-sided p-value of the number (NaN: not known); it tells no rows apart.
    """

    gene: Ints
    recorded: Ints
    kind: Ints
    allele: Ints
    dose: Ints
    offsets: Ints
    phenotype: Ints
    condition: Ints
    value: Floats
    sd: Floats
    p: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def order(self) -> Ints:
        """Number of perturbations per row [m]."""
        return np.diff(self.offsets)

    @cached_property
    def row(self) -> Ints:
        """Row of every perturbation [Σk]."""
        return np.repeat(np.arange(len(self)), self.order)

    def holding(self, marked: Marks) -> Marks:
        """Return which rows [m] hold a marked perturbation [Σk]."""
        out = np.zeros(len(self), bool)
        out[self.row[marked]] = True
        return out

    def take(self, rows: ArrayLike) -> Rows:
        """Return the given rows (positions or boolean mask), in that order."""
        index = np.asarray(rows)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        counts = self.order[index]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], counts)
        return Rows(
            gene=self.gene[at],
            recorded=self.recorded[at],
            kind=self.kind[at],
            allele=self.allele[at],
            dose=self.dose[at],
            offsets=offsets,
            phenotype=self.phenotype[index],
            condition=self.condition[index],
            value=self.value[index],
            sd=self.sd[index],
            p=self.p[index],
        )

    def without(self, marked: Marks) -> Rows:
        """Return all rows, without their marked perturbations [Σk]."""
        left = np.bincount(self.row[~marked], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(left)]).astype(np.int64)
        return replace(
            self,
            gene=self.gene[~marked],
            recorded=self.recorded[~marked],
            kind=self.kind[~marked],
            allele=self.allele[~marked],
            dose=self.dose[~marked],
            offsets=offsets,
        )

    @cached_property
    def mutant(self) -> Ints:
        """Rank [m] of phenotype, condition, number of genes, genes, kinds and doses: what a model sees."""
        seen = ragged_ranks([self.gene, self.kind, self.dose], self.offsets)
        return ranks([self.phenotype, self.condition, seen])

    @cached_property
    def identity(self) -> Ints:
        """Rank [m] of the above, then of the alleles: equal for measurements of one genotype in one
        condition.
        """
        return ranks([self.mutant, ragged_ranks([self.allele], self.offsets)])

    def sorted(self) -> Rows:
        """Return the rows in the one order that does not depend on how they came: by identity, value, sd.

        Rows that stand side by side then are alike or differ in content, so that a sum over them is the same
        to the last bit.
        """
        return self.take(np.lexsort((self.sd, self.value, self.identity)))
