"""Named phases of a training step: code says in which it works, and a listener may keep account of time.

    with phase("collate"):
        ...

Phases nest, and time belongs to the innermost one. While nobody listens, entering and leaving costs less than
a microsecond together. Only the thread that trains says so: what its helpers do is part of its phase.
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
)
"""In the order of a step; ``wait for loader`` is what is left of waiting besides fetch, representation and
collate, which a loader in the same process does meanwhile."""


class Listener(Protocol):
    """Is told whenever the innermost phase changes."""

    def change(self, phase: str | None) -> None:
        """Take note that ``phase`` begins, or goes on; None: no phase."""


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


_PHASES = {name: _Phase(name) for name in PHASES}
no_phase = _Phase(None)
"""Context of work that is part of no phase, although it is done inside of one."""


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
    """Tell ``listener`` of all changes meanwhile; phases that an error left open are closed."""
    depth = len(_stack)
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
        del _stack[depth:]
