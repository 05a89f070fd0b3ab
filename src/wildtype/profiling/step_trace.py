"""`StepTrace`: one step of a training under torch's profiler, where the training runs, in every process.

`trace` watches a plain loop; here Lightning's loop, callbacks, loggers and the exchange of gradients are part
of the step.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch.profiler import profile

from wildtype.errors import ConfigError
from wildtype.phases import listening
from wildtype.profiling.trace import PhaseRanges, RecordedRanges, profiler_of, write_trace
from wildtype.training.task import FitTask

TRACES = "traces"
"""Folder of the traces in a run directory."""


class StepTrace(Callback):
    """Records one step, from the wait for its batch to the callbacks at its end, and writes it.

    Parameters
    ----------
    step : int
        Which one, from 1, of the whole run. The one before warms the profiler up.
    folder : Path
        For ``step-N.json.gz``, and of several processes ``step-N-rank-R.json.gz`` each.
    with_ : sequence of str
        ``shapes`` and ``stacks``, to be recorded too.
    """

    def __init__(self, step: int, folder: Path, with_: Sequence[str] = ()) -> None:
        self.step = step
        self.folder = folder
        self.with_ = with_
        self.target: Path | None = None
        self._profiler: profile | None = None
        self._ranges: PhaseRanges | None = None
        self._listening = ExitStack()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse a step that never comes; raises ``ConfigError``."""
        assert isinstance(pl_module, FitTask)
        if self.step > pl_module.schedule.steps:
            raise ConfigError(
                f"training.trace_step={self.step}: the run has {pl_module.schedule.steps} steps; choose one "
                f"of them, or train longer"
            )
        # Only rank zero knows the name of a run directory that no setting names.
        folder = Path(pl_module.world.gathered(str(self.folder))[0])
        rank = f"-rank-{pl_module.world.rank}" if pl_module.world.size > 1 else ""
        self.target = folder / f"step-{self.step}{rank}.json.gz"

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record from here if the step is the first of an epoch."""
        self._before(pl_module)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End the recording after the step, or begin it where the step comes next."""
        assert isinstance(pl_module, FitTask)
        if self._profiler is not None and pl_module.step == self.step:
            self._end()
        elif batch_idx + 1 < trainer.num_training_batches:  # after the last batch comes validation: no step
            self._before(pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say so if training ended before the step."""
        assert isinstance(pl_module, FitTask)
        if pl_module.step < self.step:
            self._stop()
            warnings.warn(
                f"training ended after step {pl_module.step}, before training.trace_step={self.step}: there "
                f"is no trace",
                stacklevel=1,  # not of Lightning, whose warnings are turned off
            )

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave no profiler running."""
        self._stop()

    def _before(self, task: LightningModule) -> None:
        assert isinstance(task, FitTask)
        following = task.step + 1
        if following == self.step - 1 or (following == self.step and self._profiler is None):
            self._profiler = profiler_of(
                warm_up=self.step - following, shapes="shapes" in self.with_, stacks="stacks" in self.with_
            )
            self._profiler.start()
        elif following == self.step and self._profiler is not None:
            self._profiler.step()
        if following == self.step:
            self._ranges = PhaseRanges(RecordedRanges())
            self._listening.enter_context(listening(self._ranges))

    def _end(self) -> None:
        assert self._profiler is not None
        assert self.target is not None
        profiler = self._profiler
        self._stop()
        write_trace(profiler, self.target)

    def _stop(self) -> None:
        if self._ranges is not None:
            self._ranges.change(None)  # before the step's end, or its last range would reach beyond
            self._ranges = None
        self._listening.close()
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None
