"""One process per GPU, where a job of Slurm started one process and gave it several.

Scripts that ask for `--ntasks=1 --gres=gpu:4` leave it to the program to use all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import torch

from wildtype.errors import ConfigError
from wildtype.training.world import World, world


def processes_to_start(device: str) -> int:
    """Return how many processes this one should become, to use all GPUs that its job of Slurm gave it.

    It is 1 for one of several processes, without a GPU, and outside of Slurm, where nobody set the visible
    GPUs aside for this run: `idle_gpus` tells of them.

    Raises
    ------
    ConfigError
        If the job has several machines, on which other processes must be started.
    """
    found = world()
    if found.size > 1 or "SLURM_JOB_ID" not in os.environ or device == "cpu":
        return 1
    visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
    machines = os.environ.get("SLURM_STEP_NUM_NODES") or os.environ.get("SLURM_JOB_NUM_NODES") or "1"
    if visible and machines != "1":
        raise ConfigError(
            f"this job has {machines} machines and one process was started, which would use one: write "
            f"srun --ntasks-per-node {visible} before the command"
        )
    return max(visible, 1)


def become(processes: int) -> None:
    """Replace this process by torchrun, which starts the same command in so many processes here."""
    environment, command = torchrun(processes, sys.argv, os.environ)
    os.execve(command[0], command, environment)


def torchrun(
    processes: int, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the command that start the command of ``arguments`` in so many processes."""
    # torchrun gives each process one thread unless it is told; the cores of the task are for all of them.
    cores = int(environment.get("SLURM_CPUS_PER_TASK") or processes)
    threads = environment.get("OMP_NUM_THREADS") or str(max(cores // processes, 1))
    group = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}", "--no-python"]
    return {**environment, "OMP_NUM_THREADS": threads}, [sys.executable, *group, *arguments]


def idle_gpus(processes: World) -> str:
    """Return a sentence about visible GPUs that a training leaves idle; empty where it uses all of them."""
    visible = torch.cuda.device_count()
    if processes.size > 1 or visible < 2:
        return ""
    return (
        f"{visible} GPUs are visible and one process trains on the first: write torchrun --nproc_per_node "
        f"{visible} --no-python before the command to use all, or CUDA_VISIBLE_DEVICES=0 to choose one"
    )


def check_visible(processes: World) -> None:
    """Raise ``ConfigError`` where there are fewer GPUs than processes on this machine."""
    visible = torch.cuda.device_count()
    if visible < processes.local:
        raise ConfigError(
            f"{processes.started_by} started {processes.local} processes on this machine, and this one sees "
            f"{visible} of its GPUs: give every process all of them, in Slurm with --gpus-per-node instead "
            f"of --gpus-per-task, or start {visible}"
        )
