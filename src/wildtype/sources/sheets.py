"""Spreadsheets (.xlsx and the older .xls) as checked rows of text, with messages that name sheet and row.

Nothing in a workbook is evaluated: a formula counts with the value that was stored beside it, and a macro is
never read. A name that a spreadsheet program has turned into a date (OCT1 is a gene) is refused, not guessed.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wildtype.errors import SourceError, WildtypeError, reason_of, shown
from wildtype.sources.columns import Header, header_fits, spelled
from wildtype.sources.text import REMEDY, Rows, read_bytes
from wildtype.unpacking import LIMITS, check_zip

if TYPE_CHECKING:
    import openpyxl

MAX_SHEET_BYTES = 1 << 30
"""Largest unpacked size of a workbook; a larger one is damaged or hostile."""
MAX_ROWS = 1 << 20
"""Rows that a sheet can have at most; a row number beyond is damage."""
_XLSX, _XLS = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CHUNK = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SheetRows(Rows):
    """The data rows of one sheet; `line` holds their row numbers as a spreadsheet program shows them."""

    sheet: str = ""

    def error(self, row: int, received: object, expected: str, remedy: str = REMEDY) -> SourceError:
        """Return the error for one row, to be raised by the caller."""
        what = shown(received) if isinstance(received, str) else str(received)
        return _error(self.path, self.sheet, int(self.line[row]), what, expected, remedy)


def read_sheet(
    path: str | Path,
    sheet: str | None = None,
    *,
    header: Header | None = None,
    fields: int | None = None,
    skip_rows: int = 0,
    limit: int = MAX_SHEET_BYTES,
    as_it_is: bool = False,
) -> SheetRows:
    """Read one sheet of a workbook and check its layout.

    Parameters
    ----------
    path : path
        An .xlsx or .xls file, told by content; it may be gzip-compressed.
    sheet : str, optional
        Name of the sheet; the first one if not given.
    header : sequence of str or None, optional
        Expected column names, as for `read_columns`. It sets the number of fields.
    fields : int, optional
        Number of fields where there is no header.
    skip_rows : int
        Title rows above the header or the first row.
    limit : int
        Largest unpacked size in bytes.
    as_it_is : bool
        Whether blank rows and dates are no errors: dates are spelled as in 2024-03-01 00:00:00, and rows have
        the cells up to their last one.

    Returns
    -------
    SheetRows
        Whole numbers without a decimal point, other numbers with all their digits, empty cells as ``""``.
        Blank rows at the end are passed over.

    Raises
    ------
    SourceError
        If the file cannot be read, is no workbook, lacks the sheet, has another header, a blank row between
        others, a row with values beyond the last column, a date, or no rows.
    """
    if header is None and fields is None:
        raise TypeError("read_sheet needs a header or a number of fields")
    path = Path(path)
    data = read_bytes(path, limit=limit)
    if data.startswith(_XLSX):
        name, cells = _explained(path, lambda: _open_xlsx(path, data, sheet, limit))
    elif data.startswith(_XLS):
        name, cells = _explained(path, lambda: _open_xls(path, data, sheet))
    else:
        raise SourceError(f"{path} is neither an .xlsx nor an .xls workbook: {REMEDY}")
    rows = _explained(path, lambda: _checked(path, name, cells, header, fields or 0, skip_rows, as_it_is))
    if not rows.cells:
        raise SourceError(f"{path}, sheet {name!r} holds no rows, expected at least one: {REMEDY}")
    return rows


def sheets_with_cells(path: str | Path, *, limit: int = MAX_SHEET_BYTES) -> list[str]:
    """Return the names of the sheets of a workbook that have a cell with something in it.

    Raises
    ------
    SourceError
        If the file cannot be read or is no workbook.
    """
    path = Path(path)
    data = read_bytes(path, limit=limit)

    def filled(name: str) -> bool:
        _, rows = (
            _open_xls(path, data, name) if data.startswith(_XLS) else _open_xlsx(path, data, name, limit)
        )
        return any(value not in (None, "") for row in rows for value in row)

    return _explained(path, lambda: [name for name in _names(path, data, limit) if filled(name)])


def _names(path: Path, data: bytes, limit: int) -> list[str]:
    if data.startswith(_XLS):
        return list(_old_workbook(data).sheet_names())
    return [page.title for page in _workbook(path, data, limit).worksheets]


def _error(path: Path, sheet: str, row: int, what: str, expected: str, remedy: str = REMEDY) -> SourceError:
    return SourceError(f"{path}, sheet {sheet!r}, row {row}: received {what}, expected {expected}; {remedy}")


def _explained(path: Path, act: Callable[[], T]) -> T:
    """Turn whatever the workbook libraries raise on a damaged file into one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about fonts, filters and other decoration
            return act()
    except WildtypeError:
        raise
    except Exception as error:
        raise SourceError(f"{path} is not a whole workbook ({reason_of(error)}): {REMEDY}") from error


