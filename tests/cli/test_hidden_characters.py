"""Names with hidden characters are refused with file, line and character, and never printed as they are."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.command import wildtype
from wildtype.characters import visible
from wildtype.cli.output import give_frame, print_json
from wildtype.errors import DatasetError, GeneSetError, SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.organism.features import FeatureBlock
from wildtype.organism.metabolism import Metabolism

ESC, TURN, ZERO = "\x1b", "\u202e", "\u200b"


@pytest.mark.parametrize(
    ("table", "place", "character"),
    [
        (f"genes,value\nb0902,1\nb09{ESC}[31m03,2\n", "row 2 (line 3), column 'genes'", r"\x1b"),
        (f"genes,value,condition\nb0902,1,a{TURN}b\n", "row 1 (line 2), column 'condition'", r"\u202e"),
        (f"genes,value,replicate\nb0902,1,a{ZERO}b\n", "row 1 (line 2), column 'replicate'", r"\u200b"),
        ("genes,value,phenotype\nb0902,1,a\u00adb\n", "row 1 (line 2), column 'phenotype'", r"\xad"),
        (f"genes,kind,value\nnew{ZERO}one,added,1\n", "row 1 (line 2), column 'genes'", r"\u200b"),
        (f"genes,val{TURN}ue\nb0902,1\n", "line 1", r"\u202e"),
    ],
    ids=["gene", "condition", "replicate", "phenotype", "added gene", "column"],
)
def test_a_table_with_a_hidden_character_in_a_name(
    tmp_path: Path, table: str, place: str, character: str
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(table, encoding="utf-8")
    said = wildtype("data", "import", str(file), "--organism", "ecoli-core")
    assert said.returncode == 1
    assert f"holds the hidden character {character}: write the name without it" in said.stderr
    assert place in said.stderr
    assert "t.csv" in said.stderr
    assert visible(said.stderr) == said.stderr


def model(reaction: str = "R1", metabolite: str = "x_c") -> str:
    """A genome-scale model of one reaction, as JSON."""
    flux = {"name": "", "lower_bound": 0.0, "upper_bound": 10.0}
    return json.dumps(
        {
            "metabolites": [{"id": metabolite, "name": "", "compartment": "c"}],
            "reactions": [
                {"id": reaction, "metabolites": {metabolite: -1.0}, "gene_reaction_rule": "A1", **flux}
            ],
            "genes": [{"id": "A1", "name": ""}],
            "id": "m",
            "compartments": {"c": ""},
            "version": "1",
        }
    )


@pytest.mark.parametrize(
    ("files", "options", "place"),
    [
        ({"g.csv": f"name,aliases\nA1,x\nB{ZERO}2,y\n"}, ["--genes", "g.csv"], "g.csv: row 3, column 'name'"),
        ({"g.csv": f"name,alias\nA1,x{ZERO}\n"}, ["--genes", "g.csv"], "g.csv: row 2, column 'aliases'"),
        ({"g.csv": f"name,symbol\nA1,x{ZERO}z\n"}, ["--genes", "g.csv"], "g.csv: row 2, column 'standard'"),
        ({"g.txt": f"A1\nB{ZERO}2\n"}, ["--genes", "g.txt"], "g.txt: row 2"),
        (
            {"g.gff": "c\ts\tgene\t1\t9\t.\t+\t.\tlocus_tag=A1;gene=x%E2%80%8By\n"},
            ["--genes", "g.gff"],
            "g.gff: row 1",
        ),
        ({"e.csv": f"A1,B{ZERO}2\n"}, ["--relation", "r=e.csv"], "e.csv: row 1"),
        ({"e.csv": "A1,B2\n"}, ["--relation", f"r{ZERO}=e.csv"], "relations.1"),
        ({"s.gmt": f"S{ZERO}\td\tA1\tB2\n"}, ["--gene-sets", "s=s.gmt"], "s.gmt: row 1"),
        ({"f.csv": f"gene,f{ZERO}\nA1,1\nB2,2\n"}, ["--features", "f=f.csv"], "f.csv"),
        (
            {"s.fa": f">A1\nMK\n>B{ZERO}2 x\nMK\n"},
            ["--genes", "ok.txt", "--names-from", "sequences", "--sequences", "s.fa"],
            "s.fa: 'B",
        ),
        ({"m.json": model(reaction=f"R{ZERO}")}, ["--metabolism", "m.json"], "m.json: reaction"),
        ({"m.json": model(metabolite=f"x{ZERO}")}, ["--metabolism", "m.json"], "m.json: metabolite"),
    ],
    ids=[
        "gene",
        "alias",
        "standard",
        "list",
        "gff",
        "edge",
        "relation",
        "set",
        "feature",
        "sequence",
        "reaction",
        "metabolite",
    ],
)
def test_an_organism_with_a_hidden_character_in_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], options: list[str], place: str
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name, text in {"ok.txt": "A1\nB2\n", **files}.items():
        Path(name).write_text(text, encoding="utf-8")
    genes = [] if "--genes" in options else ["--genes", "ok.txt"]
    said = wildtype("organism", "import", "--name", "o", *genes, *options)
    assert said.returncode == 1
    assert place in said.stderr
    assert r"holds the hidden character \u200b: write the name without it" in said.stderr
    assert not (tmp_path / "cache" / "organisms").exists()


def test_no_gene_graph_or_feature_has_a_name_with_hidden_characters() -> None:
    for further in ({"standard": {"A": f"x{TURN}"}}, {"aliases": {"A": [f"x{TURN}"]}}):
        with pytest.raises(GeneSetError, match=r"\\u202e: write"):
            GeneIndex(["A"], **further)  # type: ignore[arg-type]
    with pytest.raises(GeneSetError, match=r"\\x1b: write"):
        GeneIndex([f"A{ESC}"])
    for names in ([f"R{ZERO}"], ["x"], ["A1"]), (["R"], [f"x{ZERO}"], ["A1"]), (["R"], ["x"], [f"A{ZERO}1"]):
        reactions, metabolites, rules = names
        flux = np.zeros(1)
        with pytest.raises(SourceError, match=r"\\u200b: write"):
            Metabolism.build(reactions, metabolites, sparse.csr_array((1, 1)), flux, flux, flux, rules)
    with pytest.raises(DatasetError, match=r"\\x1b: write"):
        Relation.from_edges(f"r{ESC}", [0], [1], 2, directed=False)
    with pytest.raises(DatasetError, match=r"\\u200b: write"):
        FeatureBlock("f", np.ones((2, 1), np.float32), (f"x{ZERO}",))


@pytest.mark.parametrize(
    "words",
    [
        ["data", "show", "x\x1b[31m\u202ey"],
        ["organism", "show", "x\x1b[31m\u202ey"],
        ["predict", "no\x1b]0;t\x07\u202e[/bold]", "--set", "a"],
        ["train", "a\x1b[31m\u202e=3"],
        ["no\x1b[31m\u202esuch"],
        ["predict", "--no\x1b[31m\u202esuch"],
    ],
    ids=["dataset", "organism", "run", "setting", "command", "option"],
)
def test_an_argument_is_never_printed_with_hidden_characters(words: list[str]) -> None:
    said = wildtype(*words)
    assert said.returncode > 0
    assert visible(said.stderr + said.stdout) == said.stderr + said.stdout
    assert r"\x1b" in said.stderr
    assert r"\u202e" in said.stderr
    assert "Traceback" not in said.stderr


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_table_is_visible_on_a_terminal_and_exact_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"name": ["a\x1b[31m\u202e[red]b\x7f"], "value": [1.0]})
    terminal, pipe, machine = Terminal(), io.StringIO(), io.StringIO()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", terminal)
    give_frame(frame, None, as_json=False)
    assert "a\\x1b[31m\\u202e[red]b\\x7f" in terminal.getvalue()
    monkeypatch.setattr(sys, "stdout", pipe)
    give_frame(frame, None, as_json=False)
    assert pd.read_csv(io.StringIO(pipe.getvalue())).equals(frame)
    for give in (lambda: give_frame(frame, None, as_json=True), lambda: print_json(frame.to_dict("records"))):
        monkeypatch.setattr(sys, "stdout", machine)
        machine.truncate(machine.seek(0))
        give()
        assert visible(machine.getvalue()) == machine.getvalue()
        assert json.loads(machine.getvalue()) == frame.to_dict("records")


@pytest.mark.parametrize("folder", ["caf\udce9", "a\nb\x1b[31m", "[bold]x[/bold]"], ids=ascii)
def test_a_path_of_any_bytes_works_or_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    place = tmp_path / folder
    place.mkdir(parents=True)
    table, genes = tmp_path / f"{folder}.csv", place / "genes.txt"
    table.write_text("genes,value\nb0902,1\nb0903,0.5\n")
    genes.write_text("A1\nB2\n")
    for words in (
        ["data", "import", str(table), "--organism", "ecoli-core", "--name", "x", "--yes"],
        ["data", "query", "select 1 as one", "-o", str(place / "q.csv")],
        ["organism", "import", "--name", "o", "--genes", str(genes)],
        ["organism", "export", "ecoli-core", str(place / "out")],
        ["predict", str(place), "--set", "a"],
        ["predict", str(place / "none"), "--set", "a"],
        ["report", str(place)],
        ["evaluate", str(place)],
        ["explain", str(place), "--set", "a"],
        ["serve", str(place)],
    ):
        said = wildtype(*words)
        assert said.returncode in (0, 1), words
        assert visible(said.stderr + said.stdout) == said.stderr + said.stdout
        assert "Traceback" not in said.stderr
        if said.returncode:
            assert said.stderr.strip().splitlines()[-1].startswith("wildtype: "), said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["caf\udce9", "a\nb\x1b[31m", "[bold]x[/bold]"], ids=ascii)
def test_an_intact_run_predicts_from_a_path_of_any_bytes(tmp_path: Path, tiny_run: Path, folder: str) -> None:
    run = tmp_path / folder / "run"
    shutil.copytree(tiny_run, run)
    said = wildtype("predict", str(run), "--set", "G001,G002")
    assert "damaged" not in said.stderr
    assert "Traceback" not in said.stderr
    assert said.returncode == 0, said.stderr
