"""From the columns of a screen to `Measurements`: which rows are used, and why the others are not.

Legend: m rows of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PhenotypeDefinition, Study
from wildtype.errors import SourceError
from wildtype.files import sha256_of_file
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN
from wildtype.sources.yeast.screens.sga_strains import Strains

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ONE_GENE_TWICE = "query and array of one gene"
REPEATED = "the number of another row again"


def study_of(publisher: Publisher, paths: Iterable[Path]) -> Study:
    """Return the study of a publisher, with the checksums of the files that were read."""
    return Study(
        name=publisher.name,
        publication=publisher.publication,
        organism="yeast",
        licence=publisher.licence,
        files={path.name: sha256_of_file(path) for path in paths},
        notes=publisher.notes,
    )


def require_copy(folder: str | Path, copies: Sequence[RemoteFile]) -> Path:
    """Return the first copy of one table that is in the folder; raises ``SourceError`` naming the first."""
    found = (path for copy in copies if (path := copy.find(folder)) is not None)
    return next(found, None) or copies[0].require(folder)


class RowFilter:
    """Which rows are left; every other one is counted under the first reason that it was dropped for.

    Parameters
    ----------
    rows : bool [m]
        The rows to begin with.

    Attributes
    ----------
    left : bool [m]
        The rows that are left.
    dropped : dict of str to int
        The others, by reason.
    """

    def __init__(self, rows: Flags) -> None:
        self.left = rows.copy()
        self.rows = int(self.left.sum())
        self.dropped: dict[str, int] = {}

    def drop(self, reason: str, mask: Flags) -> None:
        """Drop the rows of ``mask`` [m] that are still left."""
        gone = self.left & mask
        if gone.any():
            self.dropped[reason] = self.dropped.get(reason, 0) + int(gone.sum())
            self.left &= ~mask

    def drop_genes(self, sides: Sequence[tuple[Strains, Ints]]) -> None:
        """Drop the rows whose strains (one per side, by code [m]) are not of different known genes."""
        unknown, ambiguous = (
            np.logical_or.reduce([getattr(strains, name)[code] for strains, code in sides])
            for name in ("unknown", "ambiguous")
        )
        self.drop(UNKNOWN, unknown)
        self.drop(AMBIGUOUS, ambiguous)
        genes = np.sort(np.concatenate([strains.gene[code] for strains, code in sides], axis=1), axis=1)
        self.drop(ONE_GENE_TWICE, (np.diff(genes, axis=1) == 0).any(1))

    def reading(self, file: str, use: str, sides: Sequence[tuple[Strains, Ints]]) -> ReadReport:
        """Return what became of the rows that the sieve began with."""
        renamed = np.logical_or.reduce([strains.renamed[code] for strains, code in sides]) & self.left
        kept = int(self.left.sum())
        return ReadReport(file, use, self.rows, kept, dict(self.dropped), int(renamed.sum()))


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
            key = (strains.ids[int(strain)].name, *strains.allele[int(strain)], number)
            out[row] = key in self._known
            self._known.add(key)
        return out


def measured(
    study: Study,
    genes: GeneIndex,
    phenotype: PhenotypeDefinition,
    environment: Environment,
    sides: Sequence[tuple[Strains, Ints]],
    value: Floats,
    rows: Flags,
    *,
    label: str,
    sd: Floats | None = None,
    p: Floats | None = None,
) -> Measurements:
    """Return the measurements of the rows [m] marked in ``rows``; all columns are given for all m rows.

    Parameters
    ----------
    sides : sequence of (Strains, int64 [m])
        The strains that a mutant's perturbations come from, and which of them each row has.
    value, sd, p : float64 [m]
        As in `Measurements`.
    label : str
        What the first side is; with its strain's identifier this names the replicate.
    """
    at = np.flatnonzero(rows)
    first, code = sides[0]
    replicates = np.array([f"{label} {strain.name}".strip() for strain in first.ids], dtype=object)
    return Measurements.build(
        study,
        genes=genes.names,
        gene=np.concatenate([strains.gene[code[at]] for strains, code in sides], axis=1),
        kind=np.concatenate([strains.kind[code[at]] for strains, code in sides], axis=1),
        allele=np.concatenate([strains.allele[code[at]] for strains, code in sides], axis=1),
        environments=(environment,),
        phenotypes=(phenotype,),
        value=value[at],
        sd=np.nan if sd is None else sd[at],
        p=np.nan if p is None else p[at],
        replicate=replicates[code[at]],
    )


def together(parts: Sequence[Measurements], genes: GeneIndex, files: Iterable[Path]) -> Measurements:
    """Return all parts as one; raises ``SourceError`` if nothing of the files is measured on known genes."""
    if not any(map(len, parts)):
        names = " and ".join(path.name for path in files)
        raise SourceError(f"{names}: no row is of genes of {genes.organism!r}, expected most: {REMEDY}")
    return Measurements.concatenate([part for part in parts if len(part)])
