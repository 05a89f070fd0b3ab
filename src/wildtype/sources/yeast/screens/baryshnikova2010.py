"""Baryshnikova et al. 2010 (Nat Methods 7:1017): fitness of single mutants from colony size.

The publisher's workbook has one line per strain, with a standard error from bootstrap (not a standard
deviation). A compiled text form has the deletions only, without their errors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind, Publication
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import Collector, Rows, ignore, read_rows
from wildtype.sources.yeast.screens.costanzo2010 import EXPECTED, parse_strain
from wildtype.sources.yeast.screens.parts import RowFilter, study_of, together
from wildtype.sources.yeast.screens.sga_strains import Strains
from wildtype.sources.yeast.screens.single_fitness import sga_environment
from wildtype.sources.yeast.screens.trigenic_table import FITNESS, NO_FITNESS

WORKBOOK = RemoteFile(
    "41592_2010_BFnmeth1534_MOESM168_ESM.xls",
    urls=(
        "https://static-content.springer.com/esm/art%3A10.1038%2Fnmeth.1534/MediaObjects/"
        "41592_2010_BFnmeth1534_MOESM168_ESM.xls",
    ),
    sha256="086bfadf2684f28940500dd87e3be74c53a957448d2016f7a02370540da8a04e",
)
COMPILED = RemoteFile(
    "phenotype_smf_baryshnikova2010.tsv",
    urls=(
        "https://raw.githubusercontent.com/yeastphenome/yp-data/d07889a480f79c133545e12b748ca361fe07bbdb/"
        "Datasets/21076421/baryshnikova_myers_2010_value.txt",
    ),
    aliases=("baryshnikova_myers_2010_value.txt",),
)
SHEET = "S1_SMF_standard_100209"
PUBLISHER = Publisher(
    name="baryshnikova2010",
    title="fitness of single deletions, DAmP and temperature-sensitive alleles from colony size",
    publication=Publication(
        citation="Baryshnikova et al. 2010, Quantitative analysis of fitness and genetic interactions in "
        "yeast on a genome scale, Nat Methods 7:1017",
        doi="10.1038/nmeth.1534",
        pubmed="21076421",
    ),
    licence="supplement of the journal: terms not confirmed; Yeast Phenome: CC BY 4.0",
    files=(WORKBOOK, COMPILED),
    published={
        "strains": 6023,
        "deletions": 4635,
        "DAmP strains": 1082,
        "temperature-sensitive strains": 306,
        "strains of ORFs that SGD has withdrawn": 30,
    },
    notes=(
        "the workbook is read where it is there, else the text that Yeast Phenome (yeastphenome.org) has "
        "compiled of its deletions: without errors, and with means where a gene is listed twice",
        "HO (YDL227C) is listed twice, 58 genes with several temperature-sensitive alleles",
        "temperatures are not in the file: 30 °C for deletions and DAmP, 26 °C for temperature-sensitive "
        "strains is inferred from agreement with Costanzo et al. 2016",
    ),
)
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
    se = np.full(len(rows), np.nan) if rows.header else rows.numbers(2, missing=_MISSING)
    rows.refuse(2, se < 0, "a standard error of at least 0")
    names = rows.text(0)
    parsed = [parse_strain(name) for name in names]
    rows.refuse(0, np.array([found is None for found in parsed]), EXPECTED)
    found = [strain for strain in parsed if strain is not None]
    strains = Strains.build(
        [strain for strain, _, _ in found], [[(kind, allele)] for _, kind, allele in found], genes, 1
    )
    side = (strains, np.arange(len(rows)))
    sieve = RowFilter(np.ones(len(rows), bool))
    sieve.drop_genes([side])
    sieve.drop(NO_FITNESS, np.isnan(value))
    collect(sieve.reading(path.name, FITNESS.name, [side]))
    at = np.flatnonzero(sieve.left)
    kind = strains.kind[at]
    measurements = Measurements.build(
        study_of(PUBLISHER, [path]),
        genes=genes.names,
        gene=strains.gene[at],
        kind=kind,
        allele=strains.allele[at],
        environments=(sga_environment(STANDARD), sga_environment(PERMISSIVE)),
        environment=kind[:, 0] == PerturbationKind.TEMPERATURE_SENSITIVE,
        phenotypes=(FITNESS,),
        value=value[at],
        se=se[at],
        replicate=[f"strain {names[i]}" for i in at.tolist()],
    )
    return together([measurements], genes, [path])
