"""The weights that a run keeps: the best on validation, those to resume from, and snapshots of its cycles.

The resume state is one folder, replaced as a whole after every epoch: `state.safetensors` (weights, best
weights, optimiser) and `state.json` (epoch, step, best score). No pickle.

Snapshot ensembles (Huang et al. 2017, ICLR) take the ends of the last cycles of one training as members. The
learning rate falls along a cosine from its peak to zero again and again; where a cycle ends the weights are
near a minimum, and the next cycle leaves it. Cycles are whole epochs, so that runs resume between them. Which
epoch was best on validation plays no part: members are taken because their cycle ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from wildtype.errors import CheckpointError, DivergedError, reason_of
from wildtype.files import (
    first_not_finite,
    sha256_of_file,
    write_json,
    write_tensors,
    writing,
    writing_folder,
)
from wildtype.training.config import TrainingConfig
from wildtype.training.task import FitTask

SNAPSHOTS = "snapshots"
"""Folder of the snapshots in that of a run."""


class BestCheckpoint(Callback):
    """Best weights, early stopping and resume state.

    Parameters
    ----------
    folder : Path
        Where the state is kept.
    patience : int
        Epochs without a better validation score before training stops; 0: never.
    fingerprint : str
        Hash of configuration and data; a state with another one is refused.
    """

    def __init__(self, folder: Path, patience: int, fingerprint: str) -> None:
        self.folder = folder
        self.patience = patience
        self.fingerprint = fingerprint
        self.epoch = 0  # finished epochs of the whole run
        self.best_score = float("-inf")
        self.best_epoch = 0
        self.best: dict[str, Tensor] = {}
        self.stopped = False
        self.scores: list[float] = []

    def resume(self, task: FitTask) -> dict[str, Tensor]:
        """Load the saved state into ``task``; return the optimiser's tensors for ``restore_optimizer``.

        Raises
        ------
        CheckpointError
            If there is no state, it is damaged, or it belongs to another configuration or other data.
        """
        remedy = "train again without resume"
        try:
            record = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
            if record["fingerprint"] != self.fingerprint:
                raise CheckpointError(
                    f"the state in {str(self.folder)!r} belongs to another configuration or other "
                    f"data: {remedy}"
                )
            path = self.folder / "state.safetensors"
            if sha256_of_file(path) != record["sha256"]:
                raise CheckpointError(f"{str(path)!r} is damaged (its sha256 differs): {remedy}")
            state = load_file(path)
            if (broken := first_not_finite(state)) is not None:
                raise CheckpointError(f"{broken!r} in {str(path)!r} is not finite: {remedy}")
            parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
            for key, value in state.items():
                part, name = key.split("/", 1)
                parts[part][name] = value
            # Weights first: a damaged state raises here, before anything else of the run is changed. The
            # optimiser's tensors wait for Lightning to make the optimiser (`fit._Restore`).
            task.model.load_state_dict(parts["model"])
            task.step, task.epoch = record["step"], record["epoch"]
            self.epoch, self.stopped = record["epoch"], record["stopped"]
            self.best, self.best_epoch = parts["best"], record["best_epoch"]
            self.best_score, self.scores = record["best_score"], record["scores"]
            task.scores = self.scores
        except FileNotFoundError as error:
            raise CheckpointError(f"there is nothing to resume in {str(self.folder)!r}: {remedy}") from error
        except (KeyError, ValueError, RuntimeError, SafetensorError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(
                f"the state in {str(self.folder)!r} is damaged ({reason_of(error)}): {remedy}"
            ) from error
        return parts["optimizer"]

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *args: Any) -> None:
        """Stop where the settings limit the steps of the whole run."""
        assert isinstance(pl_module, FitTask)
        if pl_module.config.steps and pl_module.step >= pl_module.config.steps:
            self.stopped = trainer.should_stop = True

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Compare the epoch's validation score, keep its weights if best, and save the state."""
        assert isinstance(pl_module, FitTask)
        pl_module.check_losses()  # Lightning calls this hook of callbacks before that of the task
        self.epoch += 1
        pl_module.epoch = self.epoch
        score = pl_module.validation_score
        self.scores.append(score)
        pl_module.scores = self.scores
        # Strictly better: of equal epochs the first stays, also when a run is resumed between them. Copies,
        # since the optimiser changes the weights in place.
        if score > self.best_score:
            self.best_score, self.best_epoch = score, self.epoch
            self.best = {name: value.detach().clone() for name, value in pl_module.model.state_dict().items()}
        if self.patience and self.epoch - self.best_epoch >= self.patience:
            self.stopped = True
            trainer.should_stop = True
        tensors = self._state(pl_module, trainer.optimizers[0])
        _require_finite(pl_module, tensors)
        if pl_module.world.is_rank_zero:
            self._save(pl_module, tensors)

    def _state(self, task: FitTask, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
        """Return every tensor that a resumed run needs, by name."""
        tensors = {f"model/{name}": value for name, value in task.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        for index, values in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{index}/{name}": torch.as_tensor(value) for name, value in values.items()}
        return tensors

    def _save(self, task: FitTask, tensors: dict[str, Tensor]) -> None:
        # The folder changes places with the old one in one step: a kill leaves one epoch or the other, never
        # the weights of one with the step number of the other.
        with writing_folder(self.folder) as temporary:
            path = temporary / "state.safetensors"
            write_tensors(path, tensors)
            record: dict[str, Any] = {
                "fingerprint": self.fingerprint,
                "epoch": self.epoch,
                "step": task.step,
                "stopped": self.stopped,
                "best_epoch": self.best_epoch,
                "best_score": self.best_score,
                "scores": self.scores,
                "sha256": sha256_of_file(path),
            }
            write_json(temporary / "state.json", record)


def _require_finite(task: FitTask, tensors: Mapping[str, Tensor]) -> None:
    """Raise ``DivergedError`` where weights or optimiser state are not finite, before they are saved."""
    # The loss of the last step was finite; what the optimiser made of its gradient may not be. Weights are
    # the same in every process, so that all of them stop here, or none.
    if (name := first_not_finite(tensors)) is not None:
        raise DivergedError(
            f"training diverged after step {task.step}: weights or optimiser state are not finite ({name}); "
            f"lower training.learning_rate={task.config.learning_rate:g} or set training.clip=1"
        )


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put the tensors of ``BestCheckpoint.resume`` back into an optimiser over the same parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split("/", 1)
        state.setdefault(int(index), {})[name] = value
    # Parameter groups stay those of this optimiser: learning rates come from the schedule at every step.
    record = optimizer.state_dict()
    record["state"] = state
    optimizer.load_state_dict(record)


class Snapshots(Callback):
    """Writes the weights at the ends of the last cycles, one file per epoch, before the epoch is recorded as
    finished: a resumed run has every snapshot of its finished epochs.

    Parameters
    ----------
    folder : Path
        Of the run.
    config : TrainingConfig
        Says which epochs.
    """

    def __init__(self, folder: Path, config: TrainingConfig) -> None:
        self.folder = folder / SNAPSHOTS
        self.epochs = config.snapshot_epochs

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the weights where a cycle ends."""
        assert isinstance(pl_module, FitTask)
        epoch = pl_module.epoch + 1  # the epoch is counted by `BestCheckpoint`, which is called after this
        if epoch not in self.epochs:
            return
        _require_finite(pl_module, pl_module.model.state_dict())
        if pl_module.world.is_rank_zero:
            with writing(_snapshot_file(self.folder, epoch)) as path:
                write_tensors(path, pl_module.model.state_dict())


def read_snapshots(folder: Path, config: TrainingConfig) -> list[dict[str, Tensor]]:
    """Return the members' weights of a finished run in ``folder``, in order of their epochs.

    Raises
    ------
    CheckpointError
        If a snapshot is missing or damaged.
    """
    found = []
    for epoch in config.snapshot_epochs:
        path = _snapshot_file(folder / SNAPSHOTS, epoch)
        try:
            found.append(load_file(path))
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"the snapshot {str(path)!r} is missing or damaged: train again without resume"
            ) from error
    return found


def _snapshot_file(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch}.safetensors"
