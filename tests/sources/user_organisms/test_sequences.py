"""Sequences of any organism; headers as publishers write them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.sources.user_organisms.files import data_folder, names_of, read, refused, write
from wildtype.organism import GeneIndex
from wildtype.organism.sequence_features import blocks_of_sequences
from wildtype.sources.user_organisms.description import SequencesPart
from wildtype.sources.user_organisms.sequences import identifiers

GENES = GeneIndex(
    ["b0001", "b0002", "b0003", "b0004"],
    {"b0001": "thrL", "b0002": "thrA"},
    {"b0003": ["P00547"], "b0004": ["ENSG04"]},
    organism="coli",
)


def part(folder: Path, text: str) -> SequencesPart:
    return SequencesPart(path=write(folder, "proteins.fasta.gz", text))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("b0001 some text", "b0001"),
        ("sp|P00561|AK1H_ECOLI Bifunctional OS=Escherichia coli OX=83333 GN=thrA PE=1 SV=2", "thrA"),
        ("sp|P00547|KHSE_ECOLI Homoserine kinase OS=Escherichia coli OX=83333 PE=1", "P00547"),
        ("lcl|NC_000913.3_prot_NP_414542.1_1 [gene=x] [locus_tag=b0001] [protein=thr]", "b0001"),
        ("lcl|NC_000913.3_prot_1 [gene=thrA] [protein=thr]", "thrA"),
        ("ENSP1.2 pep chromosome:1 gene:ENSG04.11 transcript:T.1 gene_symbol:X", "ENSG04"),
        ("gnl|db|b0004", "b0004"),
        ("b0002.1", "b0002"),
    ],
)
def test_headers_name_genes_in_the_usual_places(tmp_path: Path, header: str, name: str) -> None:
    assert name in identifiers(header)
    found = read("sequences", part(tmp_path, f">{header}\nMKV\nLA*\n"), tmp_path, GENES)
    assert np.isfinite(found.features[0].values).all(1).nonzero()[0].tolist() == [GENES.find(name)]


def test_proteins_give_the_blocks_of_their_plain_definition(tmp_path: Path) -> None:
    text = ">b0001\nMKVLA*\n>thrA isoform\nMK\n>b0002\nMKVVV\n>b0003\nMK*V\n>unknown\nMKV\n>b0004\nXX\n"
    text += ">b0001 b\nMKVLC\n"
    found = read("sequences", part(tmp_path, text), tmp_path, GENES)
    expected = blocks_of_sequences({"b0001": "MKVLA", "b0002": "MKVVV"}, GENES)
    assert [block.name for block in found.features] == [block.name for block in expected]
    for block, plain in zip(found.features, expected, strict=True):
        np.testing.assert_array_equal(block.values, plain.values)
    (card,) = found.cards
    assert (card.rows, card.used) == (7, 2)
    assert card.dropped == {
        "no usable letter": 1,
        "a stop inside the sequence": 1,
        "unknown gene": 1,
        "another sequence of the gene, of which the longest is read": 2,
    }
    assert card.note == "read as proteins"
    names = ["b0001", "b0002", "b0003", "b0004", "thrA", "unknown"]
    assert names_of("sequences", part(tmp_path, text), tmp_path) == names


def test_coding_sequences_are_read_in_frame(tmp_path: Path) -> None:
    text = ">b0001\natgaaaTAA\n>b0002\nATGAAATTTCCC\n>b0003\nATGA\n>b0004\nATGTAAAAA\n"
    found = read("sequences", part(tmp_path, text), tmp_path, GENES)
    assert [b.name for b in found.features] == ["codon_usage", "codon_bias", "protein", "protein_properties"]
    expected = blocks_of_sequences({"b0001": "ATGAAATAA", "b0002": "ATGAAATTTCCC"}, GENES)
    for block, plain in zip(found.features, expected, strict=True):
        np.testing.assert_allclose(block.values, plain.values)
    assert found.cards[0].dropped == {"length no multiple of three": 1, "a stop inside the sequence": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MKV\n", "line 1: received 'MKV"),
        (">b0001\nMKV\n>b0002\nMK1V\n", "row 3: the sequence of 'b0002' has the letter '1', expected am"),
        (f">b0001\n{'ATG' * 20}\n>b0002\nMKV\n", "row 3: the sequence of 'b0002' has the letter 'V'"),
        (">zzz\nMKV\n", "names no gene of organism 'coli' (its first names: zzz)"),
        (">b0001\nATGA\n", "no gene has a usable sequence"),
        (">b0001\nMKV\n>\nMKV\n", "line 3: received an empty header"),
    ],
)  # fmt: skip
def test_damage_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    line = refused("sequences", part(tmp_path, text), tmp_path, GENES)
    assert line.startswith("proteins.fasta.gz")
    assert message in line


def test_a_truncated_file_is_one_sentence(tmp_path: Path) -> None:
    given = part(tmp_path, ">b0001\nMKV\n")
    (tmp_path / given.path).write_bytes(gzip.compress(b">b0001\nMKV\n")[:-6])
    assert "is cut short" in refused("sequences", given, tmp_path, GENES)


@pytest.mark.real
def test_real_sequences_of_both_kinds() -> None:
    folder = data_folder("yeast")
    coding = SequencesPart(path="orf_coding_all_R64-2-1.fasta.gz")
    names = names_of("sequences", coding, folder)
    assert len(names) > 6000
    genes = GeneIndex(names, organism="yeast")
    found = read("sequences", coding, folder, genes)
    assert found.cards[0].used > 6000
    assert sum(found.cards[0].dropped.values()) < 100
    proteome = SequencesPart(path="uniprot_UP000002311_2023_11_30.fasta.gz")
    assert "TFC3" in names_of("sequences", proteome, folder)
    named = GeneIndex(["YAL001C", "YFL039C"], {"YAL001C": "TFC3", "YFL039C": "ACT1"}, organism="yeast")
    length = read("sequences", proteome, folder, named).features[0]
    at = length.columns.index("log10_length")
    np.testing.assert_allclose(10 ** length.values[:, at], [1160, 375], rtol=1e-4)
