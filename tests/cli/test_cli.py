from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.command import assert_one_sentence, wildtype
from wildtype.profiling import speed


def test_predict_from_arguments_file_and_stdin_agree(tiny_run: Path, tmp_path: Path) -> None:
    sets = tmp_path / "sets.csv"
    sets.write_text('genes\n"G001,G002"\nabc3;abc4\n')
    outputs = [tmp_path / name for name in ("a.csv", "b.parquet", "c.json")]
    results = [
        wildtype("predict", str(tiny_run), "--set", "G001,G002", "--set", "abc3,abc4", "-o", str(outputs[0])),
        wildtype("predict", str(tiny_run), "--file", str(sets), "-o", str(outputs[1])),
        wildtype(
            "predict", str(tiny_run), "--file", "-", "-o", str(outputs[2]), stdin="G001 G002\nG003,G004\n"
        ),
    ]
    assert [r.returncode for r in results] == [0, 0, 0], [r.stderr for r in results]
    frames = [pd.read_csv(outputs[0]), pd.read_parquet(outputs[1]), pd.read_json(outputs[2])]
    for frame in frames:
        assert frame["genes"].tolist() == ["G001,G002", "G003,G004"]
        pd.testing.assert_series_equal(frame["epsilon"], frames[1]["epsilon"], check_exact=False, atol=1e-7)


def test_predict_prints_json(tiny_run: Path) -> None:
    result = wildtype("predict", str(tiny_run), "--set", "G001", "--json", "--as", "fitness")
    (row,) = json.loads(result.stdout)
    assert row["epsilon"] is None
    assert row["note"] == "epsilon needs at least 2 genes"
    assert row["fitness_expected"] == pytest.approx(row["fitness_expected"])


@pytest.mark.parametrize(
    ("words", "needles"),
    [
        (["--set", "G001,NOPE"], ["row 1", "NOPE"]),
        (["--set", "G001,abc1"], ["row 1", "more than once"]),
        ([], ["nothing to predict"]),
        (["--set", "G001", "-o", "x.xlsx"], ["x.xlsx", ".parquet"]),
        (["--file", "none.csv"], ["none.csv"]),
        (["--set", "G001", "--condition", "heat"], ["heat"]),
        (["--set", "G001", "-o", "/proc/none/x.csv"], ["/proc/none/x.csv"]),
    ],
)
def test_bad_requests_are_one_sentence_and_write_nothing(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], needles: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(wildtype("predict", str(tiny_run), *words), *needles)
    assert not os.listdir(tmp_path)


def test_other_bad_input_is_one_sentence(tmp_path: Path) -> None:
    assert_one_sentence(wildtype("predict", str(tmp_path / "none"), "--set", "A"), "no run at")
    assert_one_sentence(wildtype("train", "data=nothing"), "no dataset 'nothing'")
    assert_one_sentence(wildtype("train", "modle.layers=2"), "modle.layers", "model.layers")
    assert_one_sentence(wildtype("data", "build", "yeast"), "--from FOLDER")
    assert_one_sentence(wildtype("data", "build", "yeast", "--from", str(tmp_path)), str(tmp_path))
    assert_one_sentence(wildtype("data", "show", "yeast-digenic-costanzo2010"), "wildtype data build yeast")
    assert_one_sentence(wildtype("evaluate", str(tmp_path)), "no finished run")
    log = tmp_path / "0.log"
    log.write_text("beside the runs")
    assert_one_sentence(wildtype("evaluate", str(log)), "is a file, and not the directory of a run")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = wildtype("predict", str(tmp_path / "none"), "--set", "A", "--debug")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_evaluate_repeats_the_table_and_sums_up(tiny_run: Path, tmp_path: Path) -> None:
    one = wildtype("evaluate", str(tiny_run), "--json")
    assert {s["model"] for s in json.loads(one.stdout)["epsilon"]["scores"]} == {
        "cell_transformer",
        "mean",
        "additive_ridge",
    }
    record = json.loads((tiny_run / "comparison.json").read_text())
    record["epsilon"]["seed"] = 1
    (tmp_path / "comparison.json").write_text(json.dumps(record))
    two = wildtype("evaluate", str(tiny_run), str(tmp_path), "--json")
    (group,) = json.loads(two.stdout)
    assert group["seeds"] == [0, 1]
    assert group["models"]["additive_ridge"]["pearson"]["sd"] == 0
    markdown = wildtype("evaluate", str(tiny_run), str(tmp_path), "--markdown").stdout
    assert markdown.count("| additive_ridge |") == 1
    assert_one_sentence(wildtype("evaluate", str(tiny_run), str(tiny_run)), "both trained cell_transformer")


