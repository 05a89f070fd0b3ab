"""Sets of genes as people write them: ``SGS1,SRS2``, ``CDC28:reduced``, a column of a table, lines of text.

Commas, semicolons or blanks separate the genes of a set; ``gene:kind`` names the perturbation of a gene, and
``gene:kind@dose`` its dose, too. A name that holds a comma, such as ``ARG5,6``, stays one gene where the
organism has it. Beside ``genes``, a table may state the kinds, doses and condition of each row in columns of
these names. All rows that do not fit are named at once, and a file is read to its end before anything is
predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import GeneSetError, SourceError, WildtypeError, shown
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex
from wildtype.organism.genes import SEPARATORS
from wildtype.tables import read_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

COLUMN = "genes"
KINDS, DOSES, CONDITION = ("kind", "kinds"), ("dose", "doses"), "condition"
"""Columns of a table, beside ``genes``, that state something of a row; a cell may be empty."""
MANY = {"kind": "kinds", "dose": "doses"}
"""The column of a prediction that states the same as a user's column."""
GIVEN = "_given"
"""What is added to the name of a user's column that a prediction has, too."""
LISTED, ENOUGH = 10, 100
"""Most rows that do not fit that a message names, and that are looked for."""
GeneSets: TypeAlias = "Sequence[Sequence[str]] | pd.DataFrame | pd.Series[Any] | NDArray[Any]"
"""Lists of names, a table with a column ``genes`` of texts or lists, such a column, or an array [m, k]."""
Stated: TypeAlias = Mapping[str, Any]
"""The cells of a row that are not empty, by the columns of `KINDS`, `DOSES` and `CONDITION`."""
NO_DOSES = "a dose has no effect here"


