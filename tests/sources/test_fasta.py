"""FASTA records."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import SourceError
from wildtype.sources.fasta import read_fasta


def test_records_keep_their_line_and_lose_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.fasta").write_text('>YAL001C TFC3, "a > b"\nacg\nT\n>YAL002W\n\n')
    first, second = read_fasta(tmp_path / "a.fasta")
    assert (first.line, first.name, first.sequence) == (1, "YAL001C", "ACGT")
    assert first.header == 'YAL001C TFC3, "a > b"'
    assert (second.line, second.name, second.sequence) == (4, "YAL002W", "")


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Z]{1,8}", fullmatch=True), st.text("ACGT", max_size=40), st.integers(1, 9)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, records: list[tuple]) -> None:
    path = tmp_path_factory.mktemp("fasta") / "a.fasta"
    text = ""
    for name, sequence, width in records:
        lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
        text += "\n".join([f">{name}", *lines]) + "\n"
    path.write_text(text)
    found = read_fasta(path)
    assert [(r.name, r.sequence) for r in found] == [(name, sequence) for name, sequence, _ in records]
    for record in found:
        assert text.split("\n")[record.line - 1] == f">{record.name}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ACGT\n", "line 1: received 'ACGT"),
        (">A\nAC\n> \nGT\n", "line 3: received an empty header"),
        ("", "line 1: received ''"),
    ],
)
def test_damage_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.fasta").write_text(text)
    with pytest.raises(SourceError, match=message):
        read_fasta(tmp_path / "a.fasta")
