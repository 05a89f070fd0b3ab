"""Codon usage and amino-acid composition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.sequences import CODING, read_sequence_blocks


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
