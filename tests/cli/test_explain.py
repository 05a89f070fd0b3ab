from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype

QUICK = ["--mutants", "30", "--top", "3"]


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "a [red]run"))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_it_prints_and_writes_nothing(run: Path) -> None:
    before = files(run)
    said = wildtype("explain", str(run), "--set", "G003,G005", *QUICK)
    assert said.returncode == 0, said.stderr
    assert "one model: no agreement known" in said.stdout
    assert "G003 absent, G005 absent: epsilon" in said.stdout
    assert "[red]run" in said.stdout
    assert files(run) == before


def test_it_writes_where_it_is_told(run: Path, tmp_path: Path) -> None:
    target, drawing = tmp_path / "x.json", tmp_path / "z.svg"
    said = wildtype(
        "explain",
        str(run),
        "--set",
        "G003,G005",
        *QUICK,
        "--json",
        "--save",
        "-o",
        str(target),
        "--draw",
        str(drawing),
    )
    assert said.returncode == 0, said.stderr
    printed = json.loads(said.stdout)
    assert printed == json.loads(target.read_text()) == json.loads((run / "explain.json").read_text())
    assert printed["mutants"][0]["genes"] == ["G003", "G005"]
    assert "<svg" in drawing.read_text()


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (["--only", "everything"], "'everything'"),
        (["-o", "x.csv"], "x.csv"),
        (["--draw", "x.gif"], "x.gif"),
        (["--set", "NOPE"], "NOPE"),
        (["--annotations", "none.csv"], "none.csv"),
        (["--rows", "0"], "rows=0"),
    ],
)
def test_bad_requests_are_one_sentence_and_write_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], needle: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    assert_one_sentence(wildtype("explain", str(run), *QUICK, "--save", *words), needle)
    assert files(tmp_path) == before
