"""`wildtype data import` and `template`: asked before anything is written, and all problems at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_data_fetch import Run, runner
from tests.sources.user_tables.tables import write, yeast
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import dataset_folder, further_datasets, load_dataset, organism_folder

GOOD = "genes,titre,kind,note\nSGS1;SRS2,0.5,,x\nHO,1.0,ts,y\n"
BAD = "genes,value,kind\nSGS1;NOPE,0.5,\nHO,x,gone\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    run = runner(tmp_path, monkeypatch, capsys)
    save_organism(yeast(), organism_folder("yeast"))
    return run


def arguments(path: Path) -> list[str]:
    return ["import", str(path), "--organism", "yeast", "--value-column", "titre", "--unit", "mg/l"]


def test_nothing_is_written_unless_it_is_agreed_to(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    said = run(*arguments(path))
    assert said.code == 1
    for shown in ("2 of 2 mutants, 3 genes", "deletion: 2, temperature sensitive: 1", "mg/l", "note"):
        assert shown in said.out
    assert "nothing was imported: repeat the command with --yes" in said.err
    assert further_datasets() == {}
    done = run(*arguments(path), "--yes")
    assert done.code == 0, done.err
    assert "imported: dataset my, 2 rows" in done.err
    dataset = load_dataset("my")
    assert [(p.name, p.unit) for p in dataset.phenotypes] == [("titre", "mg/l")]
    again = run(*arguments(path), "--yes")
    assert again.code == 1
    assert "own data called 'my' already" in again.err
    replaced = run(*arguments(path), "--yes", "--replace", "--json")
    assert replaced.code == 0
    shown = json.loads(replaced.out)
    assert shown["rows"] == 2
    assert shown["dataset"]["sha256"] == dataset.sha256
    assert run(*arguments(path), "--yes", "--name", "my-2").code == 0
    assert set(further_datasets()) == {"my", "my-2"}


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_one_is_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    asked = []

    def confirm(text: str, **options: object) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    said = run(*arguments(write(tmp_path, GOOD)))
    assert asked == ["Import this?"]
    assert said.code == (0 if answer else 1)
    assert set(further_datasets()) == ({"my"} if answer else set())


def test_all_problems_are_said_at_once(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, BAD)
    said = run("import", str(path), "--organism", "yeast", "--yes")
    assert said.code == 1
    lines = said.err.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "row 1 (line 2), column 'genes'",
        "row 2 (line 3), column 'kind'",
        "row 2 (line 3), column 'value'",
    ]
    assert lines[-1] == f"wildtype: {path} has 3 problems in 2 of 2 rows; nothing was read"
    shown = json.loads(run("import", str(path), "--organism", "yeast", "--yes", "--json").out)
    assert shown["rows"] == 2
    assert [(one["row"], one["line"], one["column"]) for one in shown["problems"]] == [
        (1, 2, "genes"),
        (2, 3, "kind"),
        (2, 3, "value"),
    ]
    assert further_datasets() == {}


def test_other_faults_are_one_sentence(run: Run, tmp_path: Path) -> None:
    path = str(write(tmp_path, GOOD))
    for words, needle in (
        (["import", path, "--organism", "yeast", "--value-column", "yield"], "no column 'yield'"),
        (["import", path, "--organism", "moon"], "there is no organism 'moon'"),
        (["import", path, "--organism", "yeast", "--name", "A b"], "cannot name a study"),
        (["import", path, "--organism", "yeast", "--name", "string"], "is a name of published data"),
        (["import", f"{path}.gz", "--organism", "yeast"], "there is no file"),
    ):
        said = run(*words, "--yes")
        assert said.code == 1
        assert needle in said.err
        assert said.err.count("\n") == 1


PAIRS = "geneA,geneB,score\nSGS1,SRS2,0.5\nSGS1,HO,0.9\nSGS1,negative,0.8\n"


def test_names_like_controls_are_asked_about(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, PAIRS)
    words = ["import", str(path), "--organism", "yeast", "--yes", "--json", "--replace"]
    refused = run(*words)
    assert refused.code == 1
    assert "'negative' looks like a control" in refused.out
    refused = run(*words, "--controls", "none", "--skip-bad")
    assert refused.code == 0, refused.err
    path = write(tmp_path, PAIRS.replace("SGS1,negative,0.8\n", ""))
    refused = run(*words)
    assert refused.code == 1
    assert "import with --controls HO,YDL227C if it is a control, or with --controls none" in refused.err
    assert json.loads(run(*words, "--controls", "none").out)["rows"] == 2
    dropped = json.loads(run(*words, "--controls", "HO").out)
    assert (dropped["rows"], dropped["left_out"]) == (1, {"a gene beside a control": 1})
    assert json.loads(run(*words, "--controls", "HO", "--control-pairs", "single").out)["rows_by_order"] == {
        "1": 1,
        "2": 1,
    }
    path = write(tmp_path, PAIRS.replace("HO", "safe_1"))
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda text, **options: not asked.append(text))
    assert json.loads(run(*words).out)["left_out"] == {"a gene beside a control": 2}
    assert asked == ["Do these names perturb nothing: safe_1, negative?"]


def test_several_files_are_replicates(run: Run, tmp_path: Path) -> None:
    files = [
        str(write(tmp_path, f"genes,value\nSGS1,{v}\nSRS2,{v}\n", f"{n}.csv"))
        for n, v in (("a", 1), ("b", 3))
    ]
    done = run("import", *files, "--organism", "yeast", "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows_by_replicate"] == {"a": 2, "b": 2}
    assert load_dataset("a").table.value.tolist() == [2.0, 2.0]


def test_the_template_is_written_once(run: Run, tmp_path: Path) -> None:
    shown = run("template")
    target = tmp_path / "example.csv"
    assert run("template", "-o", str(target)).code == 0
    assert target.read_text() == shown.out
    target.write_text("my own numbers")
    again = run("template", "-o", str(target))
    assert again.code == 1
    assert "exists already: name a new file" in again.err
    assert target.read_text() == "my own numbers"
    assert run("import", str(write(tmp_path, shown.out, "t.csv")), "--organism", "yeast", "--yes").code == 0


def test_cut_offs_of_a_list_are_declared(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "genes,epsilon\nSGS1;SRS2,-0.5\nPDR5;SGS1,0.3\n")
    words = ["import", str(path), "--organism", "yeast", "--value-column", "epsilon", "--yes"]
    refused = run(*words, "--listed-below", "-0.6")
    assert refused.code == 1
    assert "row 1: epsilon is -0.5, and only values listed at <= -0.6" in refused.err
    done = run(*words, "--listed-below", "-0.12", "--listed-above", "0.16", "--json")
    assert done.code == 0, done.err
    (sentence,) = json.loads(done.out)["dataset"]["selection"].values()
    assert sentence.startswith("E[epsilon given listed at <= -0.12 or >= 0.16]")


MESSY = "queryA;arrayB;rep1;rep2\nSGS1;SRS2;0,5;0,7\nSGS1;wt;0,9;\nHO;NOPE;1;1\nHO;SRS2;x;1\n"


def test_bad_rows_are_left_out_and_kept_beside_the_dataset(run: Run, tmp_path: Path) -> None:
    words = ["import", str(write(tmp_path, MESSY)), "--organism", "yeast", "--decimal", ",", "--yes"]
    refused = run(*words)
    assert refused.code == 1
    assert "row 3 (line 4), column 'arrayB': 'NOPE' is not in organism" in refused.err
    assert "row 4 (line 5), column 'rep1': received 'x', expected a number" in refused.err
    done = run(*words, "--skip-bad", "--json")
    assert done.code == 0, done.err
    shown = json.loads(done.out)
    assert shown["left_out"] == {"empty cells": 1, "rows with a problem, left out": 4}
    assert shown["rows"] == 3
    rejected = (dataset_folder("my") / "rejected.csv").read_text().splitlines()
    assert rejected[0] == "row,line,column,problem"
    assert [line.split(",")[:3] for line in rejected[1:]] == [["3", "4", "arrayB"], ["4", "5", "rep1"]]
    assert "rejected.csv" in done.err


def test_how_a_table_was_read_is_shown_and_can_be_repeated(run: Run, tmp_path: Path) -> None:
    table, mapping = str(write(tmp_path, MESSY)), tmp_path / "mapping.yaml"
    words = ["--organism", "yeast", "--decimal", ",", "--skip-bad", "--phenotype", "fitness"]
    shown = run("import", table, *words, "--save-mapping", str(mapping))
    assert "nothing was imported" in shown.err
    for part in ("genes: columns 'queryA', 'arrayB'", "replicates in the columns 'rep1', 'rep2'", "left out"):
        assert part in " ".join(shown.out.split())
    assert "decimal: ','" in mapping.read_text()
    assert "genes_column: queryA,arrayB" in mapping.read_text()
    again = ["import", table, "--organism", "yeast", "--mapping", str(mapping), "--yes", "--json"]
    done = run(*again, "--phenotype", "growth")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert [one["name"] for one in summary["phenotypes"]] == ["growth"]
    assert not [line for line in summary["read_as"] if "by what the cells hold" in line]
    for text, message in (
        ("decimal: [", "cannot be read as a mapping"),
        ("colour: red", "has no setting 'colour': known are genes_column"),
        ("skip_bad: please", "skip_bad is 'please', expected true or false"),
        ("controls: HO", "controls is 'HO', expected a list of names"),
        ("decimal: '.'\nthousands: '.'", "cannot stand beside --decimal"),
        ("shape: round", "--shape 'round' is not known: choose one of long, crosses, profiles"),
        ("- a", "is no mapping of names to values"),
    ):
        mapping.write_text(text)
        said = run(*again, "--replace")
        assert said.code == 1
        assert message in said.err
        assert said.err.count("\n") == 1
