"""`wildtype data fetch` and `verify`, run in this process so that an invented publisher can stand in."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from wildtype.cli.main import main
from wildtype.datasets.records import Publication
from wildtype.sources import publishers as registry
from wildtype.sources.fetch import RECORD
from wildtype.sources.publisher import Publisher, RemoteFile

CONTENT = b"a\tb\t0.5\n"
SURE = RemoteFile("sure[1].tsv", sha256=hashlib.sha256(CONTENT).hexdigest(), gated="open example.org by hand")
LAB = Publisher(
    "lab", "an invented [lab]", Publication(citation="Nobody 2024"), "CC0", (SURE, RemoteFile("b"))
)


@dataclass(frozen=True)
class CommandResult:
    """Exit code, standard output and standard error of one command."""

    code: int
    out: str
    err: str


Run = Callable[..., CommandResult]


def runner(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs ``wildtype data`` in this process, with a cache of its own."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(folder / "cache"))
    monkeypatch.delenv("WILDTYPE_DEBUG", raising=False)

    def run(*words: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["wildtype", "data", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return CommandResult(int(end.value.code or 0), out, err)

    return run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr(registry, "publishers", lambda: {"lab": LAB})
    return runner(tmp_path, monkeypatch, capsys)


def test_publishers_are_listed(run: Run) -> None:
    said = run("fetch")
    assert said.code == 0
    assert "an invented [lab]" in said.out
    (one,) = json.loads(run("fetch", "--json").out)
    assert (one["name"], one["licence"], one["citation"]) == ("lab", "CC0", "Nobody 2024")
    assert one["files"][0] == {
        "name": "sure[1].tsv",
        "urls": [],
        "sha256": SURE.sha256,
        "by hand": "open example.org by hand",
    }


def test_files_fetched_by_hand_are_checked_copied_and_verified(run: Run, tmp_path: Path) -> None:
    hand, to = tmp_path / "hand", tmp_path / "to"
    hand.mkdir()
    (hand / "sure[1].tsv").write_bytes(CONTENT)
    said = run("fetch", "lab", "--from", str(hand), "--to", str(to))
    assert said.code == 0, said.err
    assert "sure[1].tsv" in said.out
    assert "copied" in said.out
    assert "as published" in said.out
    assert f"b: '{hand}' holds no file 'b'" in said.err
    again = json.loads(run("fetch", "lab", "--from", str(hand), "--to", str(to), "--json").out)
    assert [one["state"] for one in again] == ["already there", "by hand"]
    assert sorted(path.name for path in to.iterdir()) == [RECORD, "sure[1].tsv"]
    good = run("verify", str(to), "--json")
    assert good.code == 0
    assert [(one["name"], one["state"], one["publisher"]) for one in json.loads(good.out)] == [
        ("sure[1].tsv", "ok", "lab")
    ]
    (to / "sure[1].tsv").write_bytes(b"damaged")
    bad = run("verify", str(to))
    assert bad.code == 1
    assert "damaged" in bad.out
    assert bad.err.startswith("wildtype: 1 of 1 is damaged: sure[1].tsv: it is not what was fetched")


def test_what_fails_is_one_sentence_and_an_exit_code(run: Run, tmp_path: Path) -> None:
    said = run("fetch", "lab", "--to", str(tmp_path / "to"))
    assert said.code == 1
    assert "by hand" in said.out
    assert (
        "wildtype: 2 of 2 files were not obtained: sure[1].tsv: open example.org by hand; then run"
        in said.err
    )
    for words, needle in (
        (["fetch", "lap"], "no publisher 'lap'; did you mean lab?"),
        (["fetch", "lab/c"], "publisher 'lab' has no file 'c'"),
        (["fetch", "lab", "--from", "https://example.org"], "is not a folder of this machine"),
        (["verify", str(tmp_path / "none")], "is not a folder"),
    ):
        failed = run(*words)
        assert failed.code == 1
        assert failed.err.startswith("wildtype: ")
        assert needle in failed.err
        assert failed.err.count("\n") == 1
        assert failed.out == ""


def test_nothing_to_verify(run: Run) -> None:
    said = run("verify")
    assert said.code == 0
    assert "nothing to verify" in said.err
    assert json.loads(run("verify", "--json").out) == []


@pytest.mark.real
def test_a_folder_of_real_files_is_copied(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["celaj2020", "jonikas2009", "costanzo2010", "string-derived", "yeastract", "uniprot"]
    run = runner(tmp_path, monkeypatch, capsys)
    said = run("fetch", *names, "--from", str(mirror), "--to", str(tmp_path / "to"), "--json")
    assert said.code == 0, said.err
    copied = [one for one in json.loads(said.out) if one["state"] == "copied"]
    assert {one["publisher"] for one in copied} == set(names)
    assert len(copied) == 4 + 1 + 4 + 6 + 2 + 1
    for one in copied:
        path = Path(one["path"])
        assert path.read_bytes() == (mirror / path.name).read_bytes()
