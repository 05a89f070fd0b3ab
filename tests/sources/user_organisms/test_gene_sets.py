"""Gene sets: GMT with its traps, complexes, tables of terms; real files where a folder of them is named."""

from __future__ import annotations

import gzip
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.sources.user_organisms.files import data_folder, names_of, read, refused, write
from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.description import Complexes, Gmt, Terms

GENES = GeneIndex([f"G{i}" for i in range(8)] + ["ARG5,6"], {"G0": "ALPHA"}, organism="small")
BOTH = {"as": ["features", "relation"]}


def gmt(folder: Path, text: str, **options: object) -> Gmt:
    given = {"name": "sets", "smallest": 2, **BOTH, **options}
    return Gmt(path=write(folder, "sets.gmt.gz", text), format="gmt", **given)


GMT = "one\tfirst\tG0\tG1\tG2\ntwo, or more\t\tG1\tG2\tG3\tG4\tnew\nthree\tna\tG5\tother\n\nfour\tna\tnew\n"


def test_sets_are_features_and_a_relation(tmp_path: Path) -> None:
    found = read("gene_sets", gmt(tmp_path, GMT), tmp_path, GENES)
    (relation,), (block,), (card,) = found.relations, found.features, found.cards
    # 1 / (k - 1) of the smallest set that a pair shares
    dense = relation.adjacency.toarray()
    assert dense[0, 1] == dense[1, 0] == dense[1, 2] == 0.5
    assert dense[3, 4] == dense[1, 3] == np.float32(1 / 3)
    assert relation.edges == 3 + 6 - 1
    assert relation.weighted
    assert not relation.directed
    assert np.isfinite(block.values).all(1).nonzero()[0].tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(block.values[1], block.values[2], rtol=1e-5)
    assert (card.rows, card.used, card.dropped) == (
        4,
        2,
        {"no gene of the organism": 1, "fewer than 2 genes": 1},
    )
    assert card.examples == {"unknown gene (2 names)": ("new", "other")}
    assert "8 of 11 members" in card.note


@pytest.mark.parametrize("known", [True, False])
def test_a_name_that_is_glued_to_the_first_gene(tmp_path: Path, known: bool) -> None:
    """Whether the genes are of the organism or the file alone says so."""
    text = "repair of a, b (GO:1),G0\tG1\tG2\nsplicing (GO:2),G1\tG0\tG3\nother,G2\tG1\tG0\n"
    given = gmt(tmp_path, text)
    assert names_of("gene_sets", given, tmp_path) == ["G0", "G1", "G2", "G3"]
    if known:
        found = read("gene_sets", given, tmp_path, GENES)
        assert found.cards[0].note.startswith("the first column holds the name, a comma and the first gene")
        assert found.relations[0].edges == 5  # of 0-3 all but 2-3


def test_a_file_without_descriptions(tmp_path: Path) -> None:
    given = gmt(tmp_path, "one\tG0\tG1\tG2\ntwo\tG1\tG3\tG0\nthree, and more\tG2\tG0\n")
    assert read("gene_sets", given, tmp_path, GENES).cards[0].note.startswith("there is no column of descr")
    assert names_of("gene_sets", given, tmp_path) == ["G0", "G1", "G2", "G3"]


def test_weights_of_members_and_names_with_commas(tmp_path: Path) -> None:
    given = gmt(tmp_path, "one\tna\tG0,1.0\tARG5,6\nname, with a comma\tna\tG1\tG2\tG0\n")
    assert names_of("gene_sets", given, tmp_path) == ["ARG5,6", "G0", "G1", "G2"]
    assert read("gene_sets", given, tmp_path, GENES).relations[0].adjacency[0, 8] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\tna\tG0\tG1\ntwo;G1;G2\n", "row 2: received 1 cells, expected a name, a description and genes"),
        ("two;G1;G2\n", "row 1: received 1 cells, expected a name, a description and genes"),
        ("one\tna\tG0\tG\u200b1\n", "row 1: "),
        ("one\tna\tX1\tX2\n", "names no gene of organism 'small' (its first names: X1, X2)"),
        ("one\tna\tG0\n", "no set has 2 to 300 genes of the organism (the largest has 1)"),
    ],
)
def test_damage_of_gmt(tmp_path: Path, text: str, message: str) -> None:
    line = refused("gene_sets", gmt(tmp_path, text, **{"as": ["relation"]}), tmp_path, GENES)
    assert message in line
    assert line.startswith("sets.gmt.gz")


