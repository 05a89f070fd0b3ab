"""A step in parts: the gradient of a large batch in the memory of a small one, or by several processes.

The loss of a batch is a mean over its targets, so that of a part is its sum over the targets of the whole;
losses of the wild type are no mean over mutants and count once. The wild type is encoded once: parts but the
last see a copy that is cut off from the encoder and gathers their gradients, which are handed on to the
encoder with the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from wildtype.models.interface import WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.training.world import World, world


def known_targets(batch: MutantBatch) -> Tensor:
    """Return how many numbers were measured of the mutants of a batch, those of profiles included."""
    count = (~batch.value.isnan()).sum()
    if batch.profile is not None and batch.profiles is not None:
        own = batch.profile[batch.profile >= 0]
        count = count + (~batch.profiles.index_select(0, own).isnan()).sum()
    return count


def parts(batch: MutantBatch, count: int) -> list[MutantBatch]:
    """Return a batch in ``count`` parts as equal as can be, or in as many as it has mutants; each knows the
    targets of the whole.
    """
    count = min(count, len(batch))
    whole = known_targets(batch) if batch.whole is None else batch.whole
    ends = [round(i * len(batch) / count) for i in range(count + 1)]
    return [replace(batch.slice(a, b), whole=whole) for a, b in pairwise(ends)]


class Share:
    """Serves one process its part of every batch of a loader.

    All processes go through the same batches: none is dropped, none is served twice. One that there is no
    mutant for, in a last batch with fewer mutants than processes, is served one without targets.

    Parameters
    ----------
    loader : Batches
        Serves the batches of all processes, in the same order in each of them.
    world : World
        Which process this is.
    """

    def __init__(self, loader: Batches, world: World) -> None:
        self.loader, self.world = loader, world

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is served next."""
        self.loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[MutantBatch]:
        for batch in self.loader:
            own = parts(batch, self.world.size)
            if self.world.rank < len(own):
                yield own[self.world.rank]
            else:
                yield _without_targets(replace(batch.slice(0, 1), whole=own[0].whole))


def shared(loader: Batches) -> Batches:
    """Return a loader that serves this process its part of every batch: all of it where it is alone."""
    processes = world()
    return loader if processes.size == 1 else Share(loader, processes)


def _without_targets(batch: MutantBatch) -> MutantBatch:
    profile = None if batch.profile is None else torch.full_like(batch.profile, -1)
    return replace(batch, value=torch.full_like(batch.value, torch.nan), profile=profile)


@dataclass(frozen=True)
class DetachedWildType:
    """A copy of a wild type that gathers gradients, and the tensors that they belong to."""

    copy: WildType
    pairs: list[tuple[Tensor, Tensor]]

    @classmethod
    def of(cls, wild_type: WildType) -> DetachedWildType:
        """Return a copy without losses, cut off from the encoder."""
        pairs: list[tuple[Tensor, Tensor]] = []
        return cls(_cut(replace(wild_type, losses={}), pairs), pairs)

    def carried(self) -> Tensor:
        """Return a number whose gradient is what was gathered."""
        terms = [(leaf.grad * tensor).sum() for tensor, leaf in self.pairs if leaf.grad is not None]
        return torch.stack(terms).sum() if terms else torch.zeros(())


def _cut(value: Any, pairs: list[tuple[Tensor, Tensor]]) -> Any:
    """Return a structure with every tensor that has a gradient replaced by a leaf of its own."""
    if isinstance(value, Tensor):
        if not value.requires_grad:
            return value
        leaf = value.detach().requires_grad_()
        pairs.append((value, leaf))
        return leaf
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _cut(getattr(value, f.name), pairs) for f in fields(value) if f.init}
        )
    if isinstance(value, dict):
        return {name: _cut(item, pairs) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_cut(item, pairs) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, pairs) for item in value)
    return value
