"""A planted world as a fixture."""

from __future__ import annotations

from tests.planted import world

__all__ = ["world"]
