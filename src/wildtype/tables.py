"""Tables for people: CSV and Parquet are read, CSV is written without spreadsheet formulas, and objects have
short HTML in notebooks.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from wildtype.errors import SourceError, WildtypeError, reason_of, shown
from wildtype.files import writing
from wildtype.unpacking import opened, parquet_batches, read_parquet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMULA = re.compile(r"[=+\-@\t\r\n]")
"""First characters of a cell that a spreadsheet program evaluates as a formula (CSV injection)."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

TAKEN = frozenset({
    "condition", "direction", "doses", "essential", "expected", "fitness_expected", "fitness_expected_sd",
    "genes", "genes_seen", "interaction", "kinds", "linkage_kb", "names", "note", "order", "order_seen",
    "phenotype", "rank", "screened", "single_fitness",
})  # fmt: skip
"""Columns of tables of predictions and screens beside those of phenotypes: no phenotype can be called so."""

ENDINGS = ("_low", "_high", "_sd", "_measured", "_unlisted")
"""Endings of a phenotype's further columns in tables of predictions: no other phenotype has such a name."""


NO_NUMBER = frozenset({
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
"""Texts that pandas reads as missing, of which a column of names may hold any: `nan` is a gene of the fly."""


TEXTS: dict[str, Any] = {"dtype": str, "keep_default_na": False, "na_values": [""]}
"""How pandas reads a CSV file whose cells are texts, and of which only an empty one is missing."""


def read_frame(path: str | Path, what: str) -> pd.DataFrame:
    """Read a CSV or Parquet file; cells of a CSV file are texts, and only an empty one is missing.

    Parameters
    ----------
    path : str or path
        Of the file.
    what : str
        What is to be read from it, for messages.

    Raises
    ------
    SourceError
        If the file is missing or cannot be read as a table.
    """
    path = Path(path)
    with _reading(path, what):
        if path.suffix == ".parquet":
            # What pandas noted about the table when it was written may be damaged, and is not needed.
            frame: pd.DataFrame = read_parquet(path).to_pandas(ignore_metadata=True)
            return frame
        with opened(path) as stream:
            return _of_csv(with_line_feeds(stream), repr(str(path)))


def frame_of_text(text: str, where: str) -> pd.DataFrame:
    """Return the table that a text in CSV is, as `read_frame`; ``where`` it came from is for messages.

    Raises
    ------
    SourceError
        If it is no table.
    """
    try:
        return _of_csv(with_line_feeds(io.BytesIO(text.encode())), where)
    except ValueError as error:
        if isinstance(error, WildtypeError):
            raise
        raise SourceError(f"{where} cannot be read as a table ({reason_of(error)}): give CSV") from error


def _of_csv(stream: IO[bytes], where: str) -> pd.DataFrame:
    import pandas as pd

    return _without_index(pd.read_csv(_checked(stream, where), **TEXTS), where)


def _checked(stream: IO[bytes], where: str) -> IO[bytes]:
    """Return a stream whose first line has no two columns of one name, one of which pandas would rename."""
    line = stream.readline()
    try:
        names = next(csv.reader([line.decode("utf-8-sig", "replace")]), [])
    except csv.Error:  # the parser of the whole says what is wrong
        names = []
    for name in names:
        if name and names.count(name) > 1:
            raise SourceError(
                f"{where} has {names.count(name)} columns {name!r}: give each a name of its own, and write "
                f"the genes of a mutant into one column, with semicolons between"
            )
    return io.BufferedReader(_After(line, stream))


class _After(io.RawIOBase):
    """What was read of a stream, and then the rest of it."""

    def __init__(self, read: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._read, self._rest = read, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found, self._read = self._read[: len(buffer)], self._read[len(buffer) :]
        found = found or self._rest.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _without_index(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Refuse a table whose rows have more cells than its header: pandas takes the first ones for an index."""
    import pandas as pd

    if not isinstance(frame.index, pd.RangeIndex):
        extra, first = frame.index.nlevels, frame.index[0] if len(frame) else ""
        cells = [*(first if isinstance(first, tuple) else [first]), *(frame.iloc[0] if len(frame) else [])]
        row = ",".join("" if pd.isna(cell) else str(cell) for cell in cells)
        raise SourceError(
            f"the first row of {where} has {extra + frame.shape[1]} cells ({shown(row)}) and the "
            f"header {frame.shape[1]}: put the genes of a mutant in quotes, or semicolons between them"
        )
    return frame


def with_line_feeds(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream whose lines all end in one line feed, for the parser of pandas.

    Of lines that end in carriage returns, as on a Mac of old, it makes hundreds of thousands of empty rows
    where a line that begins with a space follows an empty one, or fills the memory.
    """
    return io.BufferedReader(_LineFeeds(stream))


class _LineFeeds(io.RawIOBase):
    """Carriage returns, alone or before a line feed, as line feeds."""

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner, self._returned = inner, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = b""
        while not found:
            read = self._inner.read(len(buffer))
            if not read:
                return 0
            # A pair that two pieces share ended its line with the first.
            found = read[1:] if self._returned and read[:1] == b"\n" else read
            self._returned = read[-1:] == b"\r"
        found = found.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        buffer[: len(found)] = found
        return len(found)


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Refuse a missing file, and turn errors while it is read into ``SourceError``."""
    import pyarrow as pa

    if not path.is_file():
        raise SourceError(f"there is no file {str(path)!r} to read {what} from: check the path")
    try:
        yield
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{str(path)!r} is no text in UTF-8, but of another encoding or a spreadsheet: save it as CSV in "
            f"UTF-8"
        ) from error
    except (pa.ArrowException, ValueError, OSError, EOFError) as error:
        if isinstance(error, WildtypeError):
            raise
        raise SourceError(
            f"{str(path)!r} cannot be read as a table ({reason_of(error)}): give CSV or Parquet"
        ) from error


class FrameBlocks:
    """A CSV or Parquet file as tables of a few rows each, which can be read again and again.

    A column has the same type in every block, as in one table of the file: integers of a Parquet file in
    which any row lacks a number are floating-point numbers. The texts of a CSV file stay as they are, and
    only an empty cell is missing.

    Parameters
    ----------
    path : str or path
        Of the file.
    what : str
        What is to be read from it, for messages.
    rows : int
        Most rows of a block.

    Raises
    ------
    SourceError
        As `read_frame`, while blocks are read.
    """

    def __init__(self, path: str | Path, what: str, rows: int) -> None:
        self.path, self.what, self.rows = Path(path), what, rows
        self._gaps: set[str] | None = None

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Read the file; one without rows is one empty table."""
        import pandas as pd

        # A caller's errors at a block are no errors of the file: each block is read by itself.
        blocks = self._parquet() if self.path.suffix == ".parquet" else self._csv()
        end = pd.DataFrame()
        while True:
            with _reading(self.path, self.what):
                block = next(blocks, end)
            if block is end:
                return
            yield block

    def _csv(self) -> Iterator[pd.DataFrame]:
        import pandas as pd

        with opened(self.path) as stream:
            where = repr(str(self.path))
            # With one type for all cells, the blocks agree on it.
            blocks = pd.read_csv(_checked(with_line_feeds(stream), where), chunksize=self.rows, **TEXTS)
            yield from (_without_index(block, where) for block in blocks)

    def _parquet(self) -> Iterator[pd.DataFrame]:
        import pyarrow as pa

        if self._gaps is None:
            with parquet_batches(self.path) as (schema, batches):
                self._gaps = {n for b in batches for n in schema.names if b.column(n).null_count}
        with parquet_batches(self.path) as (schema, batches):
            fields = [
                pa.field(
                    f.name,
                    getattr(f.type, "value_type", f.type) if pa.types.is_dictionary(f.type) else f.type,
                )
                for f in schema
            ]
            plain = pa.schema(fields)
            # pandas chooses the type of a column by whether a value is missing: a further row, dropped again,
            # lacks one wherever the file does.
            gap = pa.table({f.name: pa.nulls(1, f.type) for f in fields if f.name in self._gaps})
            empty = True
            for batch in batches:
                for at in range(0, batch.num_rows, self.rows):
                    empty = False
                    yield self._typed(pa.Table.from_batches([batch.slice(at, self.rows)]).cast(plain), gap)
            if empty:
                yield plain.empty_table().to_pandas()

    @staticmethod
    def _typed(table: pa.Table, gap: pa.Table) -> pd.DataFrame:
        """Return a table with the types of one that has gaps in the columns of ``gap``."""
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        if gap.num_columns:
            import pyarrow as pa

            of_gaps = pa.concat_tables([table.select(gap.column_names), gap]).to_pandas()[:-1]
            for name in gap.column_names:
                frame[name] = of_gaps[name]
        return frame


class FrameWriter:
    """Writes a table to a .csv, .parquet or .json file, block by block, within ``writing_frame``.

    Parameters
    ----------
    path : Path
        File to write.
    suffix : str
        Names the format.
    """

    def __init__(self, path: Path, suffix: str) -> None:
        self._suffix, self._first = suffix, True
        self._parquet: Any = None
        # newline="": no translation on Windows, so that the same table has the same bytes everywhere.
        self._open = ExitStack()
        self._text = (
            None
            if suffix == ".parquet"
            else self._open.enter_context(path.open("w", encoding="utf-8", newline=""))
        )
        self._path = path

    def write(self, frame: pd.DataFrame, types: pa.Schema | None = None) -> None:
        """Append rows.

        Parameters
        ----------
        frame : DataFrame
            With the same columns in every call.
        types : pyarrow.Schema, optional
            Of the first block: types of columns of a Parquet file that it may not show, such as one of empty
            cells.
        """
        if self._text is None:
            self._write_parquet(frame, types)
        elif self._suffix == ".csv":
            self._text.write(frame_to_csv(frame, header=self._first))
        elif len(frame) or self._first:
            # The rows of each block stand in brackets of their own.
            text = str(frame.to_json(orient="records", indent=2, double_precision=15))
            inside = text.removeprefix("[").removesuffix("]").removesuffix("\n")
            self._text.write(f"[{inside}" if self._first else f",{inside}")
        self._first = False

    def _write_parquet(self, frame: pd.DataFrame, types: pa.Schema | None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._parquet is None:
            table = pa.Table.from_pandas(frame, types_of(frame, types), preserve_index=False)
            self._parquet = self._open.enter_context(pq.ParquetWriter(self._path, table.schema))
        else:
            table = pa.Table.from_pandas(frame, self._parquet.schema, preserve_index=False)
        self._parquet.write_table(table.replace_schema_metadata(self._parquet.schema.metadata))

    def close(self, *, complete: bool) -> None:
        """End the file; ``complete`` unless an error ended it."""
        with self._open:
            if self._suffix == ".json" and complete and self._text is not None:
                self._text.write("\n]")


def types_of(frame: pd.DataFrame, known: pa.Schema | None) -> pa.Schema:
    """Return the types of the columns of a table: those that are known, and of the others what it shows."""
    import pyarrow as pa

    fields = {} if known is None else {f.name: f for f in known}
    return pa.schema([fields.get(f.name, f) for f in pa.Schema.from_pandas(frame, preserve_index=False)])


@contextmanager
def writing_frame(target: Path) -> Iterator[FrameWriter]:
    """Yield a writer of a table whose file appears under its name when all of it is written.

    Raises
    ------
    OutputError
        As ``writing``; nothing is left behind.
    """
    with writing(target) as path:
        writer = FrameWriter(path, target.suffix)
        try:
            yield writer
        except BaseException:
            writer.close(complete=False)
            raise
        writer.close(complete=True)


def frame_to_csv(frame: pd.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV in which no text is a spreadsheet formula."""
    # Numbers stay: a minus sign in front of a number is no formula.
    texts = frame.select_dtypes("object").columns
    safe = frame.assign(**{name: frame[name].map(harmless) for name in texts})
    return str(safe.rename(columns=harmless).to_csv(index=False, header=header))


def harmless(cell: Any) -> Any:
    """Return a text with an apostrophe in front if it begins like a formula, anything else unchanged.

    A number with a sign, such as -0.35, is no formula, also where it is a text.
    """
    if not isinstance(cell, str) or not FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return a small HTML table of facts about an object, as notebooks show it; texts are escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts
    )
    return f"<strong>{escape(title)}</strong><table>{rows}</table>"
