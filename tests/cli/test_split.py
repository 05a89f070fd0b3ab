"""`wildtype data split`: counts, report, pinned files, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.cli.main import main
from wildtype.datasets import Dataset
from wildtype.datasets.pinned import read_pinned
from wildtype.datasets.splits import Split

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return tiny_dataset()


@pytest.fixture
def call(dataset: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run ``wildtype data split tiny-growth …`` and return exit code, output and errors."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("wildtype.sources.catalogue.load_dataset", lambda name: dataset)
        monkeypatch.setattr(sys, "argv", ["wildtype", "data", "split", "tiny-growth", *map(str, words)])
        try:
            main()
        except SystemExit as error:
            return int(error.code or 0), *capsys.readouterr()
        raise AssertionError("the command did not exit")

    return run


def test_prints_counts_and_report(call: Call, dataset: Dataset) -> None:
    code, out, _ = call("--split", "G", "--seed", 3)
    assert code == 0
    split = dataset.select(["epsilon"]).split("G", 3)
    row = next(line for line in out.splitlines() if line.startswith("│"))
    counts = [split.train.size, split.validation.size, split.test.size, sum(split.dropped.values())]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["unseen", "3", "", *map(str, counts)]
    assert "rule kept: no gene of any test or validation row is in a training row" in out
    assert "features from the target's study, which models are given: single_fitness" in out


def test_pins_and_takes_again(call: Call, dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "pinned.json"
    code, out, _ = call("--split", "Q", "--json", "-o", path)
    assert code == 0
    result = json.loads(out)
    assert result["phenotypes"] == ["epsilon"]
    assert result["files"] == [str(path)]
    assert result["splits"][0]["broken"] == ""
    again = json.loads(call("--pinned", path, "--json")[1])
    assert again["splits"][0]["rows"] == result["splits"][0]["rows"]
    assert again["splits"][0]["shared"] == result["splits"][0]["shared"]
    assert again["reused"] == {
        "unknown": 0,
        "missing": {"train": 0, "validation": 0, "test": 0, "dropped": 0},
    }
    code, out, err = call("--pinned", path, "--phenotype", "epsilon", "--phenotype", "fitness")
    assert code == 0
    assert "300 are not and were left out" in out.replace("\n", " ")
    assert "pinned" not in err


def test_folds_are_numbered(call: Call, dataset: Dataset, tmp_path: Path) -> None:
    code, out, err = call("--folds", 3, "-o", tmp_path / "cv.parquet")
    assert code == 0
    assert "rows tested once: 276, never: 0, more often: 0" in out
    assert out.count("rule kept") == 3
    assert out.count("features") == 2
    assert err.count("written: ") == 3
    chosen = dataset.select(["epsilon"])
    for i, split in enumerate(chosen.folds("random", 3)):
        pinned = read_pinned(tmp_path / f"cv-fold{i}.parquet", chosen).split
        np.testing.assert_array_equal(pinned.test, split.test)
    code, out, _ = call("--folds", 3, "--fold", 1)
    assert "│ 1 of 3 │" in out
    assert out.count("rule kept") == 1


def test_orders_and_screens(call: Call) -> None:
    _, out, _ = call("--split", "order", "--order", 2, "--phenotype", "fitness", "--json")
    assert json.loads(out)["splits"][0]["rows"] == {"train": 22, "validation": 2, "test": 276}
    _, out, _ = call("--split", "screen", "--by", "query", "--json")
    assert json.loads(out)["splits"][0]["options"]["by"] == "query"


def test_so_many_genes_are_held_out(call: Call, dataset: Dataset) -> None:
    code, out, _ = call("--split", "any-unseen", "--genes", 4, "--json")
    assert code == 0
    report = json.loads(out)["splits"][0]
    assert report["options"] == {"validation": 0.05, "genes": 4}
    assert report["rows"] == {"train": 171, "validation": 19, "test": 86}
    assert report["rule"] == "every test and validation row has a gene that is in no training row"
    assert "the number of genes decides" in call("--split", "G", "--genes", 4, "--test", 0.1)[2].replace(
        "\n", " "
    )


def test_a_split_that_leaks_fails(
    call: Call, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = dataset.select(["epsilon"]).split("Q")
    swapped = np.sort(np.append(good.train[1:], good.test[0]))
    leaking = replace(good, train=swapped, test=np.sort(np.append(good.test[1:], good.train[0])))
    monkeypatch.setattr("wildtype.datasets.splits.make_split", lambda *_, **__: leaking)
    code, out, err = call("--split", "Q")
    assert code == 1
    assert "RULE BROKEN: split 'one-unseen' leaks" in out
    assert "Traceback" not in err
    code, out, err = call("--split", "Q", "-o", tmp_path / "a.json")
    assert code == 1
    assert "RULE BROKEN" in out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "plates"], "'plates' is not a split"),
        (["--split", "query-pair"], "has no rows of three genes"),
        (["--fold", "1"], "give both or neither"),
        (["--folds", "1"], "expected at least 2 folds"),
        (["--phenotype", "tau"], "has no phenotype 'tau'"),
        (["--pinned", "none.json"], "there is no pinned split at none.json"),
        (["--pinned", "none.json", "--split", "R"], "leave out the options of a random split"),
        (["-o", "split.csv"], "is a .json or .parquet file, not 'split.csv'"),
        (["-o", "/proc/none/split.json"], "cannot write '/proc/none/split.json'"),
    ],
)
def test_wrong_requests_are_one_sentence(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call(*words)
    assert code == 1
    assert err.startswith("wildtype: ")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_split_is_what_training_uses(call: Call, dataset: Dataset, tmp_path: Path) -> None:
    from wildtype.experiments.data import prepare
    from wildtype.experiments.settings.compose import compose

    call("--split", "R", "--seed", 7, "-o", tmp_path / "a.json")
    data = prepare(compose(["data.name=tiny-growth", "split.name=random", "seed=7"]), dataset)
    pinned = read_pinned(tmp_path / "a.json", data.dataset).split
    assert isinstance(pinned, Split)
    np.testing.assert_array_equal(pinned.test, data.split.test)
