"""`ModelWrapper`: a model inside another one, such as a reference implementation around the fast model."""

from __future__ import annotations

import torch
from torch import Tensor

from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch


class ModelWrapper(Model):
    """A model that delegates to another one, whose settings and weights it has; subclasses change a part.

    A reference implementation computes the same as the fast model inside it, in the published order of
    operations.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__()
        self.config, self.needs, self.relations = inner.config, inner.needs, inner.relations
        self.graph_per_mutant = inner.graph_per_mutant
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

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """As the inner model."""
        return self.inner.layer_states(organism)
