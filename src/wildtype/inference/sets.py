"""Sets of genes as people write them: ``SGS1,SRS2``, ``CDC28:reduced``, a column of a table, lines of text.

Commas, semicolons or blanks separate the genes of a set; ``gene:kind`` names the perturbation of a gene, and
``gene:kind@dose`` its dose, too. A name that holds a comma, such as ``ARG5,6``, stays one gene where the
organism has it. Beside ``genes``, a table may state the kinds, doses and condition of each row in columns of
these names. All rows that do not fit are named at once, and a file is read to its end before anything is
predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import GeneSetError, SourceError, WildtypeError, shown
from wildtype.inference.stated_columns import (
    CONDITION,
    DOSES,
    KINDS,
    NO_DOSES,
    parse_dose,
    stated_doses,
    stated_kinds,
    stated_of,
)
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex
from wildtype.organism.genes import SEPARATORS
from wildtype.tables import read_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

COLUMN = "genes"
TABLES = (".csv", ".parquet")
"""Endings of the files that are tables of sets."""
MANY = {"kind": "kinds", "dose": "doses"}
"""The column of a prediction that states the same as a user's column."""
GIVEN = "_given"
"""What is added to the name of a user's column that a prediction has, too."""
LISTED, ENOUGH = 10, 100
"""Most rows that do not fit that a message names, and that are looked for."""
GeneSets: TypeAlias = "Sequence[Sequence[str]] | pd.DataFrame | pd.Series[Any] | NDArray[Any]"
"""Lists of names, a table with a column ``genes`` of texts or lists, such a column, or an array [m, k]."""


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
        if len(frame.columns) == 1 and (mark := next((m for m in ";\t|" if m in found), "")):
            raise SourceError(
                f"{str(path)!r} has {mark!r} between its columns: save it with commas between them"
            )
        raise SourceError(
            f"{str(path)!r} has no column {COLUMN!r} (it has {found}): name the gene column {COLUMN!r}"
        )
    if frame.empty:
        raise SourceError(f"{str(path)!r} has no rows: give at least one gene set")
    return frame


def read_sets(path: str | Path) -> list[list[str]]:
    """Read one set per row of a file, its column ``genes``; raises ``SourceError`` as `read_plan`."""
    return [names_of(genes) for genes in read_plan(path)[COLUMN]]


def _split(text: str) -> tuple[str, int | None, float]:
    """Return name, kind (None: not stated) and dose (NaN: none) of a gene that is written with them."""
    name, _, done = text.partition(":")
    kind, marked, dose = done.partition("@")
    return name, Kind.parse(kind) if kind else None, parse_dose(dose) if marked else math.nan


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


def named_sets(text: str) -> GeneSets:
    """Return the sets of a file (CSV or Parquet with a column ``genes``, else one per line), or of a text.

    Of such a table, they are the column ``genes`` with those that state something of a row.

    Raises
    ------
    SourceError
        If the text ends like a file name and the file is missing, or the file holds no set.
    """
    path = Path(text)
    if path.suffix in TABLES:
        plan = read_plan(path)
        return plan[[name for name in (COLUMN, *KINDS, *DOSES, CONDITION) if name in plan.columns]]
    return _lines_or_text(text, path)


def _lines_or_text(text: str, path: Path) -> list[list[str]]:
    """Return the sets of a file of one per line, or of a text."""
    if path.is_file() or path.is_fifo():  # a pipe: <(command) in a shell
        try:
            return read_lines(path.read_text(encoding="utf-8").splitlines(), where=repr(text))
        except UnicodeDecodeError as error:
            raise SourceError(f"{text!r} is no text in UTF-8: give one gene set per line") from error
    if path.suffix == ".txt":
        raise SourceError(f"there is no file {text!r} to read gene sets from: check the path")
    return [parse_set(text)]


def named_genes(text: str) -> list[str]:
    """Return the genes of all sets that a file or a text names, whatever their kinds; see ``named_sets``."""
    path = Path(text)
    sets = read_sets(path) if path.suffix in TABLES else _lines_or_text(text, path)
    return [gene for genes in sets for gene in genes]


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
            amounts = stated_doses(
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
