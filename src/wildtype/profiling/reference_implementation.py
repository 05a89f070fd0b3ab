"""The predecessors as their users had them, behind the interface of a model: real runs of them are profiled.

They share the weights of the fast model, and do what it does in the old order: a graph with masked edges for
every mutant, or dense targets made anew and the whole forward pass run twice in every step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from wildtype.errors import ConfigError
from wildtype.models.dango.model import Dango
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.organism.pyg import require_pyg
from wildtype.phases import phase


def reference_implementation(model: Model) -> Model:
    """Return a model that computes what this one does as its users had it; it shares the weights.

    Raises
    ------
    ConfigError
        If the model replaces none, or torch_geometric is missing.
    """
    require_pyg()
    if isinstance(model, DifferenceGNN):
        return ReplicatedEdges(model)
    if isinstance(model, Dango):
        return DenseTargets(model)
    raise ConfigError(
        f"model={model.config.name} is nothing that was used before: profile model=dango or difference_gnn"
    )


class Around(Model):
    """A model around another, which does the work."""

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


class ReplicatedEdges(Around):
    """A difference GNN with a graph and masked edges for every mutant."""

    def __init__(self, inner: DifferenceGNN) -> None:
        super().__init__(inner)
        from wildtype.models.difference_gnn.reference import ReferenceDifferenceGNN, edge_index

        self.reference: nn.Module = ReferenceDifferenceGNN.from_model(inner)
        self._edge_index: Any = edge_index
        self._edges: dict[str, torch.Tensor] = {}

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Nothing yet: the wild type is encoded beside every batch."""
        if not self._edges:
            self._edges = {name: self._edge_index(op) for name, op in organism.relations.items()}
        table: Any = self.inner.table
        genes = table.detach()
        return WildType(genes.mean(0), genes)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        return Prediction(self.reference(self._edges, mutants))


class DenseTargets(Around):
    """DANGO with n × n targets of every relation made in every step, and every step run forward twice."""

    def __init__(self, inner: Dango) -> None:
        super().__init__(inner)
        self._made: list[Any] = []  # not a part of this model: its weights are the inner one's

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Nothing yet: genes are encoded again with every batch."""
        from wildtype.models.dango.reference import ReferenceDango

        assert isinstance(self.inner, Dango)
        if not self._made:
            self._made = [ReferenceDango.from_model(self.inner, organism.relations, keep_targets=False)]
        return WildType(torch.zeros(0), torch.zeros(0))

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model; fills ``wild_type`` with the losses."""
        (made,) = self._made
        made(mutants)
        outputs = made(mutants)
        with phase("graph prior"):
            found = made.wild_type(outputs, losses=self.training)
        wild_type.cls, wild_type.genes = found.cls, found.genes
        wild_type.losses, wild_type.weights = found.losses, found.weights
        prediction: Prediction = outputs.prediction
        return prediction
