"""Reading publishers' text files: every damage gives one clear sentence, and nothing is dropped silently."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import (
    AMBIGUOUS,
    UNKNOWN,
    count_reasons,
    match_genes,
    read_bytes,
    read_rows,
    read_text,
    require,
)


def write(path: Path, data: str | bytes, *, compressed: bool = True) -> Path:
    raw = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    return path


def test_plain_gzip_and_several_gzip_members_give_the_same_text(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.tsv", "x\ty\n1\t2\n", compressed=False)
    packed = write(tmp_path / "b.tsv.gz", "x\ty\n1\t2\n")
    members = tmp_path / "c.tsv.gz"
    members.write_bytes(gzip.compress(b"x\ty\n") + gzip.compress(b"1\t2\n") + b"\0\0")
    assert read_text(plain) == read_text(packed) == read_text(members) == "x\ty\n1\t2\n"


def test_missing_file_names_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"a\.gz is not in .*fetch it"):
        require(tmp_path, "a.gz")
    with pytest.raises(SourceError, match=r"a\.gz does not exist"):
        read_bytes(tmp_path / "a.gz")
    with pytest.raises(SourceError, match="cannot be read"):
        read_bytes(tmp_path)


@pytest.mark.parametrize("cut", [3, 12, 30, -9, -4, -1])
def test_a_gzip_file_cut_anywhere_is_refused(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "a.gz", "".join(f"{i}\t{i * i}\n" for i in range(1000)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SourceError, match=r"a\.gz is cut short.*fetch the publisher's file again"):
        read_text(path)


def test_a_changed_byte_in_a_gzip_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", "".join(f"{i}\t{i * i}\n" for i in range(1000)))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # the checksum
    path.write_bytes(bytes(data))
    with pytest.raises(SourceError, match="is not a whole gzip file"):
        read_text(path)


def test_bytes_after_the_gzip_stream_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", "1\n")
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceError, match="4 bytes after its gzip stream"):
        read_text(path)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_decompression_bomb_is_refused_before_it_unfolds(tmp_path: Path, compressed: bool) -> None:
    path = write(tmp_path / "a.gz", b"0" * (2 << 20), compressed=compressed)
    with pytest.raises(SourceError, match="holds more than 1 MiB of text"):
        read_bytes(path, limit=1 << 20)
    assert len(read_bytes(path, limit=2 << 20)) == 2 << 20


def test_bad_utf8_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", b"good\nalso good\nb\xe9d\n")
    with pytest.raises(SourceError, match=r"line 3: received byte 0xe9, expected UTF-8"):
        read_text(path)


@pytest.mark.parametrize(("mark", "what"), [("\r", "stray carriage return"), ("\0", "NUL character")])
def test_control_characters_name_the_line(tmp_path: Path, mark: str, what: str) -> None:
    with pytest.raises(SourceError, match=rf"line 2: received a {what}"):
        read_text(write(tmp_path / "a.gz", f"a\r\nb{mark}c\r\n"))


def test_rows_keep_line_numbers_over_comments_header_and_windows_line_ends(tmp_path: Path) -> None:
    rows = read_rows(
        write(tmp_path / "a.gz", "# made by hand\r\n#\r\nx\ty\r\n1\t a \r\n2\tb\r\n\r\n"),
        header=("x", "y"),
        comment="#",
    )
    assert rows.comments == ("made by hand", "")
    assert rows.header == ("x", "y")
    assert rows.line.tolist() == [4, 5]
    assert rows.text(1) == ["a", "b"]
    assert rows.numbers(0).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\tz\n1\t2\n", r"line 1: received the header 'x, z', expected x, y"),
        ("x\n1\n", r"line 1: received the header 'x', expected x, y"),
        ("x\ty\tz\n1\t2\t3\n", r"line 1: received the header 'x, y, z', expected x, y;"),
        ("x\ty\n1\t2\n1\n", r"line 3: received 1 fields, expected 2"),
        ("x\ty\n1\t2\t3\n", r"line 2: received 3 fields, expected 2"),
        ("x\ty\n1\t2\n\n3\t4\n", r"line 3: received a blank line, expected a row"),
        ("x\ty\n", r"holds no rows, expected at least one"),
        ("", r"is empty, expected a header line"),
    ],
)
def test_wrong_layouts_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_rows(write(tmp_path / "a.gz", text), header=("x", "y"))


def test_open_header_needs_a_further_column_and_no_column_twice(tmp_path: Path) -> None:
    assert read_rows(write(tmp_path / "a.gz", "x\tp\tq\n1\t2\t3\n"), header=("x", ...)).header == (
        "x",
        "p",
        "q",
    )
    with pytest.raises(SourceError, match="expected x and further columns"):
        read_rows(write(tmp_path / "a.gz", "x\n1\n"), header=("x", ...))
    with pytest.raises(SourceError, match="received the column 'p' twice"):
        read_rows(write(tmp_path / "a.gz", "x\tp\tp\n1\t2\t3\n"), header=("x", ...))


def test_columns_without_a_name_must_be_empty(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.gz", "x\ty\t\t\n1\t2\t\t\n"), header=("x", "y"))
    assert rows.header == ("x", "y")
    with pytest.raises(SourceError, match="line 2: received a value in a column without a name"):
        read_rows(write(tmp_path / "a.gz", "x\ty\t\t\n1\t2\t\t7\n"), header=("x", "y"))


def test_ragged_files_and_blank_lines_only_where_allowed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", "1\t2\n\n3\t4\t5\n")
    rows = read_rows(path, least=2, blank_lines=True)
    assert (rows.blank, rows.line.tolist(), rows.text(1)) == (1, [1, 3], ["2", "4"])
    with pytest.raises(SourceError, match="line 3: received 3 fields, expected at least 4"):
        read_rows(write(tmp_path / "b.gz", "1\t2\t3\t4\n1\t2\t3\t4\n1\t2\t3\n"), least=4)


def test_quoted_fields_hold_separators_and_unbalanced_quotes_name_the_line(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.gz", 'a,"b,c",d\n1,2,3\n'), separator=",", fields=3, quoted=True)
    assert rows.cells == [["a", "b,c", "d"], ["1", "2", "3"]]
    with pytest.raises(SourceError, match="line 2: .*balanced double quotes"):
        read_rows(write(tmp_path / "a.gz", '1,2,3\na,"b,c\n'), separator=",", fields=3, quoted=True)


@pytest.mark.parametrize("value", ["NaN", "inf", "", "abc", "1_000", "1e400", "2e30", "٣", "1,5"])
def test_a_value_that_is_no_number_names_line_and_column(tmp_path: Path, value: str) -> None:
    rows = read_rows(write(tmp_path / "a.gz", f"x\tscore\n1\t0.5\n2\t{value}\n"), header=("x", "score"))
    with pytest.raises(SourceError, match=r"line 3: received .*, expected a number in 'score'"):
        rows.numbers(1)


def test_only_the_named_missing_values_become_nan(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.gz", "1\tNaN\n2\t\n3\t-0.5\n"), fields=2)
    np.testing.assert_array_equal(rows.numbers(1, missing=("NaN", "")), [np.nan, np.nan, -0.5])
    with pytest.raises(SourceError, match="line 1"):
        rows.numbers(1, missing=("",))


def test_refuse_names_the_first_offending_row(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.gz", "1\n5\n7\n"), fields=1)
    rows.refuse(0, rows.numbers(0) > 9, "at most 9")
    with pytest.raises(SourceError, match="line 2: received '5', expected at most 4"):
        rows.refuse(0, rows.numbers(0) > 4, "at most 4")


def test_long_values_are_shortened_in_messages(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "a.gz", "z" * 5000 + "\n"), fields=1)
    with pytest.raises(SourceError) as caught:
        rows.numbers(0)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


NAMES = GeneIndex(
    ["YAL001C", "YAL002W", "YAL003W"],
    {"YAL001C": "TFC3", "YAL002W": "VPS8"},
    {"YAL001C": ["FUN24", "BOTH"], "YAL003W": ["BOTH", "YAL099W"]},
    "yeast",
)


def test_names_are_matched_with_reasons() -> None:
    matched = match_genes(["YAL002W", "TFC3", "YAL099W", "BOTH", "nothing", "YAL099W"], NAMES)
    assert matched.position.tolist() == [1, 0, 2, -2, -1, 2]
    assert matched.renamed.tolist() == [False, False, True, False, False, True]
    assert matched.found.tolist() == [True, True, True, False, False, True]
    assert matched.dropped() == {UNKNOWN: 1, AMBIGUOUS: 1}


@given(
    st.lists(
        st.sampled_from([*NAMES.names, "TFC3", "vps8", "FUN24", "BOTH", "x", "", " YAL001C"]), max_size=40
    )
)
def test_matching_many_names_equals_looking_up_each(names: list[str]) -> None:
    matched = match_genes(names, NAMES)
    for name, position in zip(names, matched.position, strict=True):
        if position >= 0:
            assert NAMES.find(name) == position
        else:
            assert (name in NAMES) == (position == -2)
    assert matched.found.sum() + sum(matched.dropped().values()) == len(names)


def test_counts_leave_out_zeros() -> None:
    assert count_reasons({"a": np.array([True, False, True]), "b": np.zeros(3, bool)}) == {"a": 2}


def test_a_reading_prints_what_became_of_the_rows() -> None:
    text = str(ReadReport("f.gz", "physical", 1200, 1000, {"self-loop": 200}, 3))
    assert (
        text == "f.gz: 1,200 rows read, 1,000 kept, 200 self-loop, 3 of the kept name a gene by an older name"
    )


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused_with_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, compressed: bool
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "fuzz.gz", data, compressed=compressed)
    try:
        rows = read_rows(path, fields=2)
        rows.numbers(0)
    except SourceError as error:
        refused = str(error)
        named = "fuzz.gz" in refused
    else:
        named = len(rows) == len(rows.line) > 0
    assert named
