"""Flux bounds of a mutant from the kinds and doses of its perturbed genes.

A looser bound changes no optimum that does not touch it. Therefore doses below and above 1 both set limits
relative to v⁰, the parsimonious flux of the wild type (Lewis et al. 2010, Mol Syst Biol 6:390).

Every gene has an amount: 1 in the wild type, 0 when absent, its dose when reduced (between 0 and 1) or
overexpressed (above 1). The amount of a complex is the smallest among its members (AND). Over the complexes
of a reaction (OR):

* Capacity is the sum. One intact complex can carry the wild type's flux, as in any deletion analysis. At 0
  the reaction is closed; below 1 its flux is capped, |v| ≤ capacity · |v⁰|; from 1 on it is not limited.
* Drive is the mean, because complexes share the wild type's flux equally. Above 1 it forces a flux in the
  direction of the wild type's, |v| ≥ drive · |v⁰|. One subunit of a complex has no effect; one isozyme of two
  has half the effect.

A reaction without flux in the wild type has no v⁰ to scale. It closes with its last complex and otherwise
keeps its bounds. Foreign genes (those of foreign reactions only) have amount 0 in the wild type and 1 when
added. A foreign reaction is closed at capacity 0 and otherwise has the bounds given for it.

Legend: m mutants · g genes in rules · r reactions · c complexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Metabolism
from wildtype.sources.insilico.fba import ZERO_FLUX, Change

SAME = 1e-9
"""Amounts that differ by less are equal: sums of doses round."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Limits(NamedTuple):
    """New bounds of reactions, one entry per mutant and reaction, sorted by mutant: ``row`` [e] int64,
    ``reaction`` [e] int64, ``lower`` and ``upper`` [e] float64.
    """

    row: Ints
    reaction: Ints
    lower: Floats
    upper: Floats

    def changes(self, rows: int) -> list[Change]:
        """Return one change per mutant."""
        # Rows are sorted, and a mutant without new bounds gets an empty slice.
        at = np.searchsorted(self.row, np.arange(1, rows))
        columns = (np.split(column, at) for column in self[1:])
        return [Change(*change) for change in zip(*columns, strict=True)] if rows else []


