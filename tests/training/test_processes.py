"""Several processes train what one trains: same losses, same scores, same weights."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.tiny import tiny_dataset
from tests.training.test_micro_batches import words
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.profiling.trace_files import analyse_file, compare_traces
from wildtype.training.step_log import OF_MACHINE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TOLERANCE = 5e-4
"""Of losses, relative: float32 sums in another order, over two epochs."""


def started(processes: int, *settings: str) -> subprocess.CompletedProcess[str]:
    """Run the script in so many processes, as a user would."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    return subprocess.run(
        [*command, "-m", "tests.training.in_processes", *settings],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def settings(name: str, folder: Path, *more: str) -> list[str]:
    readout = ["model.head.relations=false"] if name == "cell_transformer" else []
    return words(name, *readout, f"run.folder={folder}", "baselines=[mean]", *more)


def same(one: Run, other: Run) -> None:
    logs = [pd.read_csv(run.path / "logs" / "metrics.csv") for run in (one, other)]
    assert list(logs[0]) == list(logs[1])
    for column in logs[0].columns.difference(OF_MACHINE):
        np.testing.assert_allclose(
            logs[1][column], logs[0][column], rtol=TOLERANCE, atol=1e-6, equal_nan=True, err_msg=column
        )
    sets = [["G001", "G002"], ["G003", "G004", "G005"]]
    a, b = (wt.load(run.path).predict(sets)["epsilon"] for run in (one, other))
    np.testing.assert_allclose(b, a, atol=1e-3)
    for name, score in ((s.model, s.pearson.value) for s in one.comparisons["epsilon"].scores):
        assert other.comparisons["epsilon"][name].pearson.value == pytest.approx(score, abs=1e-3, nan_ok=True)


def test_two_processes_train_what_one_trains(tmp_path: Path) -> None:
    """With 50 mutants per step in 200 or so, the last batches are uneven."""
    alone = train(compose(settings("cell_transformer", tmp_path / "1")), dataset=tiny_dataset())
    done = started(2, *settings("cell_transformer", tmp_path / "2"))
    assert done.returncode == 0, done.stderr[-2000:]
    same(alone, Run(tmp_path / "2"))
    assert not list((tmp_path / "2").glob("member-*"))


def test_two_tasks_of_srun_train_what_one_trains(tmp_path: Path) -> None:
    """Processes with the variables that srun gives its tasks, and none of torchrun's."""
    alone = train(compose(settings("dango", tmp_path / "1")), dataset=tiny_dataset())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {
        "SLURM_JOB_ID": "4711", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "1",
        "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_NODEID": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.training.in_processes", *settings("dango", tmp_path / "2")]
    tasks = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **job, "SLURM_PROCID": str(i), "SLURM_LOCALID": str(i)},
        )
        for i in range(2)
    ]
    for task in tasks:
        _, said = task.communicate(timeout=300)
        assert task.returncode == 0, said[-2000:]
    same(alone, Run(tmp_path / "2"))


@pytest.mark.parametrize("name", ["cell_transformer", "dango"])
def test_three_processes_with_parts(name: str, tmp_path: Path) -> None:
    more = () if name == "dango" else ("training.gradient_accumulation_steps=2",)
    one = [
        word for word in settings(name, tmp_path / "1") if name == "cell_transformer" or "head" not in word
    ]
    alone = train(compose(one), dataset=tiny_dataset())
    three = [word.replace(str(tmp_path / "1"), str(tmp_path / "3")) for word in one]
    done = started(3, *three, *more)
    assert done.returncode == 0, done.stderr[-2000:]
    same(alone, Run(tmp_path / "3"))


def test_an_error_ends_all_processes(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    done = started(2, *settings("cell_transformer", tmp_path / "taken"))
    assert done.returncode != 0
    assert "is not empty and holds no run" in done.stderr
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["file"]


def test_divergence_stops_all_processes(tmp_path: Path) -> None:
    more = ("training.learning_rate=1e30", "training.clip=0", "training.gradient_accumulation_steps=2")
    done = started(2, *settings("cell_transformer", tmp_path / "run", *more))
    assert done.returncode != 0
    assert done.stderr.count("DivergedError: training diverged at step") == 2
    assert not (tmp_path / "run" / "checkpoint").exists()
    assert not (tmp_path / "run" / "resume").exists()


def test_every_process_traces_the_step(tmp_path: Path) -> None:
    more = ("training.trace_step=2", "training.trace_with=[shapes]")
    done = started(2, *settings("dango", tmp_path / "run", *more))
    assert done.returncode == 0, done.stderr[-2000:]
    files = [tmp_path / "run" / "traces" / f"step-2-rank-{rank}.json.gz" for rank in (0, 1)]
    assert sorted((tmp_path / "run" / "traces").iterdir()) == files
    for file in files:
        found = analyse_file(file, top=None)
        assert (found.steps, found.marked) == (1, True)
        # Gradients are exchanged inside the step, which a plain loop does not show.
        assert any("all_reduce" in row["name"] or "allreduce" in row["name"] for row in found.operators)
    assert compare_traces(*(analyse_file(file, top=None) for file in files)).names == tuple(map(str, files))