def test_a_truncated_file_is_one_sentence(tmp_path: Path) -> None:
    given = gmt(tmp_path, GMT)
    (tmp_path / given.path).write_bytes(gzip.compress(GMT.encode())[:-9])
    assert "is cut short" in refused("gene_sets", given, tmp_path, GENES)


def complexes(folder: Path, text: str, **options: object) -> Complexes:
    given = {"name": "complexes", "smallest": 2, **BOTH, **options}
    return Complexes(path=write(folder, "complexes.tsv", text), format="complexes", **given)


COMPLEXES = (
    "complex_id\tcomplex_name\tgenes\n1\ta\tALPHA;G1;G2\n2\ta\tG2;G3\n3\tb\tG7;new\n4\tc\tG4;G5;G6;G7\n"
)


def test_members_of_a_complex_are_joined(tmp_path: Path) -> None:
    given = complexes(tmp_path, COMPLEXES)
    found = read("gene_sets", given, tmp_path, GENES)
    dense = found.relations[0].adjacency.toarray()
    assert (dense[0, 1], dense[2, 3], dense[4, 7]) == (0.5, 1, np.float32(1 / 3))
    card = found.cards[0]
    assert (card.rows, card.used, card.dropped) == (4, 3, {"fewer than 2 genes": 1})
    assert "sets: column 'complex_id'; members: column 'genes'; members separated by ';'" in card.note
    assert names_of("gene_sets", given, tmp_path) == ["ALPHA", *(f"G{i}" for i in range(1, 8)), "new"]


def test_columns_and_separator_can_be_named(tmp_path: Path) -> None:
    text = "id,parts,what\na,G0|G1,G3\nb,G2|G1,G3\n"
    given = complexes(tmp_path, text, set="id", members="parts", member_separator="|", **{"as": ["relation"]})
    assert read("gene_sets", given, tmp_path, GENES).relations[0].edges == 2
    wrong = complexes(tmp_path, text, members="member")
    assert "has no column 'member'" in refused("gene_sets", wrong, tmp_path, GENES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2\ta\tG2;G3", "2\ta", "row 3: received 2 cells, expected 3"),
        ("G2;G3", "", "row 3: no member: name its genes, or leave out the row"),
    ],
)
def test_damage_of_complexes(tmp_path: Path, old: str, new: str, message: str) -> None:
    problems_line = refused("gene_sets", complexes(tmp_path, COMPLEXES.replace(old, new)), tmp_path, GENES)
    assert message in problems_line


def terms(folder: Path, text: str, **options: object) -> Terms:
    given = {"name": "terms", "smallest": 2, **BOTH, **options}
    return Terms(path=write(folder, "terms.csv", text), format="table", **given)


TERMS = "gene,term\nALPHA,one\nG1,one\nG0,one\nG2,two\nG3,two\nG1,two\nnew,two\n,two\nG5,three\n"


def test_a_table_of_genes_and_terms(tmp_path: Path) -> None:
    given = terms(tmp_path, TERMS)
    found = read("gene_sets", given, tmp_path, GENES)
    card = found.cards[0]
    assert (card.rows, card.used) == (9, 5)
    assert card.dropped == {
        "no gene or no term": 1,
        "unknown gene": 1,
        "gene and term a second time": 1,
        "term of fewer than 2 genes": 1,
    }
    assert found.relations[0].adjacency[0, 1] == 1
    assert found.relations[0].adjacency[2, 3] == 0.5
    assert names_of("gene_sets", given, tmp_path) == ["ALPHA", "G0", "G1", "G2", "G3", "G5", "new"]


def test_other_names_of_columns(tmp_path: Path) -> None:
    given = terms(tmp_path, TERMS.replace("gene,term", "a,b"))
    assert "has a usual name of a column of genes" in refused("gene_sets", given, tmp_path, GENES)
    given = terms(tmp_path, TERMS.replace("gene,term", "a,b"), gene="a", term="b")
    assert read("gene_sets", given, tmp_path, GENES).cards[0].used == 5


