"""UniProt accessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.uniprot import base_accession, has_accessions, read_accessions

FASTA, DAT = "UP000002311_559292.fasta", "YEAST_559292_idmapping.dat"
HEADERS = (
    ">sp|P34111|TFC3_YEAST Transcription factor OS=Saccharomyces cerevisiae (strain S288c) OX=559292 "
    "GN=TFC3 PE=1 SV=3\nMV\n"
    ">sp|P61830|H3_YEAST Histone H3 OS=S OX=559292 GN=EF-1 beta PE=1 SV=2\nMA\n"
    ">sp|Q00001|NEW_YEAST New OS=S OX=559292 GN=NEW1 PE=1 SV=2\nMA\n"
    ">sp|Q00002|NON_YEAST None OS=S OX=559292 PE=4 SV=2\nMA\n"
    ">tr|Q00003|TFC_HUMAN Other OS=H OX=9606 GN=TFC3 PE=1 SV=2\nMA\n"
)
MAPPING = (
    "P34111\tUniProtKB-ID\tTFC3_YEAST\nP34111\tGene_Name\tTFC3\nP34111\tGene_OrderedLocusName\tYAL001C\n"
    "P61830\tGene_OrderedLocusName\tYAL002W\nP61830-1\tGene_OrderedLocusName\tYAL003W\n"
    "P61830\tGene_OrderedLocusName\tYAL002W\nQ00001\tGene_Name\tSSA1\nQ00002\tGene_OrderedLocusName\tYZZ999W\n"
    "Q00002\tGene_Name\tDOUBLE\n"
)


def test_headers_name_one_gene_each(small, genes: GeneIndex) -> None:
    small.write(FASTA, HEADERS)
    found, reading = read_accessions(small.path, genes)
    assert found == {"P34111": (0,), "P61830": (2,)}
    assert reading.dropped == {"another organism": 1, "no gene name in the header": 1, "unknown gene": 1}
    assert (reading.rows, reading.renamed) == (5, 1)
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_the_mapping_knows_all_genes_of_a_protein(small, genes: GeneIndex) -> None:
    """Written by hand in the layout accession, kind, identifier, which is not confirmed."""
    small.write(FASTA, HEADERS)
    small.write(DAT, MAPPING)
    found, reading = read_accessions(small.path, genes)
    assert found == {"P34111": (0,), "P61830": (1, 2), "Q00001": (4,)}
    assert reading.file == DAT
    assert reading.dropped == {
        "another kind of identifier": 2,
        "unknown gene": 1,
        "ambiguous gene name": 1,
        "listed twice": 1,
    }
    assert reading.rows == 9 == reading.kept + sum(reading.dropped.values())


def test_the_annotated_genome_names_products(small, genes: GeneIndex, gff: str) -> None:
    small.write(FASTA, HEADERS)
    small.write("saccharomyces_cerevisiae.gff.gz", gff)
    found, reading = read_accessions(small.path, genes)
    assert found == {"P34111": (0,), "P00401": (genes.find("Q0045"),)}
    assert reading.dropped == {"unknown gene": 1, "no accession": 5}
    assert reading.rows == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            FASTA,
            HEADERS.replace(">sp|Q00001|", ">Q00001 "),
            "line 5: received 'Q00001 NEW_YEAST.*expected a header",
        ),
        (FASTA, HEADERS.replace(" OX=9606", ""), "line 9: received 'tr.*expected a header of UniProt"),
        (FASTA, "P34111\n", "line 1: received 'P34111.*expected a FASTA header"),
        (DAT, MAPPING.replace("\tYAL001C", ""), "line 3: received 2 fields, expected 3"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, file: str, text: str, message: str) -> None:
    small.write(file, text)
    with pytest.raises(SourceError, match=message):
        read_accessions(small.path, genes)


def test_isoforms_and_chains_are_the_protein() -> None:
    assert base_accession("P00410-PRO_0000006048") == base_accession("P00410-2") == "P00410"


def test_missing_files_are_named(small, genes: GeneIndex) -> None:
    assert not has_accessions(small.path)
    with pytest.raises(SourceError, match=r"UP000002311_559292\.fasta\.gz is not in .*fetch it from https"):
        read_accessions(small.path, genes)


@pytest.mark.real
def test_real_proteome(mirror: Path, real_genes: GeneIndex) -> None:
    found, reading = read_accessions(mirror, real_genes)
    assert (reading.rows, reading.kept, reading.dropped) == (6060, 5933, {"unknown gene": 127})
    assert found["P34111"] == (real_genes.find("TFC3"),)
