"""Places of genes on chromosomes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.coordinates import (
    CHROMOSOMES,
    Coordinates,
    chromosome_numbers,
    coding_spans,
    read_feature_coordinates,
    read_gff_coordinates,
    read_sga_coordinates,
)
from wildtype.sources.yeast.genes.sgd import FEATURES

TABLE = "sga_chrom_coordinates_150617.tsv"
ROWS = (
    "YAL001C\t1\t151166\t147594\nYAL002W\t1\t143707\t147531\nYAR044W\t1\t1\t9\n"
    "YAR042W\t1\t192619\t196185\nYZZ999W\t4\t5\t9\n"
)


def test_annotated_genome(small, genes: GeneIndex, gff: str) -> None:
    """The file is written by hand in SGD's layout, which no mirror holds."""
    small.write("saccharomyces_cerevisiae.gff", gff)
    places, reading = read_gff_coordinates(small.path, genes)
    tfc3, ho, cox1, swh1 = (genes.find(name) for name in ("TFC3", "HO", "COX1", "SWH1"))
    assert places.chromosome[[tfc3, ho, cox1]].tolist() == [1, 4, 17]
    assert (places.start[tfc3], places.end[tfc3], places.strand[tfc3]) == (147.594, 151.166, -1)
    assert places.start[swh1] == 192.619  # its own row, not that of the ORF that was merged into it
    assert not places.known[genes.find("SSA1")]
    assert np.isnan(places.start[genes.find("SSA1")])
    assert reading.dropped == {
        "unknown gene": 1,
        "no place on a chromosome": 1,
        "ORF merged into a gene that has its own row": 1,
    }
    assert reading.rows == 8 == reading.kept + sum(reading.dropped.values())


def test_a_merged_orf_gives_its_place_where_the_gene_has_none(small, genes: GeneIndex) -> None:
    small.write(TABLE, ROWS.replace("YAR042W\t1\t192619\t196185\n", ""))
    places, reading = read_sga_coordinates(small.path, genes)
    assert places.start[genes.find("SWH1")] == 0.001
    assert reading.renamed == 1


def test_feature_table(small, genes: GeneIndex) -> None:
    small.write(FEATURES, small.text(FEATURES).replace("\t1\t10\t99\tW", "\t17\t99\t10\tC", 1))
    places, reading = read_feature_coordinates(small.path, genes)
    assert places.known.all()
    assert (places.chromosome[0], places.strand[0]) == (17, -1)
    assert (places.start[0], places.end[0]) == (0.010, 0.099)
    assert (places.chromosome[1], places.strand[1]) == (1, 1)
    assert reading.dropped == {"not an ORF": 13}
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_distance_is_the_gap_and_never_across_chromosomes() -> None:
    places = Coordinates(
        np.array([1, 1, 1, 2, 0]),
        np.array([10.0, 30.0, 15.0, 12.0, np.nan]),
        np.array([20.0, 40.0, 35.0, 13.0, np.nan]),
        np.zeros(5, np.int8),
        "by hand",
    )
    first, second = np.array([0, 1, 0, 0, 0]), np.array([1, 0, 2, 3, 4])
    np.testing.assert_array_equal(places.distance(first, second), [10, 10, 0, np.inf, np.nan])


def test_chromosome_names() -> None:
    assert chromosome_numbers(["chrI", "XVI", "chrmt", "2-micron", "contig"]).tolist() == [1, 16, 17, 18, 0]
    assert len(CHROMOSOMES) == 18


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W\t1", "YAL002W\t17", "line 2: received '17', expected a chromosome of 1 to 16"),
        ("147531", "0", "line 2: received '0', expected a base, a whole number of at least 1"),
        ("147531", "1.5", "line 2: received '1.5', expected a base"),
        ("147531", "end", "line 2: received 'end', expected a number"),
        ("\t147531", "", "line 2: received 3 fields, expected 4"),
    ],
)
def test_damage_of_the_sga_table_names_the_line(
    small, genes: GeneIndex, old: str, new: str, message: str
) -> None:
    small.write(TABLE, ROWS.replace(old, new))
    with pytest.raises(SourceError, match=message):
        read_sga_coordinates(small.path, genes)


def test_a_table_without_places_is_refused(small, genes: GeneIndex) -> None:
    small.write(FEATURES, re.sub(r"\t1\t\d+\t\d+\tW", "\t\t\t\t", small.text(FEATURES)))
    with pytest.raises(SourceError, match="no ORF with a place"):
        read_feature_coordinates(small.path, genes)


@pytest.mark.real
def test_real_places_agree(mirror: Path, real_genes: GeneIndex) -> None:
    features, first = read_feature_coordinates(mirror, real_genes)
    sga, second = read_sga_coordinates(mirror, real_genes)
    assert (first.rows, first.kept) == (16454, 6604)
    assert (second.rows, second.kept) == (6059, 6003)
    for reading in (first, second):
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert np.bincount(features.chromosome)[17:].tolist() == [28, 4]  # the mitochondrion and the plasmid
    both = np.flatnonzero(features.known & sga.known)
    assert (features.chromosome[both] == sga.chromosome[both]).all()
    assert (features.strand[both] == sga.strand[both]).all()
    assert (np.abs(features.start[both] - sga.start[both]) > 0.001).sum() == 1
    tfc3, vps8, ho = (np.array([real_genes.find(name)]) for name in ("TFC3", "VPS8", "HO"))
    assert features.distance(tfc3, vps8)[0] < 1
    assert features.distance(tfc3, ho)[0] == np.inf


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
