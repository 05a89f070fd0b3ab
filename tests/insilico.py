"""In-silico organisms, each built once per session."""

from __future__ import annotations

from functools import cache

from wildtype.organism import Organism
from wildtype.sources.insilico import build_organism


@cache
def in_silico(name: str) -> Organism:
    """Return an in-silico organism."""
    return build_organism(name)
