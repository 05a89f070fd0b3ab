"""Edge lists: two columns of genes, with or without a header, an optional weight, and a direction or none.

Legend: m rows · d distinct names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex, Organism, Relation
from wildtype.organism.in_units import lifted
from wildtype.sources.columns import TextColumn
from wildtype.sources.text import AMBIGUOUS, UNKNOWN, match_genes
from wildtype.sources.user_organisms.description import Column, Edges
from wildtype.sources.user_organisms.problems import MOST, Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, Read, locate, no_gene_known
from wildtype.sources.user_organisms.tables import Table, distinct, open_table
from wildtype.sources.user_tables.numbers import NumberStyle, is_missing

NO_WEIGHT, NOT_POSITIVE = "no weight", "weight of zero or below"
_WORDS = (
    "gene|protein|node|source|target|from|to|interactor|query|array|regulator|tf|orf|locus|symbol|name|id"
)
_HEADING = re.compile(
    rf"[#\W_]*({_WORDS})([\W_]*(tag|id|name|symbol|{_WORDS}))*[\W_]*[ab12xy]?", re.IGNORECASE
)
"""How columns of genes are usually called, as in gene_a, protein1, locus tag or source."""
_PAIR = re.compile(r"(?P<stem>\w+)[_. -](?P<mark>[ab12])", re.IGNORECASE)


def read(part: Edges, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the relation of an edge list, over the genes ``names``.

    Rows of a gene that the organism does not have are counted, and so are self-loops and repeated edges.
    """
    with problems.of(part.path):
        return _read(part, folder, names, problems)
    return Read()


def read_relation(
    path: str | Path,
    organism: Organism,
    *,
    name: str = "",
    columns: Sequence[Column] | None = None,
    weight: Column = "",
    directed: bool = False,
    header: bool | None = None,
    separator: str = "",
    source: str = "",
) -> Relation:
    """Read a gene graph of an organism from an edge list (CSV, TSV, Parquet or a workbook).

    Parameters
    ----------
    path : path
        The file.
    organism : Organism
        Whose genes the columns name, by any of their names; edges of genes that it lacks are counted in
        ``dropped``. Of an organism of units, the genes of the units are meant.
    name : str
        Of the relation; that of the file if not given.
    columns : sequence of two
        Names of the columns of genes, or their positions from 1; found if not given.
    weight : str or int
        The column of weights; without it all edges count alike.
    directed, header, separator, source
        As in ``organism.yaml``; header and separator are found if not given.

    Raises
    ------
    OrganismProblems
        With every row that cannot be read.
    """
    path = Path(path)
    part = Edges(
        name=name or Path(path.name.removesuffix(".gz")).stem,
        path=path.name,
        format="edges",
        columns=None if columns is None else list(columns),
        weight=weight,
        directed=directed,
        header=header,
        separator=separator,
        source=source,
    )
    problems = Problems()
    units = organism.units
    found = read(part, path.parent, organism.genes if units is None else units.genes, problems)
    problems.raise_any()
    (relation,) = found.relations
    return relation if units is None else lifted(relation, units)


