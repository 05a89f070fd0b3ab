"""Phases of Lightning's loop: which of its actions is part of which phase, and where steps begin and end.

Lightning tells a profiler when each action starts and stops. What the model, the loader and `FitTask` do
inside these marks its own phases.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.profilers import Profiler

from wildtype.phases import phase
from wildtype.training.phase_recorder import PhaseRecorder

NEXT_BATCH = "train_dataloader_next"
PARTS = (
    (NEXT_BATCH, "wait for loader"),
    ("batch_to_device", "host to device"),
    ("Strategy.backward", "backward"),
    (".optimizer_zero_grad", "optimizer"),
    (".configure_gradient_clipping", "optimizer"),
)
"""How the names of actions end, and their phase."""
BETWEEN = {"on_before_optimizer_step": "optimizer", "on_before_zero_grad": "optimizer"}
"""Hooks of callbacks that take part in another phase than ``callbacks``."""
BEGINS = "FitTask.on_train_epoch_start"
"""The wild type may be encoded here, for a whole epoch."""
ENDS = ".on_validation_model_zero_grad"
"""The first action after an epoch's last step, if validation follows."""


class PhaseProfiler(Profiler):
    """Begins a step with every batch that is asked for, and enters the phases of Lightning's actions.

    Parameters
    ----------
    recorder : PhaseRecorder
        Listens.
    callbacks : sequence of Callback
        Hooks that they define are the phase ``callbacks``, and ``optimizer`` where they touch gradients;
        those they inherit do nothing.
    """

    def __init__(self, recorder: PhaseRecorder, callbacks: list[Callback]) -> None:
        super().__init__()
        self.recorder = recorder
        self._phases: dict[str, str | None] = {
            f"[Callback]{callback.state_key}.{hook}": BETWEEN.get(hook, "callbacks")
            for callback in callbacks
            for hook in dir(callback)
            if hook.startswith("on_") and getattr(type(callback), hook) is not getattr(Callback, hook, None)
        }

    def start(self, action_name: str) -> None:
        """Enter the phase of an action, if it has one."""
        name = self._phase(action_name)
        if action_name.endswith(NEXT_BATCH):
            self.recorder.begin()
        elif action_name.endswith(ENDS):
            self.recorder.end()
        elif action_name.endswith(BEGINS):
            self._apart = self.recorder.apart("start of epoch")
            self._apart.__enter__()
        if name is not None:
            phase(name).__enter__()

    def stop(self, action_name: str) -> None:
        """Leave it."""
        name = self._phase(action_name)
        if name is not None:
            phase(name).__exit__(None, None, None)
        elif action_name.endswith(BEGINS):
            self._apart.__exit__(None, None, None)

    def _phase(self, action: str) -> str | None:
        try:
            return self._phases[action]
        except KeyError:
            found = next((name for end, name in PARTS if action.endswith(end)), None)
            self._phases[action] = found
            return found


class PhaseHooks(Callback):
    """Accounts for what happens between the last step of an epoch and the first of the next.

    Parameters
    ----------
    recorder : PhaseRecorder
        Told where steps end.
    """

    def __init__(self, recorder: PhaseRecorder) -> None:
        self.recorder = recorder
        self._open: dict[str, AbstractContextManager[None]] = {}

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Validation is no step."""
        self._start("validation")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Steps may follow."""
        self._stop("validation")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Whatever callbacks do at the end of an epoch is no step either."""
        self._start("end of epoch")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The next epoch begins."""
        self._stop("end of epoch")

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """No more follow."""
        self._stop("end of epoch")

    def _start(self, name: str) -> None:
        self._open[name] = self.recorder.apart(name)
        self._open[name].__enter__()

    def _stop(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name).__exit__(None, None, None)


def recorder_for(device: torch.device | str, **settings: Any) -> PhaseRecorder:
    """Return a recorder that reads clocks, or a GPU's events where the model is on a GPU."""
    if torch.device(device).type != "cuda":
        return PhaseRecorder(**settings)

    def event() -> torch.cuda.Event:
        made = torch.cuda.Event(enable_timing=True)
        made.record()
        return made

    return PhaseRecorder(event=event, wait=torch.cuda.synchronize, **settings)
