"""Measurements from a user's table: every row is checked, and all problems are reported together."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wildtype.characters import visible
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport, add_counts
from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import SourceError
from wildtype.files import sha256_of_file
from wildtype.organism import Organism
from wildtype.sources.text import Collector, ignore
from wildtype.sources.user_tables.annotated import averaged, is_annotated, read_annotated
from wildtype.sources.user_tables.gathered import Gathered
from wildtype.sources.user_tables.grid import Grid, read_grid, sheets_of
from wildtype.sources.user_tables.growth import from_growth
from wildtype.sources.user_tables.guess import Settled, settle
from wildtype.sources.user_tables.layout import LONG, Layout
from wildtype.sources.user_tables.matrix import NAMED, MatrixReader
from wildtype.sources.user_tables.mutants import MutantReader
from wildtype.sources.user_tables.problems import HEADER, Problem, TableProblems
from wildtype.sources.user_tables.rows import RowReader, measured, remarks
from wildtype.sources.user_tables.spellings import NEUTRAL
from wildtype.sources.user_tables.vocabulary import CENSORED, define
from wildtype.tables import frame_to_csv

DEFAULT = Layout()
REJECTED = "rows with a problem, left out"
USE = "own data"
FITNESS, FITNESS_OF_WILD_TYPE, MEDIAN_FITNESS = "fitness", (0.8, 1.25), 2.0
"""The phenotype of which the wild type has 1, what wild types may have, and most that half of a table has."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_ENDINGS = re.compile(r"(\.(h5ad|csv|tsv|tab|txt|parquet|pq|xlsx|xls|gz))+$", re.IGNORECASE)


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
        Whether several columns of values, tables or guides are replicates of one mutant.
    labelled : bool
        Whether a column of the table labels replicates, in any row.
    neutral : tuple of str
        Names of genes that screens perturb in their controls, if such a gene stands beside others and nobody
        said what it is.
    """

    layout: Layout
    remarks: tuple[str, ...]
    rejected: tuple[Problem, ...]
    replicates: bool
    labelled: bool = False
    neutral: tuple[str, ...] = ()

    @property
    def policies(self) -> Policies:
        """How rows of one mutant are merged: numbers side by side are replicates, also equal ones, and so are
        rows of different replicate labels.
        """
        if self.replicates:
            return Policies(listed_again="every", replicates="mean and sd")
        if self.labelled:
            return Policies(listed_again="once per replicate", replicates="mean and sd")
        return Policies()

    def rejects(self) -> str:
        """Return the rows that were left out as a CSV table: number, line, column, and what is wrong."""
        import pandas as pd

        names = ["row", "line", "column", "problem"]
        rows = [(p.row, p.line, p.column, p.message) for p in self.rejected]
        return frame_to_csv(pd.DataFrame(rows, columns=names))


def read_table(
    path: str | Path | Sequence[str | Path],
    organism: Organism,
    layout: Layout = DEFAULT,
    *,
    name: str = "",
    assumed: Sequence[PerturbationKind] = (),
    phenotypes: Sequence[str] = (),
    collect: Collector = ignore,
    tell: Callable[[Reading], None] = _ignore,
) -> Measurements:
    """Read a table of one's own measurements.

    Parameters
    ----------
    path : path, or several
        CSV, TSV, Parquet or a spreadsheet (`read_grid`), or an AnnData file (`annotated`). Several tables or
        sheets are replicates of each other.
    organism : Organism
        Whose genes are meant, by systematic name, standard name or alias, or as in `spellings`.
    layout : Layout
        How it is laid out; what this leaves open is guessed. Columns ``genes`` name one or several genes,
        ``kind`` one kind for all of them or one each (a deletion where it says nothing), ``dose`` one number
        each; ``condition``, ``phenotype`` and ``replicate`` are names, ``value`` and ``sd`` numbers. Several
        columns of values are replicates. Further columns are not read.
    name : str
        Name of the study; made from the file's name if not given.
    assumed : sequence of PerturbationKind
        What is done to each gene of the organism where nothing states it; a deletion if not given.
    phenotypes : sequence of str
        Columns of these names hold values, where the layout names none and no column is called ``value``.
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
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    name = study_name(paths[0], name)
    mutants = MutantReader(organism, layout, assumed)
    gathered = Gathered()
    readers: list[RowReader] = []
    tables = [(one, sheet) for one in paths for sheet in sheets_of(one, layout.sheet)]
    for one, sheet in tables:
        grid, settled = _settled(one, sheet, layout, mutants, phenotypes)
        for phenotype, unit in settled.measured:
            if phenotype:
                define(phenotype, unit)
        kind = RowReader if settled.layout.shape == LONG else MatrixReader
        label = "" if len(tables) == 1 else sheet or study_name(one)
        reader = kind(grid, settled, mutants, gathered, label)
        reader.read_all()
        readers.append(reader)
    asked = mutants.asked
    problems: list[Problem] = []
    left_out: dict[str, int] = {}
    for reader in readers:
        found = sorted([*reader.grid.problems, *reader.problems], key=lambda problem: problem.row)
        # What may be a control or a guide is never left out with other problems: it must be said.
        unsaid = any(problem.reason in asked for problem in found)
        header = any(problem.row == HEADER for problem in found) and not reader.columns_kept
        if found and (not layout.skip_bad or header or unsaid or not len(gathered)):
            raise TableProblems(
                reader.grid.path, found, reader.grid.rows, asked={k: tuple(v) for k, v in asked.items()}
            )
        problems += found
        left_out = add_counts(left_out, reader.grid.left_out, reader.left_out)
        if bad := {problem.row for problem in found} - {HEADER}:
            left_out = add_counts(left_out, {REJECTED: len(bad) * reader.width})
    study = _study(name, organism, readers)
    measurements = measured(gathered, mutants, study, layout.unit)
    if layout.expectation:
        measurements, lost = from_growth(measurements, layout.expectation, gathered.runs())
        left_out = add_counts(left_out, lost)
    counts = gathered.counts()
    rows = len(measurements) + sum(left_out.values())
    files = ", ".join(study.files)
    collect(ReadReport(files, USE, rows, len(measurements), left_out, renamed=counts[0]))
    said = [line for reader in readers for line in (*reader.grid.notes, *reader.settled.guessed)]
    lines = (
        *dict.fromkeys(said),
        *remarks(counts, mutants, left_out),
        *_row_remarks(readers),
        *_scale_remarks(measurements),
        *_case_remarks(measurements),
        *_unmeasured(readers),
    )
    several = len(readers) > 1 or any(reader.settled.replicates for reader in readers)
    neutral = tuple(one for one in NEUTRAL if one in organism.genes)
    layouts = [reader.settled.layout for reader in readers]
    tell(
        Reading(
            replace(layouts[0], sheet=layout.sheet)
            if all(one == layouts[0] for one in layouts)
            else replace(layout, shape=layouts[0].shape),
            lines,
            tuple(problems),
            several or bool(mutants.spellings.guides),
            any(row[at] for one in readers for at in one.at.get("replicate", ()) for row in one.grid.cells),
            neutral if counts[3] and not layout.controls else (),
        )
    )
    return measurements


