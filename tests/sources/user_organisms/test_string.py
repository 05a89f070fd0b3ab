"""STRING of any taxon; the files are written by hand in the published layouts of several versions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.user_organisms.files import names_of, read, refused, write
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.string_links import read_aliases, resolve
from wildtype.sources.user_organisms.description import String

GENES = GeneIndex(
    ["ENSG1", "ENSG2", "ENSG3", "ENSG4"],
    {"ENSG1": "TP53", "ENSG2": "MDM2", "ENSG3": "EP300", "ENSG4": "P53"},
    {"ENSG3": ["KAT3B"]},
    organism="human",
)
LINKS = """protein1 protein2 neighborhood fusion cooccurence coexpression experimental database textmining combined_score
9606.P1 9606.P2 0 0 0 62 999 900 999 999
9606.P2 9606.P1 0 0 0 62 999 900 999 999
9606.P1 9606.P3 0 0 0 400 0 0 500 600
9606.P3 9606.P1 0 0 0 410 0 0 500 600
9606.P4 9606.P1 0 0 0 0 200 0 0 200
9606.P9 9606.P1 0 0 0 500 0 0 0 500
9606.P2 9606.P3 0 0 0 0 0 0 800 800
9606.P5 9606.P1 0 0 0 700 0 0 0 700
"""  # noqa: E501
ALIASES = """#string_protein_id	alias	source
9606.P1	TP53	Ensembl_HGNC_symbol
9606.P1	tumour protein	BLAST
9606.P1	P53	UniProt_GN_Synonyms
9606.P1	ENSG1	Ensembl_gene
9606.P2	MDM2	Ensembl_HGNC_symbol
9606.P3	kat3b	Ensembl_HGNC_synonym
9606.P4	TP53	one
9606.P4	MDM2	other
9606.P5	ENSG1	Ensembl_gene
9606.P6	ENSG4	Ensembl_gene
"""


def part(folder: Path, links: str = LINKS, aliases: str = ALIASES, **options: object) -> String:
    path = write(folder, "9606.protein.links.detailed.v12.0.txt.gz", links)
    names = write(folder, "9606.protein.aliases.v12.0.txt.gz", aliases) if aliases else ""
    return String(name="string", path=path, format="string", aliases=names, **options)


def test_a_relation_per_channel(tmp_path: Path) -> None:
    found = read("relations", part(tmp_path), tmp_path, GENES)
    relations = {relation.name: relation for relation in found.relations}
    assert list(relations) == [
        f"string_{name}"
        for name in ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database")
    ]
    coexpression = relations["string_coexpression"]
    tp53, mdm2, ep300 = (GENES.find(name) for name in ("TP53", "MDM2", "EP300"))
    assert coexpression.adjacency[tp53, mdm2] == coexpression.adjacency[mdm2, tp53] == np.float32(0.062)
    assert coexpression.adjacency[tp53, ep300] == np.float32(0.41)  # the larger of both orders
    assert (coexpression.edges, coexpression.version, coexpression.source) == (2, "12.0", "STRING")
    assert "genetic interactions" in relations["string_experimental"].note
    assert "genetic interactions" not in coexpression.note
    card, aliases = found.cards
    assert (card.rows, card.used) == (8, 2)
    assert card.dropped == {
        "no channel with a score of 1 or more": 1,  # text mining alone
        "unknown gene": 1,
        "ambiguous gene name": 1,
        "self-loop": 1,  # P5 is the same gene as P1
        "duplicate": 2,
    }
    assert card.examples == {
        "unknown gene (1 names)": ("9606.P9",),
        "ambiguous gene name (1 names)": ("9606.P4",),
    }
    assert (aliases.file, aliases.rows, aliases.used) == ("9606.protein.aliases.v12.0.txt.gz", 10, 8)
    for relation in found.relations:
        lost = sum(relation.dropped.values())
        assert relation.edges + lost == card.rows


def test_channels_and_cut_off(tmp_path: Path) -> None:
    given = part(tmp_path, channels=["textmining", "combined_score"], cutoff=600)
    found = {relation.name: relation for relation in read("relations", given, tmp_path, GENES).relations}
    assert {name: relation.edges for name, relation in found.items()} == {
        "string_textmining": 2,
        "string": 2 + 1,
    }
    assert found["string"].adjacency[GENES.find("TP53"), GENES.find("EP300")] == np.float32(0.6)
    assert found["string_textmining"].dropped["pair below the cut-off in this channel"] == 1


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("protein1 protein2 combined_score", "string"),
        ("protein1 protein2 experimental database textmining combined_score", "string_experimental"),
        ("protein1 protein2 homology experiments experiments_transferred combined_score", "string_homology"),
    ],
)
def test_other_files_of_links(tmp_path: Path, header: str, name: str) -> None:
    scores = " ".join(["700"] * (len(header.split()) - 2))
    given = part(tmp_path, f"{header}\n9606.P1 9606.P2 {scores}\n")
    relation = read("relations", given, tmp_path, GENES).relations[0]
    assert (relation.name, relation.edges) == (name, 1)


@pytest.mark.parametrize(
    "names",
    [
        "9606.P1\tTP53\tx\n9606.P2\tMDM2\tx\n",
        "## string_protein_id ## alias ## source ##\n9606.P1\tTP53\tx\n9606.P2\tMDM2\tx\n",
        "## species_ncbi_taxon_id ## protein_id ## alias ## source ##\n9606\tP1\tTP53\tx\n"
        "9606\tP2\tMDM2\tx\n",
        "#string_protein_id\tpreferred_name\tprotein_size\tannotation\n9606.P1\tTP53\t393\tIt \"acts\".\n"
        "9606.P2\tMDM2\t491\tN/A\n",
        "protein_external_id\tpreferred_name\tprotein_size\tannotation\n9606.P1\tTP53\t393\ta\n9606.P2\tMDM2\t1\tb\n",
    ],
)  # fmt: skip
def test_names_of_proteins_in_the_layouts_of_all_versions(tmp_path: Path, names: str) -> None:
    head = LINKS.split("\n")[:2]
    found = read("relations", part(tmp_path, "\n".join(head) + "\n", names), tmp_path, GENES)
    assert found.relations[4].edges == 1
    assert found.cards[1].rows == found.cards[1].used == 2


def test_identifiers_that_are_names_need_no_aliases(tmp_path: Path) -> None:
    bacterium = GeneIndex(["b0001", "b0002"], organism="coli")
    given = part(tmp_path, "protein1 protein2 combined_score\n511145.b0001 511145.b0002 900\n", "")
    assert read("relations", given, tmp_path, bacterium).relations[0].edges == 1
    assert names_of("relations", given, tmp_path) == ["b0001", "b0002"]


def test_names_are_preferred_ones_where_a_file_gives_them(tmp_path: Path) -> None:
    given = part(tmp_path, aliases="#string_protein_id\tpreferred_name\tx\n9606.P1\tTP53\t1\n")
    assert names_of("relations", given, tmp_path) == ["P2", "P3", "P4", "P5", "P9", "TP53"]


def test_equally_good_aliases_are_decided_by_the_number_of_sources(tmp_path: Path) -> None:
    rows = "x\talias\tsource\n9606.P1\tMDM2\ta\n9606.P1\tTP53\ta\n9606.P1\tTP53\tb\n"
    path = tmp_path / write(tmp_path, "aliases.txt", "#" + rows)
    assert resolve(["9606.P1"], GENES, [path])[0].position.tolist() == [GENES.find("TP53")]
    path.write_text("#" + rows.replace("\tb\n", "\tb\n9606.P1\tMDM2\tb\n"))
    assert resolve(["9606.P1"], GENES, [path])[0].position.tolist() == [-2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cooccurence", "protein3", "there is no channel"),
        ("protein1 protein2", "a b", "line 1: received the header"),
        ("9606.P4 9606", "10090.P4 9606", "line 6: received '10090.P4', expected a protein of taxon 9606"),
        ("62 999 900 999 999", "62 1999 900 999 999", "line 2: received '?1999'?, expected a exp"),
        ("0 410 0", "0 4x0 0", "line 5: received '4x0', expected a number in 'coexpression'"),
        ("0 410 0", "0 0.41 0", "line 5: received '?0.41'?, expected a coexpression score that is a whole"),
        (" 500 600\n9606.P3", " 500\n9606.P3", "line 4: received 9 fields, expected 10"),
        ("9606.P3 9606.P1", "\n9606.P3 9606.P1", "line 5: received a blank line"),
    ],
)  # fmt: skip
def test_damage_is_one_sentence_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LINKS
    given = part(
        tmp_path, LINKS.replace(old, new, 1), channels=["cooccurence", "coexpression", "experimental"]
    )
    line = refused("relations", given, tmp_path, GENES)
    assert re.search(message, line)
    assert line.startswith(given.path)


def test_a_file_of_which_no_protein_is_known_names_the_remedy(tmp_path: Path) -> None:
    line = refused("relations", part(tmp_path, aliases=""), tmp_path, GENES)
    assert "no protein is a gene of organism 'human'" in line
    assert "give STRING's protein.aliases" in line


def test_an_empty_file_of_names_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / write(tmp_path, "aliases.txt", "")
    with pytest.raises(SourceError, match=r"aliases.txt is empty: give protein.aliases or protein.info"):
        read_aliases(path, ["9606.P1"], GENES)


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    given = part(tmp_path)
    (tmp_path / str(given.aliases)).unlink()
    assert refused("relations", given, tmp_path, GENES).startswith(f"{given.aliases}: there is no such file")


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 1000), st.integers(0, 1000)),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 1000),
)
def test_relations_are_those_of_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int]], cutoff: int
) -> None:
    """Three genes, one of them of two proteins, one protein unknown."""
    folder = tmp_path_factory.mktemp("string")
    genes = GeneIndex(["a", "b", "c"], aliases={"a": ["a2"]})
    proteins = ["a", "b", "c", "a2", "x", "y"]
    text = "".join(f"1.{proteins[i]} 1.{proteins[j]} {s} {t}\n" for i, j, s, t in rows)
    given = part(folder, f"protein1 protein2 one two\n1.a 1.b 0 0\n{text}", "", cutoff=cutoff)
    found = {r.name: r for r in read("relations", given, folder, genes).relations}
    for column, name in ((2, "string_one"), (3, "string_two")):
        plain = np.zeros((3, 3))
        for row in rows:
            i, j = (genes.find(proteins[k]) if proteins[k] in genes else -1 for k in row[:2])
            if min(i, j) >= 0 and i != j and row[column] >= max(cutoff, 1):
                plain[i, j] = plain[j, i] = max(plain[i, j], row[column] / 1000)
        np.testing.assert_allclose(found[name].adjacency.toarray(), plain, rtol=1e-6)
