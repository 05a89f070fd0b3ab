"""A model as its authors first wrote it, behind the interface of a model: real runs of it are profiled.

It shares the weights of the fast model and must compute the same; only the order of the work differs.
"""

from __future__ import annotations

import torch

from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch


class ReferenceImplementation(Model):
    """A model around another, whose settings and steps it has."""

    def __init__(self, inner: Model) -> None:
        super().__init__()
        self.config, self.needs, self.relations = inner.config, inner.needs, inner.relations
        self.inner = inner

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """As the inner model."""
        return self.inner.encode(organism, stream)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        found: Prediction = self.inner(wild_type, mutants)
        return found

    def set_epoch(self, epoch: int) -> None:
        """As the inner model."""
        self.inner.set_epoch(epoch)
