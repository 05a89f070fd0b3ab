"""From the columns of a screen to `Measurements`: which rows are used, and one measurement of each.

Legend: m rows of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements, coded_by
from wildtype.datasets.records import Environment, PerturbationKind, PhenotypeDefinition, Study
from wildtype.errors import SourceError
from wildtype.mutants.ragged import BLOCK
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns
from wildtype.sources.row_filter import Flags, Floats, Ints, RowFilter
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN, Collector
from wildtype.sources.yeast.screens.sga_strains import Side, Strains

ONE_GENE_TWICE = "query and array of one gene"
REPEATED = "the number of another row again"
NO_SCORE = "no score given"
NO_FITNESS = "no fitness given"

FITNESS = PhenotypeDefinition(
    name="fitness", direction="higher is fitter", description="colony size relative to wild type"
)
EPSILON = PhenotypeDefinition(
    name="epsilon",
    unit="fitness units: double-mutant fitness minus the product of the single ones",
    min_order=2,
    description="digenic interaction by synthetic genetic array, colony size",
)


def read_p_values(columns: Columns, position: int) -> Floats:
    """Return a column of p-values [m], 0 included; raises ``SourceError``."""
    p = columns.numbers(position)
    columns.refuse(position, (p < 0) | (p > 1), "a p-value of 0 to 1")
    return p


def read_sd(columns: Columns, position: int) -> Floats:
    """Return a column of standard deviations [m], 0 included; raises ``SourceError``."""
    sd = columns.numbers(position)
    columns.refuse(position, sd < 0, "a standard deviation of at least 0")
    return sd


def drop_genes(rows: RowFilter, sides: Sequence[Side]) -> RowFilter:
    """Drop the rows whose strains (one per side) are not of different known genes; return the filter."""
    for reason, missing in ((UNKNOWN, -1), (AMBIGUOUS, -2)):
        # Per strain first and then by code: a table has millions of rows and a few thousand strains.
        lost = [(strains.gene == missing).any(1)[code] for strains, code in sides]
        rows.drop(reason, np.logical_or.reduce(lost))
    # In a sorted row, equal neighbours are one gene on both sides of the cross.
    genes = np.sort(np.concatenate([strains.gene[code] for strains, code in sides], axis=1), axis=1)
    rows.drop(ONE_GENE_TWICE, (np.diff(genes, axis=1) == 0).any(1))
    return rows


class Seen:
    """Numbers of strains that have been met, over all files of a study: no number counts twice."""

    def __init__(self) -> None:
        self._known: set[tuple[object, ...]] = set()

    def again(self, strains: Strains, code: Ints, value: Floats, rows: Flags) -> Flags:
        """Return which rows [m] of those marked give a strain a number that it has been given before."""
        at = np.flatnonzero(rows)
        pairs = np.stack([code[at].astype(np.float64), value[at]], axis=1)
        distinct, first = np.unique(pairs, axis=0, return_index=True)
        out = np.zeros(len(rows), bool)
        out[at] = True
        for (strain, number), row in zip(distinct.tolist(), at[first].tolist(), strict=True):
            # By name and not by code: the same strain has another code in the next file.
            key = (strains.ids[int(strain)].name, *strains.allele[int(strain)], number)
            out[row] = key in self._known
            self._known.add(key)
        return out


@dataclass(eq=False)
class Screen:
    """What all tables of a study are read with, and the measurements read so far.

    Attributes
    ----------
    study : Study
        Where the numbers come from.
    genes : GeneIndex
        The organism's genes.
    collect : callable
        Called with the report on the rows of every table and use.
    parts : list of Measurements
        Filled by `add`.
    """

    study: Study
    genes: GeneIndex
    collect: Collector
    parts: list[Measurements] = field(default_factory=list)

    def select(
        self,
        file: str,
        use: str,
        sides: Sequence[Side],
        rows: RowFilter,
        reasons: Mapping[str, Flags],
        *,
        new: tuple[Seen, Floats] | None = None,
    ) -> Flags:
        """Return the rows [m] that are used, and report on them.

        Parameters
        ----------
        file, use : str
            Name of the file, and what its rows become.
        sides : sequence of Side
            The strains of every row.
        rows : RowFilter
            The rows with known genes (`drop_genes`).
        reasons : mapping of str to bool [m]
            Further rows to drop.
        new : (Seen, float64 [m]), optional
            Numbers of the first side's strains: those met before are dropped.
        """
        rows.drop_all(reasons)
        if new is not None:
            seen, value = new
            rows.drop(REPEATED, seen.again(*sides[0], value, rows.left))
        renamed = np.logical_or.reduce([strains.renamed[code] for strains, code in sides])
        self.collect(rows.report(file, use, renamed))
        return rows.left

    def add(
        self,
        phenotype: PhenotypeDefinition,
        environment: Environment,
        sides: Sequence[Side],
        value: Floats,
        rows: Flags,
        *,
        label: str,
        sd: Floats | None = None,
        p: Floats | None = None,
    ) -> None:
        """Measure the rows [m] marked in ``rows``; all columns are given for all m rows.

        Parameters
        ----------
        sides : sequence of Side
            The strains that a mutant's perturbations come from.
        value, sd, p : float64 [m]
            As in `Measurements`.
        label : str
            What the first side is; with its strain's identifier this names the replicate.
        """
        # Strains with a suppressor have a perturbation more: rows of one size are built at a time.
        for carried in product((False, True), repeat=len(sides)):
            chosen = rows.copy()
            for (strains, code), carries in zip(sides, carried, strict=True):
                chosen &= strains.suppressed[code] == carries
            if not chosen.any():
                continue
            every = np.flatnonzero(chosen)
            # The query names the replicate: crosses of one pair by several query strains are replicates.
            replicates = np.array(
                [f"{label} {strain.name}".strip() for strain in sides[0].strains.ids], object
            )
            # By blocks of rows: columns are wide while they are put together, and narrow afterwards.
            for start in range(0, len(every), BLOCK):
                at = every[start : start + BLOCK]
                gene = [strains.gene[code[at]] for strains, code in sides]
                kind = [strains.kind[code[at]] for strains, code in sides]
                allele = [(strains.allele, code[at]) for strains, code in sides]
                for (strains, code), carries in zip(sides, carried, strict=True):
                    if carries:
                        gene.append(strains.suppressed_gene[code[at], None])
                        kind.append(np.full((len(at), 1), PerturbationKind.SUPPRESSOR, np.uint8))
                        allele.append((strains.suppressor, code[at]))
                self.parts.append(
                    Measurements.build(
                        self.study,
                        genes=self.genes.names,
                        gene=np.concatenate(gene, axis=1),
                        kind=np.concatenate(kind, axis=1),
                        allele=coded_by(allele),
                        environments=(environment,),
                        phenotypes=(phenotype,),
                        value=value[at],
                        sd=np.nan if sd is None else sd[at],
                        p=np.nan if p is None else p[at],
                        replicate=coded_by([(replicates, sides[0].code[at])]),
                    )
                )


def together(parts: Sequence[Measurements], genes: GeneIndex, files: Iterable[Path]) -> Measurements:
    """Return all parts as one; raises ``SourceError`` if nothing of the files is measured on known genes."""
    if not any(map(len, parts)):
        names = " and ".join(path.name for path in files)
        raise SourceError(f"{names}: no row is of genes of {genes.organism!r}, expected most: {REMEDY}")
    return Measurements.concatenate([part for part in parts if len(part)])
