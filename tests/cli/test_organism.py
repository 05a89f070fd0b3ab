"""`wildtype organism`: import, list, show, export, template, and what other commands know of an organism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.command import CommandResult, assert_one_sentence, wildtype
from tests.sources.user_organisms.small import folder_of, small
from wildtype.sources.catalogue import imported_organisms, load_dataset, load_organism

PAIRS = "genes,epsilon\nM0001;dnaN,0.1\ndnaN;M0003,0.2\nM0001;M0003,-0.3\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a small organism and its description, and a cache of its own."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WILDTYPE_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    plain = small(tmp_path / "mini")
    (tmp_path / "mini" / "organism.yaml").write_text(yaml.safe_dump(plain))
    return tmp_path / "mini"


def fine(said: CommandResult) -> CommandResult:
    assert said.returncode == 0, said.stderr
    return said


def test_an_organism_comes_in_and_every_command_knows_it(folder: Path) -> None:
    said = fine(wildtype("organism", "import", "mini/organism.yaml"))
    for shown in ("physical", "1 self-loop", "M9999", "four genes"):
        assert shown in said.stdout
    assert (
        "imported: organism mini, 4 genes; add measurements with `wildtype data import TABLE" in said.stderr
    )
    card = json.loads(fine(wildtype("organism", "show", "mini", "--json")).stdout)
    assert card["origin"] == str(folder)
    assert [file["file"] for file in card["files"]] == ["genes.tsv", "ppi.csv", "esm.csv"]
    assert all(file["rows"] == file["used"] + sum(file["dropped"].values()) for file in card["files"])
    assert "dnaA" not in fine(wildtype("organism", "show", "mini")).stdout
    listed = json.loads(fine(wildtype("organism", "list", "--json")).stdout)
    assert listed[-1] == {"organism": "mini", "made from": "own files", "genes": 4, "datasets": 0}
    assert "mini" in fine(wildtype("organism", "list")).stdout
    folder_of(folder, pairs_csv=PAIRS)
    fine(wildtype("data", "import", "mini/pairs.csv", "--organism", "mini", "--yes"))
    assert load_dataset("pairs").organism.name == "mini"
    assert json.loads(wildtype("organism", "list", "--json").stdout)[-1]["datasets"] == 1
    assert "mini" in fine(wildtype("data", "list")).stdout
    fine(wildtype("data", "features", "mini"))
    assert_one_sentence(
        wildtype("data", "import", "mini/pairs.csv", "--organism", "nope", "--name", "b"), "yeast, mini"
    )
    assert_one_sentence(
        wildtype("data", "build", "mini"), "was imported and is there", "wildtype data import"
    )


def test_options_describe_the_same_as_a_yaml(folder: Path) -> None:
    fine(wildtype("organism", "import", "mini/organism.yaml"))
    words = ["--name", "other", "--description", "four genes", "--genes", "mini/genes.tsv"]
    words += ["--relation", "physical=mini/ppi.csv", "--features", "esm=mini/esm.csv"]
    fine(wildtype("organism", "import", *words, "--save-description", "new/organism.yaml"))
    saved = yaml.safe_load(Path("new/organism.yaml").read_text())
    assert saved["genes"]["files"][0]["path"] == "../mini/genes.tsv"
    one, other = load_organism("mini"), load_organism("other")
    assert one.genes == other.genes
    assert one.graphs["physical"].edges == other.graphs["physical"].edges
    fine(wildtype("organism", "import", "new/organism.yaml", "--name", "third"))
    assert load_organism("third").genes == one.genes
    said = fine(wildtype("organism", "import", "--name", "fourth", "--relation", "physical=mini/ppi.csv"))
    assert "no --genes: genes are the names in relations" in said.stderr
    assert load_organism("fourth").genes.names == ("M0001", "M0003", "M9999", "dnaA", "dnaN", "gyrB", "old2")


def test_problems_of_all_files_end_an_import(folder: Path) -> None:
    folder_of(folder, ppi_csv="gene_a,gene_b\ndnaA\n", esm_csv="gene,a\nM0001,x\n")
    plain = yaml.safe_load((folder / "organism.yaml").read_text())
    plain["relations"][0].pop("weight")
    (folder / "organism.yaml").write_text(yaml.safe_dump(plain))
    said = wildtype("organism", "import", "mini/organism.yaml")
    assert said.returncode == 1
    assert "ppi.csv: row 2: received 1 cells, expected 2" in said.stderr
    assert "esm.csv: row 1 (line 2), column 'a': received 'x'" in said.stderr
    assert said.stderr.splitlines()[-1].startswith("wildtype: ")
    assert "problems in 2 files; nothing was written" in said.stderr.splitlines()[-1]
    assert imported_organisms() == []
    shown = wildtype("organism", "import", "mini/organism.yaml", "--json")
    assert {problem["file"] for problem in json.loads(shown.stdout)["problems"]} == {"ppi.csv", "esm.csv"}
    plain["relation"] = []
    (folder / "organism.yaml").write_text(yaml.safe_dump(plain))
    assert_one_sentence(
        wildtype("organism", "import", "mini/organism.yaml"),
        "key 'relation' is not known",
        "did you mean relations?",
    )


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (["mini/organism.yaml", "--genes", "mini/genes.tsv"], "write them all into the YAML"),
        (["--genes", "mini/genes.tsv"], "name the organism with --name"),
        (["--name", "x", "--relation", "mini/ppi.csv"], "is not NAME=FILE"),
        (["--name", "x", "--names-from", "mini/ppi.csv"], "is not FILE:COLUMN,COLUMN"),
        (["--name", "x", "--units", "mini/ppi.csv:a"], "is not FILE:UNIT,GENES"),
        (["--name", "x"], "say where the genes are named"),
        (["mini/organism.yaml", "--name", "yeast"], "is a name of an organism that is built in"),
        (["mini/organism.yaml", "--name", "yeast-string9.1"], "is a name of an organism that is built in"),
        (["mini/organism.yaml", "--name", "../x"], "name is '../x'"),
        (["none.yaml"], "cannot be read as the description of an organism"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(folder: Path, words: list[str], needle: str) -> None:
    assert_one_sentence(wildtype("organism", "import", *words), needle)


def test_an_organism_is_replaced_if_its_datasets_can_be(folder: Path) -> None:
    fine(wildtype("organism", "import", "mini/organism.yaml"))
    folder_of(folder, pairs_csv=PAIRS)
    fine(wildtype("data", "import", "mini/pairs.csv", "--organism", "mini", "--yes"))
    assert_one_sentence(wildtype("organism", "import", "mini/organism.yaml"), "already: take --replace")
    same = fine(wildtype("organism", "import", "mini/organism.yaml", "--replace"))
    assert "datasets on it keep their genes: pairs" in same.stderr
    before = load_dataset("pairs").to_pandas()
    lines = (folder / "genes.tsv").read_text().splitlines()
    # One gene more, in front, and one that no row perturbs gone.
    folder_of(folder, genes_tsv="\n".join([lines[0], "M0000\t\t\t\tno\t\t\t\t", *lines[1:4]]) + "\n")
    moved = fine(wildtype("organism", "import", "mini/organism.yaml", "--replace"))
    assert "rows of pairs are re-mapped by the names of genes" in moved.stderr
    after = load_dataset("pairs").to_pandas()
    assert after.genes.tolist() == before.genes.tolist()
    folder_of(folder, genes_tsv="\n".join([*lines[:3], lines[4]]) + "\n")
    assert_one_sentence(
        wildtype("organism", "import", "mini/organism.yaml", "--replace"),
        "organism 'mini' is not replaced: dataset 'pairs' stands on it",
        "M0003",
    )
    assert load_organism("mini").genes.names[0] == "M0000"


def test_export_and_template(folder: Path, tmp_path: Path) -> None:
    fine(wildtype("organism", "import", "mini/organism.yaml"))
    said = fine(wildtype("organism", "export", "mini", "out", "--json"))
    assert json.loads(said.stdout)["description"] == "out/organism.yaml"
    fine(wildtype("organism", "import", "out/organism.yaml", "--name", "again"))
    one, other = load_organism("mini"), load_organism("again")
    assert one.genes == other.genes
    assert list(one.features) == list(other.features)
    assert_one_sentence(wildtype("organism", "export", "mini", "out"), "exists already")
    assert_one_sentence(wildtype("organism", "export", "nope", "out2"), "known organisms: ")
    shown = fine(wildtype("organism", "template")).stdout
    fine(wildtype("organism", "template", "-o", "t.yaml"))
    assert Path("t.yaml").read_text() == shown
    assert_one_sentence(wildtype("organism", "template", "-o", "t.yaml"), "exists already: name a new file")


def test_an_organism_that_is_damaged_or_of_an_earlier_version(folder: Path, tmp_path: Path) -> None:
    fine(wildtype("organism", "import", "mini/organism.yaml"))
    kept = tmp_path / "cache" / "organisms" / "mini"
    (kept / "card.json").write_text("{")
    assert_one_sentence(wildtype("organism", "show", "mini"), "card.json is damaged", "--replace")
    record = json.loads((kept / "organism.json").read_text()) | {"format_version": 1}
    (kept / "organism.json").write_text(json.dumps(record))
    assert_one_sentence(wildtype("organism", "show", "mini"), "was imported by an earlier version")
    fine(wildtype("organism", "import", "mini/organism.yaml", "--replace"))
    fine(wildtype("organism", "show", "mini"))
