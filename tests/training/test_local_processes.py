"""Which GPUs a run uses, and what is said of the others; the number of visible ones is pretended."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.command import assert_one_sentence, wildtype
from tests.training.test_fit import fit
from tests.training.test_world import SRUN, TORCHRUN
from wildtype.errors import ConfigError
from wildtype.training.config import TrainingConfig
from wildtype.training.fit import accelerator
from wildtype.training.local_processes import become, idle_gpus, processes_to_start, torchrun
from wildtype.training.world import World

JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "1"}
GPUs = Callable[[int], None]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GPUs:
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)

    def visible(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return visible


@pytest.mark.parametrize(
    ("said", "visible", "device", "processes"),
    [
        (JOB, 4, "auto", 4),
        (JOB, 4, "cuda", 4),
        ({**JOB, "SLURM_NTASKS": "4"}, 4, "auto", 4),  # tasks were asked for, and srun left out
        ({**JOB, "SLURM_JOB_NUM_NODES": "2", "SLURM_STEP_NUM_NODES": "1"}, 3, "auto", 3),  # a step of one
        (JOB, 4, "cpu", 1),
        (JOB, 1, "auto", 1),
        (JOB, 0, "auto", 1),
        ({}, 4, "auto", 1),  # nobody set them aside for this run
        ({**JOB, **SRUN}, 4, "auto", 1),
        ({**JOB, **TORCHRUN}, 4, "auto", 1),
    ],
)
def test_one_process_per_gpu_of_a_job(
    said: dict[str, str],
    visible: int,
    device: str,
    processes: int,
    gpus: GPUs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus(visible)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert processes_to_start(device) == processes


def test_a_process_on_one_of_several_machines_says_what_to_write(
    gpus: GPUs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**JOB, "SLURM_JOB_NUM_NODES": "2"}.items():
        monkeypatch.setenv(name, value)
    gpus(0)
    assert processes_to_start("auto") == 1
    for count in (1, 4):
        gpus(count)
        with pytest.raises(ConfigError, match=f"this job has 2 machines.*srun --ntasks-per-node {count} "):
            processes_to_start("auto")


def test_outside_of_slurm_a_sentence_names_idle_gpus(gpus: GPUs) -> None:
    gpus(4)
    assert "torchrun --nproc_per_node 4 --no-python" in idle_gpus(World())
    assert not idle_gpus(World(0, 4, 4, "torchrun"))
    gpus(1)
    assert not idle_gpus(World())


class Stopped(Exception):
    pass


def test_a_training_on_one_of_several_gpus_warns(
    gpus: GPUs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(*arguments: object) -> None:
        raise Stopped

    monkeypatch.setattr("wildtype.training.fit.for_this_rank", stop)  # there is no GPU to go on with
    gpus(4)
    with pytest.warns(UserWarning, match="4 GPUs are visible and one process"), pytest.raises(Stopped):
        fit(tmp_path, TrainingConfig())
    gpus(1)
    with warnings.catch_warnings(), pytest.raises(Stopped):
        warnings.simplefilter("error")
        fit(tmp_path, TrainingConfig())


def test_processes_that_see_only_their_own_gpu_say_what_to_write(
    gpus: GPUs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SRUN.items():
        monkeypatch.setenv(name, value)
    gpus(2)
    assert accelerator(TrainingConfig()) == "gpu"
    gpus(1)
    with pytest.raises(ConfigError, match="srun started 2 processes.*sees 1 of its GPUs.*--gpus-per-node"):
        accelerator(TrainingConfig())
    assert accelerator(TrainingConfig(device="cpu")) == "cpu"


@pytest.mark.parametrize(
    "command", [["train"], ["train", "--multirun", "seed=1,2"], ["profile", "run"], ["profile", "step"]]
)
def test_a_job_of_one_task_and_four_gpus_goes_on_in_four_processes(
    command: list[str], gpus: GPUs, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BecameAnother(SystemExit):
        pass

    became: list[tuple[str, list[str], dict[str, str]]] = []

    def execute(program: str, words: list[str], environment: dict[str, str]) -> None:
        became.append((program, words, environment))
        raise BecameAnother(0)

    monkeypatch.setattr(os, "execve", execute)
    for name, value in {**JOB, "SLURM_CPUS_PER_TASK": "32"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    gpus(4)
    words = [*command, "run.folder=runs/one four", "training.epochs=1"]
    said = wildtype(*words)
    assert said.returncode == 0, said.stderr
    assert said.stderr == "wildtype: 4 GPUs are visible: one process for each\n"
    [(program, run, environment)] = became
    assert program == run[0] == sys.executable
    assert "--nproc_per_node=4" in run
    assert run[run.index("--no-python") + 1 :] == ["wildtype", *words]
    assert environment["OMP_NUM_THREADS"] == "8"
    # A model that one process fits needs no other; several machines need srun.
    became.clear()
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert_one_sentence(wildtype(*words), "this job has 2 machines", "srun --ntasks-per-node 4")
    assert not became


def test_threads_that_were_set_stay() -> None:
    assert torchrun(4, ["x"], {"OMP_NUM_THREADS": "3", "SLURM_CPUS_PER_TASK": "32"})[0] == {
        "OMP_NUM_THREADS": "3",
        "SLURM_CPUS_PER_TASK": "32",
    }
    assert torchrun(4, ["x"], {})[0]["OMP_NUM_THREADS"] == "1"
    assert torchrun(4, ["x"], {"SLURM_CPUS_PER_TASK": "2"})[0]["OMP_NUM_THREADS"] == "1"


@pytest.mark.slow
def test_a_process_becomes_several_that_know_of_each_other() -> None:
    # One write each: lines of processes that write piece by piece would mix.
    program = (
        "import os; names = 'RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE'; "
        "os.write(1, (' '.join(os.environ[name] for name in names) + chr(10)).encode())"
    )
    code = (
        f"import sys; sys.argv = [{sys.executable!r}, '-c', {program!r}]; "
        f"from {become.__module__} import become; become(2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["0 2 2", "1 2 2"]
