"""Screens of strains with foreign genes, from a table to a report; and tables that describe the genes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import wildtype
from tests.tiny import tiny_organism
from wildtype.errors import DatasetError, SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex, Metabolism, Organism
from wildtype.organism.added_gene import AddedGene
from wildtype.organism.new_reactions import NewReaction
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import load_dataset, organism_folder
from wildtype.sources.user_tables.added_genes import read_added_genes

PATHWAY = ("crtE", "crtYB", "crtI")
GENES = """\
gene,reactions,edges,shape.a,shape.b
crtE,CRTE: ipdp_c + frdp_c -> ggdp_c + ppi_c,physical: G001 G003,0.5,-1.0
crtYB,CRTYB: 2 ggdp_c -> phyt_c + 2 ppi_c if crtYB and crtE; R1,,,
crtI,,regulatory.in: G004=0.5,,2.0
"""


def organism() -> Organism:
    """A tiny yeast with a metabolism."""
    tiny = tiny_organism()
    names = tiny.genes.names
    network = Metabolism.build(
        ["R1", "R2"], ["ipdp_c", "frdp_c"], np.array([[-1.0, -1.0], [1.0, 1.0]]),
        np.zeros(2), np.full(2, 10.0), np.zeros(2), [names[0], f"{names[1]} and {names[2]}"],
    )  # fmt: skip
    genes = GeneIndex(names, tiny.genes.standard, organism="yeast")
    return replace(tiny, name="yeast", genes=genes, metabolism=network)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    save_organism(organism(), organism_folder("yeast"))
    (tmp_path / "genes.csv").write_text(GENES)
    return tmp_path


def screen(path: Path, strains: int = 60) -> pd.DataFrame:
    """A screen as such studies print it: a pathway, one or two deletions of regulators, one number."""
    draw = np.random.default_rng(0)
    effect = dict(zip((f"G{i:03d}" for i in range(23)), draw.normal(0, 0.3, 23), strict=True))
    rows = []
    for number in range(strains):
        deleted = [f"G{i:03d}" for i in sorted(draw.choice(23, 1 + number % 2, replace=False))]
        added = PATHWAY if number % 5 else PATHWAY[:2]
        value = 2.0 + sum(effect[g] for g in deleted) - (len(added) < 3) + draw.normal(0, 0.05)
        kinds = ["absent"] * len(deleted) + ["added"] * len(added)
        rows.append((f"s{number}", ";".join([*deleted, *added]), ";".join(kinds), round(value, 3)))
    frame = pd.DataFrame(rows, columns=["strain", "genes", "kind", "betaxanthin"])
    frame.to_csv(path, index=False)
    return frame


def imported(folder: Path, *further: str) -> str:
    return said(
        "data", "import", str(folder / "screen.csv"), "--organism", "yeast", "--value-column", "betaxanthin",
        "--phenotype", "betaxanthin", "--unit", "as published", "--yes", *further,
    )  # fmt: skip


def test_a_screen_of_strains_with_a_foreign_pathway_runs_end_to_end(folder: Path) -> None:
    frame = screen(folder / "screen.csv")
    imported(folder, "--added-genes", str(folder / "genes.csv"))
    dataset = load_dataset("screen")
    assert len(dataset) == frame["genes"].nunique()  # strains that were made twice are one, no row is lost
    assert not any("foreign" in reason for reason in dataset.excluded)
    assert dataset.organism.genes.names[-3:] == PATHWAY
    assert dataset.organism.foreign is not None
    assert np.flatnonzero(dataset.organism.foreign).tolist() == [24, 25, 26]
    assert set(np.unique(dataset.table.kind[dataset.table.gene >= 24])) == {Kind.ADDED}
    run = folder / "run"
    text = said(
        "train", "data=other", "data.name=screen", f"run.folder={run}", "run.progress=false",
        "run.replicates=10", "model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2",
        "model.table=false", "model.prior.weight=0", "training.epochs=2", "training.batch_size=16",
        "baselines=[additive_ridge,mean]",
    )  # fmt: skip
    assert "additive_ridge" in text
    sets = ("G001,crtE,crtYB,crtI", "G001,crtE,crtYB", "")
    found = json.loads(said("predict", str(run), *(x for one in sets for x in ("--set", one)), "--json"))
    assert found[0]["kinds"] == "absent,added,added,added"
    values = [row["betaxanthin"] for row in found]
    assert values[0] != values[1]
    assert values[2] is None
    assert "as published" in found[2]["note"]
    said("report", str(run), "-o", str(folder / "page.html"))
    assert "betaxanthin" in (folder / "page.html").read_text()


def test_rows_are_kept_where_nothing_is_known_of_a_gene_but_its_name(folder: Path) -> None:
    screen(folder / "screen.csv")
    imported(folder)
    dataset = load_dataset("screen")
    assert dataset.organism.genes.names[-3:] == PATHWAY
    assert any("of which only the name is known: crtE, crtYB, crtI" in note for note in dataset.notes)
    assert np.isnan(dataset.organism.features["shape"].values[-3:]).all()


def test_a_gene_of_the_table_is_added_unless_a_row_says_otherwise(folder: Path) -> None:
    (folder / "screen.csv").write_text("genes,betaxanthin\nG001;crtE,1\nG002;crtE;crtI,2\nG003,3\n")
    imported(folder, "--added-genes", str(folder / "genes.csv"))
    table = load_dataset("screen").table
    assert [Kind(k).name for k in table.kind[table.gene >= 24]] == ["ADDED"] * 3


def test_what_is_known_of_a_gene_is_appended(folder: Path) -> None:
    genes = read_added_genes(folder / "genes.csv", organism())
    whole = load_with(genes)
    assert whole.metabolism is not None
    assert whole.metabolism.metabolites == ("ipdp_c", "frdp_c", "ggdp_c", "ppi_c", "phyt_c")
    assert whole.metabolism.reactions == ("R1", "R2", "CRTE", "CRTYB")
    assert whole.metabolism.rules[0] == "(G000) or (crtYB)"
    assert whole.metabolism.rules[3] == "crtYB and crtE"
    column = whole.metabolism.stoichiometry[:, [3]].toarray()[:, 0]
    assert column.tolist() == [0, 0, -2, 2, 1]
    assert whole.graphs["physical"].adjacency[24].toarray().ravel().nonzero()[0].tolist() == [1, 3]
    assert whole.graphs["regulatory"].adjacency[4, 26] == 0.5
    shape = whole.features["shape"].values[24:]
    np.testing.assert_array_equal(shape, [[0.5, -1, np.nan], [np.nan] * 3, [np.nan, 2, np.nan]])
    again = [AddedGene.from_json(json.loads(json.dumps(gene.to_json()))) for gene in genes]
    assert load_with(again).metabolism.sha256 == whole.metabolism.sha256  # type: ignore[union-attr]


def said(*words: str) -> str:
    """Return what a command printed, which must succeed."""
    found = wildtype(*words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def load_with(genes: Sequence[AddedGene]) -> Organism:
    found = organism()
    for gene in genes:
        found = gene.added_to(found)
    return found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\nx\n", "has no column 'gene'"),
        ("gene,edgs\nx,1\n", "column 'edgs', which is not known; did you mean edges"),
        ("gene,edges\nx,physical G001\n", "row 1: edges 'physical G001' name no relation"),
        ("gene,edges\nx,physical: G00X\n", "row 1: 'G00X' is not in organism 'yeast'"),
        ("gene,edges\nx,regulatory: G001=a\n", "row 1: edge 'G001=a' has a weight that is no number"),
        ("gene,reactions\nx,R9\n", "row 1: 'x' is given the reaction 'R9'"),
        ("gene,reactions\nx,R1: a -> b\n", "row 1: .*the network has one of that name"),
        ("gene,reactions\nx,N1: 0 a -> b\n", "row 1: .*'0 a' is no metabolite with a positive number"),
        ("gene,reactions\nx,N1: a -> a\n", "row 1: .*changes no metabolite"),
        ("gene,reactions\nx,N1: a -> b if G001\n", "row 1: .*which does not name it"),
        ("gene,shape.a\nx,high\n", "row 1: column 'shape.a' has 'high', expected a number"),
        ("gene\nabc1\n", "row 1: 'abc1' cannot be added .* because it is a name of"),
        ("gene\nx\nx\n", "row 2: 'x' cannot be added"),
        ("gene,edges,shape.a\nx,p: G001,\ny,,z\n", "row 1: .*; row 2: "),
    ],
)
def test_problems_of_all_rows_are_named(folder: Path, text: str, message: str) -> None:
    (folder / "genes.csv").write_text(text)
    with pytest.raises(SourceError, match=message):
        read_added_genes(folder / "genes.csv", organism())


def test_a_feature_of_an_added_gene_that_is_not_known_may_be_na(folder: Path) -> None:
    (folder / "genes.csv").write_text(
        "gene,sequence,shape.a,shape.b\ncrtE,NA,NA,0.5\ncrtI,null,#NA,nan\ncrtYB,,,-1e-2\n"
    )
    genes = read_added_genes(folder / "genes.csv", organism())
    assert [gene.sequence for gene in genes] == [None, None, None]
    assert [gene.features for gene in genes] == [{"shape": {"b": 0.5}}, {}, {"shape": {"b": -0.01}}]


def test_a_damaged_file_of_added_genes_is_named(folder: Path) -> None:
    screen(folder / "screen.csv")
    imported(folder)
    path = folder / "cache" / "datasets" / "screen" / "added_genes.json"
    path.write_text("[{}]")
    with pytest.raises(DatasetError, match=r"added_genes\.json is damaged .*import the data again"):
        load_dataset("screen")


def test_equations() -> None:
    assert NewReaction("X", "a_c + 2 b_c <=> c_c").coefficients() == {"a_c": -1, "b_c": -2, "c_c": 1}
    assert NewReaction("X", "a_c + 2 b_c <=> c_c").bounds == (-1000, 1000)
    assert NewReaction("X", "a_e ->").coefficients() == {"a_e": -1}
    assert NewReaction("X", "a_e --> 0.5 b").bounds == (0, 1000)
    with pytest.raises(SourceError, match="'a b' is no equation"):
        NewReaction("X", "a b").coefficients()
