"""The kinds of perturbation of one gene."""

from __future__ import annotations

from enum import IntEnum

from wildtype.errors import ConfigError


class Kind(IntEnum):
    """What was done to a gene.

    ``REDUCED`` is partial loss of function: a temperature-sensitive or DAmP allele, a knock-down. An
    essential gene's hypomorph is therefore never recorded as a deletion.
    """

    ABSENT = 0
    REDUCED = 1
    PRESENT = 2
    ADDED = 3
    OVEREXPRESSED = 4

    @classmethod
    def parse(cls, name: str) -> Kind:
        """Return the kind called ``name`` (any case); raises ``ConfigError`` naming the known kinds."""
        try:
            return cls[name.strip().upper()]
        except KeyError:
            known = ", ".join(kind.name.lower() for kind in cls)
            raise ConfigError(f"{name!r} is not a kind of perturbation; known kinds: {known}") from None
