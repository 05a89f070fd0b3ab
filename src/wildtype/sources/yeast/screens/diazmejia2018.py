"""Diaz-Mejia et al. 2018 (Mol Syst Biol 14:e7985), BFG-GI: pairs of DNA-repair genes in nine conditions.

Legend: m gene pairs · c = 18 columns (epsilon and fitness in 9 conditions).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Compound, Environment, PhenotypeDefinition
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import SAME_GENE, Flags, Floats
from wildtype.sources.text import Collector, Rows, ignore, match_genes, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.traits.headings import Strain
from wildtype.sources.yeast.traits.matrix import Column, Mutants, column_of, measure, sift, without_gene

PUBLISHER = publisher("diazmejia2018")
(TABLE,) = PUBLISHER.files
CONDITIONS = ("NoDrug", "DMSO", "MMS", "4NQO", "BLMC", "ZEOC", "HYDX", "DXRB", "CSPL")
EPSILON = PhenotypeDefinition(
    name="epsilon",
    unit="fitness, wild type = 1",
    min_order=2,
    description="genetic interaction score GIS: fitness of the double mutant minus the product of those of "
    "the singles, averaged over barcodes",
)
FITNESS = PhenotypeDefinition(
    name="fitness",
    direction="higher is fitter",
    description="generations of growth relative to pairs of neutral genes, averaged over barcodes; never "
    "below 0",
)
LINKED = "linked genes, removed by the publisher"
_QUANTITIES = (  # phenotype, column of the value, column of its standard error
    (EPSILON, "GIS_xy", "SE_GIS_xy"),
    (FITNESS, "W_xy", "W_xy_SE"),
)
_FIRST_COLUMNS = (
    "Gene_x", "Gene_y", "Chromosomal_distance_bp", "Remove_by_Chromosomal_distance_or_SameGene", ...,
)  # fmt: skip
_REMOVED = 3


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read the interaction score and the double mutant's fitness of every pair in every condition.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """
    path = TABLE.require(folder)
    rows = read_rows(path, header=_FIRST_COLUMNS)
    columns, value, se = _numbers(rows)
    sides = [match_genes(rows.text(position), genes) for position in (0, 1)]
    removed = _removed(rows)
    # Position -1 equals itself: two unknown genes are counted as unknown, before this reason.
    same = sides[0].position == sides[1].position
    missing = [without_gene(side) for side in sides]
    reasons = {reason: mask | missing[1][reason] for reason, mask in missing[0].items()}
    value, report = sift(
        path,
        "measurements",
        value,
        rows=reasons | {SAME_GENE: same, LINKED: removed},
        renamed=sides[0].renamed | sides[1].renamed,
    )
    collect(report)
    pair = np.stack([side.position for side in sides], axis=1)
    pair[(pair < 0).any(1)] = 0  # dropped: no value is left in these rows
    mutants = Mutants(pair.reshape(-1), np.arange(len(rows) + 1) * 2, ("",) * len(rows))
    return measure(study_of(PUBLISHER, [path]), genes, mutants, columns, value, se=se)


def _numbers(rows: Rows) -> tuple[list[Column], Floats, Floats]:
    """Return the 18 columns, their values and standard errors [m, 18]."""
    strain = Strain("pairs of neutral genes")
    columns, value, se = [], [], []
    for condition in CONDITIONS:
        # DMSO is the solvent of some drugs and has its column; NoDrug has no compound at all.
        compounds = () if condition == "NoDrug" else (Compound(name=condition),)
        environment = Environment(compounds=compounds)
        for phenotype, name, error in _QUANTITIES:
            position = column_of(rows, f"{error}.{condition}")
            errors = rows.numbers(position, missing=("NA", ""))
            # The errors are standard errors of the means: recorded as such, never as standard deviations.
            rows.refuse(position, errors < 0, "a standard error of at least 0")
            columns.append(Column(phenotype, environment=environment, strain=strain))
            value.append(rows.numbers(column_of(rows, f"{name}.{condition}"), missing=("NA", "")))
            se.append(errors)
    return columns, np.stack(value, axis=1), np.stack(se, axis=1)


def _removed(rows: Rows) -> Flags:
    given = rows.text(_REMOVED)
    rows.refuse(_REMOVED, np.array([text not in ("YES", "no") for text in given]), "YES or no")
    return np.array([text == "YES" for text in given])
