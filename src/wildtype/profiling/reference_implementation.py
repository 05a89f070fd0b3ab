"""Reference implementations of earlier models behind the interface of a model, so that runs are profiled.

They share the weights of the fast model and compute the same values in the published order of operations: one
graph with masked edges per mutant, or dense targets in every step and every step run forward twice.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.models.dango.model import Dango
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.organism.pyg import require_pyg
from wildtype.phases import phase


def reference_implementation(model: Model) -> Model:
    """Return a model that computes the same in its reference implementation; it shares the weights.

    Raises
    ------
    ConfigError
        If the model has no reference implementation, or torch_geometric is missing.
    """
    require_pyg()
    if isinstance(model, DifferenceGNN):
        return ReplicatedEdges(model)
    if isinstance(model, Dango):
        return DenseTargets(model)
    raise ConfigError(
        f"model={model.config.name} has no reference implementation: profile model=dango or difference_gnn"
    )


class ModelWrapper(Model):
    """A model that delegates to another one; subclasses change a part."""

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


class ReplicatedEdges(ModelWrapper):
    """A difference GNN with a graph and masked edges for every mutant."""

    inner: DifferenceGNN

    def __init__(self, inner: DifferenceGNN) -> None:
        super().__init__(inner)
        # Imported here: the module needs torch_geometric, an extra.
        from wildtype.models.difference_gnn.reference import ReferenceDifferenceGNN, edge_index

        self.reference: nn.Module = ReferenceDifferenceGNN.from_model(inner)
        self._edge_index = edge_index
        self._edges: dict[str, Tensor] = {}

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return the learned gene states: the reference encodes the wild type again beside every batch."""
        if not self._edges:
            self._edges = {name: self._edge_index(op) for name, op in organism.relations.items()}
        genes = self.inner.table.detach()
        return WildType(genes.mean(0), genes)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        return Prediction(self.reference(self._edges, mutants))


class DenseTargets(ModelWrapper):
    """DANGO with dense [n, n] targets of every relation in every step, and every step run forward twice."""

    inner: Dango

    def __init__(self, inner: Dango) -> None:
        super().__init__(inner)
        from wildtype.models.dango.reference import ReferenceDango

        # In a list, so that torch does not register it: its weights are the inner model's, counted once.
        self._made: list[ReferenceDango] = []
        self._reference = ReferenceDango

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return an empty wild type: the reference encodes the genes again with every batch."""
        if not self._made:
            made = self._reference.from_model(self.inner, organism.relations, keep_targets=False)
            self._made.append(made)
        return WildType(torch.zeros(0), torch.zeros(0))

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model; fills ``wild_type`` with the losses."""
        (made,) = self._made
        made(mutants)  # the published loop passes through the model once more, for its log
        outputs = made(mutants)
        with phase("graph prior"):
            found = made.wild_type(outputs, losses=self.training)
        wild_type.cls, wild_type.genes = found.cls, found.genes
        wild_type.losses, wild_type.weights = found.losses, found.weights
        prediction: Prediction = outputs.prediction
        return prediction
