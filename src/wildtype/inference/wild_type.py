"""The wild type, which is the mutant of no gene: its phenotypes follow from what their units mean.

A model that was trained on mutants has no row of the wild type, and its network would still give it a number.
Only where the empty set is among the mutants that a phenotype is measured for (``min_order`` 0) is it asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RELATIVE = re.compile(r"wild type = 1\b|^relative\b.*= 1\b", re.IGNORECASE)
"""Units of which the wild type has 1: relative fitness, growth relative to the wild type."""
DIFFERENCE = re.compile(
    r"\blog(2|10|e)?\b|^ln\b|score|mutant / wild type|fraction of wild type", re.IGNORECASE
)
"""Units of which the wild type has 0: logarithms of a ratio to the wild type, scores, relative changes."""
EFFECT = re.compile(r"\b(effect|change)\b", re.IGNORECASE)
"""Names of phenotypes that are differences to the wild type, whatever their unit."""


def wild_type_value(phenotype: Mapping[str, Any]) -> float | str | None:
    """Return a phenotype of the wild type, why it has none, or None where a model was trained to predict it.

    Parameters
    ----------
    phenotype : mapping
        Record of a phenotype: ``name``, ``unit``, ``min_order``.
    """
    name, unit, least = phenotype["name"], str(phenotype.get("unit", "")), phenotype["min_order"]
    if least == 0:
        return None
    if least > 1:
        return f"{name} needs at least {least} genes"
    if phenotype.get("form") != "class":
        if RELATIVE.search(unit):
            return 1.0
        if DIFFERENCE.search(unit) or EFFECT.search(name):
            return 0.0
    return f"{name} of the wild type does not follow from its unit ({unit or 'not stated'})"


def has_singles(phenotype: Mapping[str, Any]) -> bool:
    """Return whether single mutants have a phenotype, in a unit of which the wild type has 1.

    What genes do together is then the difference to the product of what they do alone.
    """
    relative = RELATIVE.search(str(phenotype.get("unit", ""))) is not None
    return relative and phenotype["min_order"] <= 1 and phenotype.get("form") not in ("class", "gene")
