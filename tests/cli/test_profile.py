"""`wildtype profile …`: every command prints a table or JSON, and can be a Slurm job."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_precompute import tiny_in_cache  # noqa: F401  (a fixture)
from tests.command import assert_one_sentence, wildtype
from wildtype.profiling.record import FILE

SMALL = ["model.width=16", "model.layers=1", "training.batch_size=64"]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_in_cache")
def test_run_step_compare_and_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run = wildtype("profile", "run", *SMALL, "--steps", "2", "--folder", str(tmp_path / "a"), "--json")
    assert run.returncode == 0, run.stderr
    assert set(json.loads(run.stdout)) == {"modes", "added", "parts"}
    place = ["--folder", str(tmp_path / "b"), "--html", str(page)]
    step = wildtype("profile", "step", *SMALL, "--steps", "2", *place)
    assert step.returncode == 0, step.stderr
    assert "backward" in step.stdout
    assert "unattributed" in step.stdout
    assert "24 genes, 2 relations" in step.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    both = wildtype("profile", "compare", str(tmp_path / "a"), str(tmp_path / "b" / FILE))
    assert both.returncode == 0, both.stderr
    assert "steps per epoch" in both.stdout
    both = wildtype("profile", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json")
    assert json.loads(both.stdout)[0]["base"] == "a"
    assert_one_sentence(wildtype("profile", "compare", str(tmp_path / "a")), "one profile only")
    assert_one_sentence(wildtype("profile", "compare", str(tmp_path)), "there is no profile")
    for dry in ([], ["--slurm", "--dry-run"]):
        assert_one_sentence(wildtype("profile", "run", *SMALL, "--modes", "half", *dry), "known: data_only")
        assert_one_sentence(wildtype("profile", "step", *SMALL, "--steps", "0", *dry), "steps=0")


def _of_processes(count: int, *words: str) -> str:
    """Return what a command prints that torchrun starts in so many processes."""
    group = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    program = ["--no-python", sys.executable, "-c", "from wildtype.cli.main import main; main()"]
    done = subprocess.run([*group, *program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_in_cache")
def test_several_processes_say_how_long_they_wait_for_each_other(tmp_path: Path) -> None:
    words = [*SMALL, "--steps", "3", "--folder", str(tmp_path)]
    report = json.loads(_of_processes(2, "profile", "run", *words, "--json"))  # one process prints
    of_mode = {mode: record["processes"] for mode, record in report["modes"].items()}
    assert of_mode["forward"] == {
        "count": 2, "gradient_sync": None, "exchange": None, "wait": None, "slowest": None
    }  # fmt: skip
    for mode in ("data_only", "forward_backward", "training"):
        found, record = of_mode[mode], report["modes"][mode]
        assert record["phases"]["gradient sync"]["mean"] == pytest.approx(found["gradient_sync"][0])
        assert found["exchange"] > 0
        for i in range(2):
            assert found["gradient_sync"][i] == pytest.approx(found["exchange"] + found["wait"][i])
        assert sum(found["slowest"]) == pytest.approx(1.0)
        assert json.loads((tmp_path / f"profile-{mode}.json").read_text())["processes"] == found
    assert report["parts"]["sync"]["seconds"] > 0
    said = " ".join(_of_processes(3, "profile", "step", *words).split())  # whatever the width of its lines
    assert said.count("time of a step, by phase") == 1
    assert "3 processes; gradient sync of each, ms per step: " in said
    assert "waiting for the slowest: " in said


@pytest.mark.usefixtures("tiny_in_cache")
def test_train_cut_short_prints_its_profile(tmp_path: Path) -> None:
    said = wildtype(
        "train", *SMALL, "execution=data_only", f"run.folder={tmp_path / 'r'}", "training.epochs=2"
    )
    assert said.returncode == 0, said.stderr
    assert "data_only" in said.stdout
    assert json.loads((tmp_path / "r" / FILE).read_text())["complete"] is True


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_in_cache")
def test_trace_estimate_and_pipelines(tmp_path: Path) -> None:
    target = tmp_path / "t.json.gz"
    window = ["--wait", "0", "--warm-up", "1", "--active", "1", "--to", str(target)]
    said = wildtype("profile", "trace", *SMALL, *window)
    assert "Operators, by their own time per step" in said.stdout
    assert target.stat().st_size > 0
    assert_one_sentence(wildtype("profile", "trace", *SMALL, "--active", "0"), "active=0")
    lines = wildtype("profile", "trace", *SMALL, "--python-lines", "--json")
    assert json.loads(lines.stdout)["lines"]
    said = wildtype("profile", "estimate", *SMALL, "--json")
    assert json.loads(said.stdout)["seconds_per_epoch"] > 0
    assert "seconds per epoch" in wildtype("profile", "estimate", *SMALL).stdout
    said = wildtype(
        "profile",
        "pipelines",
        *SMALL[2:],
        "--models",
        "cell_transformer",
        "--batches",
        "1",
        "--seconds",
        "0.01",
        "--no-reference",
    )
    assert "lazy_subgraph" in said.stdout


@pytest.mark.slow
def test_scaling_of_a_model() -> None:
    words = ["--genes", "60", "--relations", "1", "--edges", "120", "--batch-size", "4", "--factors", "1,2"]
    said = wildtype("profile", "scaling", *SMALL[:2], *words, "--repeats", "1", "--json")
    assert said.returncode == 0, said.stderr
    assert set(json.loads(said.stdout)["axes"]) == {"batch_size", "genes", "edges", "perturbed"}
    for factors in ("1,x", "1,nan", "1,inf", "0,1"):
        assert_one_sentence(wildtype("profile", "scaling", "--factors", factors), f"--factors={factors!r}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["train", "profile run", "profile step", "profile trace", "profile pipelines", "profile estimate"],
)
def test_the_same_command_as_a_slurm_job(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "wildtype"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.chdir(tmp_path)
    preset = tmp_path / "preset.yaml"
    preset.write_text("partition: gpu\ngpus: 3\nmail: ada@example.org\n")
    said = wildtype(*command.split(), "seed=3", "--slurm", "--preset", str(preset), "--dry-run")
    assert said.returncode == 0, said.stderr
    assert f"{command} seed=3" in said.stdout
    assert "--partition=gpu" in said.stdout
    assert str(tmp_path) in said.stdout
    assert "--dry-run" not in said.stdout
    assert "--slurm" not in said.stdout
    asked = [line.split("=", 1) for line in said.stdout.splitlines() if line.startswith("#SBATCH --")]
    options = {name.removeprefix("#SBATCH --"): value for name, value in asked}
    assert (options["nodes"], options["ntasks-per-node"], options["gpus-per-node"]) == ("1", "3", "3")
    assert "--kill-on-bad-exit=1" in shlex.split(said.stdout.splitlines()[-1])
