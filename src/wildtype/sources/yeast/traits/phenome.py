"""Tables of single deletions × columns, compiled by Yeast Phenome and others: growth screens and traits.

Each number of a table is one measurement. Nine of the tables are condensed to a feature block besides
(`wildtype.sources.yeast.traits.single_deletions`).

Legend: m strains · c columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.row_filter import Floats
from wildtype.sources.text import REMEDY, Collector, Header, Rows, ignore, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.traits.headings import parse_heading
from wildtype.sources.yeast.traits.matrix import Column, measure_singles, readable

MISSING = ("", "NA", "NaN", "nan")
GROWTH_SCREEN = "growth"


@dataclass(frozen=True)
class Study:
    """One table: what it measures, and its layout.

    The columns from the ellipsis of `key` on are the numbers; the first one of all names the deleted gene.

    Attributes
    ----------
    name : str
        Name of the study and of its publisher, which gives out a single file.
    use : str
        What the table measures, as the name of a phenotype source.
    phenotype : PhenotypeDefinition
        What its numbers are.
    separator : str
        Between the columns; with a comma, names may be in double quotes.
    key : sequence of str
        The first column names.
    """

    name: str
    use: str
    phenotype: PhenotypeDefinition
    separator: str = "\t"
    key: Header = ("orf", ...)

    @property
    def publisher(self) -> Publisher:
        """Where it comes from."""
        return publisher(self.name)

    @property
    def remote(self) -> RemoteFile:
        """The file."""
        return self.publisher.files[0]

    @property
    def file(self) -> str:
        """Name of the file as compressed for a folder of publishers' files."""
        return f"{self.remote.name}.gz"

    @property
    def source(self) -> str:
        """Phenotype source, ``study:use``; features made from it are refused as input for it."""
        return f"{self.name}:{self.use}"


RELATIVE, NOT_STATED = "relative to wild type = 1", "as published, not stated"


def _growth(study: str, name: str, description: str, unit: str = RELATIVE) -> Study:
    """Return a screen of growth: a number that is higher where a strain is fitter."""
    phenotype = PhenotypeDefinition(
        name=name, unit=unit, direction="higher is fitter", description=description
    )
    return Study(study, GROWTH_SCREEN, phenotype)


_POOLED = "from relative abundance in pooled culture; near 0 for most strains, negative where growth suffers"
BRESLOW = _growth(
    "breslow2008", "growth rate", "growth rate relative to wild type, from competition of two strains"
)
DEUTSCHBAUER = _growth(
    "deutschbauer2005",
    "fitness",
    "growth rate relative to wild type, from relative abundance in pooled culture",
)
QIAN = _growth("qian2012", "fitness", "relative to wild type, from barcodes sequenced in pooled culture")
STEINMETZ = _growth("steinmetz2002", "growth score", _POOLED, NOT_STATED)
GIAEVER = _growth(
    "giaever2002", "growth score", f"{_POOLED}; not comparable between environments", NOT_STATED
)
COSTANZO2021 = _growth(
    "costanzo2021",
    "growth effect",
    "effect of the deletion on colony size in the condition; near 0 for most strains, negative where growth "
    "suffers",
    NOT_STATED,
)
GALARDINI = _growth(
    "galardini2019",
    "growth score",
    "S-score of colony size in the condition; negative where the deletion suffers more than elsewhere",
    "S-score (scale of a t statistic)",
)
VIZEACOUMAR = Study(
    "vizeacoumar2010",
    "morphology",
    PhenotypeDefinition(
        name="cell morphology",
        unit="as published, by trait",
        level="trait",
        description="mean of a feature over the cells of a class, or the percentage of cells in it",
    ),
)
MATTIAZZI = Study(
    "mattiazzi2020",
    "morphology",
    PhenotypeDefinition(
        name="morphology penetrance",
        unit="fraction of cells",
        level="trait",
        description="share of cells with an unusual endocytic compartment of the kind that the trait names",
    ),
)
MULLEDER = Study(
    "mulleder2016",
    "amino_acids",
    PhenotypeDefinition(
        name="amino acid",
        unit="z-score over all deletions",
        level="trait",
        description="intracellular amino acid",
    ),
    ",",
    ("ORF", "gene", ...),
)
JORGENSEN = Study(
    "jorgensen2002",
    "cell_size",
    PhenotypeDefinition(
        name="cell size change",
        unit="fraction of wild type",
        description="cell size minus that of wild type; only strains that differ were listed",
    ),
)
SHAPE = PhenotypeDefinition(
    name="cell shape score",
    unit="score as published",
    level="trait",
    description="whole numbers; 0 for most strains",
)
"""The second phenotype of `GIAEVER`."""
SCREENS = (BRESLOW, DEUTSCHBAUER, QIAN, STEINMETZ, GIAEVER, COSTANZO2021, GALARDINI)
TRAITS = (VIZEACOUMAR, MATTIAZZI, MULLEDER, JORGENSEN)
STUDIES = (*SCREENS, *TRAITS)
PUBLISHERS = tuple(study.publisher for study in STUDIES)


def read_table(folder: str | Path, study: Study) -> tuple[Rows, Floats]:
    """Return the rows of a study's table and its numbers [m, c] (NaN: not measured).

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry that is neither a number nor missing.
    """
    path = study.remote.require(folder)
    rows = read_rows(path, separator=study.separator, header=study.key, quoted=study.separator == ",")
    # The key ends in an ellipsis: its length less one is the first column of numbers.
    start = len(study.key) - 1
    columns = [rows.numbers(i, missing=MISSING) for i in range(start, len(rows.header))]
    return rows, np.stack(columns, axis=1)


def read(folder: str | Path, genes: GeneIndex, *, study: Study, collect: Collector = ignore) -> Measurements:
    """Read one of `STUDIES`: every number of its table is one measurement.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """
    rows, value = read_table(folder, study)
    headings, labels = rows.header[len(study.key) - 1 :], rows.text(0)
    readable(rows.path, headings)
    columns = [_column(study, heading, f"{rows.path}, line 1") for heading in headings]
    source = study_of(study.publisher, [rows.path])
    return measure_singles(source, genes, rows.path, labels, labels, columns, value, collect)


def _column(study: Study, heading: str, place: str) -> Column:
    """Return what a column is; heterozygous deletions have their strain and dose from the heading."""
    if study is MULLEDER:  # its headings are the amino acids
        if not heading:
            raise SourceError(f"{place}: received a column without a name, expected an amino acid; {REMEDY}")
        return Column(study.phenotype, heading)
    parsed = parse_heading(heading, place)
    # Giaever et al. 2002 scored cell shape beside growth; no other of these screens has a second phenotype.
    if study.use == GROWTH_SCREEN and not parsed.phenotype.startswith("growth"):
        if study is not GIAEVER:
            raise SourceError(
                f"{place}: received the phenotype {shown(parsed.phenotype)} in a heading, "
                f"expected growth; {REMEDY}"
            )
        return Column(SHAPE, parsed.phenotype, parsed.environment, parsed.strain)
    trait = parsed.phenotype if study.phenotype.level == "trait" else ""
    return Column(study.phenotype, trait, parsed.environment, parsed.strain)


READERS: dict[str, Callable[..., Measurements]] = {
    study.name: partial(read, study=study) for study in STUDIES
}
"""By name of the study: ``(folder, genes, *, collect) -> Measurements``."""
