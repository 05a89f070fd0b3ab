"""The start of a run: the model with its initial weights, the organism as its input, and its batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from wildtype.errors import ConfigError
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.experiments.data import RunData, without_features
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.start import Log, Start, freeze
from wildtype.models.interface import Model, OrganismTensors, Output, RunRows, check_needs, organism_tensors
from wildtype.models.other_genes import OtherGenes, how_known, seen_of_all
from wildtype.models.parameter_budget import within_memory
from wildtype.models.registry import make_model, model_class
from wildtype.mutants.loader import Batches, MutantLoader
from wildtype.organism.features import FeatureScaling
from wildtype.seeds import derive
from wildtype.training.micro_batches import for_this_rank
from wildtype.training.weights import check_weighting


def build(
    config: TrainConfig, data: RunData, seed: int, log: Log = lambda text: None
) -> tuple[Model, OrganismTensors]:
    """Return the model with its initial weights, and the organism as its input.

    If training starts from another run, ``log`` receives the weights that were taken from it.
    """
    kind, settings = model_class(config.model.name), config.model
    # Errors in the settings must appear before anything is written.
    kind.check_run(settings, [p.name for p in data.whole.phenotypes], config.training.members)
    _check_orders(config, data)
    if config.data.screens and not kind.reads_screens(settings):
        raise ConfigError(
            f"data.screens names {', '.join(config.data.screens)}, and model {settings.name} looks at no "
            f"other screen: leave data.screens out, or choose a model that does"
        )
    weighting = config.training.weighting
    if weighting != "none" and not kind.gradients:
        raise ConfigError(
            f"training.weighting={weighting} weighs the terms of a loss, and model {settings.name} has none: "
            f"set training.weighting=none"
        )
    check_weighting(data.part("train"), weighting)
    if config.data.flip and kind.reads_signs(settings):
        raise ConfigError(
            f"data.flip trains on labels times -1, and model {settings.name} with these settings asks which "
            f"labels are the smaller ones: set data.flip=false"
        )
    needs = kind.needed(settings)
    check_needs(settings.name, needs)
    start = Start(config.training.start, data) if config.training.start else None
    organism = data.dataset.organism
    scaling = feature_scaling(config, data)
    features = torch.zeros(len(organism.genes), 0)
    similarity = None
    if scaling is not None:
        blocks = data.features(kind.left_out(settings))
        features = torch.from_numpy(scaling.transform(blocks, len(organism.genes)))
    # Similarity is computed from the visible features only: those of the targets' sources are gone by now.
    if "similarity" in needs:
        visible = data.organism_without(kind.left_out(settings))
        similarity = GeneSimilarity.of(visible) if start is None else start.similarity(visible)
    if start is not None:
        settings = kind.started_from(settings, start.model, relations(data))
    network = organism.metabolism
    # A stream for the weights alone: drawing more or fewer numbers before this line does not change them.
    torch.manual_seed(derive(seed, "initial weights"))
    with within_memory():
        model = make_model(
            settings,
            genes=len(organism.genes),
            features=features.shape[1],
            phenotypes=Output.of([p.to_json() for p in data.dataset.phenotypes]),
            conditions=len(data.dataset.conditions),
            relations=relations(data),
            channels=0 if similarity is None else len(similarity.channels),
            traits=0 if similarity is None else len(similarity.trait_names),
            reactions=0 if network is None else len(network.reactions),
            metabolites=0 if network is None else len(network.metabolites),
        )
    if start is not None:
        start.apply(model, scaling, log)
    if data.dataset.table.dose is None:
        model.without_doses()
    if config.training.frozen:
        freeze(model, config.training.frozen, log)
    tensors = organism_tensors(model, organism, features, similarity)
    for name, pairs in tensors.tested.items():
        log(f"relation {name}: {pairs}")
    return model, tensors


def _check_orders(config: TrainConfig, data: RunData) -> None:
    """Refuse rows that the model does not score; raises ``ConfigError``."""
    kind, order = model_class(config.model.name), data.dataset.table.order
    if (wrong := order[~kind.scored(order)]).size:
        found = ", ".join(map(str, np.unique(wrong)))
        names = ", ".join(p.name for p in data.dataset.phenotypes)
        raise ConfigError(
            f"{wrong.size:,} of {order.size:,} rows of {names} have {found} perturbed genes, and model "
            f"{config.model.name!r} scores mutants of {kind.scored_orders()}: name other data.phenotypes, or "
            f"another model"
        )


@dataclass(frozen=True)
class Loaders:
    """Batches of the training rows, in a new order every epoch, and of the validation rows; and all rows."""

    train: Batches
    validation: Batches
    rows: RunRows


def loaders(
    config: TrainConfig,
    data: RunData,
    organism: OrganismTensors,
    seed: int,
    *,
    shuffle: bool = True,
    post_fit: bool = False,
) -> Loaders:
    """Return the batches of a run as its model makes them: for training, or for what is fitted after it."""
    size = config.training.batch_size
    train: Batches = MutantLoader(data.scaled("train"), size, shuffle=shuffle, seed=seed)
    validation: Batches = MutantLoader(data.scaled("validation"), size)
    # Training divides the mutants over the processes; a post-fit runs in one process on all of them.
    if not post_fit:
        train, validation = for_this_rank(train), for_this_rank(validation)
    rows = rows_of(data, organism, seed)
    kind = model_class(config.model.name)
    return Loaders(*kind.batches(config.model, train, validation, rows, post_fit=post_fit), rows)


def rows_of(data: RunData, organism: OrganismTensors, seed: int) -> RunRows:
    """Return the rows of a run for a model that makes its batches from more than mutants."""
    crosses = data.crosses()
    return RunRows(
        train=data.part("train"),
        validation=data.part("validation"),
        known=data.known(),
        outputs=tuple(p.name for p in data.dataset.phenotypes),
        mean=data.scaler.mean,
        sd=data.scaler.sd,
        organism=organism,
        seed=seed,
        grid=data.grid,
        sides=data.sides,
        listed=None if crosses is None else crosses.listed,
    )


def of_member(config: TrainConfig, number: int, members: int) -> TrainConfig:
    """Return the settings of one member of an ensemble, counted from 0."""
    return replace(config, model=model_class(config.model.name).of_member(config.model, number, members))


def feature_scaling(config: TrainConfig, data: RunData) -> FeatureScaling | None:
    """Return the columns of the model's input, fitted on the genes of the run; None if it sees no features.

    Nothing in them is a label of a validation or test row: blocks made of the targets' sources are refused,
    and so is the fitness of single mutants that are not in training.
    """
    kind = model_class(config.model.name)
    if "features" not in kind.needed(config.model):
        return None
    return FeatureScaling.fit(data.features(kind.left_out(config.model)))


def other_genes(
    config: TrainConfig, data: RunData, model: Model, tensors: OrganismTensors
) -> OtherGenes | None:
    """Return the genes of the organism that are no tokens of a run's model; None where there are none."""
    if data.beyond is None:
        return None
    beyond, n = data.beyond, tensors.genes
    organism = without_features(beyond.organism, model_class(config.model.name).left_out(config.model))
    known = (beyond.single_fitness, beyond.single_fitness_sd)
    try:
        how = how_known(model)
    except ConfigError as error:
        return OtherGenes.of(organism, n, None, str(error), *known)
    fitness = None
    if data.single_fitness is not None and beyond.single_fitness is not None:
        fitness = np.concatenate([data.single_fitness, beyond.single_fitness])
    seen = seen_of_all(model, organism, tensors, feature_scaling(config, data), fitness)
    return OtherGenes.of(organism, n, seen, how, *known)


def relations(data: RunData) -> list[str]:
    """Return the relations that a head can follow: those with edges among the run's genes."""
    return [name for name, relation in data.dataset.organism.graphs.items() if relation.nnz]
