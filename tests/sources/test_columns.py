"""Reading large delimited files: the same strictness as for small ones, at the speed of columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, Only, column_blocks, read_columns
from wildtype.sources.text import read_pieces, read_rows

GENES = GeneIndex(["YAL001C", "YAL043C-A", "Q0045"], {"YAL001C": "TFC3"}, {"Q0045": ["OXI3"]})
TYPES = (str, float)


def write(folder: Path, data: str | bytes, name: str = "a.tsv") -> Path:
    raw = data.encode() if isinstance(data, str) else data
    path = folder / name
    path.write_bytes(gzip.compress(raw, compresslevel=1) if name.endswith(".gz") else raw)
    return path


def shown(columns: Columns) -> list[tuple[str, float]]:
    return [(columns.text(0)[i], float(columns.numbers(1)[i])) for i in range(len(columns))]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_columns_are_read_with_header_and_missing_numbers(tmp_path: Path, name: str, ends: str) -> None:
    path = write(tmp_path, ends.join(["gene\tvalue", "b\t1", " a \tNaN", "b\t -2e-3", "\t", ""]), name)
    columns = read_columns(path, types=TYPES, header=("gene", "value"))
    assert columns.header == ("gene", "value")
    assert columns.text(0).names == ("", "a", "b")
    np.testing.assert_equal(shown(columns), [("b", 1.0), ("a", np.nan), ("b", -0.002), ("", np.nan)])
    assert columns.first_line == 2
    assert len(columns) == len(columns.text(0)) == 4


def test_a_file_may_have_title_lines_no_header_or_names_of_any_spelling(tmp_path: Path) -> None:
    body = "a\t1\nb\t2"
    plain = shown(read_columns(write(tmp_path, body), types=TYPES))
    titled = write(tmp_path, f"Table S1. Scores\nand more\nid\tscore (ε)\n{body}\n")
    columns = read_columns(titled, types=TYPES, header=("id", None), skip_lines=2)
    assert shown(columns) == plain == [("a", 1.0), ("b", 2.0)]
    assert columns.header == ("id", "score (ε)")
    assert columns.first_line == 4


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_byte_order_marks_and_utf16(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "allele\tx\nnup60Δ\t1\n".encode(encoding))
    given = "utf-16" if encoding == "utf-16" else "utf-8"
    columns = read_columns(path, types=TYPES, header=("allele", "x"), encoding=given)
    assert shown(columns) == [("nup60Δ", 1.0)]


def test_an_ellipsis_allows_further_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "id\tx\tremark\tmore\na\t1\t?\t\n")
    columns = read_columns(path, types=TYPES, header=("id", None, ...))
    assert shown(columns) == [("a", 1.0)]
    assert columns.columns[2:] == (None, None)
    with pytest.raises(SourceError, match="expected id, x, remark, more, and further columns"):
        read_columns(path, types=TYPES, header=("id", "x", "remark", "more", ...))


def test_a_column_without_a_type_is_passed_over(tmp_path: Path) -> None:
    columns = read_columns(write(tmp_path, "a\tjunk\t1\nb\t?\t2\n"), types=(str, None, float))
    assert columns.columns[1] is None
    assert columns.numbers(2).tolist() == [1.0, 2.0]
    for position in (0, 1):
        with pytest.raises(TypeError, match=f"column {position} was not read as numbers"):
            columns.numbers(position)
    with pytest.raises(TypeError, match="column 2 was not read as text"):
        columns.text(2)


def test_genes_are_matched_once_per_distinct_name(tmp_path: Path) -> None:
    path = write(tmp_path, "YAL043C-A\t1\ntfc3\t1\noxi3\t1\nYXX\t1\ntfc3\t1\n")
    column = read_columns(path, types=TYPES).text(0)
    matched = column.match(GENES)
    assert matched.position.tolist() == [1, 0, 2, -1, 0]
    assert matched.dropped() == {"unknown gene": 1}
    calls: list[str] = []
    lengths = column.map(lambda name: calls.append(name) or len(name), np.int64)
    assert lengths.tolist() == [9, 4, 4, 3, 4]
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gene\tscore\na\t1\n", r"line 1: received the header 'gene, score', expected gene, value"),
        ("gene\na\t1\n", r"line 1: received the header 'gene', expected gene, value"),
        ("gene\tvalue\na\t1\nb\n", r"line 3: received 1 fields, expected 2"),
        ("gene\tvalue\na\t1\tx\n", r"line 2: received 3 fields, expected 2"),
        ("gene\tvalue\na\t1\n\nb\t2\n", r"line 3: received a blank line, expected a row"),
        ("gene\tvalue\n\na\t1\n", r"line 2: received a blank line"),
        ("gene\tvalue\r\na\t1\r\n\r\nb\t2\r\n", r"line 3: received a blank line"),
        ("\ngene\tvalue\na\t1\n", r"line 1: received a blank line"),
        ("gene\tvalue\na\t1\n   \n", r"line 3: received 1 fields, expected 2"),
        ("gene\tvalue\na\t1\nb\tsick\n", r"line 3: received 'sick', expected a number in 'value'"),
        ("gene\tvalue\na\t1\nb\t1_0\n", r"line 3: received '1_0', expected a number"),
        ("gene\tvalue\na\t1\nb\t１\n", r"line 3: received '１', expected a number"),
        ("gene\tvalue\na\tinf\n", r"line 2: received 'inf', expected a number in 'value'"),
        ("gene\tvalue\na\t1\nb\t-1e31\n", r"line 3: received '-1e31', expected a number"),
        ("gene\tvalue\na\tNaN\nb\tnan\n", r"line 3: received 'nan', expected a number"),
        ("gene\tvalue\na\t1\rb\t2\n", r"line 2: received a stray carriage return, expected plain text"),
        ("gene\tvalue\na\t1\nb\0\t2\n", r"line 3: received a NUL character"),
        ("gene\tvalue\na\t1\nb\x03\t1\n", r"line 3: received 'b.*', expected printable text"),
        ("gene\tvalue\n", "holds no rows, expected at least one"),
        ("gene\tvalue", "holds no rows"),
        ("", "holds no rows"),
        ("\n\n", "holds no rows"),
    ],
)
def test_damage_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    for name in ("a.tsv", "a.tsv.gz"):
        with pytest.raises(SourceError, match=message):
            read_columns(write(tmp_path, text, name), types=TYPES, header=("gene", "value"))


def test_a_field_of_a_file_without_header_is_named_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"line 1: received 'x', expected a number in 'field 2'"):
        read_columns(write(tmp_path, "a\tx\n"), types=TYPES)


@pytest.mark.parametrize(("data", "line"), [(b"g\tx\n\xff\t1\n", 2), (b"g\tx\na\t1\nb\xe9\t1\n", 3)])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes, line: int) -> None:
    with pytest.raises(SourceError, match=rf"line {line}: received byte 0x.., expected UTF-8 text"):
        read_columns(write(tmp_path, data), types=TYPES, header=("g", "x"))
    odd = write(tmp_path, b"\xee\tx\na\t1\n")
    with pytest.raises(SourceError, match="line 1: received the header '.*, x', expected g, x"):
        read_columns(odd, types=TYPES, header=("g", "x"))
    assert shown(read_columns(odd, types=TYPES, header=(None, "x"))) == [("a", 1.0)]
    with pytest.raises(SourceError, match="is not UTF-16 text"):
        read_columns(write(tmp_path, b"\xff\xfea"), types=TYPES, encoding="utf-16")


@pytest.mark.slow
def test_damage_far_down_a_file_of_many_blocks_is_found(tmp_path: Path) -> None:
    lines = [f"name{i % 7}\t{i}\t{'x' * 300}" for i in range(130_000)]  # more than two blocks
    columns = read_columns(write(tmp_path, "\n".join(lines)), types=(str, float, None))
    assert columns.numbers(1).tolist() == list(range(130_000))
    assert columns.text(0).code.tolist() == [i % 7 for i in range(130_000)]
    lines[123_456] = "name0\tdamaged\tx"
    with pytest.raises(SourceError, match="line 123457: received 'damaged'"):
        read_columns(write(tmp_path, "\n".join(lines)), types=(str, float, None))
    lines[123_456] = "name0\t1e99\tx"
    with pytest.raises(SourceError, match="line 123457: received '1e99'"):
        read_columns(write(tmp_path, "\n".join(lines)), types=(str, float, None))


def test_a_truncated_file_and_a_decompression_bomb_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a\t1\n" * 10_000, "a.tsv.gz")
    with pytest.raises(SourceError, match="holds more than 0 MiB of text"):
        read_columns(path, types=TYPES, limit=1000)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match="is cut short"):
        read_columns(path, types=TYPES)
    with pytest.raises(SourceError, match="does not exist"):
        read_columns(tmp_path / "none.tsv", types=TYPES)


def test_a_caller_refuses_rows_by_line(tmp_path: Path) -> None:
    columns = read_columns(
        write(tmp_path, "t\ng\tx\na\t1\nb\t-2\n"), types=TYPES, header=("g", "x"), skip_lines=1
    )
    columns.refuse(1, columns.numbers(1) < -5, "nothing")
    with pytest.raises(
        SourceError, match=r"a\.tsv, line 4: received '-2', expected a positive number; fetch"
    ):
        columns.refuse(1, columns.numbers(1) < 0, "a positive number")
    with pytest.raises(SourceError, match="line 3: received 'a', expected b"):
        columns.refuse(0, columns.text(0).map(lambda name: name != "b", bool), "b")


CELL = st.text(st.sampled_from("abé-_.1 \"',|"), max_size=5)
NUMBER = st.one_of(
    st.floats(-1e29, 1e29).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "NaN", "1E-3"]),
)


@given(st.lists(st.tuples(CELL, NUMBER), min_size=1, max_size=30), st.booleans())
def test_columns_agree_with_rows(tmp_path_factory: pytest.TempPathFactory, rows, compressed: bool) -> None:
    text = "".join(f"Y{a}\t{b}\n" for a, b in rows)
    path = write(tmp_path_factory.getbasetemp(), text, "p.tsv.gz" if compressed else "p.tsv")
    expected = read_rows(path, fields=2)
    columns = read_columns(path, types=TYPES)
    assert [columns.text(0)[i] for i in range(len(columns))] == expected.text(0)
    np.testing.assert_array_equal(columns.numbers(1), expected.numbers(1, missing=("", "NaN", "NA")))


def reads(path: Path, encoding: str) -> str:
    try:
        read_columns(path, types=TYPES, encoding=encoding)
    except SourceError as error:
        return str(error)
    return str(path)


@given(st.one_of(st.binary(max_size=200), st.text("a1\t\n\r.eé-", max_size=60).map(str.encode)))
def test_any_bytes_are_read_or_refused_by_name(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = write(tmp_path_factory.getbasetemp(), data, "fuzz.tsv")
    for encoding in ("utf-8", "utf-16"):
        assert "fuzz.tsv" in reads(path, encoding)


def blocks(path: Path, size: int, **options: object) -> list[Columns]:
    return list(column_blocks(path, types=lambda first: [str, float], size=size, **options))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 16, 1000])
def test_blocks_are_the_rows_of_the_whole_file(tmp_path: Path, name: str, ends: str, size: int) -> None:
    rows = [(f"g{i % 5}", float(i)) for i in range(40)]
    path = write(tmp_path, ends.join(["gene\tvalue", *(f"{g}\t{v:g}" for g, v in rows), "", ""]), name)
    found = blocks(path, size, header=("gene", "value"))
    assert [row for block in found for row in shown(block)] == rows
    assert found[0].first_line == 2
    assert found[-1].first_line + len(found[-1]) == 42
    skipped = blocks(path, size, skip_lines=1)
    assert [row for block in skipped for row in shown(block)] == rows


@pytest.mark.parametrize("size", [1, 5, 8, 1000])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g\tv\na\t1\nb\t2\n\nc\t3\n", "line 4: received a blank line"),
        ("g\tv\na\t1\nb\t2\nc\tx\n", "line 4: received 'x', expected a number in 'v'"),
        ("g\tv\na\t1\nb\t2\nc\n", "line 4: received 1 fields, expected 2"),
        ("g\tw\na\t1\n", "line 1: received the header 'g, w', expected g, v"),
        ("g\tv\n", "holds no rows"),
        ("", "holds no rows"),
    ],
)
def test_damage_of_blocks_names_the_line_of_the_file(
    tmp_path: Path, size: int, text: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        blocks(write(tmp_path, text), size, header=("g", "v"))


@pytest.mark.parametrize("size", [1, 100, None])
def test_pieces_are_the_file_also_of_several_members(tmp_path: Path, size: int | None) -> None:
    members = [bytes(range(256)) * 3, b"", b"x" * 999]
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join(map(gzip.compress, members)) + b"\0\0")
    whole = b"".join(members)
    pieces = list(read_pieces(path, size=size))
    assert b"".join(pieces) == whole
    assert size is None or max(map(len, pieces)) <= size
    with pytest.raises(SourceError, match="holds more than"):
        list(read_pieces(path, size=size, limit=len(whole) - 1))
    assert b"".join(read_pieces(path, size=size, limit=len(whole))) == whole
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(SourceError, match="cut short"):
        list(read_pieces(path, size=size))
    plain = tmp_path / "plain"
    plain.write_bytes(whole)
    assert b"".join(read_pieces(plain, size=size)) == whole


def test_a_column_of_few_texts_that_matter_holds_no_others(tmp_path: Path) -> None:
    names = ["ACT1", "act1 ", " Straße", "STRASSE", "other", "", "ÉTÉ", "été", "act10"]
    path = tmp_path / "names.tsv"
    path.write_text("".join(f"p{i % 2}\t{name}\n" for i, name in enumerate(names)), encoding="utf-8")
    (block,) = column_blocks(path, types=lambda first: [str, Only(frozenset({"ACT1", "STRASSE", "ÉTÉ"}))])
    kept = [block.text(1)[row] for row in range(len(block))]
    assert kept == ["ACT1", "act1", "Straße", "STRASSE", "", "", "ÉTÉ", "été", ""]


def test_a_control_character_is_refused_also_in_a_text_that_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    path.write_bytes(b"p\tACT1\np\tu\x01\np\tv\x02\n")
    with pytest.raises(SourceError, match=r"line 2: received 'u\\x01', expected printable text"):
        list(column_blocks(path, types=lambda first: [str, Only(frozenset({"ACT1"}))]))
