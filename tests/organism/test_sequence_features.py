"""Descriptors of sequences against known proteins, and counts against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny import tiny_organism
from wildtype.errors import DatasetError, GeneSetError, SourceError
from wildtype.organism.sequence_features import (
    AMINO_ACIDS,
    CODONS,
    PROPERTY_COLUMNS,
    SENSE,
    STANDARD_CODE,
    coding_blocks,
    codon_bias,
    composition,
    count_codons,
    count_residues,
    describe_sequence,
    net_charge,
    properties,
    protein_blocks,
    residues_of_codons,
)

LYSOZYME = (  # hen egg white, mature
    "KVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAKFESNFNTQATNRNTDGSTDYGILQINSRWWCNDGRTPGSRNLCNIPCSALLSSDITASVNCAKKIVSDGNGMNAW"
    "VAWRNRCKGTDVQAWIRGCRL"
)
CODING = st.text("ACGT", min_size=30, max_size=90)


def described(sequence: str) -> dict[str, float]:
    return dict(zip(PROPERTY_COLUMNS, properties(count_residues([sequence]))[0].tolist(), strict=True))


def test_lysozyme_is_as_the_literature_has_it() -> None:
    found = described(LYSOZYME)
    assert len(LYSOZYME) == 129
    assert 10 ** found["log10_mass"] == pytest.approx(14313.1, abs=0.3)
    assert found["isoelectric_point"] == pytest.approx(9.32, abs=0.02)
    assert found["hydropathy"] == pytest.approx(-0.472, abs=1e-3)
    assert found["aliphatic_index"] == pytest.approx(65.12, abs=0.01)
    assert found["aromaticity"] == pytest.approx(12 / 129)
    assert found["net_charge"] * 129 == pytest.approx(8, abs=0.5)
    assert found["foldedness"] > 0


@given(st.lists(st.text(AMINO_ACIDS, min_size=1, max_size=40), min_size=1, max_size=4))
def test_properties_are_functions_of_each_protein_alone(sequences: list[str]) -> None:
    residues = count_residues(sequences)
    together = properties(residues)
    assert np.isfinite(together).all()
    for row, sequence in zip(together, sequences, strict=True):
        reverse = properties(count_residues([sequence[::-1]]))[0]
        np.testing.assert_allclose(row, reverse, rtol=1e-12, atol=1e-12)
        assert row[-1] <= np.log2(20) + 1e-9
    point = together[:, PROPERTY_COLUMNS.index("isoelectric_point")]
    assert np.abs(net_charge(residues, point)).max() < 1e-3
    assert not np.isnan(composition(residues, residues.sum(1))).any()


@given(CODING)
def test_codons_are_counted_in_frame(text: str) -> None:
    expected = np.zeros(64, np.int64)
    for start in range(0, len(text) - 2, 3):
        expected[CODONS.index(text[start : start + 3])] += 1
    np.testing.assert_array_equal(count_codons(text.lower()), expected)
    letters = [STANDARD_CODE[c] for c, times in enumerate(expected) for _ in range(times)]
    counted = residues_of_codons(expected[None])[0]
    assert counted.tolist() == [letters.count(aa) for aa in AMINO_ACIDS]


def test_effective_number_of_codons_at_its_ends() -> None:
    even = np.where(SENSE, 300, 0)
    one = np.zeros(64, np.int64)
    for aa in AMINO_ACIDS:
        one[STANDARD_CODE.index(aa)] = 300
    gc, gc3, effective = codon_bias(np.stack([even, one])).T
    assert effective == pytest.approx([61, 20], abs=0.3)
    assert 0.4 < gc[0] < 0.6
    assert gc3[1] < gc3[0]
    assert np.isfinite(codon_bias(count_codons("ATGGCT" * 5)[None])[:, :2]).all()


def test_a_further_gene_gets_the_components_that_it_would_have_had() -> None:
    draw = np.random.default_rng(0)
    texts = ["".join(draw.choice(list("ACGT"), 90)) for _ in range(9)]
    codons = np.stack([count_codons(text) for text in texts])
    block = coding_blocks(codons, np.arange(9), 9, count=4)[0]
    assert block.basis is not None
    sense = codons[:, SENSE] / codons[:, SENSE].sum(1, keepdims=True)
    for row in range(9):
        usage = dict(zip(block.basis.inputs, sense[row].tolist(), strict=True))
        np.testing.assert_allclose(block.basis.project(usage), block.values[row], atol=1e-6)


def test_coding_sequence_and_protein_agree() -> None:
    coding = "ATGGCTGAATTTAAATGGTAA"
    long, short = describe_sequence(coding), describe_sequence("maefkw*\n")
    assert set(long) - set(short) == {"codon_usage", "codon_bias"}
    for block in short:
        assert long[block] == pytest.approx(short[block])
    assert long["codon_usage"]["GCT"] == pytest.approx(1 / 6)
    protein = protein_blocks(["MAEFKW", ""])
    np.testing.assert_allclose(protein[1].values[0], list(short["protein_properties"].values()), rtol=1e-6)
    assert np.isnan(protein[0].values[1]).all()


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (" ", "is empty"),
        ("ATGG", "4 bases, which is not a multiple of three"),
        ("ATGTAAGCT", "a stop at codon 2 of 3"),
        ("MAE1", "the letter '1'"),
        ("XXX", "no unambiguous amino acid"),
        ("NNN", "no unambiguous amino acid"),
    ],
)
def test_what_is_no_sequence_is_refused(sequence: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        describe_sequence(sequence)


def test_any_organism_is_given_sequences_by_name() -> None:
    coding = {"G001": "ATGGCTGAATTTAAATGGTAA", "abc5": "ATGAAACTGTCTTGGGCA", "G007": "ATGGCAGCTGAA"}
    organism = tiny_organism().with_sequences(coding, source="here")
    blocks = ["codon_usage", "codon_bias", "protein", "protein_properties"]
    assert list(organism.features) == ["shape", *blocks]
    proteins = tiny_organism().with_sequences({"G001": "MAEFKW", "abc5": "MKLSWA*", "G007": "MAAE"})
    for name in blocks[2:]:
        block = organism.features[name]
        assert np.flatnonzero(np.isfinite(block.values).all(1)).tolist() == [1, 5, 7]
        np.testing.assert_allclose(block.values, proteins.features[name].values, rtol=1e-6)
    assert organism.features["protein"].source == "here"
    with pytest.raises(SourceError, match="'G001' has a coding sequence and 'G002' a protein"):
        tiny_organism().with_sequences({"G001": "ATGGCT", "G002": "MKL"})
    with pytest.raises(GeneSetError, match="names G001 more than once"):
        tiny_organism().with_sequences({"G001": "ATGGCT", "abc1": "ATGGCA"})
    with pytest.raises(DatasetError, match="no feature block made of sequences"):
        tiny_organism().add_gene("NEW1", sequence="MKL")
