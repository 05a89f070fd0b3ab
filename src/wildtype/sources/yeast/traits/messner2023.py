"""Messner et al. 2023 (Cell 186:2018): amounts of 1,850 protein groups in 4,699 deletions and 388 controls.

Legend: m samples · c protein groups.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.organism import GeneIndex
from wildtype.sources.text import Collector, ignore, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession, read_accessions
from wildtype.sources.yeast.traits.matrix import (
    PLAIN,
    column_of,
    gene_columns,
    measure_singles,
    read_wide,
    readable,
    stack,
)

PUBLISHER = publisher("messner2023")
MATRIX, METADATA = PUBLISHER.files
PHENOTYPE = PhenotypeDefinition(
    name="protein",
    unit="relative intensity",
    level="gene",
    description="amount of the protein of the gene that the trait names (MaxLFQ, batch-corrected, linear)",
)
DELETION, CONTROL, QUALITY = "ko", "his3", "qc"
QUALITY_CONTROL = "quality control"
NOT_LISTED = "sample that the metadata do not list"
SEVERAL = "protein group of several genes"
NO_GENE = "protein group of no known gene"


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read the matrix that is not imputed: one measurement per sample and protein group of one gene.

    Raises
    ------
    SourceError
        If a file is missing (the mapping from UniProt accessions to genes too), damaged, or not in the
        published layout.
    """
    paths = [MATRIX.require(folder), METADATA.require(folder)]
    accessions, report = read_accessions(folder, genes)
    collect(report)
    listed = _samples(paths[1])
    table, samples = read_wide(paths[0], "Protein.Group", separator=",")
    value = stack(table, range(1, len(samples) + 1))
    groups = [table.text(0)[row] for row in range(len(table))]
    readable(paths[0], groups)
    found = [_genes_of(group, accessions) for group in groups]
    # The amount of a group of several genes cannot be divided between them.
    gene = np.array([next(iter(several)) if len(several) == 1 else -1 for several in found], np.int64)
    kind, orf = zip(*(listed.get(sample, ("", "")) for sample in samples), strict=True)
    kinds = np.array(kind)
    return measure_singles(
        study_of(PUBLISHER, paths),
        genes,
        paths[0],
        # HIS3 controls carry HIS3 again: they are wild types, whatever ORF the metadata give them.
        [name.upper() if what == DELETION else "" for name, what in zip(orf, kind, strict=True)],
        samples,
        gene_columns(PHENOTYPE, gene, groups, genes, PLAIN),
        value,
        collect,
        wild_type=kinds == CONTROL,
        rows={NOT_LISTED: kinds == "", QUALITY_CONTROL: kinds == QUALITY},
        unused={
            SEVERAL: np.array([len(several) > 1 for several in found]),
            NO_GENE: np.array([not several for several in found]),
        },
    )


def _genes_of(group: str, accessions: Accessions) -> set[int]:
    return {g for name in group.split(";") for g in accessions.get(base_accession(name.strip()), ())}


def _samples(path: Path) -> dict[str, tuple[str, str]]:
    """Return sample type (lower case) and ORF of every sample, by file name."""
    rows = read_rows(path, separator=",", header=(...,), quoted=True)
    name, kind, orf = (column_of(rows, column) for column in ("Filename", "sampletype", "ORF"))
    out: dict[str, tuple[str, str]] = {}
    for row, (sample, what, gene) in enumerate(
        zip(rows.text(name), rows.text(kind), rows.text(orf), strict=True)
    ):
        if what.lower() not in (DELETION, CONTROL, QUALITY):
            raise rows.error(row, what, "a sample type of ko, HIS3 or qc")
        if not sample or sample in out:
            raise rows.error(row, sample, "every sample once")
        out[sample] = (what.lower(), gene)
    return out
