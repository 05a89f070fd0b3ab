"""Organisms from files: as meant, every row counted, and all problems at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.sources.user_organisms.small import EDGES, GENES, build, files_of, folder_of, problems_of, small
from wildtype.organism import Organism
from wildtype.sources.user_organisms.build import build_organism
from wildtype.sources.user_organisms.description import from_plain


def edges_of(organism: Organism, name: str) -> set[tuple[str, str, float]]:
    rows, columns, weights = organism.graphs[name].endpoints()
    names = organism.genes.names
    return {(names[a], names[b], float(w)) for a, b, w in zip(rows, columns, weights, strict=True)}


def test_a_table_of_genes_an_edge_list_and_features(tmp_path: Path) -> None:
    built = build(small(tmp_path), tmp_path)
    organism = built.organism
    genes = organism.genes
    assert genes.names == ("M0001", "M0002", "M0003", "M0004")
    assert genes.standard == {"M0001": "dnaA", "M0002": "dnaN", "M0004": "gyrB"}
    assert genes.aliases == {"M0001": ("old1", "old2"), "M0004": ("nov",)}
    assert genes.descriptions["M0001"] == "initiator of replication"
    assert organism.essential is not None
    assert organism.essential.tolist() == [True, True, False, True]
    places = organism.coordinates
    assert places is not None
    assert places.chromosome.tolist() == [1, 1, 2, 0]  # chr2 before chr10
    np.testing.assert_array_equal(places.start, [0.1, 1.5, 0.01, np.nan])
    np.testing.assert_array_equal(places.end, [1.45, 2.5, 0.4, np.nan])
    assert places.strand.tolist() == [1, -1, 1, 0]
    a, n, b = "M0001", "M0002", "M0004"
    assert edges_of(organism, "physical") == {(a, n, 0.5), (n, a, 0.5), (a, b, 0.75), (b, a, 0.75)}
    np.testing.assert_array_equal(organism.features["esm"].values[[0, 3]], [[1, 2], [3, np.nan]])
    assert list(organism.features) == ["esm", "essential", "degrees"]
    files = files_of(built)
    physical = files["relation physical"]
    assert physical["dropped"] == {"unknown gene": 1, "self-loop": 1, "duplicate": 1}
    assert physical["examples"] == {"unknown gene (1 names)": ["M9999"]}
    assert files["features esm"]["dropped"] == {"unknown gene": 1}
    assert "name: column 'locus_tag'" in files["genes"]["note"]
    assert "start and end of 1 genes are exchanged" in files["genes"]["note"]
    assert all(len(card["sha256"]) == 64 for card in built.card["files"])


EXCEL = [["Gene", "Symbol", "Essential"], ["M0001", "dnaA", True], ["M0002", "dnaN", False]]


@pytest.mark.parametrize("case", ["semicolons", "workbook", "gff3", "list"])
def test_genes_in_other_files(tmp_path: Path, case: str) -> None:
    if case == "workbook":
        pd.DataFrame(EXCEL[1:], columns=EXCEL[0]).to_excel(tmp_path / "genes.xlsx", index=False)
        path = "genes.xlsx"
    elif case == "semicolons":
        folder_of(tmp_path, genes_csv="Gene;Symbol;Essential\nM0001;dnaA;1\nM0002;dnaN;0\n")
        path = "genes.csv"
    elif case == "list":
        folder_of(tmp_path, genes_txt="gene\n# a remark\nM0001\n\nM0002\nM0001\n")
        path = "genes.txt"
    else:
        folder_of(tmp_path, genes_gff3_gz=GFF)
        path = "genes.gff3.gz"
    built = build({"name": "x", "genes": {"files": [{"path": path}]}}, tmp_path)
    organism = built.organism
    assert organism.genes.names == ("M0001", "M0002")
    (card,) = files_of(built).values()
    if case == "list":
        assert (card["rows"], card["dropped"]) == (3, {"repeated row": 1})
        assert "(gene) is taken for a header" in card["note"]
        return
    assert organism.genes.standard == {"M0001": "dnaA", "M0002": "dnaN"}
    if case == "gff3":
        assert organism.genes.aliases == {"M0001": ("a,b", "c")}
        assert organism.genes.descriptions == {"M0001": "replication; initiator", "M0002": "clamp"}
        assert organism.coordinates is not None
        assert organism.coordinates.strand.tolist() == [1, -1]
        assert card["dropped"] == {"feature of type region": 1, "feature of type CDS": 2}
    else:
        assert organism.essential is not None
        assert organism.essential.tolist() == [True, False]


GFF = """\
##gff-version 3
chr\tx\tregion\t1\t9000\t.\t+\t.\tID=r
chr\tx\tgene\t100\t1450\t.\t+\t.\tID=gene-M0001;Name=dnaA;gene=dnaA;locus_tag=M0001;gene_synonym=a%2Cb,c
chr\tx\tCDS\t100\t1450\t.\t+\t0\tID=cds-1;Parent=gene-M0001;product=replication%3B initiator
chr\tx\tgene\t1500\t2500\t.\t-\t.\tID=gene-M0002;Name=dnaN;gene=dnaN;locus_tag=M0002
chr\tx\tCDS\t1500\t2500\t.\t-\t0\tID=cds-2;Parent=gene-M0002;locus_tag=M0002;product=clamp
##FASTA
>chr
ACGT
"""


def test_a_gene_named_with_a_comma(tmp_path: Path) -> None:
    folder_of(tmp_path, ppi_tsv="gene_a\tgene_b\nARG5,6\tHO\nHO\tSGS1\n")
    plain = {"name": "mini", "genes": {"names_from": ["relations"]},
             "relations": [{"name": "ppi", "path": "ppi.tsv"}]}  # fmt: skip
    organism = build(plain, tmp_path).organism
    assert organism.genes.names == ("ARG5+6", "HO", "SGS1")
    assert organism.genes.find("ARG5,6") == 0
    assert organism.graphs["ppi"].adjacency[0, 1] == 1


def test_names_that_other_files_hold_follow_in_ascending_order(tmp_path: Path) -> None:
    plain = small(tmp_path)
    folder_of(tmp_path, pairs_tsv="query\tarray\tv\nZ1\tdnaA\t1\nctrl\tB2\t2\nB2\tz1\t3\n")
    table = {"path": "pairs.tsv", "columns": ["query", "array"], "leave_out": ["ctrl"]}
    plain["genes"]["names_from"] = ["relations", "features", table]
    built = build(plain, tmp_path)
    assert built.organism.genes.names[4:] == ("B2", "M7777", "M9999", "Z1", "z1")
    assert built.card["remarks"] == ["names that differ in case alone are genes of their own (1): Z1/z1"]
    assert files_of(built)["names of genes"]["dropped"] == {"left out by name, or empty": 1}
    # Rows in another order give the same organism.
    folder_of(tmp_path, pairs_tsv="query\tarray\tv\nB2\tz1\t3\nctrl\tB2\t2\nZ1\tdnaA\t1\n")
    assert build(plain, tmp_path).organism.genes == built.organism.genes


@pytest.mark.parametrize(
    ("text", "part", "expected", "note"),
    [
        ("A\tB\nB\tC\n", {}, {("A", "B"), ("B", "C")}, "the first row (A, B) is taken for an edge"),
        ("fbgn_a\tfbgn_b\nA\tB\n", {}, {("A", "B")}, "is taken for a header"),
        ("A B 0.5\nB C 0.7\n", {}, {("A", "B"), ("B", "C")}, "separated by blanks"),
        (
            "n;left;right\n1;A;B\n2;A;C\n",
            {"columns": ["left", "right"]},
            {("A", "B"), ("A", "C")},
            "semicolons",
        ),
        ("1,A,B\n2,A,C\n", {"columns": [2, 3], "header": False}, {("A", "B"), ("A", "C")}, "commas"),
        (
            "# made by hand\nsource,weight,target\nA,2,B\n",
            {},
            {("A", "B")},
            "edges join the columns 'source' and",
        ),
        ('"A","B"\r\n\r\n"B","C"\r\n', {}, {("A", "B"), ("B", "C")}, "commas"),
    ],
)
def test_edge_lists_as_programs_write_them(
    tmp_path: Path, text: str, part: dict[str, Any], expected: set[tuple[str, str]], note: str
) -> None:
    folder_of(tmp_path, e_csv=text, g_txt="A\nB\nC\n")
    relation = {"name": "r", "path": "e.csv", "directed": True, **part}
    built = build({"name": "x", "genes": {"files": [{"path": "g.txt"}]}, "relations": [relation]}, tmp_path)
    assert {edge[:2] for edge in edges_of(built.organism, "r")} == expected
    assert note in files_of(built)["relation r"]["note"]


def test_edges_in_a_workbook_and_in_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"gene_a": ["A", "B"], "gene_b": ["B", "C"], "w": [0.5, 2.0]})
    frame.to_excel(tmp_path / "e.xlsx", index=False)
    frame.to_parquet(tmp_path / "e.parquet")
    for path in ("e.xlsx", "e.parquet"):
        relation = {"name": "r", "path": path, "weight": "w", "directed": True}
        built = build(
            {"name": "x", "genes": {"names_from": ["relations"]}, "relations": [relation]}, tmp_path
        )
        assert edges_of(built.organism, "r") == {("A", "B", 0.5), ("B", "C", 2.0)}


def test_weights_that_no_edge_can_have_are_counted(tmp_path: Path) -> None:
    folder_of(tmp_path, e_csv="a,b,w\nA,B,0\nB,C,NA\nA,C,-1\nC,D,1e-3\n")
    relation = {"name": "r", "path": "e.csv", "weight": "w", "columns": ["a", "b"]}
    built = build({"name": "x", "genes": {"names_from": ["relations"]}, "relations": [relation]}, tmp_path)
    assert files_of(built)["relation r"]["dropped"] == {"no weight": 1, "weight of zero or below": 2}
    assert built.organism.graphs["r"].edges == 1


def test_units_are_the_tokens(tmp_path: Path) -> None:
    units = "guide\ttags\ng1\tM0001,M0002\ng2\tM0003\ng1\tM0001,M0002\ng3\t\n"
    plain = small(tmp_path) | {"units": {"path": "u.tsv", "unit": "guide", "genes": "tags"}}
    folder_of(tmp_path, u_tsv=units)
    built = build(plain, tmp_path)
    organism = built.organism
    assert organism.genes.names == ("g1", "g2", "M0004")
    assert organism.genes.find("M0001,M0002") == 0
    assert edges_of(organism, "physical") == {("g1", "M0004", 0.75), ("M0004", "g1", 0.75)}
    card = files_of(built)["units"]
    assert (card["used"], card["dropped"], card["examples"]) == (
        2,
        {"repeated row": 1, "no gene": 1},
        {"no gene": ["g3"]},
    )
    # The same units, a row per gene, and genes that only they name.
    folder_of(tmp_path, u_tsv="guide\ttags\ng1\tM0001\ng1\tM0002\ng2\tM0003\n")
    alone = {"name": "x", "genes": {"names_from": ["units"]}, "units": plain["units"]}
    assert build(alone, tmp_path).organism.genes.names == ("g1", "g2")


def test_all_problems_are_said_at_once_by_file_and_row(tmp_path: Path) -> None:
    plain = small(tmp_path)
    folder_of(
        tmp_path,
        genes_tsv=GENES
        + "M0001\tdnaX\t\t\tno\t\t\t\t\n1-Mar\t\t\t\tno\t\t\t\t\nM5\t\t\t\tperhaps\tc\t1k\t2\tup\n",
        ppi_csv=EDGES + "dnaA\n,dnaN,1\ndnaA,M0003,much\n",
        esm_csv="gene,a\nM0001,x\n",
    )
    plain["gene_sets"] = []
    plain["relations"].append({"name": "absent", "path": "absent.csv"})
    assert problems_of(plain, tmp_path) == [
        "genes.tsv: row 6: M0001 is named again (first in row 2), with other cells: keep one",
        "genes.tsv: row 7: '1-Mar' is a date that a spreadsheet program made of a name: write the name",
        "genes.tsv: row 8, column 'essential': received 'perhaps', expected yes or no",
        "genes.tsv: row 8, column 'start': received '1k', expected a position in bases",
        "genes.tsv: row 8, column 'strand': received 'up', expected + or -",
        "ppi.csv: row 7: received 1 cells, expected 3: write one row per line",
        "ppi.csv: row 8: no gene name: write two genes, or no row",
        "ppi.csv: row 9, column 'score': received 'much', expected a number",
        f"absent.csv: there is no such file in {str(tmp_path)!r}: check the path",
        "esm.csv: row 1 (line 2), column 'a': received 'x', expected a number; correct it, or name the "
        "columns to take",
    ]


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        ("", {}, "is empty: give at least one row"),
        (
            "A;B\n",
            {"separator": ","},
            "has one column ('A;B'), and an edge has two genes: name the separator",
        ),
        (
            "x,y\nQ,R\n",
            {"header": True},
            "names no gene of organism 'x' (its first names: Q, R): name another",
        ),
        ("A,B\nB,C\n", {"columns": ["p", "q"]}, "has no column 'p' (it has 'A', 'B'): name one that it has"),
        ("A,B\nB,C\n", {"columns": [1, 9]}, "has 2 columns, and column 9 is to be read: correct it"),
        ("p,q,q\nA,B,C\n", {"columns": ["p", "q"]}, "has several columns 'q': give the position of one"),
        ('a,b\n"A,B\nB,C\n', {}, "check its double quotes"),
        ("A,A\nB,B\n", {}, "every edge joins a gene with itself: name two other columns"),
        ("A,B\nB,\xe9\n".encode("latin-1"), {}, "line 2 is not UTF-8 text: save the table as UTF-8"),
        (b"\x1f\x8b\x08 damaged", {}, "is not a whole gzip file"),
        (b"A,B\0\n", {}, "holds NUL characters"),
    ],
)
def test_a_broken_edge_list_is_one_sentence(
    tmp_path: Path, text: str | bytes, part: dict[str, Any], message: str
) -> None:
    folder_of(tmp_path, g_txt="A\nB\nC\n")
    (tmp_path / "e.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    relation = {"name": "r", "path": "e.csv", **part}
    plain = {"name": "x", "genes": {"files": [{"path": "g.txt"}]}, "relations": [relation]}
    (line,) = problems_of(plain, tmp_path)
    assert line.startswith("e.csv: ")
    assert message in line
    assert str(tmp_path) not in line


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "g.tsv",
            "p\tq\nA\tB\n",
            "has no column of gene names (it has 'p', 'q'): give it with columns: {name",
        ),
        ("g.tsv", "p\nA\n", "has one column, 'p', which is no usual name: give the format list"),
        ("g.tsv", "gene\tsymbol\nA\ta\tb\n", "row 2: received 3 cells, expected 2"),
        ("g.tsv", "gene\tsymbol\n\ta\n", "row 2: no gene name: give one, or remove the row"),
        ("g.txt", "A\tB\n", "row 1: received 'A\\tB', expected one name: give its format, table"),
        ("g.txt", "\n", "names no gene: give one name per line"),
        ("g.gff", "chr\tx\tgene\t1\t2\n", "row 1: received 5 fields, expected 9, separated by tabs"),
        ("g.gff", "c\tx\tgene\t9\t2\t.\t+\t.\tID=a\n", "row 1: received '9..2', expected a start and an end"),
        (
            "g.gff",
            "c\tx\tgene\t1\t2\t.\t+\t.\tfoo=a\n",
            "row 1: the gene has no attribute locus_tag or gene_id",
        ),
        (
            "g.gff",
            "c\tx\tmRNA\t1\t2\t.\t+\t.\tID=a\n",
            "has no feature of type 'gene' (feature of type mRNA)",
        ),
        ("g.gff", "# nothing\n", "has no features: give a GFF3 file"),
    ],
)
def test_a_broken_file_of_genes_is_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    lines = problems_of({"name": "x", "genes": {"files": [{"path": name}]}}, tmp_path)
    assert lines[0].startswith(f"{name}: ")
    assert message in lines[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u\tg\nx\tM0001,M9\n", "row 2: unit 'x': 'M9' is not in organism 'mini' (4 genes)"),
        ("u\tg\nx\tM0001,M0002\nx\tM0001,M0003\n", "row 3: unit 'x' has other genes in an earlier row"),
        ("u\tg\n\tM0001\n", "row 2: a row without a unit: name it, or remove the row"),
        ("u\tg\nM0003\tM0001\n", "unit 'M0003' is named like gene M0003, which it does not hold"),
    ],
)
def test_broken_units_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    plain = small(tmp_path) | {"units": {"path": "u.tsv", "unit": "u", "genes": "g"}}
    folder_of(tmp_path, u_tsv=text)
    (line,) = problems_of(plain, tmp_path)
    assert line.startswith("u.tsv: ")
    assert message in line


def test_thousands_of_bad_rows_are_counted_and_not_listed(tmp_path: Path) -> None:
    folder_of(tmp_path, g_txt="A\nB\n", e_csv="A,B\n" + ",B\n" * 3000)
    plain = {
        "name": "x",
        "genes": {"files": [{"path": "g.txt"}]},
        "relations": [{"name": "r", "path": "e.csv"}],
    }
    lines = problems_of(plain, tmp_path)
    assert lines == [
        "e.csv: row 2, row 3, row 4, row 5, row 6 and 995 more rows: no gene name: write two genes, or no "
        "row",
        "e.csv: … and 2,000 more problems",
    ]


def test_human_tables_as_laboratories_have_them(laboratories: Path) -> None:
    folder = laboratories / "human"
    pairs = {"path": "horlbeck2018_pairs.tsv.gz", "columns": ["gene_a", "gene_b"], "leave_out": ["negative"]}
    description = {
        "name": "human-k562",
        "genes": {"names_from": [pairs]},
        "relations": [
            {"name": "huri", "path": "human_ppi_huri_union.tsv.gz"},
            {"name": "litbm", "path": "human_ppi_litbm17.tsv.gz"},
        ],
        "features": [{"name": "compartments", "path": "human_compartments_7terms.tsv.gz"}],
    }
    built = build_organism(from_plain(description, "x"), folder)
    assert len(built.organism.genes) == 424
    files = files_of(built)
    assert files["names of genes"]["dropped"] == {"left out by name, or empty": 379}
    assert files["relation huri"]["rows"] == 63012
    assert files["relation litbm"]["rows"] == 11076
    assert 0 < built.organism.graphs["litbm"].edges == files["relation litbm"]["used"]
    assert np.isfinite(built.organism.features["compartments"].values).any(1).sum() > 350


def test_operons_of_pneumococcus(laboratories: Path) -> None:
    units = {"path": "denereaz_pneumo_pairs.tsv.gz", "unit": "array_sgRNA", "genes": "array_operon"}
    plain = {"name": "spn", "genes": {"names_from": ["units"]}, "units": units}
    built = build_organism(from_plain(plain, "x"), laboratories / "pneumococcus")
    organism = built.organism
    assert organism.units is not None
    assert organism.units.members(organism.genes.find("sgRNA1")) == ("SPV_0001", "SPV_0002")
    assert files_of(built)["units"]["rows"] == 22426
