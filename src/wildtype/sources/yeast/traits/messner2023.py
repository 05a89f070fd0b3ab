"""Messner et al. 2023 (Cell 186:2018): amounts of 1,850 protein groups in 4,699 deletions and 388 controls.

Legend: m samples · c protein groups.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition, Publication
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import Collector, ignore, match_genes, read_rows
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession, read_accessions
from wildtype.sources.yeast.screens.parts import study_of
from wildtype.sources.yeast.traits.matrix import (
    Column,
    Mutants,
    measure,
    readable,
    sift,
    told_apart,
    without_gene,
)
from wildtype.sources.yeast.traits.tables import column_of
from wildtype.sources.yeast.traits.wide import read_wide, stack

_BY_HAND = (
    "download it from Mendeley Data, doi 10.17632/w8jtmnszd9.1, whose listing gives the address of every file"
)
MATRIX = RemoteFile(
    "yeast5k_noimpute_wide.csv",
    sha256="69a9df05b6db011f595a4e0b3ce25c1cc247f22cbdd066c79e6da9a706aa1df9",
    gated=_BY_HAND,
)
METADATA = RemoteFile(
    "yeast5k_metadata.csv",
    sha256="48864282c82d516ae929dc87aff7fae9e05e9b922e316c001f3d29dce0ff878b",
    gated=_BY_HAND,
)
PUBLISHER = Publisher(
    "messner2023",
    "Proteomes of single deletions",
    Publication(
        citation="Messner et al. 2023, Cell 186:2018", doi="10.1016/j.cell.2023.03.026", pubmed="37080200"
    ),
    "CC BY 4.0",
    (MATRIX, METADATA),
    {
        "samples": 5476,
        "deletions": 4699,
        "controls": 388,
        "quality controls": 389,
        "protein groups": 1850,
        "measured": 8_466_210,
    },
    (
        "intensities are linear and relative (MaxLFQ, batch-corrected), not log2; nothing is imputed",
        "one measurement per strain; 146 genes have 2 or 3 strains, which are kept as replicates",
        "HIS3 controls are wild-type replicates",
        "protein groups are UniProt accessions: a file of UniProt must stand in the folder as well",
    ),
)
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
    accessions, reading = read_accessions(folder, genes)
    collect(reading)
    listed = _samples(paths[1])
    table, samples = read_wide(paths[0], "Protein.Group", separator=",")
    value = stack(table, range(1, len(samples) + 1))
    groups = [table.text(0)[row] for row in range(len(table))]
    readable(paths[0], (*samples, *groups))
    found = [_genes_of(group, accessions) for group in groups]
    gene = np.array([next(iter(several)) if len(several) == 1 else -1 for several in found], np.int64)

    kinds = np.array([listed.get(sample, ("", ""))[0] for sample in samples])
    control = kinds == CONTROL
    orfs = [listed.get(sample, ("", ""))[1].upper() for sample in samples]
    matched = match_genes(orfs, genes)
    position = np.where(kinds == DELETION, matched.position, -1)
    value, reading = sift(
        paths[0],
        "measurements",
        value,
        rows={NOT_LISTED: kinds == "", QUALITY_CONTROL: kinds == QUALITY} | without_gene(matched, control),
        columns={
            SEVERAL: np.array([len(several) > 1 for several in found]),
            NO_GENE: np.array([not several for several in found]),
        },
        renamed=matched.renamed & ~control,
    )
    collect(reading)
    several = told_apart(position, samples)
    names = [
        sample if wt else name for sample, wt, name in zip(samples, control.tolist(), several, strict=True)
    ]
    again = told_apart(gene, groups)
    columns = [
        Column(PHENOTYPE, genes.names[g] if g >= 0 else "", replicate=name)
        for g, name in zip(gene.tolist(), again, strict=True)
    ]
    return measure(study_of(PUBLISHER, paths), genes, Mutants.single(position, names), columns, value)


def _genes_of(group: str, accessions: Accessions) -> set[int]:
    return {g for name in group.split(";") for g in accessions.get(base_accession(name.strip()), ())}


def _samples(path: Path) -> dict[str, tuple[str, str]]:
    """Return sample type (lower case) and ORF of every sample, by file name."""
    rows = read_rows(path, separator=",", header=(...,), quoted=True)
    name, kind, orf = (column_of(rows, wanted) for wanted in ("Filename", "sampletype", "ORF"))
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
