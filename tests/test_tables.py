from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wildtype.errors import SourceError
from wildtype.tables import FrameBlocks, frame_to_csv, harmless, read_frame, with_line_feeds, writing_frame

PLAIN = b"genes,value\n1,2\n\n 3,4\n\t5,6\n,\n7,8"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_text_of_a_table_is_a_formula(start: str) -> None:
    formula = f"{start}cmd|' /C calc'!A0"
    frame = pd.DataFrame({"genes": [formula, "G001,G002", None], formula: [-0.5, 1.0, None]})
    text = frame_to_csv(frame)
    assert text.count(f"'{formula}") == text.count(formula) == 2  # a name and a cell
    assert '"G001,G002",1.0' in text
    assert ",-0.5" in text


def test_a_json_table_holds_small_numbers_whole(tmp_path: Path) -> None:
    with writing_frame(tmp_path / "a.json") as writer:
        writer.write(pd.DataFrame({"epsilon": [-1.2166e-10, 0.123456789012345]}))
    (first, second) = json.loads((tmp_path / "a.json").read_text())
    assert first["epsilon"] == pytest.approx(-1.2166e-10, rel=1e-4)
    assert second["epsilon"] == 0.123456789012345


def test_numbers_stay() -> None:
    assert harmless(-0.5) == -0.5


@pytest.mark.parametrize("cell", ["-0.35", "+0.2", "-1", "-1.", "+.5", "-1e-3", "+2.5E+07"])
def test_a_number_with_a_sign_that_was_read_as_a_text_stays_a_number(cell: str) -> None:
    assert harmless(cell) == cell
    assert frame_to_csv(pd.DataFrame({"score": [cell]})) == f"score\n{cell}\n"


@pytest.mark.parametrize(
    "cell", ["-1+2", "-0.35 ", "+", "-.", "-1e", "-1\n", "--1", "-1_0", "=1", "-inf", "-٣"]
)
def test_a_text_that_only_begins_like_a_number_is_guarded(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"


def test_only_an_empty_cell_of_a_csv_file_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("genes,note\nNA,\nnan,NA\nnull,None\n,N/A\n")
    expected = pd.DataFrame(
        {"genes": ["NA", "nan", "null", np.nan], "note": [np.nan, "NA", "None", "N/A"]}, dtype=object
    )
    pd.testing.assert_frame_equal(read_frame(path, "rows"), expected)
    blocks = pd.concat(list(FrameBlocks(path, "rows", 3)), ignore_index=True)
    pd.testing.assert_frame_equal(blocks, expected)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["unix", "windows", "old mac"])
def test_a_table_has_the_rows_that_it_has_whatever_ends_its_lines(tmp_path: Path, ending: bytes) -> None:
    # After an empty line, pandas made 262,145 rows of a line that begins with a space and ends in "\r".
    path = tmp_path / "table.csv"
    path.write_bytes(PLAIN.replace(b"\n", ending))
    expected = pd.read_csv(io.BytesIO(PLAIN), dtype=str)
    assert len(expected) == 5
    pd.testing.assert_frame_equal(read_frame(path, "rows"), expected)
    blocks = pd.concat(list(FrameBlocks(path, "rows", 2)), ignore_index=True)
    pd.testing.assert_frame_equal(blocks, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_line_may_end_between_two_pieces_of_a_stream(size: int) -> None:
    draw = np.random.default_rng(0)
    lines = [bytes(draw.choice(list(b"ab ,"), int(n))) for n in draw.integers(0, 6, 200)]
    for ending in (b"\r\n", b"\r", b"\n"):
        stream = io.BufferedReader(with_line_feeds(io.BytesIO(ending.join(lines))).detach(), size)
        assert stream.read() == b"\n".join(lines)
    mixed = b"a\r\r\n\n\rb\r"
    found = io.BufferedReader(with_line_feeds(io.BytesIO(mixed)).detach(), size)
    assert b"".join(iter(lambda: found.read(size), b"")) == b"a\n\n\n\nb\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "genes\nb0902,b1761\n",
            r"first row of .* has 2 cells \('b0902,b1761'\) and the header 1: put the genes",
        ),
        ("genes,comment\nA,B,good\nC,D,bad\n", "has 3 cells .'A,B,good'. and the header 2"),
        ("id,genes\n1,A,B\n2,C\n", "has 3 cells .'1,A,B'. and the header 2"),
        ("genes,genes\nA,B\n", "has 2 columns 'genes': give each a name of its own"),
    ],
)
def test_a_row_with_more_cells_than_the_header_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """pandas takes the first cells for an index: genes of unquoted cells were lost, without a word."""
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=message):
        read_frame(path, "gene sets")
    with pytest.raises(SourceError, match=message):
        list(FrameBlocks(path, "gene sets", 1))