class Dosage:
    """Turns mutants of any kinds and doses into flux bounds.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type; its foreign reactions are closed.
    genes : GeneIndex
        What gene positions of tables refer to.
    flux : float64 [R]
        v⁰, the wild type's flux.
    foreign : mapping of int to (float, float)
        Bounds of the foreign reactions when they are open, by position of the reaction.
    """

    def __init__(
        self,
        metabolism: Metabolism,
        genes: GeneIndex,
        flux: Floats,
        foreign: Mapping[int, tuple[float, float]],
    ) -> None:
        self.metabolism, self.genes, self.flux, self.foreign = metabolism, genes, flux, dict(foreign)
        self._column = metabolism.gene_columns(genes)
        native = np.ones(len(metabolism.reactions), bool)
        native[list(foreign)] = False
        # A gene that stands in the rule of any native reaction is native, whatever foreign rules list it too.
        listed = metabolism.reaction_gene[np.flatnonzero(native)].indices
        self._foreign_gene = np.ones(len(metabolism.genes), bool)
        self._foreign_gene[listed] = False
        members = metabolism.complex_gene
        self._size = np.diff(members.indptr)
        self._strangers = np.asarray(members @ self._foreign_gene.astype(np.float64)).astype(np.int64)
        self._complexes_of = sparse.csr_array(members.T)
        self._reactions_of = sparse.csr_array(metabolism.reaction_complex.T)
        # Complexes without a foreign member: their number is a reaction's capacity in the wild type.
        whole = (self._strangers == 0).astype(np.float64)
        self._natives: Floats = np.asarray(metabolism.reaction_complex @ whole, np.float64)

    def amounts(self, table: MutantTable) -> Floats:
        """Return the amount of every perturbed gene, float64 [Σk].

        Raises
        ------
        DatasetError
            If a reduced or overexpressed gene has no fitting dose, a gene of another kind has one, a native
            gene is added, or a foreign one perturbed in any other way.
        """
        kind = table.kind
        dose = np.full(kind.size, np.nan) if table.dose is None else table.dose.astype(np.float64)
        column = self._column[table.gene]
        foreign = (column >= 0) & self._foreign_gene[column]
        reduced, more = kind == Kind.REDUCED, kind == Kind.OVEREXPRESSED
        self._refuse(table, reduced & ~((dose > 0) & (dose < 1)), "needs a dose between 0 and 1")
        self._refuse(table, more & ~((dose > 1) & (dose < np.inf)), "needs a dose above 1")
        self._refuse(table, ~reduced & ~more & ~np.isnan(dose), "takes no dose: leave it out")
        self._refuse(table, (kind == Kind.ADDED) & ~foreign, "is the wild type's own or brings no reaction")
        self._refuse(table, (kind != Kind.ADDED) & foreign, "is foreign: it can only be added")
        amount = np.ones(kind.size)
        amount[kind == Kind.ABSENT] = 0.0
        amount[reduced | more] = dose[reduced | more]
        return amount

    def _refuse(self, table: MutantTable, wrong: NDArray[np.bool_], why: str) -> None:
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            gene, kind = self.genes.names[table.gene[at]], Kind(table.kind[at]).name.lower()
            dose = "no dose" if table.dose is None else f"dose {table.dose[at]:g}"
            raise DatasetError(f"mutant {table.row[at]}: {kind} gene {gene!r} ({dose}) {why}")

    def levels(self, table: MutantTable) -> tuple[Ints, Ints, Floats, Floats]:
        """Return mutant, reaction, capacity and drive [e] wherever a perturbed gene stands in a rule.

        Sorted by mutant, then reaction; drive is 1 for reactions without a native complex. Errors as in
        ``amounts``.
        """
        amount, column = self.amounts(table), self._column[table.gene]
        known = column >= 0
        entry, complex_ = _expand(self._complexes_of, column[known])
        row, amount, column = table.row[known][entry], amount[known][entry], column[known][entry]
        key, inverse, touched = np.unique(
            row * len(self._size) + complex_, return_inverse=True, return_counts=True
        )
        row, complex_ = np.divmod(key, len(self._size))
        # AND: the minimum over perturbed members, then over all others, which have 1 (native) or 0 (foreign).
        level = np.full(key.size, np.inf)
        np.minimum.at(level, inverse, amount)
        strangers = np.bincount(inverse, weights=self._foreign_gene[column], minlength=key.size)
        rest = np.where(strangers < self._strangers[complex_], 0.0, 1.0)
        level = np.where(touched < self._size[complex_], np.minimum(level, rest), level)

        # OR: the sum over complexes, as the wild type's sum plus the change of each touched complex. A native
        # complex had level 1 before, a foreign one 0.
        entry, reaction = _expand(self._reactions_of, complex_)
        native = self._strangers[complex_] == 0
        gained = np.where(native, level - 1.0, level)[entry]
        key, inverse = np.unique(row[entry] * len(self._natives) + reaction, return_inverse=True)
        of_row, of_reaction = np.divmod(key, len(self._natives))
        natives = self._natives[of_reaction]
        capacity: Floats = natives + np.bincount(inverse, weights=gained, minlength=key.size)
        own = np.bincount(inverse, weights=gained * native[entry], minlength=key.size)
        # The mean over native complexes only: an added enzyme has no share of the wild type's flux.
        drive: Floats = 1.0 + own / np.maximum(natives, 1.0)
        return of_row.astype(np.int64), of_reaction.astype(np.int64), capacity, drive

    def limits(self, table: MutantTable) -> Limits:
        """Return the bounds in which mutants differ from the wild type. Errors as in ``amounts``."""
        row, reaction, capacity, drive = self.levels(table)
        lower, upper = self.metabolism.lower[reaction], self.metabolism.upper[reaction]
        v = self.flux[reaction]
        flows, foreign = np.abs(v) > ZERO_FLUX, np.isin(reaction, list(self.foreign))
        # Sums of doses round, so that 0 and 1 are met up to SAME only; else a flux of 1e-17 would be allowed.
        closed = ~foreign & (capacity <= SAME)
        opened = foreign & (capacity > SAME)
        capped = ~foreign & flows & ~closed & (capacity < 1.0 - SAME)
        forced = ~foreign & flows & (drive > 1.0 + SAME)

        # New bounds only tighten the present ones. Where drive forces more than a bound allows, lower > upper
        # and the program is infeasible: the network cannot carry that flux.
        cap, force = capacity * np.abs(v), drive * v
        lower = np.where(capped, np.maximum(lower, -cap), lower)
        upper = np.where(capped, np.minimum(upper, cap), upper)
        lower = np.where(forced & (v > 0), np.maximum(lower, force), lower)
        upper = np.where(forced & (v < 0), np.minimum(upper, force), upper)
        lower, upper = np.where(closed, 0.0, lower), np.where(closed, 0.0, upper)
        for r, (low, high) in self.foreign.items():
            here = opened & (reaction == r)
            lower[here], upper[here] = low, high
        new = closed | opened | capped | forced
        return Limits(row[new], reaction[new], lower[new], upper[new])


def _expand(matrix: sparse.csr_array, rows: Ints) -> tuple[Ints, Ints]:
    """Return the columns of the rows ``rows`` [e], flat: position in ``rows``, and column."""
    counts = np.diff(matrix.indptr)[rows]
    entry = np.repeat(np.arange(rows.size), counts)
    first = np.repeat(matrix.indptr[rows] - np.concatenate([[0], np.cumsum(counts)])[:-1], counts)
    return entry, matrix.indices[np.arange(entry.size) + first].astype(np.int64)
