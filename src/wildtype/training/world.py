"""`World`: the processes that train one model, as torchrun starts them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from wildtype.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """One process among those of a run.

    Attributes
    ----------
    rank, size : int
        Number of this process, from 0, and of all.
    local : int
        Processes on this machine.
    """

    rank: int = 0
    size: int = 1
    local: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes, prints and compares; the others only train."""
        return self.rank == 0

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over processes; every one must ask."""
        if self.size > 1:
            value = value.clone()
            torch.distributed.all_reduce(value)
        return value

    def largest(self, value: Tensor) -> Tensor:
        """Return the largest entries over processes; every one must ask."""
        if self.size > 1:
            value = value.clone()
            torch.distributed.all_reduce(value, torch.distributed.ReduceOp.MAX)
        return value

    def gathered(self, value: T) -> list[T]:
        """Return what every process has, in order of their ranks; every one must ask."""
        if self.size == 1:
            return [value]
        out: list[T] = [value] * self.size
        torch.distributed.all_gather_object(out, value)
        return out


def world() -> World:
    """Return the processes that torchrun started, or this one alone.

    Raises
    ------
    ConfigError
        If only a part of what torchrun says is there.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    said = [os.environ.get(name) for name in names]
    if said[1] is None:
        return World()
    try:
        rank, size, local = (int(text or "") for text in said)
    except ValueError:
        found = ", ".join(f"{name}={text!r}" for name, text in zip(names, said, strict=True))
        raise ConfigError(
            f"{found}: several processes are started by torchrun, which sets all three"
        ) from None
    return World(rank, size, local)