def _settled(
    path: Path, sheet: str, layout: Layout, mutants: MutantReader, phenotypes: Sequence[str]
) -> tuple[Grid, Settled]:
    """Return a table and which column is what; cells of an AnnData file are averaged."""
    if not is_annotated(path):
        grid = read_grid(path, separator=layout.separator, sheet=sheet)
        return grid, settle(grid, _with_values(layout, grid.header, phenotypes), mutants)
    cells = read_annotated(path, layout.columns, layout.layer)
    settled = settle(cells.grid, layout, mutants)
    # Of several names of the measured genes, those that the organism knows best.
    known = {column: sum(map(mutants.spellings.means, names)) for column, names in cells.names.items()}
    column = max(known, key=lambda one: known[one])
    others = [
        i for field, positions in settled.at.items() if field not in ("genes", "kind") for i in positions
    ]

    def key(row: Sequence[str]) -> Hashable:
        names = tuple(row[i] for i in settled.at["genes"])
        kind = row[settled.at["kind"][0]] if "kind" in settled.at else ""
        mutant = mutants.read(names, kind)
        # All controls are one wild type, and A+B is B+A; cells with a problem are one row, by their names.
        same = frozenset(zip(mutant.genes, mutant.kinds, mutant.alleles, strict=True))
        which = (names, kind) if mutant.problems else (same, mutant.guides, mutant.no_pair, mutant.control)
        return (which, *(row[i] for i in others))

    grid = averaged(cells, cells.names[column], key)
    return replace(grid, notes=(*grid.notes, f"measured genes: {column}")), settled


