"""Reading workbooks: the same rows from .xlsx and .xls, and every damage in one sentence with its row."""

from __future__ import annotations

import datetime
import gzip
import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.spreadsheets import DATE, xls, xlsx
from wildtype.errors import SourceError
from wildtype.sources.sheets import SheetRows, read_sheet

ROWS = [["Strain ID", "fitness"], ["YAL001C_tsq508", 0.8658], ["YAL043C-A_dma1", 1.0], ["Q0045_sn2", None]]
BOTH = pytest.mark.parametrize(("name", "make"), [("a.xlsx", xlsx), ("a.xls", xls)])


def write(folder: Path, data: bytes, name: str = "a.xlsx") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@BOTH
def test_a_sheet_gives_text_and_numbers(tmp_path: Path, name: str, make) -> None:
    path = write(tmp_path, make({"data": ROWS, "notes": [["see paper"]]}), name)
    rows = read_sheet(path, header=("Strain ID", "fitness"))
    assert rows.header == ("Strain ID", "fitness")
    assert rows.text(0) == ["YAL001C_tsq508", "YAL043C-A_dma1", "Q0045_sn2"]
    np.testing.assert_array_equal(rows.numbers(1, missing=("",)), [0.8658, 1.0, np.nan])
    assert rows.line.tolist() == [2, 3, 4]
    assert read_sheet(path, "notes", fields=1).cells == [["see paper"]]
    packed = write(tmp_path, gzip.compress(path.read_bytes()), "b.gz")
    assert read_sheet(packed, header=("Strain ID", None)).cells == rows.cells


@BOTH
def test_cells_are_spelled_as_they_were_typed(tmp_path: Path, name: str, make) -> None:
    page = [["x", 1, 2.0, 0.1234567890123, 1e-300, True, "#N/A", "nup60Δ"], [None, 1e15, -0.5]]
    rows = read_sheet(write(tmp_path, make({"s": page}), name), fields=8)
    assert rows.cells[0] == ["x", "1", "2", "0.1234567890123", "1e-300", "TRUE", "#N/A", "nup60Δ"]
    assert rows.cells[1] == ["", "1000000000000000", "-0.5", "", "", "", "", ""]


@BOTH
def test_title_rows_further_columns_and_blank_rows_at_the_end(tmp_path: Path, name: str, make) -> None:
    page = [["Table S5"], [None], *([*row, "more"] for row in ROWS), [None, " "], [None]]
    page[2] = ["Strain ID", "fitness", "remark"]
    path = write(tmp_path, make({"s": page}), name)
    rows = read_sheet(path, header=("Strain ID", ...), skip_rows=2)
    assert (len(rows), rows.header, rows.line[0]) == (3, ("Strain ID", "fitness", "remark"), 4)
    with pytest.raises(SourceError, match="row 3: received the header 'Strain ID, fitness, remark'"):
        read_sheet(path, header=("Strain ID", "fitness"), skip_rows=2)


def test_an_error_names_sheet_and_row(tmp_path: Path) -> None:
    rows = read_sheet(write(tmp_path, xlsx({"S 1": ROWS})), header=("Strain ID", "fitness"))
    assert isinstance(rows, SheetRows)
    with pytest.raises(
        SourceError, match=r"a\.xlsx, sheet 'S 1', row 4: received '', expected a number in 'fit"
    ):
        rows.numbers(1)
    with pytest.raises(
        SourceError, match="sheet 'S 1', row 2: received 'YAL001C_tsq508', expected a deletion"
    ):
        rows.refuse(0, np.array([True, False, False]), "a deletion")


