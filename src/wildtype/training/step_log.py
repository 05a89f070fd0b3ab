"""`StepLog`: the numbers of every step, on their way to the loggers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from lightning.pytorch.loggers import CSVLogger, Logger
from torch import Tensor

from wildtype.training.world import Pending

Number = Tensor | float

OF_MACHINE = ("mutants_per_second", "loading_share", "memory_mib")
"""Numbers of a step that differ between equal runs."""
GATHERED = 20
"""Steps between two readings."""


@dataclass(frozen=True)
class NotFinite:
    """The first loss that is infinite or not a number: its step and epoch (from 0), its term and value."""

    step: int
    epoch: int
    term: str
    value: float


def _not_finite(step: int, epoch: int, row: Mapping[str, float]) -> NotFinite | None:
    """Return the first term of a step's loss that is not finite, or the total if only their sum is not."""
    terms = {name.removeprefix("loss/"): x for name, x in row.items() if name.startswith("loss/")}
    terms["total"] = row["loss"]  # last: a term says more
    return next((NotFinite(step, epoch, k, x) for k, x in terms.items() if not math.isfinite(x)), None)


@dataclass
class _Step:
    """A step's numbers: what ``record`` makes of sums over processes, and those of this process."""

    step: int
    epoch: int
    sums: Pending
    record: Callable[[Tensor], Mapping[str, Number]]
    more: dict[str, Number] = field(default_factory=dict)


class StepLog:
    """Writes the numbers of every step to the loggers, many steps at a time.

    Reading a number off a GPU waits for it, and a logger's bookkeeping per step costs more than a small
    model's backward pass. So the numbers stay where they are until some steps have gathered.

    Parameters
    ----------
    loggers : sequence of Logger
        Where they go.
    """

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self.loggers = loggers
        self._rows: list[_Step] = []

    def begin(
        self,
        step: int,
        epoch: int,
        sums: Pending,
        record: Callable[[Tensor], Mapping[str, Number]],
        **more: Number,
    ) -> None:
        """Take the first numbers of a step: what ``record`` makes of sums over processes, and more.

        `add` takes further ones of the same step.
        """
        self._rows.append(_Step(step, epoch, sums, record, more))

    def add(self, **record: Number) -> None:
        """Take further numbers of the last step."""
        self._rows[-1].more.update(record)

    @property
    def full(self) -> bool:
        """Whether enough steps have gathered to be read."""
        return len(self._rows) >= GATHERED

    def flush(self, *, wait: bool = True) -> NotFinite | None:
        """Write what has gathered, read in one go; return the first loss among it that is not finite.

        Without ``wait``, steps are left out that another process has not come to, and may never.
        """
        gathered, self._rows = self._rows, []
        there = [row for row in gathered if wait or row.sums.arrived()]
        rows = [(row.step, row.epoch, {**row.record(row.sums.result()), **row.more}) for row in there]
        tensors = [
            x.detach().float() for _, _, record in rows for x in record.values() if isinstance(x, Tensor)
        ]
        values = iter(torch.stack(tensors).tolist() if tensors else [])
        found = None
        for step, epoch, record in rows:
            row = {name: next(values) if isinstance(x, Tensor) else x for name, x in record.items()}
            self.write(step, epoch, row)
            found = found or _not_finite(step, epoch, row)
        return found

    def write(self, step: int, epoch: int, row: Mapping[str, float], *, table: bool = True) -> None:
        """Hand on numbers at once, to `metrics.csv` only if ``table``; `flush` what has gathered before."""
        for logger in self.loggers:
            if table or not isinstance(logger, CSVLogger):
                logger.log_metrics({"epoch": epoch, **row}, step=step)