def written(table: MutantTable, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the genes, by ``names``, and the kinds of perturbation of every mutant [m], commas between."""
    kinds = [kind.name.lower() for kind in Kind]
    spans = list(zip(table.offsets[:-1], table.offsets[1:], strict=True))
    return (
        [",".join(names[g] for g in table.gene[a:b]) for a, b in spans],
        [",".join(kinds[k] for k in table.kind[a:b]) for a, b in spans],
    )


def written_doses(table: MutantTable) -> list[str]:
    """Return the doses of every mutant's genes [m], commas between; empty where a gene has none."""
    if table.dose is None:
        return [",".join([""] * order) for order in table.order.tolist()]
    # A text of the single-precision number itself: read again, it has the same bits.
    texts = ["" if dose != dose else str(dose) for dose in table.dose]
    return [",".join(texts[a:b]) for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]


def standard_names(table: MutantTable, genes: GeneIndex) -> list[str]:
    """Return the standard names of every mutant's genes [m], semicolons between: some hold a comma."""
    names = [genes.standard.get(name, name) for name in genes.names]
    return [";".join(names[g] for g in members) for members in table.sets()]


def parse_set(text: str) -> list[str]:
    """Split one written set into its genes; an empty text gives an empty list."""
    return [part for part in SEPARATORS.split(text.strip()) if part]


def names_of(genes: Any) -> list[str]:
    """Return the genes of a table's cell: a text or a list; a missing cell gives an empty list."""
    if isinstance(genes, list | tuple | np.ndarray):
        return [str(gene) for gene in genes]
    return [] if genes is None or genes != genes else parse_set(str(genes))


def sets_of(given: GeneSets) -> list[Sequence[str]]:
    """Return the sets that a list, table, column or array names.

    Raises
    ------
    GeneSetError
        If it is something else, or a table without a column ``genes``.
    """
    import pandas as pd

    example = "give [['SGS1', 'SRS2'], ['CDC28']], one list per mutant"
    if isinstance(given, str):
        raise GeneSetError(f"{shown(given)} is a text, not a list of gene sets: {example}")
    if isinstance(given, pd.DataFrame):
        if COLUMN not in given.columns:
            found = ", ".join(map(repr, given.columns))
            raise GeneSetError(
                f"the table has no column {COLUMN!r} (it has {found}): name the gene column so"
            )
        given = given[COLUMN]
    if isinstance(given, pd.Series):
        return [names_of(genes) for genes in given]
    if isinstance(given, np.ndarray):
        if given.ndim != 2:
            raise GeneSetError(f"an array of shape {given.shape} names no gene sets: {example}")
        return given.tolist()  # type: ignore[no-any-return]
    try:
        return list(given)
    except TypeError:
        raise GeneSetError(f"{shown(given)} is no list of gene sets: {example}") from None


def stated_of(given: GeneSets, rows: int) -> list[Stated]:
    """Return what the columns beside ``genes`` state of each row; nothing of sets that are no table."""
    import pandas as pd

    if not isinstance(given, pd.DataFrame):
        return [{}] * rows
    columns = [name for name in (*KINDS, *DOSES, CONDITION) if name in given.columns]
    if not columns:
        return [{}] * rows
    cells = zip(*(given[name] for name in columns), strict=True)
    return [
        {name: cell for name, cell in zip(columns, row, strict=True) if not _is_empty(cell)} for row in cells
    ]


def _is_empty(cell: Any) -> bool:
    import pandas as pd

    if isinstance(cell, list | tuple | np.ndarray):
        return not len(cell)
    return not cell.strip() if isinstance(cell, str) else bool(pd.isna(cell))


def _divided(cell: Any) -> list[str]:
    """Return the parts of a cell that states something of each gene; a part may be empty."""
    if isinstance(cell, list | tuple | np.ndarray):
        return ["" if _is_empty(part) else str(part).strip() for part in cell]
    text = str(cell).strip()
    mark = next((mark for mark in ";," if mark in text), None)
    return [part.strip() for part in text.split(mark)]


def stated_kinds(stated: Stated, members: Sequence[tuple[str, int | None]]) -> list[int | None]:
    """Return the kind of each member of a row, None where neither the member nor a column states it.

    Parameters
    ----------
    stated : mapping
        What columns state of the row.
    members : sequence of (str, int or None)
        The genes as they are written, and the kind that each states by itself.

    Raises
    ------
    GeneSetError
        If a column has another number of kinds, or two statements disagree.
    ConfigError
        If a kind is not known.
    """
    kinds = [kind for _, kind in members]
    for column in KINDS:
        if column not in stated:
            continue
        parts = _divided(stated[column])
        if len(parts) == 1:
            parts *= len(members)
        if len(parts) != len(members):
            raise GeneSetError(
                f"has {len(parts)} kinds in column {column!r} for {_counted(len(members))}: give one for all "
                f"genes, or one each"
            )
        for at, part in enumerate(parts):
            before, kind = kinds[at], Kind.parse(part) if part else kinds[at]
            if before is not None and kind != before:
                raise GeneSetError(
                    f"states two kinds of {shown(members[at][0])}, {Kind(before).name.lower()} and, in "
                    f"column {column!r}, {part}: keep one of them"
                )
            kinds[at] = kind
    return kinds


def _stated_doses(stated: Stated, members: Sequence[tuple[str, float]], no_doses: str) -> list[float]:
    """Return the dose of each member of a row (NaN: none); ``no_doses`` says why none can be stated."""
    doses = [dose for _, dose in members]
    for column in DOSES:
        parts = _divided(stated[column]) if column in stated else []
        if not any(parts):
            continue
        if no_doses:
            raise GeneSetError(
                f"states dose {shown(next(filter(None, parts)))} in column {column!r}, and {no_doses}: empty "
                f"the column"
            )
        if len(parts) != len(members):
            raise GeneSetError(
                f"has {len(parts)} doses in column {column!r} for {_counted(len(members))}: give one each, "
                f"empty for none"
            )
        for at, part in enumerate(parts):
            dose = _parse_dose(part) if part else doses[at]
            # NaN, no dose, is unlike itself.
            if doses[at] == doses[at] and dose != doses[at]:
                raise GeneSetError(
                    f"states two doses of {shown(members[at][0])}, {doses[at]:g} and, in column {column!r}, "
                    f"{part}: keep one of them"
                )
            doses[at] = dose
    for (text, _), dose in zip(members, doses, strict=True):
        if no_doses and dose == dose:
            raise GeneSetError(f"states a dose, {shown(text)}, and {no_doses}: leave it out")
    return doses


def _parse_dose(text: str) -> float:
    try:
        dose = float(text)
    except ValueError:
        dose = math.nan
    if not (math.isfinite(dose) and dose >= 0):
        raise GeneSetError(f"has dose {shown(text)}: give a number of at least 0")
    return dose


def _counted(genes: int) -> str:
    return "1 gene" if genes == 1 else f"{genes} genes"


def beside_given(given: GeneSets, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a prediction behind the columns of the table that named its sets, with the index of that table.

    They keep their order; ``genes`` stays where it was, and the names of others that the prediction has, too,
    end in ``_given``: so often that no other column is called so. So do ``kind`` and ``dose`` where the
    prediction has ``kinds`` and ``doses``: theirs is the order of the genes as they were given.
    """
    import pandas as pd

    if isinstance(given, pd.Series | pd.DataFrame):
        frame = frame.set_axis(given.index)
    if not isinstance(given, pd.DataFrame):
        return frame
    columns: dict[Any, Any] = {}
    for name in given.columns:
        new = name
        while name != COLUMN and (
            new in frame.columns or MANY.get(new) in frame.columns or (new != name and new in given.columns)
        ):
            new = f"{new}{GIVEN}"
        columns[new] = frame[COLUMN] if name == COLUMN else given[name]
    columns |= {name: frame[name] for name in frame.columns if name != COLUMN}
    return pd.DataFrame(columns, index=frame.index)


def types_beside(given: pa.Schema, frame: pd.DataFrame) -> pa.Schema:
    """Return the types of a table's columns other than ``genes``, under the names in `beside_given`."""
    import pyarrow as pa

    names = [name for name in frame.columns if name != COLUMN]  # those of the table come first
    return pa.schema([field.with_name(name) for field, name in zip(given, names, strict=False)])


class WrongRows:
    """Rows that do not fit, of one table or of several that follow each other; rows count from 1.

    Attributes
    ----------
    errors : list of WildtypeError
        One for each such row.
    rows : int
        How many rows were read.
    """

    def __init__(self) -> None:
        self.errors: list[WildtypeError] = []
        self.rows = 0

    @property
    def enough(self) -> bool:
        """Whether no more are looked for: looking for near names of many takes minutes."""
        return len(self.errors) >= ENOUGH

    def refuse(self, what: str = "row") -> None:
        """Raise one error about all of them, of the type of the first; nothing if there is none."""
        if self.errors:
            raise _all_of(self.errors, what)


def read_plan(path: str | Path) -> pd.DataFrame:
    """Read a CSV or Parquet file with a column ``genes``, texts as they are.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, empty, or has no such column.
    """
    return check_plan(path, read_frame(path, "gene sets"))


def check_plan(path: str | Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a file, or the first rows of it; raises ``SourceError`` if it names no sets."""
    if COLUMN not in frame.columns:
        found = ", ".join(map(repr, frame.columns))
        raise SourceError(
            f"{str(path)!r} has no column {COLUMN!r} (it has {found}): name the gene column {COLUMN!r}"
        )
    if frame.empty:
        raise SourceError(f"{str(path)!r} has no rows: give at least one gene set")
    return frame


def read_sets(path: str | Path) -> list[list[str]]:
    """Read one set per row of a file: its column ``genes``, with the kinds of ``kind`` or ``kinds``.

    Raises
    ------
    SourceError
        As `read_plan`.
    GeneSetError, ConfigError
        Naming the first row in which kinds or doses do not fit.
    """
    plan = read_plan(path)
    sets = [names_of(genes) for genes in plan[COLUMN]]
    return [
        _with_kinds(names, stated, row)
        for row, (names, stated) in enumerate(zip(sets, stated_of(plan, len(sets)), strict=True), start=1)
    ]


def _with_kinds(names: list[str], stated: Stated, row: int) -> list[str]:
    """Return names with the kinds that columns state of them, as in ``gene:kind``."""
    if not stated:
        return names
    try:
        _stated_doses(stated, [(name, math.nan) for name in names], NO_DOSES)
        kinds = stated_kinds(stated, [(name, _split(name)[1]) for name in names])
    except WildtypeError as error:
        raise _at_row(error, "row", row) from None
    return [
        name if kind is None or ":" in name else f"{name}:{Kind(kind).name.lower()}"
        for name, kind in zip(names, kinds, strict=True)
    ]


def _split(text: str) -> tuple[str, int | None, float]:
    """Return name, kind (None: not stated) and dose (NaN: none) of a gene that is written with them."""
    name, _, done = text.partition(":")
    kind, marked, dose = done.partition("@")
    return name, Kind.parse(kind) if kind else None, _parse_dose(dose) if marked else math.nan


def _at_row(error: WildtypeError, what: str, row: int) -> WildtypeError:
    # A sentence about the set goes on from the row, one about a gene stands behind it.
    link = "" if isinstance(error, GeneSetError) else ":"
    return type(error)(f"{what} {row}{link} {error}")


def read_lines(lines: Iterable[str], *, where: str = "standard input") -> list[list[str]]:
    """Read one set per line, without blank lines.

    Raises
    ------
    SourceError
        If there is no set at all.
    """
    sets = [parse_set(line) for line in lines if line.strip()]
    if not sets:
        raise SourceError(f"{where} holds no gene set: give one per line")
    return sets


def named_sets(text: str) -> list[list[str]]:
    """Return the sets of a file (CSV or Parquet with a column ``genes``, else one per line), or of a text.

    Raises
    ------
    SourceError
        If the text ends like a file name and the file is missing, or the file holds no set.
    """
    path = Path(text)
    if path.suffix in (".csv", ".parquet"):
        return read_sets(path)
    if path.is_file() or path.is_fifo():  # a pipe: <(command) in a shell
        try:
            return read_lines(path.read_text(encoding="utf-8").splitlines(), where=repr(text))
        except UnicodeDecodeError as error:
            raise SourceError(f"{text!r} is no text in UTF-8: give one gene set per line") from error
    if path.suffix == ".txt":
        raise SourceError(f"there is no file {text!r} to read gene sets from: check the path")
    return [parse_set(text)]


def named_genes(text: str) -> list[str]:
    """Return the genes of all sets that a file or a text names; see ``named_sets``."""
    return [gene for genes in named_sets(text) for gene in genes]


def default_kinds(known: MutantTable, genes: int, essential: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the perturbation [n] assumed for each gene that a set names without one.

    It is the gene's most frequent one in the training data; for a gene without data a deletion, or
    ``reduced`` for an essential gene, whose deletion is lethal.
    """
    counts = np.zeros((genes, len(Kind)), np.int64)
    np.add.at(counts, (known.gene, known.kind), 1)
    unseen = np.where(essential, Kind.REDUCED, Kind.ABSENT)
    return np.where(counts.any(1), counts.argmax(1), unseen).astype(np.uint8)


def to_table(
    sets: GeneSets,
    genes: GeneIndex,
    kinds: NDArray[np.uint8],
    *,
    what: str = "row",
    find: Callable[[str], int] | None = None,
    empty: bool = False,
    wrong: WrongRows | None = None,
    condition: Callable[[str | None], int] | None = None,
    no_doses: str = NO_DOSES,
) -> MutantTable:
    """Return named sets as a table; messages count rows from 1.

    ``find`` finds the position of a name, as ``genes.find`` by default. A set without genes, the wild type,
    is refused unless ``empty``. With ``wrong``, rows that do not fit are added to it and left out.
    ``condition`` finds the number of the condition that a row states, or None; without it all are 0. A dose
    is refused for the reason ``no_doses``, unless that is empty.

    Raises
    ------
    UnknownGeneError, AmbiguousGeneError, GeneSetError, ConfigError
        Naming every row that does not fit, up to ten of them; it is the error of the first.
    """
    positions: list[int] = []
    done: list[int] = []
    doses: list[float] = []
    conditions: list[int] = []
    offsets = [0]
    # A file of many rows names the same genes again and again.
    cache: dict[str, tuple[int, int | None, float]] = {}
    found = WrongRows() if wrong is None else wrong

    def member_of(text: str) -> tuple[int, int | None, float]:
        if not isinstance(text, str):
            raise GeneSetError(f"names {shown(text)}, which is no text: give names of genes")
        if text not in cache:
            name, kind, dose = _split(text)
            cache[text] = ((find or genes.find)(name), kind, dose)
        return cache[text]

    given = sets_of(sets)
    for members, stated in zip(given, stated_of(sets, len(given)), strict=True):
        found.rows += 1
        row: dict[int, tuple[int, float]] = {}
        try:
            names = _members(members, member_of, empty=empty)
            parsed = [member_of(name) for name in names]
            states = stated_kinds(stated, [(n, kind) for n, (_, kind, _) in zip(names, parsed, strict=True)])
            amounts = _stated_doses(
                stated, [(n, dose) for n, (_, _, dose) in zip(names, parsed, strict=True)], no_doses
            )
            for (position, _, _), state, amount in zip(parsed, states, amounts, strict=True):
                if position in row:
                    raise GeneSetError(
                        f"names {genes.names[position]} more than once: a gene counts once in a mutant"
                    )
                row[position] = (int(kinds[position]) if state is None else state, amount)
            named = stated.get(CONDITION)
            here = 0 if condition is None else condition(None if named is None else str(named).strip())
        except WildtypeError as error:
            found.errors.append(_at_row(error, what, found.rows))
            if found.enough:
                break
            continue
        positions += row.keys()
        done += (state for state, _ in row.values())
        doses += (amount for _, amount in row.values())
        conditions.append(here)
        offsets.append(len(positions))
    if wrong is None:
        found.refuse(what)
    dose = np.array(doses, np.float32)
    return MutantTable.build(
        positions,
        offsets,
        kind=np.array(done, dtype=np.uint8),
        condition=np.array(conditions, np.int64),
        dose=None if np.isnan(dose).all() else dose,
    )


def _members(members: Any, member_of: Callable[[str], object], *, empty: bool) -> list[Any]:
    """Return the members of a set; raises ``GeneSetError`` about the set."""
    if isinstance(members, str):
        if members:
            raise GeneSetError(
                "is a text, not a list of genes: write [['SGS1', 'SRS2']] for one mutant, or give a table"
            )
        raise GeneSetError("is empty: name at least one gene")
    try:
        named = list(members)
    except TypeError:
        raise GeneSetError(f"is {shown(members)}, not a list of genes") from None
    if not (named or empty):
        raise GeneSetError("is empty: name at least one gene")
    whole: list[Any] = []
    for part in named:
        # ARG5,6 was split at its comma: its first part may be a name by itself, its second is none.
        if whole and not _is_known(part, member_of) and _is_known(f"{whole[-1]},{part}", member_of):
            whole[-1] = f"{whole[-1]},{part}"
        else:
            whole.append(part)
    return whole


def _is_known(part: Any, member_of: Callable[[str], object]) -> bool:
    try:
        member_of(part)
    except WildtypeError:
        return False
    return True


def _all_of(wrong: list[WildtypeError], what: str) -> WildtypeError:
    """Return one error about all rows that do not fit."""
    if len(wrong) == 1:
        return wrong[0]
    listed = "; ".join(str(error) for error in wrong[:LISTED])
    more = f"; and {len(wrong) - LISTED:,} more" if len(wrong) > LISTED else ""
    count = f"{len(wrong):,}{' or more' if len(wrong) == ENOUGH else ''}"
    return type(wrong[0])(f"{count} {what}s do not fit: {listed}{more}")
