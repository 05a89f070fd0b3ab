"""`profile estimate`: seconds, memory and disk of a run from its first steps; after the run, the errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from wildtype.datasets import Dataset
from wildtype.errors import ConfigError
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, loaders
from wildtype.files import write_json
from wildtype.models.interface import Output
from wildtype.models.registry import MODELS, require_gradients
from wildtype.mutants import MutantTable
from wildtype.mutants.loader import MutantLoader
from wildtype.profiling.estimate import (
    Probe,
    RunEstimate,
    data_bytes,
    estimate_errors,
    folder_bytes,
    state_bytes,
)
from wildtype.profiling.machine import PeakMemory, available_device_mib, available_memory_mib, free_disk
from wildtype.training.fit import FitReport, accelerator, fit_model
from wildtype.training.phase_hooks import recorder_for
from wildtype.training.world import world

STEPS = 20
SHARE = 0.05
"""Largest share of a training that its estimate may take to be made unasked."""
FILE = "estimate.json"


def estimate_run(
    config: TrainConfig, *, data: RunData | None = None, dataset: Dataset | None = None
) -> RunEstimate:
    """Run the first steps of a configuration, with one validation, and extrapolate them to the run.

    The steps leave no files.

    Parameters
    ----------
    config
        Settings of `wildtype train`.
    data
        The prepared data, if the caller has them.
    dataset
        Instead of the one that the settings name.
    """
    config.training.check()
    require_gradients(config.model.name, "an estimate")
    if config.execution != "training":
        raise ConfigError(f"an estimate is about whole training: leave out execution={config.execution}")
    data = prepare(config, dataset) if data is None else data
    model, tensors = build(config, data, config.seed)
    train, validation = data.scaled("train"), data.scaled("validation")
    per_epoch, epochs = _steps_and_epochs(config, train)
    limit = config.training.steps
    epochs_of_probe = -(-STEPS // per_epoch)
    training = replace(config.training, steps=STEPS, epochs=epochs_of_probe, patience=0, wandb=False)
    gpu = accelerator(training) == "gpu"
    recorder = recorder_for("cuda" if gpu else "cpu", warm_up=0)
    checkpoint, resume = state_bytes(model)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    batches_of = loaders(config, data, tensors, config.seed)
    with TemporaryDirectory() as scratch, PeakMemory() as memory:
        fit_model(
            model,
            tensors,
            train,
            validation,
            training,
            folder=Path(scratch),
            seed=config.seed,
            show=False,
            recorder=recorder,
            loader=batches_of.train,
            validation_loader=batches_of.validation,
            outputs=Output.of([p.to_json() for p in data.dataset.phenotypes]),
        )
        scalars = _logged(Path(scratch) / "logs" / "metrics.csv")
    with PeakMemory() as after:  # for what the process still holds, which the next epoch starts from
        pass
    batches = len(MutantLoader(validation, config.training.batch_size))
    rounds = max(recorder.begun // per_epoch, 1)
    return RunEstimate.from_probe(
        Probe(
            step_seconds=recorder.step_seconds().tolist(),
            steps_per_epoch=min(per_epoch, limit or per_epoch),
            memory_mib=memory.peak,
            held_mib=after.before,
            checkpoint_bytes=checkpoint,
            resume_bytes=resume,
            scalars=scalars,
            # Only the sum over a validation is timed: its batches count as equal parts.
            validation_step_seconds=[recorder.outside.get("validation", 0.0) / (rounds * batches)] * batches,
            validation_steps=batches,
            epoch_seconds=recorder.outside.get("end of epoch", 0.0) / rounds,
            data_bytes=data_bytes(tensors, data.known()),
            device_mib=torch.cuda.max_memory_allocated() / 2**20 if gpu else None,
        ),
        epochs=min(epochs, config.training.epochs),
        members=config.training.members,
        memory_available_mib=available_memory_mib(),
        disk_free_bytes=free_disk(config.run.folder or "runs"),
        threads=config.training.threads or torch.get_num_threads(),
        device_available_mib=available_device_mib("cuda") if gpu else None,
    )


def estimate_if_long(config: TrainConfig, data: RunData) -> RunEstimate | None:
    """Return an estimate of a training that is long enough to be worth one; None of others.

    Without gradients, or in several processes, there is none.
    """
    if not MODELS[config.model.name].gradients or world().size > 1 or config.execution != "training":
        return None
    per_epoch, epochs = _steps_and_epochs(config, data.part("train"))
    steps = per_epoch * epochs * config.training.members
    return estimate_run(config, data=data) if SHARE * steps >= STEPS else None


def _steps_and_epochs(config: TrainConfig, train: MutantTable) -> tuple[int, int]:
    """Return the steps per epoch of a training, and the most epochs that it takes."""
    per_epoch = len(MutantLoader(train, config.training.batch_size))
    limit = config.training.steps
    return per_epoch, -(-limit // per_epoch) if limit else config.training.epochs


def refuse(estimate: RunEstimate) -> None:
    """Raise ``ConfigError`` if a run will not fit on this machine."""
    if problems := estimate.problems():
        raise ConfigError("; ".join(problems))


def write_outcome(
    estimate: RunEstimate, folder: Path, reports: list[FitReport], memory_mib: float
) -> dict[str, float]:
    """Write prediction and measurement to ``estimate.json``; return predicted / measured - 1."""
    epochs = sum(report.epochs for report in reports)
    measured: dict[str, Any] = {
        "seconds_per_epoch": sum(report.seconds for report in reports) / epochs if epochs else None,
        "memory_mib": memory_mib,
        "disk_bytes": folder_bytes(folder),
    }
    errors = estimate_errors(estimate, measured)
    write_json(folder / FILE, {"predicted": estimate.to_json(), "measured": measured, "errors": errors})
    return errors


def _logged(table: Path) -> tuple[str, ...]:
    """Return the names of the scalars that are logged at every step."""
    header = table.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    return tuple(
        name
        for name in header
        if name not in ("epoch", "step") and not name.startswith(("train/", "validation/"))
    )
