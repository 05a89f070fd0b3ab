"""Micro-batches: the gradient of a large batch in the memory of a small one, or shared out to processes.

The loss of a step is L = Σ_t ℓ_t / T over its T known targets, plus losses of the wild type. A micro-batch
contributes Σ ℓ_t / T over its targets, so that the sum over micro-batches is L up to rounding; a
mean of means would weigh targets of small micro-batches more. Losses of the wild type (graph priors) are no
mean over mutants and count once.

The wild type is encoded once per step. All micro-batches but the last see a detached copy, whose leaves
gather ∂L/∂h; with the last one these gradients go through the encoder together (`DetachedWildType`).
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


def number_of(known: Tensor, batch: MutantBatch) -> Tensor:
    """Return the number of known targets [t] of a batch, or the sum of their weights where they have some."""
    return known.sum() if batch.weight is None else (known * batch.weight).sum()


def known_targets(batch: MutantBatch) -> Tensor:
    """Return how many numbers were measured of the mutants of a batch, those of profiles included.

    Where targets have weights, it is the sum of the weights.
    """
    count = number_of(~batch.value.isnan(), batch)
    if batch.profile is not None and batch.profiles is not None:
        rows = batch.profile[batch.profile >= 0]
        count = count + (~batch.profiles.index_select(0, rows).isnan()).sum()
    return count


def micro_batches(batch: MutantBatch, count: int) -> list[MutantBatch]:
    """Split a batch into ``count`` micro-batches of nearly equal size, at most one per mutant.

    Each knows the number of known targets of the whole step, by which its loss is divided.
    """
    count = min(count, len(batch))
    # A micro-batch of a process's own share keeps the count of all processes.
    targets = known_targets(batch) if batch.step_targets is None else batch.step_targets
    ends = [round(i * len(batch) / count) for i in range(count + 1)]
    return [replace(batch.slice(a, b), step_targets=targets) for a, b in pairwise(ends)]


class RankLoader:
    """Serves one process its micro-batch of every batch of a loader.

    All processes go through the same batches: none is dropped, none is served twice. A process without a
    mutant in the last batch is served one without targets.

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
            by_rank = micro_batches(batch, self.world.size)
            if self.world.rank < len(by_rank):
                yield by_rank[self.world.rank]
            else:
                # Every process must make a step: DDP's all-reduce waits for the gradients of all of them.
                # Without targets, the loss and its gradient are 0 and leave the sum over processes alone.
                yield _without_targets(replace(batch.slice(0, 1), step_targets=by_rank[0].step_targets))


def for_this_rank(loader: Batches) -> Batches:
    """Return a loader that serves this process its micro-batch of every batch; all of it for a single one."""
    processes = world()
    return loader if processes.size == 1 else RankLoader(loader, processes)


def _without_targets(batch: MutantBatch) -> MutantBatch:
    profile = None if batch.profile is None else torch.full_like(batch.profile, -1)
    return replace(batch, value=torch.full_like(batch.value, torch.nan), profile=profile)


@dataclass(frozen=True)
class DetachedWildType:
    """A copy of a wild type that gathers gradients, and pairs of encoder outputs and their leaves in it."""

    copy: WildType
    pairs: list[tuple[Tensor, Tensor]]

    @classmethod
    def of(cls, wild_type: WildType) -> DetachedWildType:
        """Return a copy without losses, detached from the encoder."""
        pairs: list[tuple[Tensor, Tensor]] = []
        return cls(_detached(replace(wild_type, losses={}), pairs), pairs)

    def gradient_term(self) -> Tensor:
        """Return a scalar whose gradient with respect to the encoder's outputs is what the leaves gathered.

        For Σ ⟨g, h⟩ with the gathered g held constant, ∂/∂h = g: added to the loss of the last micro-batch,
        it makes one backward pass through the encoder do for all of them.
        """
        terms = [(leaf.grad * tensor).sum() for tensor, leaf in self.pairs if leaf.grad is not None]
        return torch.stack(terms).sum() if terms else torch.zeros(())


def _detached(value: Any, pairs: list[tuple[Tensor, Tensor]]) -> Any:
    """Return a structure with every tensor that has a gradient replaced by a new leaf."""
    if isinstance(value, Tensor):
        if not value.requires_grad:
            return value
        leaf = value.detach().requires_grad_()
        pairs.append((value, leaf))
        return leaf
    if is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: _detached(getattr(value, f.name), pairs) for f in fields(value) if f.init}
        return replace(value, **inner)
    if isinstance(value, dict):
        return {name: _detached(item, pairs) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_detached(item, pairs) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_detached(item, pairs) for item in value)
    return value
