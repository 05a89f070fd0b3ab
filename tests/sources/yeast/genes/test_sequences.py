"""Codon usage and amino-acid composition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.sequences import CODING, has_proteins, read_proteins, read_sequence_blocks
from wildtype.sources.yeast.genes.sgd import CODING_SEQUENCES


def test_composition_and_length_of_a_known_sequence(small, genes: GeneIndex) -> None:
    small.replace(
        CODING, "ATGGCTGAA\nAAACTGTCT\n", "ATGGCTGCC\nNNNaaaTAAC\n"
    )  # M A A ? K stop, one base over
    blocks, reading = read_sequence_blocks(small.path, genes)
    protein = blocks[2]
    row = dict(zip(protein.columns, protein.values[0], strict=True))
    assert row["fraction_A"] == pytest.approx(0.5)
    assert row["fraction_M"] == row["fraction_K"] == pytest.approx(0.25)
    assert row["log10_length"] == pytest.approx(np.log10(4))
    assert sum(row[c] for c in protein.columns if c.startswith("fraction")) == pytest.approx(1)
    assert reading.dropped == {"unknown gene": 1}


def test_synonymous_codons_change_usage_but_not_composition(small, genes: GeneIndex) -> None:
    before, _ = read_sequence_blocks(small.path, genes)
    small.replace(CODING, "ATGGCTGAA", "ATGGCCGAG")  # Ala and Glu, by other codons
    after, _ = read_sequence_blocks(small.path, genes)
    np.testing.assert_allclose(after[2].values, before[2].values)
    assert np.abs(after[0].values - before[0].values).max() > 1e-3


def test_a_sequence_without_codons_is_missing_and_counted(small, genes: GeneIndex) -> None:
    small.replace(CODING, "ATGGCTGAA\nAAACTGTCT\n", "AT\n")
    blocks, reading = read_sequence_blocks(small.path, genes)
    assert np.isnan(blocks[0].values[0]).all()
    assert np.isnan(blocks[2].values[0]).all()
    assert reading.dropped["shorter than one codon"] == 1
    assert reading.rows == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ATG\n", "line 1: .*expected a FASTA header"),
        (">YAL001C\nATG\n>\nATG\n", "line 3: received an empty header"),
        (">YAL001C\nATG\n>YAL002W x\nATGQ\n", "line 3: the sequence of 'YAL002W' has a letter other than"),
        (">nothing\nATGGCT\n", "no usable row of a gene"),
    ],
)
def test_damage_is_named(small, genes: GeneIndex, text: str, message: str) -> None:
    small.write(CODING, text)
    with pytest.raises(SourceError, match=message):
        read_sequence_blocks(small.path, genes)


@pytest.mark.real
def test_real_sequences(mirror: Path, real_genes: GeneIndex) -> None:
    blocks, reading = read_sequence_blocks(mirror, real_genes)
    assert [block.values.shape for block in blocks] == [(6604, 24), (6604, 3), (6604, 21), (6604, 9)]
    assert (reading.rows, reading.kept) == (6713, 6604)
    length = blocks[2].values[real_genes.find("GAL4"), -1]
    assert round(10**length) == 881
    # Highly expressed genes use preferred codons: the ribosomal protein and the glycolytic gene lie together.
    usage = blocks[0].values
    near = np.linalg.norm(usage[real_genes.find("RPL3")] - usage[real_genes.find("TDH3")])
    far = np.linalg.norm(usage[real_genes.find("RPL3")] - usage[real_genes.find("GAL4")])
    assert near < far


TRANSLATED = "orf_trans_all.fasta"
PROTEINS = (
    ">YAR044W SGDID:S1, merged\nMK*\n"
    '>YAR042W SWH1 SGDID:S2, Chr I, "text > more"\nMKKL\nacw*\n'
    ">YAL001C TFC3\nMVLT*\n"
    ">YAL002W VPS8\nMV*LT*\n"
    ">YAL003W EFB1\n*\n"
    ">YZZ999W\nMV*\n"
    ">Q0045 COX1\nMXU*\n"
)


def test_translations_of_sgd(small, genes: GeneIndex) -> None:
    """The file is written by hand in SGD's layout, which no mirror holds."""
    small.write(TRANSLATED, PROTEINS)
    proteins, reading = read_proteins(small.path, genes)
    assert proteins.sequence[genes.find("SWH1")] == "MKKLACW"  # not that of the ORF merged into it
    assert proteins.sequence[0] == "MVLT"
    assert proteins.sequence[1] == ""
    assert reading.dropped == {
        "a stop inside the sequence": 1,
        "listed twice": 1,
        "no amino acid": 1,
        "unknown gene": 1,
    }
    assert reading.rows == 7 == reading.kept + sum(reading.dropped.values())


def test_block_is_composition_and_length(small, genes: GeneIndex) -> None:
    small.write(TRANSLATED, PROTEINS)
    block = read_proteins(small.path, genes)[0].blocks()[0]
    row = dict(zip(block.columns, block.values[0], strict=True))
    assert row["fraction_V"] == row["fraction_T"] == 0.25
    assert row["log10_length"] == pytest.approx(np.log10(4))
    assert block.values[genes.find("COX1"), block.columns.index("fraction_M")] == 1  # X and U count nowhere
    assert np.isnan(block.values[1]).all()


def test_sequences_of_uniprot_by_accession(small, genes: GeneIndex) -> None:
    small.write(
        "UP000002311_559292.fasta", ">sp|P34111|TFC3_YEAST x OS=S OX=559292 GN=TFC3 PE=1 SV=2\nMVLT\n"
    )
    proteins, reading = read_proteins(small.path, genes)
    assert proteins.sequence[0] == "MVLT"
    assert proteins.source == "UniProt reference proteome"
    assert reading.kept == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROTEINS.replace("MVLT", "MV1T"), "line 6: the sequence of 'YAL001C' has the letter '1'"),
        ("MVLT\n", "line 1: received 'MVLT.*expected a FASTA header"),
        (">YZZ999W\nMV\n", "no sequence of a gene"),
    ],
)
def test_damage_is_named_of_protein(small, genes: GeneIndex, text: str, message: str) -> None:
    small.write(TRANSLATED, text)
    with pytest.raises(SourceError, match=message):
        read_proteins(small.path, genes)


def test_without_a_file_there_are_no_proteins(small, genes: GeneIndex) -> None:
    assert not has_proteins(small.path)
    with pytest.raises(SourceError, match=r"UP000002311_559292\.fasta\.gz is not in"):
        read_proteins(small.path, genes)


@pytest.mark.real
def test_real_proteins_are_the_translated_coding_sequences(mirror: Path, real_genes: GeneIndex) -> None:
    proteins, reading = read_proteins(mirror, real_genes)
    assert (reading.rows, reading.kept) == (6060, 5932)
    assert reading.dropped == {"listed twice": 1, "unknown gene": 127}
    assert len(proteins.sequence[real_genes.find("GAL4")]) == 881
    block, translated = proteins.blocks()[0], read_sequence_blocks(mirror, real_genes)[0][2]
    assert block.columns == translated.columns
    both = np.isfinite(block.values).all(1) & np.isfinite(translated.values).all(1)
    same = np.abs(block.values[both] - translated.values[both]).max(1) < 1e-5
    assert same.mean() > 0.99
    assert CODING_SEQUENCES.find(mirror) is not None
