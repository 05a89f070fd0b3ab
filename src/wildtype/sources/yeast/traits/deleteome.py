"""Kemmeren et al. 2014 (Cell 157:740), the deleteome: expression of 6,112 genes in 1,484 single deletions.

Legend: m experiments · c reporters (probes of a gene).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import ColumnType, read_columns
from wildtype.sources.text import REMEDY, Collector, ignore
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.traits.headings import Strain
from wildtype.sources.yeast.traits.matrix import first_lines, gene_columns, measure_singles, readable, stack

PUBLISHER = publisher("kemmeren2014")
(DELETEOME,) = PUBLISHER.files
PHENOTYPE = PhenotypeDefinition(
    name="mRNA",
    unit="log2(mutant / wild type)",
    level="gene",
    description="expression of the gene that the trait names; p is limma's, adjusted by Benjamini-Hochberg",
)
KEYS = ("reporterId", "systematicName", "geneSymbol")
TRIPLE = ("M", "A", "p_value")
CHANGED_NAMES = ("CMS1", "LUG1")
"""Gene names that meant another gene when the experiments were named."""
CHANGED = "gene name that has changed its meaning"
NO_DELETION = "experiment that is no deletion"
REPORTER = "reporter of no known gene"
_EXPERIMENT = re.compile(r"(?P<gene>.+?)-del(?P<which>[^a-z].*)? vs\.? \S.*", re.IGNORECASE)


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Read every M and p: one measurement per experiment and reporter.

    Control experiments (wild type against wild type) are replicates of the mutant without perturbations.
    Where a gene has several experiments or reporters, the replicate names the experiment or the reporter.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """
    path = DELETEOME.require(folder)
    experiments = _experiments(path)
    first = len(KEYS)
    # A, the mean log intensity of both channels, is no effect of the deletion and is passed over.
    triple: list[ColumnType] = [float, None, float]
    types: list[ColumnType] = [str, str, None, *triple * len(experiments)]
    header = [*[None] * first, *TRIPLE * len(experiments)]
    table = read_columns(path, types=types, header=header, skip_lines=1)
    value = stack(table, range(first, len(types), 3))
    p = stack(table, range(first + 2, len(types), 3))
    wrong = (p < 0) | (p > 1)
    if wrong.any():
        experiment = int(wrong.any(1).argmax())
        table.refuse(first + 3 * experiment + 2, wrong[experiment], "a p-value of 0 to 1")
    reporters, gene = table.text(0), table.text(1).match(genes)
    readable(path, reporters.names)
    parsed = [_EXPERIMENT.fullmatch(name) for name in experiments]
    deleted = ["" if found is None else found["gene"].upper() for found in parsed]
    none = np.array([not name for name in deleted])
    # Experiments are "gene-del vs. wt"; control experiments begin with wt and name no deletion.
    wild_type = none & np.array([name.lower().startswith("wt") for name in experiments])
    names = [reporters[row] for row in range(len(reporters))]
    return measure_singles(
        study_of(PUBLISHER, [path]),
        genes,
        path,
        deleted,
        experiments,
        gene_columns(PHENOTYPE, gene.position, names, genes, Strain("wild type")),
        value,
        collect,
        wild_type=wild_type,
        # CMS1 and LUG1 meant other genes in 2014: the present names would assign the profiles wrongly.
        rows={NO_DELETION: none & ~wild_type, CHANGED: np.isin(deleted, CHANGED_NAMES)},
        unused={REPORTER: ~gene.found},
        p=p,
    )


def _experiments(path: Path) -> list[str]:
    """Return the names of the experiments, checked against both header lines."""
    names, kinds = first_lines(path, 2)
    first = len(KEYS)
    count = (len(names) - first) // 3
    triples = [names[first + 3 * i : first + 3 * i + 3] for i in range(count)]
    if tuple(names[:first]) != KEYS or len(names) != first + 3 * count or not count:
        raise SourceError(
            f"{path}, line 1: received {len(names)} names that begin with {', '.join(names[:first])[:60]!r}, "
            f"expected {', '.join(KEYS)} and every experiment three times; {REMEDY}"
        )
    wrong = next((triple for triple in triples if len(set(triple)) > 1 or not triple[0]), None)
    if wrong is not None:
        raise SourceError(
            f"{path}, line 1: received {', '.join(wrong)[:60]!r}, expected one experiment three times; "
            f"{REMEDY}"
        )
    if tuple(kinds[first:]) != TRIPLE * count:
        raise SourceError(
            f"{path}, line 2: received other kinds of data than {', '.join(TRIPLE)} for every experiment; "
            f"{REMEDY}"
        )
    return [triple[0] for triple in triples]
