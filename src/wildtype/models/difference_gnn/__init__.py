"""The difference GNN: what removing genes takes away from the pooled wild type, y ≈ h(F(G) − F(G∖S))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wildtype.models.difference_gnn.config import DifferenceGNNConfig, check
from wildtype.models.registry import MODELS, ModelDescription

if TYPE_CHECKING:
    from wildtype.models.difference_gnn.model import DifferenceGNN
    from wildtype.models.interface import Model


def _model() -> type[DifferenceGNN]:
    from wildtype.models.difference_gnn.model import DifferenceGNN

    return DifferenceGNN


def _reference_implementation(model: DifferenceGNN) -> Model:
    from wildtype.models.difference_gnn.reference import ReplicatedEdges

    return ReplicatedEdges(model)


MODELS.register(
    "difference_gnn",
    ModelDescription(DifferenceGNNConfig, _model, check, reference_implementation=_reference_implementation),
    __name__,
)
