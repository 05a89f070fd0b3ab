"""`Progress`: one line per epoch as it runs, with mutants per second and the share of time spent on loading
data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from wildtype.memory import MIB, resident_mib
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.terminal import PlainConsole
from wildtype.training.saved_weights import BestCheckpoint
from wildtype.training.task import FitTask


class TimedLoader:
    """A loader that keeps account of the seconds its reader waited."""

    def __init__(self, loader: Batches) -> None:
        self.loader = loader
        self.waited = 0.0

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[MutantBatch]:
        batches = iter(self.loader)
        while True:
            start = time.perf_counter()
            batch = next(batches, None)
            self.waited += time.perf_counter() - start
            if batch is None:
                return
            yield batch


class Progress(Callback):
    """A progress bar over epochs; also gathers the run's throughput.

    Parameters
    ----------
    loader : TimedLoader
        The training loader.
    keeper : BestCheckpoint
        Knows epoch and best score.
    epochs : int
        Epochs of the whole run.
    show : bool
        Whether to draw anything.
    processes : int
        Processes that train: each is served its part of a step's mutants.
    """

    def __init__(
        self, loader: TimedLoader, keeper: BestCheckpoint, epochs: int, show: bool, processes: int = 1
    ) -> None:
        self.loader = loader
        self.keeper = keeper
        self.epochs = epochs
        self.processes = processes
        self.mutants = 0
        self.seconds = 0.0
        self._started = self._waited = 0.0
        self._bar = Bar(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}"),
            console=PlainConsole(stderr=True),
            disable=not show,
            transient=False,
        )

    @property
    def throughput(self) -> float:
        """Mutants trained on per second, data loading included, validation not."""
        return self.mutants / self.seconds if self.seconds else float("nan")

    @property
    def loading_share(self) -> float:
        """Share of the training time spent waiting for data."""
        return self.loader.waited / self.seconds if self.seconds else float("nan")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar."""
        self._bar.start()
        self._task = self._bar.add_task("", total=self.epochs, completed=self.keeper.epoch, text="")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._started, self._waited = time.perf_counter(), self.loader.waited

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: MutantBatch, batch_idx: int
    ) -> None:
        """Count mutants, and log the speed of the step; the clock stops before validation."""
        now = time.perf_counter()
        seconds, waited = now - self._started, self.loader.waited - self._waited
        self._started, self._waited = now, self.loader.waited
        mutants = self.processes * len(batch)  # parts of a step differ by one mutant at most
        self.seconds += seconds
        self.mutants += mutants
        assert isinstance(pl_module, FitTask)
        pl_module.log_step(
            mutants_per_second=mutants / seconds,
            loading_share=waited / seconds,
            memory_mib=self._memory_mib(pl_module.device),
        )
        self._bar.update(self._task, text=self._line(f"step {batch_idx + 1}/{len(self.loader)}"))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Advance the bar; the keeper, which comes first, has judged the epoch."""
        best = f"best validation r {self.keeper.best_score:.4f} (epoch {self.keeper.best_epoch})"
        self._bar.update(self._task, completed=self.keeper.epoch, text=self._line(best))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the bar."""
        self._bar.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the bar."""
        self._bar.stop()

    @staticmethod
    def _memory_mib(device: torch.device) -> float:
        """Return the memory that tensors take on a GPU, or what is resident of the process."""
        return torch.cuda.memory_allocated(device) / MIB if device.type == "cuda" else resident_mib()

    def _line(self, what: str) -> str:
        return f"{self.throughput:,.0f} mutants/s · data {self.loading_share:.1%} · {what}"
