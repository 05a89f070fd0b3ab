"""Coding rows of an annotated genome; the file is written by hand in SGD's layout, which no mirror holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.sources.yeast.genes.gff import coding_spans


@pytest.fixture
def path(tmp_path: Path, gff: str) -> Path:
    (tmp_path / "genome.gff").write_text(gff)
    return tmp_path / "genome.gff"


def test_spans_are_those_of_coding_rows_not_of_genes(path: Path) -> None:
    spans = coding_spans(path)
    at = {name: i for i, name in enumerate(spans.names)}
    assert (spans.start[at["YAL001C"]], spans.end[at["YAL001C"]]) == (147594, 151166)
    assert (spans.start[at["YAL002W"]], spans.end[at["YAL002W"]]) == (143707, 147531)  # its gene is longer
    assert spans.strand[at["YAL001C"]] == -1
    assert spans.sequence[at["Q0045"]] == "chrmt"
    assert spans.accession[at["YAL001C"]] == "P34111"
    assert spans.accession[at["YAL002W"]] == ""
    assert "YEL009C" not in at  # a gene without a coding row
    assert spans.rows == 9


def test_nothing_after_the_fasta_mark_is_read(path: Path, gff: str) -> None:
    path.write_text(gff + "not\ta\trow\n")
    assert len(coding_spans(path).names) == 8


def test_names_are_percent_encoded(path: Path, gff: str) -> None:
    path.write_text(gff.replace("Name=YAR042W_CDS", "Name=YAR042W%5FCDS"))
    assert "YAR042W" in coding_spans(path).names


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "CDS\t147594\t151006",
            "CDS\t151006\t147594",
            "line 6: received bases '151006' to '147594', expected a",
        ),
        ("CDS\t147594\t151006", "CDS\tx\t151006", "line 6: received bases 'x' to"),
        ("CDS\t46271\t48031\t.\t+", "CDS\t46271\t48031\t.\tW", r"line 12: received strand 'W', expected \+"),
        ("CDS\t46271\t48031\t.\t+\t0", "CDS\t46271\t48031\t.\t+", "line 12: received 8 fields, expected 9"),
        ("Name=YAR042W_CDS", "Note=lost", "line 18: received a coding row without parent or name"),
        ("ID=YAL001C;Name=YAL001C", "ID=YAL001C;Parent=YAL001C", "line 6: .*parents go in a circle"),
        (
            "chrI\tSGD\tCDS\t151097",
            "chrII\tSGD\tCDS\t151097",
            "line 8: received 'YAL001C' on 'chrII', expected it on 'chrI'",
        ),
    ],
)
def test_damage_names_the_line(path: Path, gff: str, old: str, new: str, message: str) -> None:
    assert gff.count(old) == 1
    path.write_text(gff.replace(old, new))
    with pytest.raises(SourceError, match=message):
        coding_spans(path)


def test_a_genome_without_coding_rows_is_refused(path: Path, gff: str) -> None:
    path.write_text(gff.replace("\tCDS\t", "\texon\t"))
    with pytest.raises(SourceError, match="holds no row of type CDS"):
        coding_spans(path)
