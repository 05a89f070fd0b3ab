"""`Progress`: one line per epoch as it runs, with mutants per second and the share of time spent on loading
data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.training.saved_weights import BestCheckpoint


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
    """

    def __init__(self, loader: TimedLoader, keeper: BestCheckpoint, epochs: int, show: bool) -> None:
        self.loader = loader
        self.keeper = keeper
        self.epochs = epochs
        self.mutants = 0
        self.seconds = 0.0
        self._started = 0.0
        self._bar = Bar(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(stderr=True),
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
        self._started = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: MutantBatch, batch_idx: int
    ) -> None:
        """Count mutants; the clock stops at the last batch, before validation."""
        now = time.perf_counter()
        self.seconds += now - self._started
        self._started = now
        self.mutants += len(batch)
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

    def _line(self, what: str) -> str:
        return f"{self.throughput:,.0f} mutants/s · data {self.loading_share:.1%} · {what}"
