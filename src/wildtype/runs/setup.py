"""What a run starts from: a model with its initial weights, and the organism as it sees it."""

from __future__ import annotations

from dataclasses import asdict, replace

import torch

from wildtype.config.schema import TrainConfig
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.interface import Model, OrganismTensors, Output, organism_tensors
from wildtype.models.registry import make_model
from wildtype.runs.data import RunData
from wildtype.seeds import derive


def build(config: TrainConfig, data: RunData, seed: int) -> tuple[Model, OrganismTensors]:
    """Return the model with its initial weights, and the organism as it sees it."""
    organism = data.dataset.organism
    features = torch.zeros(len(organism.genes), 0)
    if isinstance(config.model, CellTransformerConfig) and config.model.features:
        features = data.features(config.model.leave_out)
    settings = config.model
    if isinstance(settings, DifferenceGNNConfig) and settings.metabolism and organism.metabolism is not None:
        network = organism.metabolism
        reactions = settings.reactions or len(network.reactions)
        settings = replace(
            settings, reactions=reactions, metabolites=settings.metabolites or len(network.metabolites)
        )
    torch.manual_seed(derive(seed, "initial weights"))
    model = make_model(
        settings,
        genes=len(organism.genes),
        features=features.shape[1],
        phenotypes=Output.of([asdict(p) for p in data.dataset.phenotypes]),
        conditions=len(data.dataset.conditions),
        relations=relations(data),
    )
    return model, organism_tensors(model, organism, features)


def relations(data: RunData) -> list[str]:
    """Return the relations that a head can follow: those with edges among the run's genes."""
    return [name for name, relation in data.dataset.organism.graphs.items() if relation.nnz]
