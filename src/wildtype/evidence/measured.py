"""`MeasuredSets`: an index of measured mutants of any order, kind and condition, for lookups by edited gene
set.

Legend: n genes · m measured mutants (a gene set in a condition) · e entries (a measured mutant and one of its
genes) · p phenotypes · c contexts (a measured set less one of its genes).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.gene_bits import gene_bits
from wildtype.evidence.hashed_sets import Table, make_table, mark
from wildtype.evidence.neighbour_kernels import to_unit_rows
from wildtype.evidence.ranked_kernels import Entries
from wildtype.mutants.identity import gene_words, keys_of
from wildtype.mutants.table import MutantTable

CONTEXT_PRIOR = 10.0
"""The more labels c a context has, the less each tells of a gene: values are divided by √(c + this)."""
SHRINKAGE = 5.0
"""Measurements without effect that each gene's additive effect is shrunken by."""


class Buckets:
    """Positions by key: bucket i holds ``order[start[i]:start[i + 1]]``."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.keys, first = np.unique(keys[self.order], return_index=True)
        self.start = np.append(first, len(keys)).astype(np.int64)
        # At most half full, a power of two: few collisions, and the place of a key is a bit mask.
        slots = np.zeros(2 << max(int(2 * len(self.keys)).bit_length(), 4), np.uint64)
        make_table(self.keys, slots)
        self.table = Table(slots, self.start)

    @cached_property
    def marks(self) -> NDArray[np.uint64]:
        """One bit per key: a key without it is not there, which spares most searches of the table."""
        out = np.zeros(len(self.table.slots) // 16, np.uint64)
        mark(self.keys, out)
        return out


class MeasuredSets:
    """Measured mutants, found by what they share with others.

    Parameters
    ----------
    table : MutantTable
        Measurements: several rows (kinds, phenotypes) of one gene set in one condition are one mutant, with
        the mean value of each phenotype.
    n : int
        Number of genes.
    phenotypes : int
        Number of phenotypes p.

    Attributes
    ----------
    value : float32 [m, p]
        Measured values, NaN where a phenotype was not measured.
    condition : int64 [m]
    orders : bool [largest order + 1]
        Whether any mutant has so many genes.

    Notes
    -----
    Building costs O(e log e), and what finds mutants as much again when it is first asked.
    """

    def __init__(self, table: MutantTable, n: int, phenotypes: int) -> None:
        self.n, self.phenotypes = n, phenotypes
        self.words = gene_words(n)
        keys = keys_of(table.gene, table.offsets, self.words)
        order = np.lexsort((table.condition, keys))
        new = np.ones(len(table), bool)
        new[1:] = (keys[order][1:] != keys[order][:-1]) | (
            table.condition[order][1:] != table.condition[order][:-1]
        )
        first = order[new]
        mutant = np.empty(len(table), np.int64)
        mutant[order] = np.cumsum(new) - 1
        self.mutants = table.take(first)
        self.condition = self.mutants.condition
        # Kinds are not told apart: the effect of a gene set is the mean over its alleles.
        cell = mutant * phenotypes + table.phenotype
        size = len(first) * phenotypes
        count = np.bincount(cell, minlength=size)
        total = np.bincount(cell, table.value.astype(np.float64), minlength=size)
        with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, which stands for not measured
            self.value = (total / count).reshape(-1, phenotypes).astype(np.float32)
        self.keys = keys[first]
        self.orders = np.bincount(self.mutants.order, minlength=1) > 0

    def __len__(self) -> int:
        return len(self.mutants)

    @cached_property
    def whole(self) -> Buckets:
        """Mutants by their gene sets."""
        return Buckets(self.keys)

    @cached_property
    def less(self) -> Buckets:
        """Mutants by their gene sets less each gene; its entries have these rows and genes [Σk]."""
        entries = self.mutants
        with np.errstate(over="ignore"):
            # Zobrist: the key of a set less a gene is one subtraction.
            return Buckets(self.keys[entries.row] - self.words[entries.gene])

    @cached_property
    def entry_row(self) -> NDArray[np.int64]:
        """Mutant of each entry of ``less``."""
        return self.mutants.row[self.less.order]

    @cached_property
    def entry_gene(self) -> NDArray[np.int64]:
        """Gene that each entry of ``less`` lacks."""
        return self.mutants.gene[self.less.order]

    @cached_property
    def alone(self) -> NDArray[np.int64]:
        """Bucket of ``less`` whose context is one gene, of each gene [n]; -1: it is in no pair."""
        at = np.searchsorted(self.less.keys, self.words)
        there = np.append(self.less.keys, np.uint64(0))[at] == self.words
        return np.where(there & (at < len(self.less.keys)), at, -1)

    @cached_property
    def entries(self) -> Entries:
        """Entries of ``less`` by context and gene."""
        size = np.diff(self.less.start)
        place = np.repeat(np.arange(len(size)), size) * self.n + self.entry_gene
        order = np.argsort(place, kind="stable")
        place = place[order]
        new = np.ones(len(place), bool)
        new[1:] = place[1:] != place[:-1]
        first = np.flatnonzero(new)
        begin = np.append(0, np.cumsum(np.bincount(place[first] // self.n, minlength=len(size))))
        genes = gene_bits((place[first] % self.n).astype(np.int32), begin, self.n)
        several = len(first) < len(place)
        return Entries(
            self.entry_row[order].astype(np.int32),
            np.append(first, len(place)) if several else np.zeros(0, np.int64),
            genes,
        )

    @cached_property
    def only_condition(self) -> int:
        """The condition of all mutants; -1 where they differ, or there are none."""
        known = self.condition[:1].tolist()
        return known[0] if known and (self.condition == known[0]).all() else -1

    @cached_property
    def statistics(self) -> NDArray[np.float32]:
        """Number, sum and share of positive values of the mutants with each gene [n, 3 p]."""
        known = np.isfinite(self.value)
        value = np.where(known, self.value, 0)
        stack = np.concatenate([known, value, value > 0], axis=1).astype(np.float32)
        spread = sparse.csr_array(
            (np.ones(len(self.entry_gene), np.float32), (self.entry_gene, self.entry_row)),
            shape=(self.n, max(len(self), 1)),
        )
        out = spread @ stack if len(self) else np.zeros((self.n, stack.shape[1]), np.float32)
        return np.asarray(out, np.float32)

    @cached_property
    def profiles(self) -> sparse.csr_array:
        """Label profiles [n, c p] with rows of unit length: what was measured of a gene, context by context.

        Genes of one pathway interact with the same partners (Costanzo et al., Science 353:aaf1420, 2016).
        """
        p = self.phenotypes
        context = np.repeat(np.arange(len(self.less.keys)), np.diff(self.less.start))
        number = np.diff(self.less.start).astype(np.float32)
        values = self.value[self.entry_row] / np.sqrt(number[context] + CONTEXT_PRIOR)[:, None]
        entry, phenotype = np.nonzero(np.isfinite(values))
        at = (self.entry_gene[entry], context[entry] * p + phenotype)
        shape = (self.n, max(len(number) * p, 1))
        out = sparse.csr_array((values[entry, phenotype], at), shape=shape)
        out.sum_duplicates()
        out.sort_indices()
        to_unit_rows(out.indptr, out.data)
        return out


def additive_effects(measured: MeasuredSets) -> NDArray[np.float32]:
    """Return what each gene adds to each phenotype [n, p], by ridge regression on the measured sets.

    y = intercept of the order + Σ effects of the genes, and effects minimise ‖y − Xb‖² + ``SHRINKAGE`` ‖b‖²:
    as if each gene had so many further measurements without effect. Genes without measurements have 0.
    """
    from scipy.sparse.linalg import cg

    n, p = measured.n, measured.phenotypes
    out = np.zeros((n, p), np.float32)
    table = measured.mutants
    for phenotype in range(p):
        rows = np.flatnonzero(np.isfinite(measured.value[:, phenotype]))
        if not rows.size:
            continue
        part = table.take(rows)
        design = sparse.csr_array((np.ones(len(part.gene)), part.gene, part.offsets), shape=(len(part), n))
        y = measured.value[rows, phenotype].astype(np.float64)
        _, of = np.unique(part.order, return_inverse=True)
        # Intercepts are the means per order: nearly the joint solution, and one pass.
        y = y - (np.bincount(of, y) / np.bincount(of))[of]
        # Conjugate gradients: the normal matrix [n, n] is sparse, and a relative residual of 1e-4 is far
        # below the noise of measurements.
        normal: Any = design.T @ design + SHRINKAGE * sparse.eye_array(n)
        out[:, phenotype], _ = cg(normal, design.T @ y, rtol=1e-4, maxiter=50)
    return out