def _chosen(path: Path, names: Sequence[str], wanted: str | None) -> str:
    if not names:
        raise SourceError(f"{path} has no sheet with cells: {REMEDY}")
    if wanted is not None and wanted not in names:
        raise SourceError(f"{path} has no sheet {wanted!r}; it has {', '.join(map(repr, names))}: {REMEDY}")
    return names[0] if wanted is None else wanted


def _open_xlsx(path: Path, data: bytes, sheet: str | None, limit: int) -> tuple[str, Iterator[Sequence[Any]]]:
    book = _workbook(path, data, limit)
    name = _chosen(path, [page.title for page in book.worksheets], sheet)
    page: Any = book[name]
    page.reset_dimensions()  # the stated size may be wrong, and blank cells would be made up to it
    return name, page.iter_rows(min_row=1, min_col=1, values_only=True)


def _workbook(path: Path, data: bytes, limit: int) -> openpyxl.Workbook:
    import openpyxl

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # Before openpyxl sees the file, because it unpacks without a limit.
        check_zip(path, archive, len(data), replace(LIMITS, total=limit))
        for info in archive.infolist():
            _refuse_entities(path, archive, info)
    return openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)


def _refuse_entities(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Refuse document type definitions, whose entities can unfold without end; workbooks have none."""
    before = b""
    with archive.open(info) as stream:
        while chunk := stream.read(_CHUNK):
            # The end of the last chunk is kept, so that a mark across two chunks is found.
            plain = before + chunk.replace(b"\0", b"")  # UTF-16 as well
            if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
                raise SourceError(
                    f"{path} holds {info.filename!r} with a document type definition, expected none: {REMEDY}"
                )
            before = plain[-16:]


def _old_workbook(data: bytes) -> Any:
    import xlrd  # type: ignore[import-untyped]

    return xlrd.open_workbook(file_contents=data, logfile=io.StringIO(), on_demand=True, ragged_rows=True)


def _open_xls(path: Path, data: bytes, sheet: str | None) -> tuple[str, Iterator[Sequence[Any]]]:
    import xlrd

    book = _old_workbook(data)
    name = _chosen(path, book.sheet_names(), sheet)
    page = book.sheet_by_name(name)

    def value(cell: Any) -> Any:
        if cell.ctype == xlrd.XL_CELL_DATE:
            return xlrd.xldate_as_datetime(cell.value, book.datemode)
        if cell.ctype == xlrd.XL_CELL_ERROR:
            return xlrd.error_text_from_code[cell.value]
        return bool(cell.value) if cell.ctype == xlrd.XL_CELL_BOOLEAN else cell.value

    return name, ([value(cell) for cell in page.row(row)] for row in range(page.nrows))


def _text(value: Any) -> str | None:
    """Return a cell as text; None for dates, which no table of these holds on purpose."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        # Sheets store 7 as 7.0; beyond 2**53 a float no longer holds every whole number.
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, str | int):
        return str(value)
    return None


def _checked(
    path: Path,
    sheet: str,
    cells: Iterator[Sequence[Any]],
    header: Header | None,
    width: int,
    skip_rows: int,
    as_it_is: bool,
) -> SheetRows:
    names: tuple[str, ...] | None = None
    numbers: list[int] = []
    kept: list[list[str]] = []
    blank = 0  # the first of a run of blank rows
    for number, row in enumerate(cells, 1):
        if number > MAX_ROWS:
            raise SourceError(
                f"{path}, sheet {sheet!r} has more than {MAX_ROWS:,} rows, expected fewer: {REMEDY}"
            )
        if number <= skip_rows:
            continue
        texts = [_text(value) for value in row]
        if as_it_is:
            texts = [str(value) if text is None else text for text, value in zip(texts, row, strict=True)]
        if None in texts:
            date = row[texts.index(None)]
            expected = "a name or a number (spreadsheet programs turn some names into dates)"
            raise _error(path, sheet, number, f"the date {date}", expected)
        found = [text for text in texts if text is not None]
        while found and not found[-1].strip():
            found.pop()
        if not found:
            blank = blank or number
            continue
        if blank and not as_it_is:
            raise _error(path, sheet, blank, "a blank row", "a row of values")
        if header is not None and names is None:
            names = tuple(name.strip() for name in found)
            if not header_fits(names, header):
                raise _error(path, sheet, number, f"the header {shown(', '.join(names))}", spelled(header))
            width = len(names)
            continue
        if len(found) > width:
            raise _error(path, sheet, number, f"{len(found)} fields", f"at most {width}")
        numbers.append(number)
        kept.append(found if as_it_is else found + [""] * (width - len(found)))
    line = np.array(numbers, dtype=np.int64)
    return SheetRows(path, names or (), (), line, kept, sheet=sheet)
