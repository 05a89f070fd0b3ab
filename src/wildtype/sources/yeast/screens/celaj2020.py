"""Celaj et al. 2020 (Cell Systems 10:25), XGA: 0–16 deletions of 16 ABC transporters, growth in 16 drugs.

Legend: m strains · c columns (drugs) · 16 transporter genes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Compound, Environment, PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import Flags, Floats, RowFilter, repeated
from wildtype.sources.text import REMEDY, Collector, GeneNames, ignore, match_genes, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.traits.headings import Strain
from wildtype.sources.yeast.traits.matrix import Column, Mutants, measure, readable, sift

PUBLISHER = publisher("celaj2020")
GENOTYPES, RESISTANCE, GROWTH_A, GROWTH_ALPHA = PUBLISHER.files
RESISTANCE_TO_DRUG = PhenotypeDefinition(
    name="drug resistance",
    unit="growth relative to the solvent control = 1",
    direction="higher is fitter",
    min_order=0,
    description="growth of a strain in a drug relative to its growth without; 1 is unaffected",
)
GROWTH = PhenotypeDefinition(
    name="growth",
    unit="relative to the pool = 1",
    direction="higher is fitter",
    min_order=0,
    description="growth of a strain in the pool of its mating type",
)
CONTROL = "CTRL"
NO_GENOTYPE = "no genotype"
NO_STRAIN = "strain without a genotype"
UNKNOWN_GENE = "deletes an unknown gene"
_FIRST_COLUMNS = (
    "PLATE", "c", "r", "Strain Name", "POS", "Comment", "UPTAG", "UPTAG stat", "DNTAG", "DNTAG stat",
)  # fmt: skip
_PLATE, _STRAIN, _FIRST_GENE = 0, 3, len(_FIRST_COLUMNS)
_STATES = {"0": 0, "1": 1, "": -1}
_MATING = {"a": "MATa", "alpha": "MATalpha"}


@dataclass(frozen=True, eq=False)
class Strains:
    """Genotypes of all strains.

    Attributes
    ----------
    row : dict of str to int
        Position of every strain that has a genotype in `deleted` and `mating`.
    deleted : bool [s, 16]
        Which transporter genes it lacks.
    mating : tuple of s str
        Its mating type.
    genes : GeneNames
        The 16 genes.
    """

    row: dict[str, int]
    deleted: NDArray[np.bool_]
    mating: tuple[str, ...]
    genes: GeneNames


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read resistance and growth of all strains; the replicate is mating type and strain.

    Raises
    ------
    SourceError
        If a file is missing, damaged, or not in the published layout.
    """
    found = [remote.require(folder) for remote in PUBLISHER.files]
    strains, report = read_genotypes(found[0], genes)
    collect(report)
    study = study_of(PUBLISHER, found)
    tables = (
        (found[1], "both", RESISTANCE_TO_DRUG, Strain("solvent control of the strain")),
        (found[2], "A", GROWTH, Strain("pool, MATa")),
        (found[3], "alpha", GROWTH, Strain("pool, MATalpha")),
    )
    parts = []
    for path, suffix, phenotype, reference in tables:
        names, drugs, value = _read_table(path, suffix)
        columns = [Column(phenotype, environment=_environment(drug), strain=reference) for drug in drugs]
        row = np.array([strains.row.get(name, -1) for name in names], np.int64)
        # Row -1, a strain without a genotype, takes the last genotype: the mask clears it.
        deleted = strains.deleted[row] & (row >= 0)[:, None]
        # A strain that also lacks an unknown gene is another mutant than the one of its known genes: dropped.
        lost: Flags = np.asarray((deleted & ~strains.genes.found).any(1))
        value, report = sift(
            path, f"measurements of {phenotype.name}", value, rows={NO_STRAIN: row < 0, UNKNOWN_GENE: lost}
        )
        collect(report)
        deleted &= strains.genes.found
        # Row by row, as `Mutants` lists perturbations: the mask of a C-ordered array is read along the genes.
        gene = np.broadcast_to(strains.genes.position, deleted.shape)[deleted]
        offsets = np.concatenate([[0], np.cumsum(deleted.sum(1))]).astype(np.int64)
        labels = tuple(
            f"{strains.mating[r]} {name}" if r >= 0 else ""
            for r, name in zip(row.tolist(), names, strict=True)
        )
        parts.append(measure(study, genes, Mutants(gene, offsets, labels), columns, value))
    return Measurements.concatenate(parts)


