"""Growth and fluxes of mutants of any kinds and doses; every distinct change of bounds is solved once.

Legend: m mutants · r reactions · x exchange reactions · n genes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex, Metabolism
from wildtype.sources.insilico.chunks import ChunkSolver
from wildtype.sources.insilico.dosage import Dosage
from wildtype.sources.insilico.fba import Change, ParsimoniousProgram, Status
from wildtype.sources.insilico.heterologous import foreign_bounds
from wildtype.sources.insilico.simulate import rounded

Floats = NDArray[np.float64]


class Fluxes(NamedTuple):
    """Numbers of M mutants, one column per name.

    ``table`` has the mutants, without values; ``values`` float32 [M, names]: NaN throughout the row of a
    mutant that has no steady state (it cannot pay its maintenance, or cannot carry what is forced); ``names``
    are reactions or genes; ``unit`` that of the values.
    """

    table: MutantTable
    values: NDArray[np.float32]
    names: tuple[str, ...]
    unit: str

    def to_rows(self) -> tuple[MutantTable, int]:
        """Return one row per mutant and name, ``phenotype`` the position of the name, and how many mutants
        without a steady state have none.
        """
        there = np.isfinite(self.values).all(axis=1)
        kept = self.table.take(there)
        count = len(self.names)
        parts = kept.take(np.repeat(np.arange(len(kept)), count))
        table = MutantTable.build(
            parts.gene,
            parts.offsets,
            kind=parts.kind,
            condition=parts.condition,
            phenotype=np.tile(np.arange(count), len(kept)),
            value=self.values[there].reshape(-1),
            dose=parts.dose,
        )
        return table, int((~there).sum())


class PerturbationSimulator:
    """Relative growth and fluxes of mutants of one metabolism, of any kinds and doses.

    Bounds are those of ``Dosage``. A mutant whose program is infeasible (it cannot pay its maintenance, or
    cannot carry a flux that is forced) has growth 0.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type, in the medium of its bounds.
    genes : GeneIndex
        What gene positions of tables refer to.
    processes, keep, progress
        As in ``ChunkSolver``; results do not depend on them.

    Attributes
    ----------
    wild_type_growth : float
        In 1/h.
    wild_type_flux : float64 [R]
        Parsimonious flux of the wild type, in mmol per gram dry weight and hour.
    counts : dict of str to int
        Mutants asked for, distinct changes of bounds among them, solved ones (the others had been), and of
        these the infeasible and the numerical failures (both growth 0).

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
        self.metabolism, self.genes = metabolism, genes
        self.solver = ChunkSolver(metabolism, processes=processes, keep=keep, progress=progress)
        self._program = ParsimoniousProgram(metabolism)
        self.wild_type_growth = self._program.wild_type.value
        self.wild_type_flux = self._program.wild_type.flux
        self.dosage = Dosage(metabolism, genes, self.wild_type_flux, foreign_bounds(metabolism))
        self._known: dict[bytes, float] = {_key(_NOTHING): self.wild_type_growth}
        self.counts = dict.fromkeys(("mutants", "distinct", "solved", "infeasible", "failed"), 0)

    def fitness(self, table: MutantTable) -> Floats:
        """Return growth relative to the wild type, float64 [M].

        Values within 1e-6 of 0 or 1 are 0 or 1.

        Raises
        ------
        DatasetError
            If a kind or dose does not fit its gene; see ``Dosage.amounts``.
        """
        changes = self.dosage.limits(table).changes(len(table))
        keys = [_key(change) for change in changes]
        distinct = dict(zip(keys, changes, strict=True))
        pending = {key: change for key, change in distinct.items() if key not in self._known}
        if pending:
            found = self.solver.solve(list(pending.values()), "mutants")
            self._known.update(zip(pending, found.growth.tolist(), strict=True))
            self.counts["infeasible"] += int((found.status == Status.INFEASIBLE).sum())
            self.counts["failed"] += int((found.status == Status.FAILED).sum())
        self.counts["mutants"] += len(table)
        self.counts["distinct"] += len(distinct)
        self.counts["solved"] += len(pending)
        growth = np.array([self._known[key] for key in keys]).reshape(len(table))
        return rounded(growth / self.wild_type_growth)

    def fluxes(self, table: MutantTable) -> Fluxes:
        """Return the parsimonious flux of every reaction, by reaction; about two solves per distinct mutant.

        Errors as in ``fitness``.
        """
        changes = self.dosage.limits(table).changes(len(table))
        keys = [_key(change) for change in changes]
        place: dict[bytes, int] = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        solved = [self._flux(change) for change in dict(zip(keys, changes, strict=True)).values()]
        # The row of zeros lets np.stack work for an empty table; no mutant refers to it.
        values = np.stack([*solved, np.zeros(len(self.metabolism.reactions))])
        values = values[[place[key] for key in keys]].astype(np.float32)
        return Fluxes(table, values, self.metabolism.reactions, "mmol per gram dry weight and hour")

    def _flux(self, change: Change) -> Floats:
        solution = self._program.solve(change)
        if solution.status is not Status.OPTIMAL:
            # NaN, not 0: without a steady state there are no fluxes, and zeros would train as values.
            return np.full(len(self.metabolism.reactions), np.nan)
        return solution.flux

    def gene_fluxes(self, table: MutantTable) -> Fluxes:
        """Return the flux of every gene, [M, n]: Σ|v| of the reactions whose rules list it.

        A gene in no rule has 0. Errors as in ``fitness``.
        """
        found = self.fluxes(table)
        listed = sparse.csr_array(self.metabolism.gpr(self.genes))
        values = np.asarray(np.abs(found.values) @ listed, dtype=np.float32)
        return Fluxes(table, values, self.genes.names, f"sum of absolute fluxes, {found.unit}")

    def secretion(self, table: MutantTable) -> Fluxes:
        """Return the flux of every exchange reaction, [M, X]: positive out of the cell, negative into it.

        Exchange reactions are those that ``exchanges`` finds. Errors as in ``fitness``.
        """
        found = self.fluxes(table)
        at = exchanges(self.metabolism)
        names = tuple(self.metabolism.reactions[r] for r in at)
        return Fluxes(table, found.values[:, at], names, found.unit)


def exchanges(metabolism: Metabolism) -> NDArray[np.int64]:
    """Return the positions of the reactions that take one metabolite out of the medium or bring it in.

    Those of one metabolite alone whose names begin with ``EX_``, as in models of the BiGG database; demands
    and sinks inside the cell are no exchanges.
    """
    s = sparse.csc_array(metabolism.stoichiometry)
    touched = np.diff(s.indptr)
    named = np.array([name.startswith("EX_") for name in metabolism.reactions], dtype=bool)
    return np.flatnonzero((touched == 1) & named)


_NOTHING = Change.closing(np.zeros(0, np.int64))


def _key(change: Change) -> bytes:
    return b"".join(column.tobytes() for column in change)
