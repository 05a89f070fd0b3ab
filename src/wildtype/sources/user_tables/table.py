"""Measurements from a user's table: every row is checked, and all problems are reported together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication, Study
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import SourceError
from wildtype.files import sha256_of_file
from wildtype.organism import Organism
from wildtype.sources.text import Collector, ignore
from wildtype.sources.user_tables.grid import read_grid
from wildtype.sources.user_tables.guess import settle
from wildtype.sources.user_tables.layout import LONG, Layout
from wildtype.sources.user_tables.mutants import MutantReader
from wildtype.sources.user_tables.problems import HEADER, Problem, TableProblems
from wildtype.sources.user_tables.rows import RowReader
from wildtype.sources.user_tables.vocabulary import define
from wildtype.tables import frame_to_csv

DEFAULT = Layout()
REJECTED = "rows with a problem, left out"
USE = "own data"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_ENDINGS = re.compile(r"(\.(csv|tsv|tab|txt|parquet|pq|xlsx|xls|gz))+$", re.IGNORECASE)


def study_name(path: str | Path, name: str = "") -> str:
    """Return the name of a study: as given, or made from the name of its file.

    Raises
    ------
    SourceError
        If the name given has other characters than a name may have.
    """
    if not name:
        stem = _ENDINGS.sub("", Path(path).name).lower()
        return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("._-") or "own-data"
    if not _NAME.fullmatch(name):
        raise SourceError(
            f"{name!r} cannot name a study: write lower-case letters and digits, then also '.', '_' and '-'"
        )
    return name


def _ignore(reading: Reading) -> None:
    """Do nothing."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How a table was read.

    Attributes
    ----------
    layout : Layout
        Everything that was said or guessed, by which the table can be read again.
    remarks : tuple of str
        What was guessed, and what was made of unusual lines and names.
    rejected : tuple of Problem
        The problems of rows that were left out.
    replicates : bool
        Whether several columns of values are replicates of one mutant.
    """

    layout: Layout
    remarks: tuple[str, ...]
    rejected: tuple[Problem, ...]
    replicates: bool

    @property
    def policies(self) -> Policies:
        """How rows of one mutant are merged: numbers side by side are replicates, also equal ones."""
        return Policies(listed_again="every", replicates="mean and sd") if self.replicates else Policies()

    def rejects(self) -> str:
        """Return the rows that were left out as a CSV table: number, line, column, and what is wrong."""
        import pandas as pd

        names = ["row", "line", "column", "problem"]
        rows = [(p.row, p.line, p.column, p.message) for p in self.rejected]
        return frame_to_csv(pd.DataFrame(rows, columns=names))


def read_table(
    path: str | Path,
    organism: Organism,
    layout: Layout = DEFAULT,
    *,
    name: str = "",
    collect: Collector = ignore,
    tell: Callable[[Reading], None] = _ignore,
) -> Measurements:
    """Read a table of one's own measurements.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or a spreadsheet; see `read_grid`.
    organism : Organism
        Whose genes are meant, by systematic name, standard name or alias, or as in `spellings`.
    layout : Layout
        How it is laid out; what this leaves open is guessed. Columns ``genes`` name one or several genes,
        ``kind`` one kind for all of them or one each (a deletion where it says nothing), ``dose`` one number
        each; ``condition``, ``phenotype`` and ``replicate`` are names, ``value`` and ``sd`` numbers. Several
        columns of values are replicates. Further columns are not read.
    name : str
        Name of the study; made from the file's name if not given.
    collect : callable
        Called with the number of rows, and of those left out by reason.
    tell : callable
        Called with how the table was read.

    Raises
    ------
    SourceError
        If the file or a column is missing, or an argument does not fit.
    TableProblems
        If anything is wrong with any row and such rows are not to be left out, or no row is left; it has
        all problems of all rows.
    """
    name = study_name(path, name)
    grid = read_grid(path, separator=layout.separator, sheet=layout.sheet)
    foreign = [] if organism.foreign is None else np.flatnonzero(organism.foreign).tolist()
    mutants = MutantReader(organism.genes, layout.gene_separator, layout.controls, layout.numbers, foreign)
    settled = settle(grid, layout, mutants)
    if settled.phenotype:
        define(settled.phenotype, settled.unit)
    reader = RowReader(grid, settled, mutants)
    reader.read_all()
    problems = sorted([*grid.problems, *reader.problems], key=lambda problem: problem.row)
    bad = {problem.row for problem in problems}
    if problems and (not layout.skip_bad or HEADER in bad or not reader.value):
        raise TableProblems(grid.path, problems, grid.rows)
    used = {i for positions in settled.at.values() for i in positions}
    unused = ", ".join(known for i, known in enumerate(grid.header) if i not in used and known)
    # Line breaks and tabs in a file name would break the tables of the report.
    file = " ".join(grid.path.name.split())
    study = Study(
        name=name,
        publication=Publication(citation=f"own data: {file}"),
        organism=organism.name,
        licence=USE,
        files={file: sha256_of_file(grid.path)},
        notes=(f"columns of the table that are not used: {' '.join(unused.split())}",) if unused else (),
    )
    measurements = reader.measurements(study)
    entries = len(settled.at["value"])
    left_out = grid.left_out | reader.left_out
    if bad:
        left_out[REJECTED] = len(bad) * entries
    rows = len(measurements) + sum(left_out.values())
    collect(ReadReport(file, USE, rows, len(measurements), left_out, renamed=reader.renamed))
    remarks = (*grid.notes, *settled.guessed, *reader.remarks())
    replicates = settled.layout.shape == LONG and entries > 1
    tell(Reading(settled.layout, remarks, tuple(problems), replicates))
    return measurements
