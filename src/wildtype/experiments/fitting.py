"""From settings and data to trained members, and from those to a checkpoint."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger
from numpy.typing import NDArray
from torch import Tensor

from wildtype.datasets.splits import held_out_units
from wildtype.errors import DivergedError
from wildtype.experiments.data import RunData
from wildtype.experiments.epoch_figures import EpochFigures
from wildtype.experiments.folder import MEMBER, settings_of
from wildtype.experiments.profile_writing import ProfileWriting
from wildtype.experiments.record import of_data
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, feature_scaling, loaders, of_member, other_genes, relations
from wildtype.experiments.start import Log
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import class_of
from wildtype.models.interface import Model, OrganismTensors, Output
from wildtype.models.validation_rows import ValidationRows
from wildtype.mutants import MutantTable
from wildtype.profiling.record import FILE
from wildtype.profiling.step_trace import TRACES, StepTrace
from wildtype.seeds import derive
from wildtype.training.epoch_table import EpochTable
from wildtype.training.fit import FitReport, accelerator, fit_model
from wildtype.training.loggers import LOGS, RunLabels
from wildtype.training.saved_weights import read_snapshots
from wildtype.training.step_log import StepLog
from wildtype.training.validation import ScoredRows
from wildtype.training.world import world


def fit_members(
    config: TrainConfig,
    data: RunData,
    model: Model,
    tensors: OrganismTensors,
    folder: Path,
    fingerprint: str,
    callbacks: Sequence[Callback] = (),
    loggers: list[Logger] | None = None,
    log: Log = lambda text: None,
) -> tuple[list[Model], list[FitReport]]:
    """Fit ``model``, and further members in subdirectories; snapshots are members too.

    ``callbacks`` of Lightning listen to the training of every member. ``loggers`` takes up those of the first
    one, which the caller then closes; ``log`` is told what a pre-training learned.
    """
    labels = config_labels(config, data, folder)
    members, reports, rank_zero = [model], [], world().is_rank_zero
    for number in range(config.training.members):
        seed, room = config.seed, folder
        # The first member has the seed of the run: an ensemble of one equals a single model to the bit. Seeds
        # of the others are hashed, since seed + 1 would be the first member of the next run.
        if number:
            seed, room = derive(config.seed, "member", number), folder / f"{MEMBER}{number + 1}"
            members.append(build(config, data, seed)[0])
        writing = ProfileWriting(config, data, members[number], tensors, room / FILE) if rank_zero else None
        if not members[number].gradients:
            reports.append(FitReport.without_gradients())
            continue
        listening = [*callbacks, *_listeners(config, data, room)]
        resume = config.run.resume and (not number or (room / "resume").is_dir())
        batches = loaders(of_member(config, number, config.training.members), data, tensors, seed)
        # A start has learned already, and may have been pre-trained with these very settings.
        begins = config.execution == "training" and not resume and not config.training.start
        if begins and members[number].has_pretraining:
            _pretrain(config, data, members[number], tensors, seed, log)
        train, validation = members[number].pre_fit(batches.train, batches.validation, batches.rows)
        del batches  # its rows are copies
        report = fit_model(
            members[number],
            tensors,
            data.scaled("train"),
            data.scaled("validation"),
            config.training,
            folder=room,
            seed=seed,
            fingerprint=fingerprint,
            resume=resume,
            show=config.run.progress,
            execution=config.execution,
            recorder=None if writing is None else writing.recorder,
            callbacks=listening if writing is None else [writing, *listening],
            loader=train,
            validation_loader=validation,
            outputs=Output.of([p.to_json() for p in data.dataset.phenotypes]),
            scaler=data.scaler,
            labels=replace(labels, name=f"{labels.name}/{room.name}") if number else labels,
            loggers=None if number else loggers,
        )
        if writing is not None and writing.recorder.begun:  # a finished run that is resumed keeps its profile
            writing.done()
        reports.append(report)
    if config.training.snapshots and config.execution == "training" and rank_zero:
        rooms = [folder, *(folder / f"{MEMBER}{i + 1}" for i in range(1, len(members)))]
        members = [
            _with_weights(member, weights)
            for member, room in zip(members, rooms, strict=True)
            for weights in read_snapshots(room, config.training)
        ]
    return members, reports


def _pretrain(
    config: TrainConfig, data: RunData, model: Model, tensors: OrganismTensors, seed: int, log: Log
) -> None:
    """Let a model learn from the wild type alone, where training will take place."""
    device = "cpu"
    if accelerator(config.training) == "gpu":
        device = f"cuda:{world().rank % world().local}"
    scaling = feature_scaling(config, data)
    blocks = () if scaling is None else scaling.blocks
    model.to(device).pretrain(tensors.to(device), data.dataset.organism.graphs, blocks, seed, log)
    model.to("cpu")


def config_labels(config: TrainConfig, data: RunData, folder: Path) -> RunLabels:
    """Return what Weights & Biases shows of a run: its directory, and its settings and data."""
    name = folder.resolve().name
    record = settings_of(config) | of_data(data)
    return RunLabels(name, name if config.training.members > 1 else "", record)


def _listeners(config: TrainConfig, data: RunData, folder: Path) -> list[Callback]:
    """Return the callbacks that the settings of a run ask for."""
    found: list[Callback] = []
    training = config.training
    if training.figures:
        found.append(EpochFigures(training.figures, config.model.name, data.dataset.phenotypes))
    if training.trace_step:
        found.append(StepTrace(training.trace_step, folder / TRACES, with_=training.trace_with))
    return found


def log_test_rows(loggers: Sequence[Logger], folder: Path, rows: ScoredRows, report: FitReport) -> None:
    """Log the metrics of a finished run on its test rows, at its last step."""
    found = rows.by_phenotype()
    table = EpochTable(folder / LOGS)
    table.begin(report.epochs)
    table.add(report.best_epoch, "test", found)
    metrics = {f"test/{s.phenotype}/{name}": value for s in found for name, value in s.metrics.items()}
    StepLog(loggers).write(report.steps - 1, report.epochs - 1, metrics, table=False)


def post_fit(
    config: TrainConfig, data: RunData, tensors: OrganismTensors, members: Sequence[Model], log: Log
) -> None:
    """Fit the parts of members that need a trained network, and log the result."""
    for number, member in enumerate(members):
        if not member.has_post_fit:
            continue
        start = time.perf_counter()
        seed = derive(config.seed, "after member", number)
        batches = loaders(of_member(config, number, len(members)), data, tensors, seed, post_fit=True)
        found = member.post_fit(batches.train, batches.validation, batches.rows)
        log(f"member {number + 1}: {found}; {time.perf_counter() - start:.1f} s")


def _with_weights(model: Model, weights: dict[str, Tensor]) -> Model:
    other = copy.deepcopy(model)
    other.load_state_dict(weights)
    return other


def make_checkpoint(
    config: TrainConfig, data: RunData, model: Model, tensors: OrganismTensors, reports: list[FitReport]
) -> Checkpoint:
    """Return the checkpoint of a trained model, with its metrics on the validation rows."""
    organism = data.dataset.organism
    checkpoint = Checkpoint(
        model=model,
        genes=organism.genes,
        organism=tensors.without_priors(),
        phenotypes=[p.to_json() for p in data.dataset.phenotypes],
        conditions=list(data.dataset.conditions),
        mean=data.scaler.mean,
        sd=data.scaler.sd,
        relations=relations(data),
        known=data.known(),
        origin={
            "dataset": data.dataset.name,
            "dataset_sha256": data.dataset.sha256,
            "organism": organism.name,
            "split": data.split.name,
            "seed": config.seed,
        },
        features=feature_scaling(config, data),
    )
    checkpoint.others = other_genes(config, data, model, tensors)
    validation = data.part("validation")
    values, sd = checkpoint.predict_measured_with_sd(validation)
    checkpoint.validation = ValidationRows(values, sd, held_out_units(data.dataset, data.split, "validation"))
    # Stored with held-out units, since intervals are calibrated on these rows and never on test rows.
    error = values - validation.value
    checkpoint.metrics = {
        "fit": asdict(reports[0]),
        "members": [asdict(report) for report in reports[1:]],
        "parameters": sum(p.numel() for p in model.parameters()),
        "validation_score": scored(checkpoint, validation, values).result()[0],
        "validation": {
            p.name: {"rmse": float(np.sqrt(np.mean(error[validation.phenotype == i] ** 2)))}
            for i, p in enumerate(data.dataset.phenotypes)
            if p.form != "gene" and (validation.phenotype == i).any()
        },
    }
    return checkpoint


def require_numbers(checkpoint: Checkpoint, table: MutantTable, values: NDArray[np.float64]) -> None:
    """Raise ``DivergedError`` if predictions of rows are no numbers, which finite weights can give too."""
    rows = np.array([output.form != "gene" for output in checkpoint.outputs])[table.phenotype]
    rows &= class_of(checkpoint.model).scored(table.order)  # a model of pairs says nothing of other mutants
    if broken := int((~np.isfinite(values[rows])).sum()):
        raise DivergedError(
            f"training diverged: {broken:,} of {int(rows.sum()):,} predictions of test rows are not finite; "
            f"lower training.learning_rate, and check labels, features and embeddings for values out of range"
        )


def scored(checkpoint: Checkpoint, table: MutantTable, values: NDArray[np.float64]) -> ScoredRows:
    """Return how well a finished model, trees and all, predicts rows, in their units.

    Parameters
    ----------
    checkpoint, table
        Model and rows.
    values : float64 [m]
        Its predictions of the rows that are numbers or classes.
    """
    outputs = checkpoint.outputs
    found = ScoredRows(outputs, probabilities=True)
    rows = np.array([output.form != "gene" for output in outputs])[table.phenotype]
    rows &= np.isfinite(table.value)  # as in training, a row without a number is not scored
    numbers = (values[rows], table.value[rows], table.phenotype[rows])
    found.add_rows(*(torch.from_numpy(np.asarray(x)) for x in numbers))
    for p, output in enumerate(outputs):
        measured = table.take(np.flatnonzero(table.phenotype == p))
        if output.form == "gene" and len(measured):
            assert measured.profile is not None
            assert measured.profiles is not None
            predicted = torch.from_numpy(checkpoint.predict_profiles(measured, p))
            found.add_profiles(p, predicted, torch.from_numpy(measured.profiles[measured.profile]))
    return found
