"""Named phases of a training step: code marks its phase, and listeners can record the time.

    with phase("collate"):
        ...

Phases nest, and time counts for the innermost one. Without a listener, entering and leaving a phase costs
less than a microsecond. Only the training thread marks phases: work of its helper threads counts for its
phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol

from wildtype.errors import ConfigError

PHASES = (
    "wait for loader",
    "fetch",
    "representation",
    "collate",
    "host to device",
    "encode wild type",
    "graph prior",
    "head",
    "loss",
    "backward",
    "gradient sync",
    "optimizer",
    "logging",
    "callbacks",
    "between phases",
    "garbage collector",
)
"""In the order of a step; ``wait for loader`` is waiting time without fetch, representation and collate,
which a loader in the same process marks itself. No code marks the last two: a profile finds them."""
BETWEEN, COLLECTOR = PHASES[-2:]


class Listener(Protocol):
    """Receives every change of the innermost phase."""

    def change(self, phase: str | None) -> None:
        """Record that ``phase`` begins or continues; None: no phase."""


# Of the module and not of a thread: only the training thread enters phases, and a step does so many times.
_stack: list[str | None] = []
_listeners: list[Listener] = []


class _Phase:
    __slots__ = ("name",)

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __enter__(self) -> None:
        _stack.append(self.name)
        for listener in _listeners:
            listener.change(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stack.pop()
        for listener in _listeners:
            listener.change(current())


# One object per name, made once: a step enters phases thousands of times.
_PHASES = {name: _Phase(name) for name in PHASES}
no_phase = _Phase(None)
"""Context for work within a phase that does not count for it."""


def phase(name: str) -> _Phase:
    """Return the context manager of a phase.

    Raises
    ------
    ConfigError
        If there is no phase of this name.
    """
    try:
        return _PHASES[name]
    except KeyError:
        raise ConfigError(f"there is no phase {name!r}; known: {', '.join(PHASES)}") from None


def current() -> str | None:
    """Return the innermost phase, None outside of all."""
    return _stack[-1] if _stack else None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report all changes to ``listener`` within the context; close phases that an error left open."""
    depth = len(_stack)
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
        del _stack[depth:]
