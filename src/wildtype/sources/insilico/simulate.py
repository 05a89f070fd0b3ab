"""Growth of many deletion mutants by flux balance, with few solved linear programs.

Three exact shortcuts follow from monotonicity: tighter bounds never raise the optimum. A parent is the mutant
without one of its deletions.

* Mutants that lose the same reactions have equal growth; those that lose none grow as the wild type.
* A mutant does not grow if one of its parents does not grow.
* Growth equals that of the slowest parent if an optimal flux of that parent uses none of the mutant's dead
  reactions. That flux is still feasible, and no larger growth is possible.

Legend: m mutants · r reactions · s solutions.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Metabolism, Organism
from wildtype.organism.metabolism import read_metabolism
from wildtype.sources.insilico.chunks import ChunkSolver
from wildtype.sources.insilico.fba import Change, Status
from wildtype.sources.insilico.models import model_file

ROUND_OFF = 1e-6
"""Relative growth closer than this to 0 or 1 is 0 or 1; the solver's error is about 1e-10."""
NO_GROWTH = 1e-9
"""Growth (1/h) below this is 0 up to the tolerance of the solver."""


def rounded(fitness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return fitness [M] with values within `ROUND_OFF` of 0 or 1 set to 0 or 1."""
    # Else epsilon of two genes without effect would be 1e-11 and count as an interaction.
    near_one = np.abs(fitness - 1.0) < ROUND_OFF
    return np.where(near_one, 1.0, np.where(np.abs(fitness) < ROUND_OFF, 0.0, fitness))


class GrowthSimulator:
    """Relative growth of mutants of one metabolism; remembers what it has solved.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type.
    genes : GeneIndex
        What the gene positions of tables refer to.
    processes : int or None
        As in ``ChunkSolver``; results do not depend on it.
    keep : bool
        Whether solved chunks stay in the cache folder.
    progress : bool
        Whether to show a progress bar.

    Attributes
    ----------
    counts : dict of str to int
        Mutants asked for, distinct sets of dead reactions among them, how many of these needed no solve
        (``inferred``), were solved, infeasible (growth 0) or failed numerically (growth 0).

    Raises
    ------
    DatasetError
        If the wild type does not grow.
    """

    def __init__(
        self,
        metabolism: Metabolism,
        genes: GeneIndex,
        *,
        processes: int | None = None,
        keep: bool = False,
        progress: bool = False,
    ) -> None:
        self.metabolism = metabolism
        self.genes = genes
        self.solver = ChunkSolver(metabolism, processes=processes, keep=keep, progress=progress)
        wild = self.solver.solve([Change.closing(np.zeros(0, np.int64))], "wild type")
        self.wild_type_growth = float(wild.growth[0])
        self._growth: list[float] = [self.wild_type_growth]
        self._active: list[NDArray[np.uint8]] = [wild.active[0]]
        self._failed: set[int] = set()
        self._by_dead: dict[bytes, int] = {b"": 0}
        self._by_genes: dict[tuple[int, ...], int] = {(): 0}
        self.counts = dict.fromkeys(("mutants", "distinct", "inferred", "solved", "infeasible", "failed"), 0)

    def fitness(self, table: MutantTable) -> NDArray[np.float64]:
        """Return growth relative to the wild type, float64 [M]; only absent genes count.

        Values within 1e-6 of 0 or 1 are 0 or 1. A mutant whose program is infeasible (it cannot pay its
        maintenance) has growth 0.
        """
        absent = table.kind == Kind.ABSENT
        row = table.row[absent]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(table)))]).astype(np.int64)
        lost = MutantTable.build(table.gene[absent], offsets)
        self.counts["mutants"] += len(lost)
        # Single mutants first, also those not requested: they are the parents of all shortcuts.
        if (lost.order > 1).any():
            self._wave(MutantTable.from_matrix(np.unique(lost.gene)[:, None]))
        for order in np.unique(lost.order[lost.order > 0]):
            self._wave(lost.take(lost.order == order))
        growth = np.array(self._growth)[[self._by_genes[genes] for genes in lost.sets()]]
        return rounded(np.asarray(growth / self.wild_type_growth, dtype=np.float64).reshape(len(table)))

    def active(self, table: MutantTable) -> NDArray[np.bool_]:
        """Return the reactions that carry flux in one optimum of each mutant, bool [M, R].

        Requires a call of ``fitness`` with these mutants, of absent genes only. A mutant without growth may
        have the reactions of a parent.
        """
        packed = np.stack([self._active[self._by_genes[genes]] for genes in table.sets()])
        return np.unpackbits(packed, axis=1, count=len(self.metabolism.reactions)).astype(bool)

    def _wave(self, table: MutantTable) -> None:
        """Find the growth of all mutants of one order; requested mutants of lower orders come before."""
        dead = self.metabolism.dead_reactions(self.genes, table)
        indices = dead.indices.astype(np.int64)
        pending: dict[bytes, NDArray[np.int64]] = {}
        keys: list[tuple[tuple[int, ...], bytes]] = []
        for genes, start, stop in zip(table.sets(), dead.indptr[:-1], dead.indptr[1:], strict=True):
            if genes in self._by_genes:
                continue
            lost = indices[start:stop]
            # Indices of a row are sorted, so that equal sets of dead reactions have equal bytes.
            key = lost.tobytes()
            keys.append((genes, key))
            if key in self._by_dead or key in pending:
                continue
            self.counts["distinct"] += 1
            parent = self._same_as_parent(genes, lost)
            if parent is None:
                pending[key] = lost
            else:
                self._by_dead[key] = parent
                self.counts["inferred"] += 1
        if pending:
            changes = [Change.closing(one) for one in pending.values()]
            label = {1: "single", 2: "double", 3: "triple"}.get(int(table.order[0]), "higher-order")
            found = self.solver.solve(changes, f"{label} mutants")
            for key, growth, active in zip(pending, found.growth.tolist(), found.active, strict=True):
                self._by_dead[key] = len(self._growth)
                self._growth.append(growth)
                self._active.append(active)
            first = len(self._growth) - len(pending)
            self._failed |= set((first + np.flatnonzero(found.status == Status.FAILED)).tolist())
            self.counts["solved"] += len(pending)
            self.counts["infeasible"] += int((found.status == Status.INFEASIBLE).sum())
            self.counts["failed"] += int((found.status == Status.FAILED).sum())
        for genes, key in keys:
            self._by_genes[genes] = self._by_dead[key]

    def _same_as_parent(self, genes: tuple[int, ...], dead: NDArray[np.int64]) -> int | None:
        """Return the solution of a parent that is also the mutant's, or None if it has to be solved."""
        settled = [self._by_genes.get(parent) for parent in combinations(genes, len(genes) - 1)]
        # Without solved parents one order below, the single mutants serve: they bound growth from above too.
        parents = {p for p in settled if p is not None} or {self._by_genes[(gene,)] for gene in genes}
        # A numerical failure is stored as growth 0 and must not make its descendants lethal.
        if parents & self._failed:
            return None
        slowest = min(self._growth[p] for p in parents)
        # Sorted, so that the result does not depend on the order of a set.
        for parent in sorted(parents):
            if self._growth[parent] > slowest:
                continue
            if slowest < NO_GROWTH:
                return parent
            # np.packbits puts the first reaction into the highest bit of a byte.
            used = self._active[parent][dead >> 3] >> (7 - (dead & 7)).astype(np.uint8) & 1
            if not used.any():
                return parent
        return None


def simulate_growth(
    organism: Organism | str, table: MutantTable, *, processes: int | None = 1
) -> NDArray[np.float64]:
    """Return growth relative to the wild type of any mutants by flux balance, float64 [M].

    Parameters
    ----------
    organism : Organism or str
        An organism with a metabolism, or the name of an in-silico one; the table's positions refer to its
        genes.
    table : MutantTable
        M mutants of any order; only absent genes count.
    processes : int or None
        As in ``ChunkSolver``.

    Raises
    ------
    DatasetError
        If there is no such in-silico organism, or the organism has no metabolism that grows.
    """
    if isinstance(organism, str):
        metabolism = read_metabolism(model_file(organism))
        genes = GeneIndex(metabolism.genes, organism=organism)
    elif organism.metabolism is None:
        raise DatasetError(f"organism {organism.name!r} has no metabolism to simulate: give one that has")
    else:
        metabolism, genes = organism.metabolism, organism.genes
    return GrowthSimulator(metabolism, genes, processes=processes).fitness(table)
