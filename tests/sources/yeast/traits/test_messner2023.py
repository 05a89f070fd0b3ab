"""Proteomes: no real file is at hand; small ones are written here in exactly the published layout."""

from __future__ import annotations

import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.traits.messner2023 import MATRIX, METADATA, read

MATRIX_FILE, METADATA_FILE = f"{MATRIX.name}.gz", f"{METADATA.name}.gz"
PROTEOME = "UP000002311_559292.fasta.gz"
SAMPLES = {  # file name: sample type, ORF
    "s1": ("ko", "YAL002w"),
    "s2": ("ko", "YAL001C"),
    "s3": ("ko", "YAL001C"),
    "s4": ("HIS3", "YOR202W"),
    "s5": ("HIS3", "YOR202W"),
    "s6": ("qc", "NA"),
    "s7": ("ko", "YCL074W"),
}
TEXT = (
    "Protein.Group," + ",".join([*SAMPLES, "s8"]) + "\n"
    "P00001,10.5,20,30,40,50,60,70,80\n"
    "P00002,1,NA,3,4,5,6,7,8\n"
    "P00001;P00002,1,2,3,4,5,6,7,8\n"
    "P99999,1,2,3,4,5,6,7,8\n"
    "P00001-2;P00001,1000,NA,NA,NA,NA,NA,NA,NA\n"
)
HEAD = "Filename,Injection nr,Well nr (counted row-wise),Plate (batch) nr,sampletype,ORF\n"


def metadata() -> str:
    return HEAD + "".join(
        f'"{name}",{i},{i},1,{kind},{orf}\n' for i, (name, (kind, orf)) in enumerate(SAMPLES.items())
    )


@pytest.fixture
def messner(small):
    """A folder with a small matrix, its metadata and the headers of two proteins."""
    small.write(MATRIX_FILE, TEXT)
    small.write(METADATA_FILE, metadata())
    small.write(
        PROTEOME,
        ">sp|P00001|A_YEAST One OS=Saccharomyces cerevisiae OX=559292 GN=EFB1 PE=1 SV=1\nMA\n"
        ">sp|P00002|B_YEAST Two OS=Saccharomyces cerevisiae OX=559292 GN=SSA1 PE=1 SV=1\nMA\n",
    )
    return small


def test_every_intensity_names_mutant_and_gene(messner, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(messner.path, genes, collect=readings.append)
    rows = {
        (r.genotype.perturbations[0].gene if r.genotype.perturbations else "", r.trait, r.replicate): r.value
        for r in found.records()
    }
    assert rows == {
        ("YAL002W", "YAL003W", "P00001"): 10.5,
        ("YAL002W", "YAL003W", "P00001-2;P00001"): 1000,
        ("YAL002W", "YAL005C", ""): 1,
        ("YAL001C", "YAL003W", "s2 / P00001"): 20,
        ("YAL001C", "YAL003W", "s3 / P00001"): 30,
        ("YAL001C", "YAL005C", "s3"): 3,
        ("", "YAL003W", "s4 / P00001"): 40,
        ("", "YAL003W", "s5 / P00001"): 50,
        ("", "YAL005C", "s4"): 4,
        ("", "YAL005C", "s5"): 5,
    }
    accessions, matrix = readings
    assert accessions.kept == 2
    assert (matrix.rows, matrix.kept) == (5 * 8, 10)
    assert matrix.dropped == {
        "sample that the metadata do not list": 5,
        "quality control": 5,
        "unknown gene": 5,
        "protein group of several genes": 5,
        "protein group of no known gene": 5,
        "no value": 5,
    }


def test_without_a_file_of_uniprot_nothing_is_read(messner, genes: GeneIndex) -> None:
    messner.remove(PROTEOME)
    with pytest.raises(SourceError, match=r"UP000002311_559292\.fasta\.gz is not in"):
        read(messner.path, genes)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (MATRIX_FILE, "Protein.Group", "Protein", "line 1: received the first column 'Protein'"),
        (MATRIX_FILE, "s1,s2", "s1,s1", "line 1: received the column name 's1' again"),
        (MATRIX_FILE, "10.5", "ten", "line 2: received 'ten', expected a number in 's1'"),
        (MATRIX_FILE, "10.5,", "", "line 2: received 8 fields, expected 9"),
        (METADATA_FILE, "sampletype", "kind", "expected one named 'sampletype'"),
        (METADATA_FILE, ",qc,", ",blank,", "line 7: received 'blank', expected a sample type"),
        (METADATA_FILE, '"s2"', '"s1"', "line 3: received 's1', expected every sample once"),
        (METADATA_FILE, '"s2"', '"s2', "line 3: .* expected balanced double quotes"),
    ],
)
def test_another_layout_is_refused(
    messner, genes: GeneIndex, file: str, old: str, new: str, message: str
) -> None:
    messner.replace(file, old, new)
    with pytest.raises(SourceError, match=message):
        read(messner.path, genes)


@pytest.mark.parametrize("file", [MATRIX_FILE, METADATA_FILE])
def test_a_missing_or_truncated_file_is_named(messner, genes: GeneIndex, file: str) -> None:
    path = messner.path / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=rf"{file} is cut short"):
        read(messner.path, genes)
    path.unlink()
    with pytest.raises(SourceError, match="download it from Mendeley Data"):
        read(messner.path, genes)
