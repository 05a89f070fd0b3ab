"""Snapshot ensembles: the ends of the last cycles of one training, as members (Huang et al. 2017, ICLR).

The learning rate falls along a cosine from its peak to zero again and again; where a cycle ends the weights
are near a minimum, and the next cycle leaves it. Cycles are whole epochs, so that runs resume between them.
Which epoch was best on validation plays no part: members are taken because their cycle ended.
"""

from __future__ import annotations

from pathlib import Path

from lightning.pytorch import Callback, LightningModule, Trainer
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from wildtype.errors import CheckpointError
from wildtype.files import write_tensors, writing
from wildtype.training.config import TrainingConfig
from wildtype.training.task import FitTask

FOLDER = "snapshots"


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
        self.folder = folder / FOLDER
        self.epochs = config.snapshot_epochs

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the weights where a cycle ends."""
        assert isinstance(pl_module, FitTask)
        epoch = pl_module.epoch + 1
        if epoch in self.epochs and pl_module.world.is_rank_zero:
            with writing(_file(self.folder, epoch)) as path:
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
        path = _file(folder / FOLDER, epoch)
        try:
            found.append(load_file(path))
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"the snapshot {str(path)!r} is missing or damaged: train again without resume"
            ) from error
    return found


def _file(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch}.safetensors"