@BOTH
@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            [["Strain", "fitness"], ["a", 1]],
            "row 1: received the header 'Strain, fitness', expected Strain ID, fi",
        ),
        (
            [ROWS[0], ["a", 1], [None], ["b", 1]],
            "sheet 's', row 3: received a blank row, expected a row of values",
        ),
        ([ROWS[0], ["a", 1, 2]], "sheet 's', row 2: received 3 fields, expected at most 2"),
        ([ROWS[0]], "sheet 's' holds no rows, expected at least one"),
        ([], "sheet 's' holds no rows"),
    ],
)
def test_another_layout_is_refused(tmp_path: Path, name: str, make, page, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_sheet(write(tmp_path, make({"s": page}), name), header=("Strain ID", "fitness"))


@BOTH
def test_a_name_that_became_a_date_is_refused(tmp_path: Path, name: str, make) -> None:
    day = datetime.datetime(2020, 10, 1) if make is xlsx else f"{DATE}44105"
    with pytest.raises(
        SourceError, match="row 2: received the date 2020-10-01 .*spreadsheet programs turn some"
    ):
        read_sheet(write(tmp_path, make({"s": [ROWS[0], [day, 1.0]]}), name), header=("Strain ID", "fitness"))


@BOTH
def test_a_missing_sheet_names_those_that_are_there(tmp_path: Path, name: str, make) -> None:
    path = write(tmp_path, make({"one": ROWS, "two": ROWS}), name)
    with pytest.raises(SourceError, match="has no sheet 'three'; it has 'one', 'two'"):
        read_sheet(path, "three", fields=2)


def test_a_formula_counts_with_its_stored_value_and_is_never_evaluated(tmp_path: Path) -> None:
    path = write(tmp_path, xlsx({"s": [["a", "=1+1"]]}))
    assert read_sheet(path, fields=2).cells == [["a", ""]]  # the writer stored no value
    stored = replaced(
        path.read_bytes(),
        "xl/worksheets/sheet1.xml",
        lambda xml: re.sub(rb"<f>1\+1</f><v ?/>", b"<f>1+1</f><v>7</v>", xml),
    )
    assert read_sheet(write(tmp_path, stored), fields=2).cells == [["a", "7"]]


def replaced(data: bytes, member: str, change) -> bytes:
    """Return a workbook with one member changed; the change must change it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == member:
                assert change(content) != content
                content = change(content)
            new.writestr(info, content)
    return out.getvalue()


def test_a_zip_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    bomb = replaced(xlsx({"s": ROWS}), "xl/worksheets/sheet1.xml", lambda xml: xml + b" " * (4 << 20))
    path = write(tmp_path, bomb)
    assert path.stat().st_size < 1 << 16
    with pytest.raises(SourceError, match="unpacks to more than 1 MiB, as a decompression bomb does"):
        read_sheet(path, fields=2, limit=1 << 20)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_that_unfold_are_refused(tmp_path: Path, encoding: str) -> None:
    laughs = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'>]><x>&b;</x>".encode(encoding)
    book = replaced(xlsx({"s": ROWS}), "xl/worksheets/sheet1.xml", lambda xml: laughs)
    with pytest.raises(SourceError, match=r"'xl/worksheets/sheet1.xml' with a document type definition"):
        read_sheet(write(tmp_path, book), fields=2)


def test_a_row_number_beyond_all_sheets_is_refused(tmp_path: Path) -> None:
    far = replaced(
        xlsx({"s": ROWS}),
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b'<row r="4"', b'<row r="4000000000"'),
    )
    with pytest.raises(SourceError, match="sheet 's' has more than 1,048,576 rows"):
        read_sheet(write(tmp_path, far), fields=2)


@BOTH
def test_a_damaged_workbook_is_refused(tmp_path: Path, name: str, make) -> None:
    whole = make({"s": ROWS})
    for cut in (9, 600, len(whole) // 2):
        with pytest.raises(SourceError, match=rf"{name} is not a whole workbook|neither an .xlsx nor"):
            read_sheet(write(tmp_path, whole[:cut], name), fields=2)
    with pytest.raises(SourceError, match="neither an .xlsx nor an .xls workbook"):
        read_sheet(write(tmp_path, b"Strain ID\tfitness\n", name), fields=2)
    with pytest.raises(SourceError, match="holds more than 0 MiB"):
        read_sheet(write(tmp_path, whole, name), fields=2, limit=100)
    with pytest.raises(TypeError, match="a header or a number of fields"):
        read_sheet(tmp_path / name)


def outcome(path: Path) -> str:
    try:
        return str(read_sheet(path, fields=2).path)
    except SourceError as error:
        return str(error)


WORKBOOKS = {"xlsx": xlsx({"s": ROWS}), "xls": xls({"s": ROWS})}


@given(
    st.sampled_from(["xlsx", "xls"]),
    st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_changed_bytes_are_read_or_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, kind: str, changes
) -> None:
    data = bytearray(WORKBOOKS[kind])
    for at, byte in changes:
        data[at % len(data)] = byte
    path = write(tmp_path_factory.getbasetemp(), bytes(data), f"fuzz.{kind}")
    assert f"fuzz.{kind}" in outcome(path)
