"""Training from each representation of a mutant: how fast it trains, and how well it then predicts.

`measure_pipelines` times what makes the batches. Here a model that reads graphs is trained on each of the
same five, for equally many steps from equal weights, and scored on validation and test rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from wildtype.experiments.data import RunData
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, loaders
from wildtype.models.interface import Model, OrganismTensors, Output
from wildtype.models.registry import reference_implementation
from wildtype.mutants.batch import MutantBatch
from wildtype.profiling.pipelines import PIPELINES
from wildtype.training.fit import fit_model
from wildtype.training.validation import ScoredRows

REPRESENTATIONS = tuple(name for name, _, _ in PIPELINES)


@dataclass(frozen=True)
class RepresentationAccuracy:
    """A model trained on one representation.

    Attributes
    ----------
    model, representation, path : str
        Model; name as in `PIPELINES`; ``fast``, or ``reference`` for torch_geometric.
    steps : int
        Training steps.
    mutants_per_second : float
        Of the training steps, with their data.
    validation, test : float
        Scores after them (the Pearson correlation; of several phenotypes, see `ScoredRows`).
    """

    model: str
    representation: str
    path: str
    steps: int
    mutants_per_second: float
    validation: float
    test: float


def reads_representations(config: TrainConfig) -> bool:
    """Whether the model of a configuration is trained on a representation that its settings choose."""
    return any(field.name == "representation" for field in fields(config.model))


def accuracy_by_representation(
    config: TrainConfig, data: RunData, *, steps: int, paths: Sequence[str] = ("fast",)
) -> list[RepresentationAccuracy]:
    """Train the model of a configuration on every representation and return how well it predicts.

    Parameters
    ----------
    config, data
        Settings of a model that `reads_representations`, and its rows.
    steps
        Training steps of each.
    paths
        ``fast``, ``reference`` or both.
    """
    per_epoch = -(-data.mutants("train") // config.training.batch_size)
    training = replace(
        config.training, steps=steps, epochs=-(-steps // per_epoch), patience=0, snapshots=0, cycles=0
    )
    rows = []
    for name in REPRESENTATIONS:
        of_name = replace(config, training=training, model=replace(config.model, representation=name))
        for path in paths:
            model, organism = build(of_name, data, config.seed)
            if path == "reference":
                model = reference_implementation(model)
            rate = _fit(of_name, data, model, organism)
            scores = [score(model, organism, data, part) for part in ("validation", "test")]
            rows.append(RepresentationAccuracy(config.model.name, name, path, steps, rate, *scores))
    return rows


def _fit(config: TrainConfig, data: RunData, model: Model, organism: OrganismTensors) -> float:
    """Train a model in place; return mutants per second."""
    batches = loaders(config, data, organism, config.seed)
    with TemporaryDirectory() as scratch:
        return fit_model(
            model,
            organism,
            data.scaled("train"),
            data.scaled("validation"),
            config.training,
            folder=Path(scratch),
            seed=config.seed,
            show=False,
            loader=batches.train,
            validation_loader=batches.validation,
            outputs=_outputs(data),
        ).mutants_per_second


@torch.no_grad()
def score(model: Model, organism: OrganismTensors, data: RunData, part: str) -> float:
    """Return the score of a model on the rows of a part of the split."""
    found, rows = ScoredRows(_outputs(data)), MutantBatch.from_table(data.scaled(part))
    wild_type = model.eval().encode(organism)
    for at in range(0, len(rows), 256):
        batch = rows.slice(at, at + 256)
        found.add(model(wild_type, batch), batch)
    return found.result()[0]


def _outputs(data: RunData) -> tuple[Output, ...]:
    return Output.of([p.to_json() for p in data.dataset.phenotypes])
