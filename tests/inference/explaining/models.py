"""Untrained models in the place of a tiny run's own, to be explained."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from tests.tiny import tiny_organism
from wildtype.inference.explaining.members import EnsembleMember, Opened, members_of
from wildtype.inference.predictor import Predictor
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Model


@cache
def checkpoint_of(run: Path) -> Checkpoint:
    """Return the checkpoint of a run, read once."""
    return load_checkpoint(run)


def model_like(run: Path, config: CellTransformerConfig, seed: int = 0) -> CellTransformer:
    """Return a model of other settings for a run's checkpoint; its weights are large enough to matter."""
    checkpoint = checkpoint_of(run)
    similarity = checkpoint.organism.similarity
    assert similarity is not None
    torch.manual_seed(seed)
    made = CellTransformer(
        config,
        genes=len(checkpoint.genes),
        features=checkpoint.organism.features.shape[1],
        phenotypes=checkpoint.outputs,
        relations=checkpoint.relations,
        channels=len(similarity.channels),
        traits=len(similarity.trait_names),
    ).eval()
    for name, parameter in made.named_parameters():
        if name.startswith(("encoder.table", "head.kind", "head.additive")):
            parameter.data = torch.randn_like(parameter)
    return made


def opened(run: Path, model: Model | None = None) -> Opened:
    """Return a run with its organism, and another model in the place of its own."""
    checkpoint = checkpoint_of(run)
    if model is not None:
        checkpoint = replace(checkpoint, model=model)
    return Opened(str(run), Predictor(checkpoint), tiny_organism())


def member(run: Path, config: CellTransformerConfig) -> EnsembleMember:
    """Return the one model of such a run."""
    (one,) = members_of([opened(run, model_like(run, config))])
    return one


def pair_of(run: Path, config: CellTransformerConfig) -> Opened:
    """Return a run of an ensemble of two."""
    return opened(run, Ensemble([model_like(run, config, seed) for seed in (0, 1)]))
