"""Pieces of work that do not depend on each other; who builds an index says how they run."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[int, Callable[[int], None]], None]
"""Runs work(0) … work(count - 1), perhaps beside each other."""


def one_after_the_other(count: int, work: Callable[[int], None]) -> None:
    """Run pieces here, in their order."""
    for i in range(count):
        work(i)
