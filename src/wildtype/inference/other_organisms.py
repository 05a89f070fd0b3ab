"""A trained model on another organism: other genes, other relations, features by the names of columns.

A feature that the new organism lacks is missing: 0 after standardisation by the training organism's mean and
sd, flagged as missing where the model has such a flag, and listed in the remarks. Attention needs no relation
to predict; a model that passes messages does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from wildtype.errors import CheckpointError, ConfigError
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import class_of
from wildtype.models.interface import organism_tensors
from wildtype.mutants import MutantTable
from wildtype.organism import GeneFeatures, Organism
from wildtype.organism.features import FeatureScaling


def feature_columns(checkpoint: Checkpoint, what: str, *, appended: bool) -> FeatureScaling:
    """Return the columns of a checkpoint's features, provided that no weight belongs to a single gene.

    Raises
    ------
    ConfigError
        If the model has something learned per gene; ``what`` names the new genes, which are ``appended`` to
        those of training or take their place.
    CheckpointError
        If the columns were not kept.
    """
    model = checkpoint.model
    class_of(model).check_new_genes(model.config, what, len(checkpoint.genes), appended=appended)
    if checkpoint.features is None:
        raise CheckpointError(
            f"this checkpoint does not say what its gene features are, which {what} need: train it again"
        )
    return checkpoint.features


def on_organism(checkpoint: Checkpoint, organism: Organism) -> tuple[Checkpoint, tuple[str, ...]]:
    """Return the checkpoint on another organism, without any measurement, and remarks on missing inputs.

    Raises
    ------
    ConfigError
        If the model has something learned per gene, or needs a relation that the organism lacks.
    CheckpointError
        If the names of feature columns were not kept.
    """
    scaling = feature_columns(checkpoint, "genes of another organism", appended=False)
    needed = [name for name in checkpoint.model.relations if name not in organism.graphs]
    if "relations" in checkpoint.model.needs and needed:
        raise ConfigError(
            f"the model passes messages over relation {needed[0]!r}, which organism {organism.name!r} lacks: "
            f"add it, or train without it"
        )
    # Component 1 of another organism's decomposition is another direction, so such columns count as missing.
    same = organism.name == checkpoint.origin.get("organism")
    among = [name for name, block in organism.features.items() if same or block.comparable]
    n = len(organism.genes)
    features = torch.from_numpy(scaling.transform(organism.features, n, among=among))
    tensors = organism_tensors(
        checkpoint.model, organism, features, similar_to(checkpoint, organism, among), priors=False
    )
    unknown = np.full(n, np.nan, np.float32)
    essential = organism.essential
    # A column of doses, without rows, says that the model was trained on some.
    doses = None if checkpoint.known.table.dose is None else np.zeros(0, np.float32)
    known = ReferenceMeasurements(
        phenotypes=checkpoint.known.phenotypes,
        table=replace(MutantTable.from_sets([]), dose=doses),
        part=np.zeros(0, np.uint8),
        single_fitness=unknown,
        single_fitness_sd=unknown.copy(),
        essential=np.zeros(n, bool) if essential is None else essential,
        coordinates=organism.coordinates,
        metabolic=organism.metabolic,
        dubious=organism.dubious,
    )
    moved = replace(
        checkpoint,
        genes=organism.genes,
        organism=tensors,
        known=known,
        origin={**checkpoint.origin, "on": organism.name},
        doses_of_training=checkpoint.assumed_doses,
        validation=None,  # intervals calibrated on the training organism do not hold here
        others=None,
    )
    return moved, remarks(scaling, organism, among, checkpoint.relations)


def similar_to(
    checkpoint: Checkpoint, organism: Organism, among: Collection[str] | None = None
) -> GeneSimilarity | None:
    """Return the similarity of an organism's genes in the channels that a model reads; None if it reads none.

    ``among`` names the feature blocks that are comparable with those of training (None: all).
    """
    known = checkpoint.organism.similarity
    if known is None:
        return None
    blocks = [b for name, b in organism.features.items() if among is None or name in among]
    return GeneSimilarity.of(replace(organism, features=GeneFeatures(blocks)), like=known)


def remarks(
    scaling: FeatureScaling, organism: Organism, among: list[str], relations: list[str]
) -> tuple[str, ...]:
    """Return sentences on the inputs that a model was trained on and an organism lacks."""
    incomparable = {name for name in organism.features if name not in among}
    absent = scaling.absent(organism.features, among=among)
    sentences = []
    found = len(scaling.columns) - sum(absent.values()) - sum(block.missing for block in scaling.blocks)
    total = found + sum(absent.values())
    sentences.append(
        f"{found} of the model's {total} feature columns are those of organism {organism.name!r}"
    )
    if lacking := {name: count for name, count in absent.items() if name not in incomparable}:
        sentences.append(f"missing, taken as the mean: {_counted(lacking)}")
    if refused := {name: count for name, count in absent.items() if name in incomparable}:
        sentences.append(f"not comparable between organisms, taken as missing: {_counted(refused)}")
    if lost := [name for name in relations if name not in organism.graphs]:
        sentences.append(f"relations of the training organism that this one lacks: {', '.join(lost)}")
    return tuple(sentences)


def _counted(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in columns.items())
