"""Progress of a screen: a bar on a terminal, elsewhere plain lines at ever longer intervals."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

FIRST, LONGEST = 15.0, 600.0
"""Seconds until the first plain line, and the longest until the next; each interval is twice the last."""
LONG = 600.0
"""Seconds from which a screen is told how it could be shorter."""


class ScreenProgress:
    """Shows how many mutants a screen has, how long it takes, and how far it is.

    Parameters
    ----------
    console : Console
        Of remarks.
    where : str
        What has these mutants.
    clock : callable
        Seconds that never go back.
    """

    def __init__(
        self, console: Console, where: str = "the design", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console, self.where, self.clock = console, where, clock
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("mutants", total=None)
        self.begun: tuple[float, int] | None = None
        self.told: float | None = None
        self.pause = FIRST

    def __enter__(self) -> ScreenProgress:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:  # elsewhere stopping prints an empty line
            self.bar.stop()

    def __call__(self, done: int, count: int) -> None:
        """Take note that ``done`` of ``count`` mutants are predicted; 0 comes first."""
        now = self.clock()
        self.bar.update(self.task, completed=done, total=count)
        if not done:
            self._print(f"{count:,} mutants in {self.where}")
            return
        # The first piece also sets the model up, and a resumed screen has it at once: neither is a speed.
        if self.begun is None:
            self.begun = now, done
            return
        seconds, pieces = now - self.begun[0], done - self.begun[1]
        left = seconds / pieces * (count - done) if pieces else 0.0
        if self.told is None:
            self.told = now
            if left > FIRST:
                self._print(f"about {duration(left)} at {pieces / seconds:,.0f} mutants/s")
            if left > LONG:
                self._print(
                    "shorter: fewer candidates with --among or --exclude-essential, or --processes N; with "
                    "-o FILE the same command continues after an interruption"
                )
        elif not self.console.is_terminal and now - self.told >= self.pause and done < count:
            self.told, self.pause = now, min(2 * self.pause, LONGEST)
            self._print(f"{done:,} of {count:,} mutants ({done / count:.0%}), about {duration(left)} left")

    def _print(self, text: str) -> None:
        self.bar.console.print(text, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a length of time in the unit that people would use: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