def _with_values(layout: Layout, header: Sequence[str], phenotypes: Sequence[str]) -> Layout:
    """Return a layout that names the columns of some phenotypes, if it names no column of values."""
    found = [name for name in phenotypes if name in header]
    if layout.columns.value or layout.shape or not found or "value" in map(str.casefold, header):
        return layout
    value = found[0] if len(found) == 1 else "; ".join(f"{name}={name}" for name in found)
    return replace(layout, columns=replace(layout.columns, value=value))


def _row_remarks(readers: Sequence[RowReader]) -> list[str]:
    count = sum(reader.incomplete for reader in readers)
    censored = sum(reader.censored for reader in readers)
    what = "rows with an empty cell in a column of genes, taken for mutants of the others"
    lines = [f"{what}: {count:,}; --fewest-genes 2 refuses them"] if count else []
    if censored:
        lines.append(
            f"censored measurements: {censored:,}, kept as a phenotype whose name ends with {CENSORED}, "
            f"which models neither learn nor are tested on"
        )
    return lines


def _scale_remarks(m: Measurements) -> list[str]:
    """Return a remark on fitness that is not relative to the wild type, by its wild types or its median."""
    names = [phenotype.name for phenotype in m.phenotypes]
    if FITNESS not in names:
        return []
    mine, order = m.phenotype == names.index(FITNESS), np.diff(m.offsets)
    wild = m.value[mine & (order == 0)]
    level = float(np.median(wild)) if len(wild) else float(np.median(m.value[mine]))
    low, high = FITNESS_OF_WILD_TYPE if len(wild) else (-np.inf, MEDIAN_FITNESS)
    if low <= level <= high:
        return []
    whose = "wild types" if len(wild) else "half of the values"
    return [
        f"fitness is relative to the wild type, which has 1, and {whose} {'have' if len(wild) else 'exceed'} "
        f"{level:.3g} here: divide by the wild type's value, or import growth with --from-growth"
    ]


def _case_remarks(m: Measurements) -> list[str]:
    """Return a remark on every group of conditions that differ in upper and lower case alone."""
    groups: dict[str, list[str]] = {}
    for environment in m.environments:
        groups.setdefault(str(environment).casefold(), []).append(str(environment))
    several = (", ".join(sorted(names)) for names in groups.values() if len(names) > 1)
    return [f"conditions that differ in upper and lower case alone: {names}" for names in several]


def _unmeasured(readers: Sequence[RowReader]) -> list[str]:
    """Return a remark on the measured genes that the organism does not have."""
    names = list(dict.fromkeys(n for r in readers if isinstance(r, MatrixReader) for n in r.unknown))
    if not names:
        return []
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [f"measured genes that the organism does not have, left out: {', '.join(names[:NAMED])}{more}"]


def _study(name: str, organism: Organism, readers: Sequence[RowReader]) -> Study:
    files: dict[str, str] = {}
    unused: list[str] = []
    for reader in readers:
        # Line breaks and tabs in a file name would break the tables of the report.
        file = " ".join(reader.grid.path.name.split())
        digest = sha256_of_file(reader.grid.path)
        if files.setdefault(file, digest) != digest:
            raise SourceError(f"two files are called {file!r}: rename one")
        used = {i for positions in reader.settled.at.values() for i in positions}
        unused += [known for i, known in enumerate(reader.grid.header) if i not in used and known]
    left = " ".join(", ".join(dict.fromkeys(unused)).split())
    return Study(
        name=name,
        publication=Publication(citation=f"own data: {visible(', '.join(files))}"),
        organism=organism.name,
        licence=USE,
        files=files,
        notes=(f"columns of the table that are not used: {left}",) if left else (),
    )
