"""Planted worlds as fixtures."""

from __future__ import annotations

from tests.planted import additive_world, module_world, world

__all__ = ["additive_world", "module_world", "world"]
