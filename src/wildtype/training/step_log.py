"""`StepLog`: every step's numbers to the loggers, many steps at a time.

Reading a number off a GPU waits for it, and a logger's bookkeeping per step costs more than a small model's
backward pass. So the numbers stay where they are until some steps have gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from lightning.pytorch.loggers import Logger
from torch import Tensor

GATHERED = 20
"""Steps between two readings."""


class StepLog:
    """Gathers scalar tensors by name, and hands them to the loggers.

    Parameters
    ----------
    loggers : sequence of Logger
        Where they go.
    """

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self.loggers = loggers
        self._rows: list[tuple[int, int, dict[str, Tensor]]] = []

    def add(self, step: int, epoch: int, record: dict[str, Tensor]) -> None:
        """Take the numbers of a step of the run."""
        self._rows.append((step, epoch, record))
        if len(self._rows) >= GATHERED:
            self.flush()

    def flush(self) -> None:
        """Hand on what has gathered, read in one go."""
        rows, self._rows = self._rows, []
        tensors = [value.detach().float() for _, _, record in rows for value in record.values()]
        values = iter(torch.stack(tensors).tolist() if tensors else [])
        for step, epoch, record in rows:
            self.write(step, epoch, {name: next(values) for name in record})

    def write(self, step: int, epoch: int, row: dict[str, float]) -> None:
        """Hand on numbers at once; what has gathered before goes first, by `flush`."""
        for logger in self.loggers:
            logger.log_metrics({"epoch": epoch, **row}, step=step)