def test_scores_are_no_sets(tmp_path: Path) -> None:
    text = "gene,Nucleus,Cytosol\nG0,0.5,1\nG1,0,2\n"
    line = refused("gene_sets", terms(tmp_path, text), tmp_path, GENES)
    assert "are scores of genes and no sets: name the file under features" in line


def test_a_bound_on_pairs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wildtype.organism.gene_sets.MOST_PAIRS", 5)
    line = refused("gene_sets", gmt(tmp_path, GMT, **{"as": ["relation"]}), tmp_path, GENES)
    assert "have 9 pairs of genes, more than 5: leave out the largest sets (one has 4 genes)" in line


@pytest.mark.real
def test_real_go_terms_with_their_odd_comma() -> None:
    folder = data_folder("human")
    given = Gmt(name="go", path="human_go_bp_2018.gmt.gz", format="gmt", **{"as": ["relation"]}, largest=60)
    names = names_of("gene_sets", given, folder)
    assert {"FXR1", "UVRAG", "WTIP"} <= set(names)  # two of them stand first only in their lines
    assert not [name for name in names if "(GO:" in name]
    genes = GeneIndex(names, organism="human")
    found = read("gene_sets", given, folder, genes)
    assert found.cards[0].rows == 5103
    assert found.cards[0].examples == {}
    # the plain definition, for one gene
    weight: dict[str, float] = {}
    for line in gzip.decompress((folder / given.path).read_bytes()).decode().rstrip("\n").split("\n"):
        first, *rest = line.split("\t")
        members = {name for name in (first.rpartition(",")[2], *rest) if name}
        if 3 <= len(members) <= 60 and "FXR1" in members:
            for name in members - {"FXR1"}:
                weight[name] = max(weight.get(name, 0), 1 / (len(members) - 1))
    row = found.relations[0].adjacency[[genes.find("FXR1")]].toarray()[0]
    assert {names[i]: row[i] for i in np.flatnonzero(row)} == pytest.approx(weight)


@pytest.mark.real
def test_real_pathways_complexes_and_groups() -> None:
    folder = data_folder("human")
    pathways = Gmt(
        name="reactome", path="human_reactome_pathways.gmt.gz", format="gmt", **{"as": ["relation"]}
    )
    names = names_of("gene_sets", pathways, folder)
    assert not [name for name in names if name.startswith("R-HSA-")]
    assert read("gene_sets", pathways, folder, GeneIndex(names)).cards[0].rows == 1448
    corum = Complexes(
        name="corum",
        path="human_corum_complexes.tsv.gz",
        format="complexes",
        smallest=2,
        **{"as": ["relation"]},
    )
    names = names_of("gene_sets", corum, folder)
    genes = GeneIndex(names)
    relation = read("gene_sets", corum, folder, genes).relations[0]
    assert relation.adjacency[genes.find("BCL6"), genes.find("HDAC4")] == 1
    # the plain definition: the smallest complex of every pair
    smallest: dict[tuple[str, str], int] = {}
    lines = gzip.decompress((folder / corum.path).read_bytes()).decode().rstrip("\n").split("\n")[1:]
    for line in lines:
        members = sorted(set(line.split("\t")[2].split(";")))
        for pair in combinations(members, 2) if len(members) <= 300 else ():
            smallest[pair] = min(smallest.get(pair, 999), len(members))
    assert relation.edges == len(smallest) > 30_000
    for (a, b), size in list(smallest.items())[::97]:
        assert relation.adjacency[genes.find(a), genes.find(b)] == np.float32(1 / (size - 1))
    wide = Terms(name="places", path="human_compartments_7terms.tsv.gz", format="table")
    assert "name the file under features" in refused("gene_sets", wide, folder, genes)


@pytest.mark.real
def test_real_gene_groups() -> None:
    folder = data_folder("fly")
    given = Terms(name="groups", path="fly_flybase_gene_groups_fb2019_02.tsv.gz", format="table")
    names = names_of("gene_sets", given, folder)
    assert all(name.startswith("FBgn") for name in names)
    found = read("gene_sets", given, folder, GeneIndex(names))
    assert found.cards[0].rows == 8214
    assert found.cards[0].dropped["no gene or no term"] == 228
