"""Baryshnikova et al. 2010 (Nat Methods 7:1017): fitness of single mutants from colony size.

The publisher's workbook has one line per strain, with a standard error from bootstrap (not a standard
deviation). A compiled text form has the deletions only, without their errors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import Collector, Rows, ignore, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.screens.costanzo2010 import EXPECTED, parse_strain
from wildtype.sources.yeast.screens.parts import FITNESS, NO_FITNESS, Screen, drop_genes, together
from wildtype.sources.yeast.screens.sga_strains import Side, Strains
from wildtype.sources.yeast.screens.single_fitness import sga_environment

PUBLISHER = publisher("baryshnikova2010")
WORKBOOK, COMPILED = PUBLISHER.files
SHEET = "S1_SMF_standard_100209"
_HEADING = "hap a/hap alpha | growth (colony size) | standard [standard] | Baryshnikova A~Myers CL, 2010"
_MISSING = ("", "NaN")
PERMISSIVE, STANDARD = 26.0, 30.0
"""Degrees Celsius for temperature-sensitive strains, and for all others."""


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the fitness of every strain; of ORFs that the gene list no longer has, none.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged, of another layout, or names no gene of the organism.
    """
    path = WORKBOOK.find(folder)
    rows: Rows
    if path is not None:
        rows = read_sheet(path, SHEET, fields=3)
    else:
        path = (COMPILED if COMPILED.find(folder) else WORKBOOK).require(folder)
        rows = read_rows(path, header=("orf", _HEADING))
    value = rows.numbers(1, missing=_MISSING)
    # The compiled text has no errors: unknown, not 0.
    se = np.full(len(rows), np.nan) if rows.header else rows.numbers(2, missing=_MISSING)
    rows.refuse(2, se < 0, "a standard error of at least 0")
    names = rows.text(0)
    parsed = [parse_strain(name) for name in names]
    rows.refuse(0, np.array([found is None for found in parsed]), EXPECTED)
    found = [strain for strain in parsed if strain is not None]
    ids, mutations = [strain for strain, _ in found], [[mutation] for _, mutation in found]
    strains = Strains.build(ids, mutations, genes, 1)
    screen, sides = Screen(study_of(PUBLISHER, [path]), genes, collect), [Side(strains, np.arange(len(rows)))]
    used = screen.select(
        path.name, FITNESS.name, sides, drop_genes(RowFilter(len(rows)), sides), {NO_FITNESS: np.isnan(value)}
    )
    at = np.flatnonzero(used)
    kind = strains.kind[at]
    measurements = Measurements.build(
        screen.study,
        genes=genes.names,
        gene=strains.gene[at],
        kind=kind,
        allele=strains.allele[at],
        environments=(sga_environment(STANDARD), sga_environment(PERMISSIVE)),
        # Essential genes' strains grow at the permissive temperature only (see the publisher's notes).
        environment=kind[:, 0] == PerturbationKind.TEMPERATURE_SENSITIVE,
        phenotypes=(FITNESS,),
        value=value[at],
        # Errors are from bootstrap over colonies: standard errors of the mean, no deviations between
        # colonies.
        se=se[at],
        replicate=[f"strain {names[i]}" for i in at.tolist()],
    )
    return together([measurements], genes, [path])
