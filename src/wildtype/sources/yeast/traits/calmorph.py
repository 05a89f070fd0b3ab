"""Ohya et al. 2005 (PNAS 102:19015): 501 CalMorph traits of 4,718 haploid deletions and 122 wild types.

Legend: m strains · c traits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import REMEDY, Collector, ignore
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.traits.matrix import Column, measure_singles, read_wide, readable, stack

PUBLISHER = publisher("ohya2005")
MUTANTS, WILD_TYPES = PUBLISHER.files
PHENOTYPE = PhenotypeDefinition(
    name="CalMorph",
    unit="as in SCMD, by trait",
    level="trait",
    description="mean or coefficient of variation over the cells of a class; the trait is SCMD's name of it",
)


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read mutants and wild types: every number of both tables is one measurement.

    The wild types are replicates of the mutant without perturbations, named as in their table.

    Raises
    ------
    SourceError
        If a file is missing, damaged, not in the published layout, or the two have not the same traits.
    """
    paths = [MUTANTS.require(folder), WILD_TYPES.require(folder)]
    study = study_of(PUBLISHER, paths)
    parts = []
    traits: tuple[str, ...] | None = None
    for path, key in zip(paths, ("ORF", "NAME"), strict=True):
        table, found = read_wide(path, key)
        if traits is not None and found != traits:
            raise SourceError(
                f"{path}, line 1: received other traits than {paths[0].name} has, expected the same in the "
                f"same order; {REMEDY}"
            )
        traits = found
        readable(path, found)
        labels = [table.text(0)[row] for row in range(len(table))]
        value = stack(table, range(1, len(found) + 1)).T
        columns = [Column(PHENOTYPE, trait) for trait in found]
        if path is paths[0]:
            # The published table spells ORFs in lower case, the gene list in capitals.
            labels = [label.upper() for label in labels]
            parts.append(measure_singles(study, genes, path, labels, labels, columns, value, collect))
            continue
        # All of the 122 wild types are his3 strains: the spread between them is the noise of the traits.
        wild = np.ones(len(labels), bool)
        nothing, use = [""] * len(labels), "measurements of wild types"
        parts.append(
            measure_singles(
                study, genes, path, nothing, labels, columns, value, collect, use=use, wild_type=wild
            )
        )
    return Measurements.concatenate(parts)
