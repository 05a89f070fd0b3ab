"""`World`: the processes that train one model, as torchrun or srun starts them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from wildtype.errors import ConfigError, ProcessLostError

T = TypeVar("T")


@dataclass(frozen=True)
class Pending:
    """A sum over processes that is being made."""

    value: Tensor
    arrived: Callable[[], bool] = lambda: True
    wait: Callable[[], object] = lambda: None

    def result(self) -> Tensor:
        """Return the sum, once every process has given its part."""
        self.wait()
        return self.value


@dataclass(frozen=True)
class World:
    """One process among those of a run.

    Attributes
    ----------
    rank, size : int
        Number of this process, from 0, and of all.
    local : int
        Processes on this machine.
    started_by : str
        ``torchrun`` or ``srun``; empty: this process is alone.
    """

    rank: int = 0
    size: int = 1
    local: int = 1
    started_by: str = ""

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process writes, prints and compares; the others only train."""
        return self.rank == 0

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over processes; every process must call it."""
        if self.size > 1:
            value = value.clone()  # all_reduce writes in place
            torch.distributed.all_reduce(value)
        return value

    def total_later(self, value: Tensor) -> Pending:
        """Begin to sum a tensor over processes; every process must begin, and none waits for the others."""
        if self.size == 1:
            return Pending(value)
        value = value.clone()
        work = torch.distributed.all_reduce(value, async_op=True)
        return Pending(value, work.is_completed, work.wait)

    def largest(self, value: Tensor) -> Tensor:
        """Return the largest entries over processes; every process must call it."""
        if self.size > 1:
            value = value.clone()
            torch.distributed.all_reduce(value, torch.distributed.ReduceOp.MAX)
        return value

    def gathered(self, value: T) -> list[T]:
        """Return the value of every process, in order of their ranks; every process must call it."""
        if self.size == 1:
            return [value]
        out: list[T] = [value] * self.size
        torch.distributed.all_gather_object(out, value)
        return out


def world() -> World:
    """Return the processes that torchrun or srun started, or this one alone.

    Raises
    ------
    ConfigError
        If torchrun's or srun's variables are incomplete, or srun started more of them on one machine
        than on another.
    """
    if "WORLD_SIZE" in os.environ:
        rank, size, local = _numbers("torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        return World(rank, size, local, "torchrun")
    # Of the step, not of the job: SLURM_NTASKS is also set in a batch script, which is one process.
    if os.environ.get("SLURM_STEP_NUM_TASKS", "1") == "1":
        return World()
    rank, size, machines = _numbers("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES")
    each = os.environ.get("SLURM_STEP_TASKS_PER_NODE", str(size))
    if not re.fullmatch(r"\d+(\(x\d+\))?", each):
        raise ConfigError(
            f"srun started {each} processes on the machines of this job: ask for equally many on each, with "
            f"--ntasks-per-node"
        )
    return World(rank, size, size // machines, "srun")


LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "recvBytes", "sendBytes")
"""What errors of torch say when another process of the run is gone, or its store with it."""


@contextlib.contextmanager
def lost_processes() -> Iterator[None]:
    """Turn the errors of a process whose run lost another process into one sentence.

    Raises
    ------
    ProcessLostError
        If another process of this run ended, or does not answer.
    """
    try:
        yield
    except RuntimeError as error:  # gloo raises no class of its own
        found = world()
        of_torch = isinstance(error, torch.distributed.DistError)
        if found.size == 1 or not (of_torch or any(text in str(error) for text in LOST)):
            raise
        raise ProcessLostError(
            f"process {found.rank} of {found.size} stops, because another process of this run ended or "
            f"does not answer: its own message tells why, if it was not killed; start all of them again, "
            f"with run.resume=true to continue from the last epoch"
        ) from error


def require_single_process(what: str) -> None:
    """Raise ``ConfigError`` where several processes were started for what takes one."""
    found = world()
    if found.size > 1:
        raise ConfigError(
            f"{found.started_by} started {found.size} processes, and {what} runs in one: start it by itself"
        )


def _numbers(program: str, *names: str) -> list[int]:
    """Return variables of the environment as numbers."""
    said = [os.environ.get(name) for name in names]
    try:
        return [int(text or "") for text in said]
    except ValueError:
        found = ", ".join(f"{name}={text!r}" for name, text in zip(names, said, strict=True))
        raise ConfigError(
            f"{found}: several processes are started by {program}, which sets all three"
        ) from None
