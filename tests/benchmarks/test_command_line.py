"""`python -m benchmarks`: every bench is a command with the options of its signature; tables and JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from benchmarks.__main__ import NAMES, command_line
from tests.benchmarks.command import benchmarks

ROOT = Path(__file__).parents[2]
PIPELINES = [
    "pipelines", "--nodes", "60", "--relations", "2", "--edges", "300", "--batch-size", "4",
    "--large-batch", "8", "--mutants", "60", "--compared", "2", "--seconds", "0.01", "--repeats", "1",
]  # fmt: skip


def test_every_bench_is_a_command_with_json() -> None:
    commands = typer.main.get_command(command_line()).commands  # type: ignore[attr-defined]
    assert tuple(commands) == NAMES
    for name, command in commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--seed"} <= options, name
        assert not {"--folder", "--shares"} & options
        assert command.help.endswith(".")
    assert [p.name for p in commands["planted"].params if p.param_type_name == "argument"] == ["names"]


@pytest.mark.parametrize("json_wanted", [True, False])
def test_table_and_json_of_pipelines(json_wanted: bool) -> None:
    result = benchmarks(*PIPELINES, *(["--json"] if json_wanted else ["--no-reference"]))
    assert result.returncode == 0, result.stderr
    if json_wanted:
        report = json.loads(result.stdout)
        assert report["equal"] is True
        assert len(report["rows"]) == 15
    else:
        assert "3-hop" in result.stdout
        assert "mutants" in result.stdout
        assert "problem · nodes" in result.stdout


def test_errors_are_one_sentence() -> None:
    result = benchmarks("planted", "nope")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("benchmarks: nothing called 'nope'")
    assert benchmarks("nothing").returncode == 2


@pytest.mark.slow
def test_equality_and_ratios() -> None:
    loader = json.loads(benchmarks("loader", "--mutants", "20000", "--repeats", "1", "--json").stdout)
    assert loader["equal"] is True
    assert loader["mutants_per_second"]["sliced"] > 0
    words = ["--nodes", "150", "--edges", "3000", "--width", "32", "--layers", "2", "--batch-size", "64"]
    report = json.loads(benchmarks("step", *words, "--repeats", "1", "--json").stdout)
    assert report["difference"]["loss, relative"] < 1e-5
    assert report["difference"]["gradients, of the largest"] < 1e-5
    assert set(report["seconds_per_step"]) == {"priors", "no priors"}


@pytest.mark.slow
def test_a_process_of_its_own_at_the_top_of_the_repository() -> None:
    words = ["attention", "--nodes", "40", "--edges", "300", "--repeats", "1", "--no-reference", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 0 < json.loads(result.stdout)["peak_mib"] < 500
