"""Pieces of work, and how they run: who builds an index or a loader says that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

Run = Callable[[int, Callable[[int], None]], None]
"""Runs work(0) … work(count - 1), perhaps beside each other."""

Ahead = Callable[[Iterable[Any], Callable[[Any], Any]], Iterator[tuple[Any, Callable[[], Any]]]]
"""Yields every item and a call that returns the work of it, perhaps done while the one before is used."""


def as_asked(items: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Yield every item and a call that does the work of it."""
    for item in items:
        yield item, partial(work, item)


def one_after_the_other(count: int, work: Callable[[int], None]) -> None:
    """Run pieces here, in their order."""
    for i in range(count):
        work(i)
