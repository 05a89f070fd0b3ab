"""A user's file of any kind becomes the same rows of text."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.user_tables.tables import write, yeast
from wildtype.errors import SourceError
from wildtype.sources.user_tables.grid import read_grid, sheets_of
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.table import read_table

TEXT = "genes,value,note\nSGS1,0.5,fine\nSRS2,1,\n"
HEADER, CELLS = ("genes", "value", "note"), [["SGS1", "0.5", "fine"], ["SRS2", "1", ""]]


def test_every_kind_of_file_gives_the_same_cells(tmp_path: Path) -> None:
    frame = pd.DataFrame({"genes": ["SGS1", "SRS2"], "value": ["0.5", "1"], "note": ["fine", None]})
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (HEADER, ("SGS1", 0.5, "fine"), ("SRS2", 1, None)):
        book.active.append(row)
    book.save(tmp_path / "my.xlsx")
    frame.to_parquet(tmp_path / "my.parquet")
    write(tmp_path, TEXT)
    write(tmp_path, TEXT.replace(",", "\t"), "my.tsv")
    write(tmp_path, TEXT.replace(",", ";"), "semicolon.csv")
    write(tmp_path, TEXT.replace("\n", "\r\n"), "windows.csv")
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    (tmp_path / "excel.txt").write_bytes(TEXT.replace(",", "\t").encode("utf-16"))
    (tmp_path / "my.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) == 9
    for path in files:
        grid = read_grid(path)
        assert (grid.header, grid.cells, grid.row) == (HEADER, CELLS, [1, 2]), path
        assert grid.line == ([0, 0] if path.suffix == ".parquet" else [2, 3]), path


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    text = '# a comment, with a comma\n\n# another\n genes , value\n"SGS1\nSRS2", 0.5 \n\n,,\nHO,1,,\n'
    grid = read_grid(write(tmp_path, text))
    assert grid.header == ("genes", "value")
    assert grid.cells == [["SGS1\nSRS2", "0.5"], ["HO", "1"]]
    assert (grid.row, grid.line, grid.rows) == ([1, 2], [5, 9], 2)


def test_rows_of_another_width_are_problems(tmp_path: Path) -> None:
    grid = read_grid(write(tmp_path, "genes,value\nSGS1\nHO,1\nHO,1,2\n"))
    assert [str(problem) for problem in grid.problems] == [
        "row 1 (line 2): received 1 cells, expected 2",
        "row 3 (line 4): received 3 cells, expected 2",
    ]
    assert (grid.cells, grid.rows) == ([["HO", "1"]], 3)


def test_typed_columns_are_spelled(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"genes": [["SGS1", "SRS2"], ["HO"]], "value": [0.1, float("nan")], "n": [1, 2], "flag": [True, None]}
    )
    frame.to_parquet(tmp_path / "my.parquet")
    assert read_grid(tmp_path / "my.parquet").cells == [
        ["SGS1;SRS2", "0.1", "1", "True"],
        ["HO", "", "2", ""],
    ]


def test_a_separator_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, "genes/value\nSGS1,SRS2/1\n")
    assert read_grid(path).header == ("genes/value",)
    assert read_grid(path, separator="/").cells == [["SGS1,SRS2", "1"]]
    for wrong in ("||", '"', "\n"):
        with pytest.raises(SourceError, match="cannot separate columns"):
            read_grid(path, separator=wrong)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty: give a header line"),
        (b"# only a comment\n", "is empty: give a header line"),
        (b"genes,value\n", "has a header but no rows"),
        (b"genes,value\n,\n\n", "has a header but no rows"),
        (b"genes,value\nA,1\n\xe9,2\n", "line 3 is not UTF-8 text: save the table as UTF-8"),
        (b"genes,value\nA\0,1\n", "holds NUL characters"),
        (b'genes,value\nA,1\n"A"B,2\n', r"line 3 cannot be taken apart \(.*\): check its double quotes"),
        (b'genes,value\n"A,1\n', r"cannot be taken apart"),
        (b"PAR1 but not really PAR1", "is not a whole Parquet file"),
        (b"PK\x03\x04 but no workbook", "is not a whole workbook .*: export the table again"),
        (gzip.compress(b"genes,value\nA,1\n", mtime=0)[:-6], "is cut short: .*; export the table again"),
        (b"\xff\xfeg", "is not UTF-8 text"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "my.csv").write_bytes(data)
    with pytest.raises(SourceError, match=message) as error:
        read_grid(tmp_path / "my.csv")
    assert "publisher" not in str(error.value)


def test_a_missing_file_or_sheet_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no file .*none\.csv"):
        read_grid(tmp_path / "none.csv")
    with pytest.raises(SourceError, match="there is no file"):
        read_grid(tmp_path)
    book = openpyxl.Workbook()
    book.create_sheet("results").append(["genes", "value"])
    book["results"].append(["HO", 1])
    book.save(tmp_path / "my.xlsx")
    assert read_grid(tmp_path / "my.xlsx", sheet="results").cells == [["HO", "1"]]
    with pytest.raises(SourceError, match="has no sheet 'more'"):
        read_grid(tmp_path / "my.xlsx", sheet="more")


def test_a_messy_workbook_is_read_as_its_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (
        ("Growth of May",), (), ("Strain", "Fitness", None), (None, "rep1", "rep2"),
        ("SGS1", 0.5, 0.25), (), (datetime(2024, 10, 1), 1, None), (), ("* two plates",),
    ):  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "my.xlsx")
    grid = read_grid(tmp_path / "my.xlsx")
    assert grid.header == ("Strain", "rep1", "rep2")
    assert grid.cells == [["SGS1", "0.5", "0.25"], ["2024-10-01 00:00:00", "1", ""]]
    assert (grid.line, grid.left_out) == ([5, 7], {"notes below the table": 1})


def test_several_sheets_are_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name in ("day1", "day2"):
        sheet = book.create_sheet(name)
        sheet.append(["genes", "value"])
        sheet.append(["SGS1", 1])
    path = tmp_path / "my.xlsx"
    book.save(path)
    with pytest.raises(SourceError, match="several sheets .'day1', 'day2'.: name one with --sheet"):
        sheets_of(path)
    assert sheets_of(path, "day1, day2") == ["day1", "day2"]
    assert sheets_of(write(tmp_path, TEXT)) == [""]
    m = read_table(path, yeast(), Layout(sheet="day1,day2"))
    assert sorted(m.replicates[code] for code in m.replicate) == ["day1", "day2"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.binary(max_size=200) | st.text('genes,value;\t\n\r"# ', max_size=60).map(str.encode))
def test_any_bytes_give_rows_or_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "my.csv").write_bytes(data)
    try:
        grid = read_grid(tmp_path / "my.csv")
    except SourceError:
        return
    assert len(grid.cells) + len(grid.problems) == grid.rows > 0
    assert all(len(cells) == len(grid.header) for cells in grid.cells)
