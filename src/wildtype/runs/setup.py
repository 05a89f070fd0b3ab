"""What a run starts from: a model with its initial weights, the organism as it sees it, and its batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import torch

from wildtype.config.schema import TrainConfig
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.interface import Model, OrganismTensors, Output, organism_tensors
from wildtype.models.known import evidence_index
from wildtype.models.registry import make_model
from wildtype.mutants.evidence.imitation import regime
from wildtype.mutants.evidence.out_of_fold import OutOfFold
from wildtype.mutants.evidence.similarity import GeneSimilarity
from wildtype.mutants.loader import MutantLoader
from wildtype.runs.data import RunData
from wildtype.seeds import derive
from wildtype.training.evidence_loader import EvidenceLoader
from wildtype.training.progress import Batches


def build(config: TrainConfig, data: RunData, seed: int) -> tuple[Model, OrganismTensors]:
    """Return the model with its initial weights, and the organism as it sees it."""
    organism = data.dataset.organism
    features = torch.zeros(len(organism.genes), 0)
    similarity = None
    settings = config.model
    if isinstance(settings, CellTransformerConfig):
        if settings.features:
            features = data.features(settings.leave_out)
        if settings.needs_similarity:
            similarity = GeneSimilarity.of(data.organism_without(settings.leave_out), derive(0, "similarity"))
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
        channels=0 if similarity is None else len(similarity.channels),
    )
    return model, organism_tensors(model, organism, features, similarity)


@dataclass(frozen=True)
class Loaders:
    """Serve the training rows, in another order every epoch, and the validation rows."""

    train: Batches
    validation: Batches


def loaders(
    config: TrainConfig, data: RunData, organism: OrganismTensors, seed: int, *, shuffle: bool = True
) -> Loaders:
    """Return the batches of a run, with evidence for a model that reads it."""
    size = config.training.batch_size
    train = MutantLoader(data.scaled("train"), size, shuffle=shuffle, seed=seed)
    validation = MutantLoader(data.scaled("validation"), size)
    names = [p.name for p in data.dataset.phenotypes]
    index = evidence_index(config.model, organism, data.known(), names, data.scaler.mean, data.scaler.sd)
    if index is None:
        return Loaders(train, validation)
    if not config.model.evidence.tokens:
        return Loaders(EvidenceLoader(train, index), EvidenceLoader(validation, index, keep=True))
    shares = dict(config.model.evidence.imitate)
    if not shares:
        n = len(data.dataset.organism.genes)
        shares = {regime(data.part("train"), data.part("validation"), n): 1.0}
    return Loaders(
        EvidenceLoader(train, OutOfFold(index, shares, seed)), EvidenceLoader(validation, index, keep=True)
    )


def relations(data: RunData) -> list[str]:
    """Return the relations that a head can follow: those with edges among the run's genes."""
    return [name for name, relation in data.dataset.organism.graphs.items() if relation.nnz]
