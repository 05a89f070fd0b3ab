"""`StagedRows`: measurements on their way to a dataset, with codes that do not depend on the order of rows.

Legend: m rows · k perturbations of one mutant · Σk perturbations of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.ragged import BLOCK, Ragged, is_repeated, ragged_ranks, ranks

Ints = NDArray[np.int64]
Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StagedRows(Ragged):
    """Mutants of one organism and what was measured on them.

    Attributes
    ----------
    gene : int32 [Σk]
        Positions in the organism's genes, ascending within a row; -1 where it lacks the gene.
    recorded, kind : int8 [Σk]
        ``PerturbationKind`` as the publisher has it, and the ``Kind`` that a model sees.
    allele, dose : int32 [Σk]
        Ranks, by content, of kind and name of the allele, and of the dose; a rank replaces its content
        wherever rows are compared or sorted.
    offsets : int64 [m+1]
        Where each mutant's perturbations begin.
    phenotype, condition : int32 [m]
        Positions in the dataset's phenotypes and conditions.
    replicate : int32 [m]
        Ranks of the replicate labels where these distinguish repeated entries, else all 0.
    value, sd : float64 [m]
        The number and its standard deviation (NaN: not known).
    p : float64 [m]
        Two-sided p-value of the number (NaN: not known); it does not distinguish rows.
    """

    ENTRIES: ClassVar[tuple[str, ...]] = ("gene", "recorded", "kind", "allele", "dose")
    ROWS: ClassVar[tuple[str, ...]] = ("phenotype", "condition", "replicate", "value", "sd", "p")

    gene: Codes
    recorded: Codes
    kind: Codes
    allele: Codes
    dose: Codes
    phenotype: Codes
    condition: Codes
    replicate: Codes
    value: Floats
    sd: Floats
    p: Floats

    @cached_property
    def mutant(self) -> Ints:
        """Rank [m] of phenotype, condition, number of genes, genes, kinds and doses: what a model sees."""
        seen = ragged_ranks([self.gene, self.kind, self.dose], self.offsets)
        return ranks(self.phenotype, self.condition, seen)

    @cached_property
    def identity(self) -> Ints:
        """Rank [m] of the above, then of the alleles: equal for measurements of one genotype in one
        condition.
        """
        return ranks(self.mutant, ragged_ranks([self.allele], self.offsets))

    def apart(self, most: int = BLOCK) -> Iterator[Self]:
        """Yield all rows in the order of `sorted`, some ``most`` rows at a time, but not sorted within.

        Rows of one mutant are never in two of them. They are cut between the first genes of mutants, which
        come right after phenotype, condition and number of genes in that order.
        """
        if len(self) <= most:
            yield self
            return
        first = np.full(len(self), -1, np.int32)
        any_gene = self.order > 0
        first[any_gene] = self.gene[self.offsets[:-1][any_gene]]
        lead = ranks(self.phenotype, self.condition, self.order, first)
        until = np.cumsum(np.bincount(lead))
        number = ((until - 1) // most).astype(np.int32)[lead]
        del lead, first
        for block in np.unique(number).tolist():
            yield self.take(number == block)

    def sorted(self) -> Self:
        """Return the rows in an order that does not depend on how they were read: by identity, value, sd
        and replicate label.

        Neighbouring rows are then equal or differ in content, so that a sum over them is the same
        to the last bit.
        """
        # Floating-point sums depend on their order; identity, value and sd fix it.
        labels = () if is_repeated(self.replicate) else (self.replicate,)
        return self.take(np.lexsort((*labels, self.sd, self.value, self.identity)))
