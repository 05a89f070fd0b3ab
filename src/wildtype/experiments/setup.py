"""What a run starts from: a model with its initial weights, the organism as it sees it, and its batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import torch

from wildtype.errors import ConfigError
from wildtype.evidence.holdout import check_holdout, holdout_scheme
from wildtype.evidence.loader import EvidenceLoader
from wildtype.evidence.out_of_fold import OutOfFold
from wildtype.evidence.reference import check_also
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.experiments.data import RunData
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.start import Log, Start, freeze
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.interface import Model, OrganismTensors, Output, organism_tensors
from wildtype.models.known import evidence_index
from wildtype.models.registry import make_model
from wildtype.mutants.loader import Batches, MutantLoader
from wildtype.organism.features import FeatureScaling
from wildtype.seeds import derive
from wildtype.training.micro_batches import for_this_rank


def build(
    config: TrainConfig, data: RunData, seed: int, log: Log = lambda text: None
) -> tuple[Model, OrganismTensors]:
    """Return the model with its initial weights, and the organism as it sees it.

    ``log`` is told which weights were taken from where, if training starts from another run.
    """
    if isinstance(config.model, CellTransformerConfig) and config.model.reads_measurements:
        # What is wrong with the evidence must be found out before anything is written.
        check_also(config.model.evidence.also, [p.name for p in data.whole.phenotypes])
        experts, members = config.model.evidence.experts, config.training.members
        if experts and len(experts) != members:
            raise ConfigError(
                f"model.evidence.experts has {len(experts)} entries, one for each member, and "
                f"training.members={members}: name as many"
            )
        if config.model.evidence.imitate:
            check_holdout(config.model.evidence.imitate)
    start = Start(config.training.start, data) if config.training.start else None
    organism = data.dataset.organism
    scaling = feature_scaling(config, data)
    features = torch.zeros(len(organism.genes), 0)
    similarity = None
    if scaling is not None:
        blocks = data.features(config.model.leave_out)
        features = torch.from_numpy(scaling.transform(blocks, len(organism.genes)))
    settings = config.model
    if isinstance(settings, CellTransformerConfig) and settings.needs_similarity:
        visible = data.organism_without(settings.leave_out)
        similarity = GeneSimilarity.of(visible) if start is None else start.similarity(visible)
    if isinstance(settings, DifferenceGNNConfig) and settings.metabolism and organism.metabolism is not None:
        network = organism.metabolism
        reactions = settings.reactions or len(network.reactions)
        settings = replace(
            settings, reactions=reactions, metabolites=settings.metabolites or len(network.metabolites)
        )
    if start is not None and isinstance(settings, CellTransformerConfig):
        settings = start.settings(settings, relations(data))
    torch.manual_seed(derive(seed, "initial weights"))
    model = make_model(
        settings,
        genes=len(organism.genes),
        features=features.shape[1],
        phenotypes=Output.of([asdict(p) for p in data.dataset.phenotypes]),
        conditions=len(data.dataset.conditions),
        relations=relations(data),
        channels=0 if similarity is None else len(similarity.channels),
        traits=0 if similarity is None else len(similarity.trait_names),
    )
    if start is not None:
        start.apply(model, scaling, log)
    if data.dataset.table.dose is None:
        model.without_doses()
    if config.training.frozen:
        freeze(model, config.training.frozen, log)
    return model, organism_tensors(model, organism, features, similarity)


@dataclass(frozen=True)
class Loaders:
    """Serve the training rows, in another order every epoch, and the validation rows."""

    train: Batches
    validation: Batches


def loaders(
    config: TrainConfig,
    data: RunData,
    organism: OrganismTensors,
    seed: int,
    *,
    shuffle: bool = True,
    trees: bool = False,
) -> Loaders:
    """Return the batches of a run, with evidence for a model that reads it, or for its ``trees``."""
    size = config.training.batch_size
    train: Batches = MutantLoader(data.scaled("train"), size, shuffle=shuffle, seed=seed)
    validation: Batches = MutantLoader(data.scaled("validation"), size)
    if not trees:  # which one process fits to all mutants
        train, validation = for_this_rank(train), for_this_rank(validation)
    names = [p.name for p in data.dataset.phenotypes]
    mean, sd = data.scaler.mean, data.scaler.sd
    index = evidence_index(config.model, organism, data.known(), names, mean, sd, trees=trees)
    if index is None:
        return Loaders(train, validation)
    if not config.model.reads_measurements:
        return Loaders(EvidenceLoader(train, index), EvidenceLoader(validation, index, keep=True))
    fractions = dict(config.model.evidence.imitate)
    if not fractions:
        n = len(data.dataset.organism.genes)
        fractions = {holdout_scheme(data.part("train"), data.part("validation"), n): 1.0}
    hiding = OutOfFold(index, fractions, seed)
    experts = config.model.evidence.experts and "seen" not in fractions
    return Loaders(
        EvidenceLoader(train, hiding),
        EvidenceLoader(validation, OutOfFold(index, fractions, seed) if experts else index, keep=True),
    )


def of_member(config: TrainConfig, number: int, members: int) -> TrainConfig:
    """Return the settings by which one of so many members, from 0, is trained: of an expert, its own."""
    if not isinstance(config.model, CellTransformerConfig):
        return config
    evidence = config.model.evidence
    expert = evidence.expert(number, members)
    if expert is None:
        return config
    return replace(config, model=replace(config.model, evidence=replace(evidence, imitate={expert: 1.0})))


def feature_scaling(config: TrainConfig, data: RunData) -> FeatureScaling | None:
    """Return the columns of the model's input, fitted on the genes of the run; None if it sees no features.

    Nothing in them is a label of a validation or test row: blocks made of the targets' sources are refused,
    and so is the fitness of single mutants that are not in training.
    """
    if not (isinstance(config.model, CellTransformerConfig) and config.model.features):
        return None
    return FeatureScaling.fit(data.features(config.model.leave_out))


def relations(data: RunData) -> list[str]:
    """Return the relations that a head can follow: those with edges among the run's genes."""
    return [name for name, relation in data.dataset.organism.graphs.items() if relation.nnz]
