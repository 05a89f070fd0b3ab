"""Phenotypes of single deletions from nine studies, condensed to one feature block.

Legend: n genes · m genes with any phenotype · p phenotype columns of one study.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.components import components, spread
from wildtype.sources.row_filter import Floats, RowFilter
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.traits import phenome
from wildtype.sources.yeast.traits.phenome import SHAPE, Study, read_table

LEAST_SHARE = 0.2
"""Columns measured in a smaller share of a study's strains are left out."""
TAILS = (0.5, 99.5)
"""Percentiles to which values are clipped: pooled screens have outliers of hundreds of sd."""
STUDIES = tuple(study for study in phenome.STUDIES if study not in (phenome.JORGENSEN, phenome.GALARDINI))
"""The table of cell sizes lists strains that differ only: too few for a feature of all genes. Without the
table of Galardini et al. organisms keep the features that they had before it had a reader.
"""


@dataclass(frozen=True, eq=False)
class PhenotypeTable:
    """Values [n, p] of one study over all genes (NaN: not measured), and the counts of its rows."""

    study: Study
    values: Floats
    report: ReadReport


def read_study(folder: str | Path, study: Study, genes: GeneIndex) -> PhenotypeTable:
    """Read one study's table; a gene listed twice keeps its first row, counted.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry that is neither a number nor missing.
    """
    rows, numbers = read_table(folder, study)
    matched = match_genes(rows.text(0), genes)
    used = RowFilter(len(rows))
    used.drop_names(matched)
    positions, first = used.first_of_each(matched, rows.path)
    values = np.full((len(genes), numbers.shape[1]), np.nan)
    values[positions] = numbers[first]
    return PhenotypeTable(study, values, used.report(rows.path.name, "phenotypes", matched.renamed))


def standardise(values: Floats) -> Floats:
    """Return one study's usable columns, clipped, with mean 0 and sd 1, missing values as 0."""
    strains = np.isfinite(values).any(1)
    enough = (
        np.isfinite(values[strains]).mean(0) >= LEAST_SHARE
        if strains.any()
        else np.zeros(values.shape[1], bool)
    )
    kept = values[:, enough]
    if not kept.shape[1]:
        return kept
    # Clipped before the sd is taken: one outlier of hundreds of sd would flatten all other strains.
    low, high = np.nanpercentile(kept, TAILS, axis=0)
    clipped = np.clip(kept, low, high)
    # A constant column has no direction, and dividing by its sd would blow up rounding errors.
    sd = np.nanstd(clipped, axis=0)
    varies = sd > 1e-9
    scaled = (clipped[:, varies] - np.nanmean(clipped[:, varies], axis=0)) / sd[varies]
    # The mean, 0 after scaling, is the neutral value of a missing entry in a component analysis.
    return np.where(np.isfinite(scaled), scaled, 0.0)


def measured_as(study: Study) -> tuple[str, ...]:
    """Return every phenotype source under which numbers of a study's table can be a target."""
    # Each study under the phenotypes of all: a name too many is harmless, a missing one would leak labels.
    names = [one.phenotype.name for one in phenome.STUDIES] + [SHAPE.name]
    return (study.source, *(f"{study.name}:{name}" for name in dict.fromkeys(names)))


def phenotype_block(tables: list[PhenotypeTable], count: int = 32) -> FeatureBlock:
    """Return the block ``phenotypes`` [n, 32]: leading components of all studies side by side.

    Every study is divided by its largest singular value, so that one with many columns does not outweigh the
    others (multiple factor analysis; Escofier & Pagès 1994). Genes that no study measured are NaN.

    Raises
    ------
    SourceError
        If there is no usable column.
    """
    measured = np.zeros(len(tables[0].values), bool)
    parts, columns = [], 0
    for table in tables:
        measured |= np.isfinite(table.values).any(1)
        part = standardise(table.values)
        columns += table.values.shape[1]
        if part.shape[1]:
            # Order 2 of a matrix is its largest singular value, the weight of multiple factor analysis.
            parts.append(part / np.linalg.norm(part, 2))
    joined = np.concatenate(parts, axis=1) if parts else np.zeros((len(measured), 0))
    scores = components(joined[measured], count, "the phenotype tables")
    return FeatureBlock(
        "phenotypes",
        spread(scores, np.flatnonzero(measured), len(measured)),
        tuple(f"component{i + 1}" for i in range(scores.shape[1])),
        source="single-deletion phenotypes of " + ", ".join(t.study.name for t in tables),
        measured=tuple(dict.fromkeys(source for t in tables for source in measured_as(t.study))),
        note=f"{joined.shape[1]} of {columns} columns (the others vary too little or are measured in too few "
        "strains); missing values count as the mean",
    )