def read_genotypes(path: Path, genes: GeneIndex) -> tuple[Strains, ReadReport]:
    """Read which of the 16 genes every strain lacks (1: deleted, 0: present).

    Raises
    ------
    SourceError
        If the file is damaged, a strain is listed twice, or a genotype holds anything but 0 and 1.
    """
    rows = read_rows(path, header=(*_FIRST_COLUMNS, ...))
    names = rows.header[_FIRST_GENE:]
    states = np.empty((len(rows), len(names)), np.int8)
    for j in range(len(names)):
        given = rows.text(_FIRST_GENE + j)
        wrong = np.array([state not in _STATES for state in given])
        rows.refuse(_FIRST_GENE + j, wrong, "0 (present), 1 (deleted) or nothing")
        states[:, j] = [_STATES[state] for state in given]
    # A genotype with one unread gene is none: the gene could be deleted.
    known: Flags = np.asarray((states >= 0).all(1))
    row: dict[str, int] = {}
    mating = []
    strain, plate = rows.text(_STRAIN), rows.text(_PLATE)
    for position, i in enumerate(np.flatnonzero(known).tolist()):
        # The mating type is only in the name of the plate, such as ..._alpha7.
        kind = plate[i].rpartition("_")[2].rstrip("0123456789")
        if kind not in _MATING:
            raise rows.error(i, plate[i], "a plate whose name ends in aN or alphaN")
        if not strain[i] or strain[i] in row:
            raise rows.error(i, strain[i], "every strain once")
        row[strain[i]] = position
        mating.append(_MATING[kind])
    if not row:
        raise SourceError(f"{path} has no strain with a genotype, expected thousands: {REMEDY}")
    strains = Strains(row, states[known] == 1, tuple(mating), match_genes(names, genes))
    used = RowFilter(len(rows))
    used.drop(NO_GENOTYPE, ~known)
    return strains, used.report(path.name, "genotypes")


def _environment(drug: str) -> Environment:
    return Environment(compounds=() if drug == CONTROL else (Compound(name=drug),))


def _read_table(path: Path, suffix: str) -> tuple[list[str], list[str], Floats]:
    """Return strains [m], drugs [c] and numbers [m, c]; the header has no name for the first column."""
    rows = read_rows(path, header=(...,), least=2)
    names = rows.header
    wrong = np.array([len(cells) != len(names) + 1 for cells in rows.cells])
    if wrong.any():
        at = int(wrong.argmax())
        raise rows.error(
            at, len(rows.cells[at]), f"{len(names) + 1} fields, a strain and {len(names)} numbers"
        )
    ending = f"_{suffix}"
    bad = next((name for name in names if not name.endswith(ending) or name == ending), None)
    if bad is not None:
        raise SourceError(
            f"{path}, line 1: received the column {bad[:60]!r}, expected names of drugs that end in "
            f"{ending}; {REMEDY}"
        )
    strains = rows.text(0)
    rows.refuse(0, repeated(strains), "every strain once")
    rows = replace(rows, header=("strain", *names))
    drugs = [name.removesuffix(ending).strip() for name in names]
    readable(path, (*drugs, *strains))
    value = np.stack([rows.numbers(i + 1, missing=("", "NA", "NaN")) for i in range(len(names))], axis=1)
    return strains, drugs, value