def _read(part: Edges, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    path = locate(part.path, folder, problems)
    if path is None:
        return Read()
    table = open_table(path, part.path, part.separator)
    header, ends = _layout(part, table)
    weighted = [table.at(part.weight, header)] if part.weight != "" else []
    columns, line = table.columns([*ends, *weighted], header, problems)
    for column in columns[:2]:
        problems.add_rows(part.path, line[_empty(column)], "no gene name: write two genes, or no row")
    positions, masks, examples = _genes(columns[:2], names)
    if not (positions >= 0).any():
        raise no_gene_known(part.path, distinct(columns[:2]), names.organism)
    weights = None
    if weighted:
        weights = _weights(part, columns[2], line, problems)
        given = np.isfinite(weights)
        masks |= {NO_WEIGHT: ~given, NOT_POSITIVE: given & (weights <= 0)}
    elif number := _unused_numbers(table, ends, header):
        table.notes.append(f"{number} holds numbers, which are no weights unless 'weight' names it")
    left, dropped = np.ones(len(line), bool), {}
    for reason, mask in masks.items():
        if (of_it := left & mask).any():
            dropped[reason] = int(of_it.sum())
            left &= ~mask
    relation = Relation.from_edges(
        part.name,
        positions[0, left],
        positions[1, left],
        len(names),
        None if weights is None else weights[left],
        directed=part.directed,
        source=part.source or Path(part.path).name,
        version=part.version,
        note=part.note,
        dropped=dropped,
    )
    if left.any() and not relation.nnz:
        problems.add(part.path, 0, "every edge joins a gene with itself: name two other columns")
    note = "; ".join(table.notes)
    card = FileCard(
        part.path,
        f"relation {part.name}",
        len(line),
        len(line) - sum(relation.dropped.values()),
        dict(relation.dropped),
        note,
        examples,
    )
    return Read((card,), (relation,))


def names_in(part: Edges, folder: Path, problems: Problems) -> list[str]:
    """Return the names in both columns of genes, ascending, each once."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            table = open_table(path, part.path, part.separator)
            header, ends = _layout(part, table)
            return distinct(table.columns(ends, header, problems)[0])
    return []


def _layout(part: Edges, table: Table) -> tuple[bool, list[int]]:
    """Return whether there is a header, and the positions of the columns of genes."""
    header = part.header
    named = [column for column in (*(part.columns or ()), part.weight) if isinstance(column, str) and column]
    if header is None and named:
        header = True
    elif header is None:
        header = has_header(table)
        what = "a header" if header else "an edge"
        table.notes.append(f"the first row ({', '.join(table.first[0])}) is taken for {what}")
    if part.columns is not None:
        return header, [table.at(column, header) for column in part.columns]
    if table.width < 2:
        raise SourceError(
            f"{table.name} has one column ({shown(table.first[0][0])}), and an edge has two genes: name the "
            f"separator of its columns"
        )
    ends = [0, 1]
    if header:
        usual = [
            i for i, name in enumerate(table.first[0]) if _HEADING.fullmatch(name) or _PAIR.fullmatch(name)
        ]
        ends = usual[:2] if len(usual) > 1 else ends
        table.notes.append(f"edges join the columns {' and '.join(repr(table.first[0][i]) for i in ends)}")
    return header, ends


def has_header(table: Table) -> bool:
    """Return whether the first row of a table is probably a header."""
    first, rest = table.first[0], table.first[1:]
    if not rest or any(cell in row for row in rest for cell in first if cell and not _number(cell)):
        return False
    if any(map(_number, first)):
        return False
    numeric = [i for i in range(len(first)) if all(len(row) > i and _number(row[i]) for row in rest)]
    usual = [name for name in first if _HEADING.fullmatch(name) or _PAIR.fullmatch(name)]
    return bool(numeric) or len(usual) >= min(2, len(first))


def _number(cell: str) -> bool:
    return NumberStyle().parse(cell) is not None


def _unused_numbers(table: Table, used: Sequence[int], header: bool) -> str:
    """Return the first column of numbers that is not used; empty if there is none."""
    rows = table.first[1:] if header else table.first
    for i in range(table.width):
        if i not in used and rows and all(len(row) > i and _number(row[i]) for row in rows):
            return f"column {table.first[0][i]!r}" if header else f"column {i + 1}"
    return ""


def _empty(column: TextColumn) -> NDArray[np.bool_]:
    return column.map(lambda name: not name, bool)


def _genes(
    ends: Sequence[TextColumn], names: GeneIndex
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.bool_]], dict[str, tuple[str, ...]]]:
    """Return positions [2, m], rows without a gene of the organism by reason, and names by reason."""
    # Every distinct name is looked up once for both columns.
    known = sorted({name for column in ends for name in column.names})
    position = dict(zip(known, match_genes(known, names).position.tolist(), strict=True))
    found = np.stack([column.map(lambda name: position[name], np.int64) for column in ends])
    masks = {UNKNOWN: (found == -1).any(0), AMBIGUOUS: (found == -2).any(0)}
    examples = {}
    for reason, code in ((UNKNOWN, -1), (AMBIGUOUS, -2)):
        lost = [name for name in known if position[name] == code]
        if lost:
            examples[f"{reason} ({len(lost):,} names)"] = tuple(lost[:SHOWN])
    return found, masks, examples


def _weights(
    part: Edges, column: TextColumn, line: NDArray[np.int64], problems: Problems
) -> NDArray[np.float64]:
    """Return weights [m], NaN where there is none; a text that is no number is a problem."""
    style = NumberStyle()
    parsed = {name: np.nan if is_missing(name) else style.parse(name) for name in column.names}
    rows = np.flatnonzero(column.map(lambda name: parsed[name] is None, bool))
    for row in rows[:MOST]:
        problems.add(part.path, int(line[row]), style.fault(column[row])[0], column=str(part.weight))
    problems.add_rows(part.path, line[rows[MOST:]], "expected a number")
    return column.map(lambda name: np.nan if parsed[name] is None else parsed[name], np.float64)
