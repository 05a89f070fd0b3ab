"""Vectors of named traits of single deletions: cell morphology, penetrance, amino acids; and cell size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import REMEDY, Collector, ignore
from wildtype.sources.yeast.traits.headings import parse_heading
from wildtype.sources.yeast.traits.matrix import Column
from wildtype.sources.yeast.traits.tables import (
    JORGENSEN,
    MATTIAZZI,
    MULLEDER,
    VIZEACOUMAR,
    Study,
    read_measurements,
)

PHENOTYPES = {
    VIZEACOUMAR.name: PhenotypeDefinition(
        name="cell morphology", unit="as published, by trait", level="trait",
        description="mean of a feature over the cells of a class, or the percentage of cells in it",
    ),
    MATTIAZZI.name: PhenotypeDefinition(
        name="morphology penetrance", unit="fraction of cells", level="trait",
        description="share of cells with an unusual endocytic compartment of the kind that the trait names",
    ),
    MULLEDER.name: PhenotypeDefinition(
        name="amino acid", unit="z-score over all deletions", level="trait",
        description="intracellular amino acid",
    ),
    JORGENSEN.name: PhenotypeDefinition(
        name="cell size change", unit="fraction of wild type",
        description="cell size minus that of wild type; only strains that differ were listed",
    ),
}  # fmt: skip
STUDIES = (VIZEACOUMAR, MATTIAZZI, MULLEDER, JORGENSEN)
PUBLISHERS = tuple(study.publisher for study in STUDIES)


def read(folder: str | Path, genes: GeneIndex, *, study: Study, collect: Collector = ignore) -> Measurements:
    """Read one of `STUDIES`: every number of its table is one measurement.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """
    phenotype = PHENOTYPES[study.name]

    def column(heading: str, place: str) -> Column:
        if study is MULLEDER:  # its headings are the amino acids
            if not heading:
                raise SourceError(
                    f"{place}: received a column without a name, expected an amino acid; {REMEDY}"
                )
            return Column(phenotype, trait=heading)
        parsed = parse_heading(heading, place)
        trait = parsed.phenotype if phenotype.level == "trait" else ""
        return Column(phenotype, trait, parsed.environment, parsed.strain)

    return read_measurements(folder, genes, study, column, collect)


READERS: dict[str, Callable[..., Measurements]] = {
    study.name: partial(read, study=study) for study in STUDIES
}
"""By name of the publisher: ``(folder, genes, *, collect) -> Measurements``."""