def test_list_and_settings() -> None:
    listed = json.loads(wildtype("data", "list", "--json").stdout)
    assert {
        "dataset": "yeast-digenic-costanzo2010",
        "organism": "yeast",
        "built": False,
        "made from": "publishers' files",
    } in listed
    shown = wildtype("train", "--settings", "data=yeast-digenic-costanzo2010", "seed=5").stdout
    assert "seed: 5" in shown
    assert "tokens: measured" in shown


@pytest.mark.parametrize(
    ("words", "needles"),
    [
        (["data=ecoli-core-grwth"], ["no dataset 'ecoli-core-grwth'", "did you mean ecoli-core-growth"]),
        (["--settings", "data=ecoli-core-grwth"], ["did you mean ecoli-core-growth"]),
        (
            ["--multirun", "data=ecoli-core-grwth", "seed=1,2", "run.folder=runs"],
            ["did you mean ecoli-core-growth"],
        ),
        (["--dry-run", "data=ecoli-core-grwth"], ["did you mean ecoli-core-growth"]),
        (["model=dnago"], ["did you mean dango?"]),
        (["experiment=yeast-digenic-bst"], ["did you mean yeast-digenic-best"]),
        (["split.name=unsen"], ["did you mean unseen", "one-unseen"]),
        (["--settings", "data.tokens=foo"], ["data.tokens='foo'", "choose all, measured"]),
        (["--only", "0"], ["--only 0", "--multirun"]),
        (["--settings", "--multirun"], ["--settings prints and stops"]),
        (["--settings", "--slurm"], ["--settings prints and stops"]),
    ],
)
def test_training_is_refused_before_it_begins(words: list[str], needles: list[str]) -> None:
    assert_one_sentence(wildtype("train", *words), *needles)


def test_damaged_checkpoint_is_one_sentence(tiny_run: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(tiny_run / "checkpoint", tmp_path / "c")
    (tmp_path / "c" / "model.safetensors").write_bytes(b"not a model")
    assert_one_sentence(
        wildtype("predict", str(tmp_path / "c"), "--set", "G001"), "model.safetensors", "damaged"
    )


def test_doctor_finds_this_machine_ready() -> None:
    result = wildtype("doctor", "--json")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout)["problems"] == []


def test_doctor_times_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = speed.SpeedSizes(
        nodes=40, edges=300, genes=60, batch_size=4, measured=200, queries=20, candidates=6, repeats=1
    )
    monkeypatch.setattr(speed, "SpeedSizes", lambda: sizes)
    report = json.loads(wildtype("doctor", "--speed", "--json").stdout)["speed"]
    assert report["step"]["mutants_per_second"] > 0
    shown = wildtype("doctor", "--speed", "--device", "cpu")
    assert "screen of all triples of 6 genes" in shown.stdout
    assert "timing attention" in shown.stderr
    assert_one_sentence(wildtype("doctor", "--device", "cuda"), "--device=cuda is the device of --speed")
    assert_one_sentence(wildtype("doctor", "--speed", "--device", "tpu9"), "device='tpu9' is no device")


@pytest.mark.slow
def test_a_process_of_its_own_ends_with_one_sentence_and_a_code(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from wildtype.cli.main import main; main()", "evaluate", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("wildtype: ")
    assert "no finished run" in result.stderr


def test_the_package_is_the_program() -> None:
    words = [sys.executable, "-m", "wildtype"]
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == wildtype("--version").stdout.strip()
    refused = subprocess.run([*words, "predict", "nowhere"], capture_output=True, text=True)
    assert refused.returncode != 0
    assert (
        "Usage: python -m wildtype"
        in subprocess.run([*words, "--help"], capture_output=True, text=True).stdout
    )
    assert "Traceback" not in refused.stderr
