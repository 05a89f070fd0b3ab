"""Sorts of columns of pairs, told by their names: what they are made of, and in which units.

Legend: f columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Family = Literal[
    "effects",
    "low_rank",
    "paths",
    "kernel_ridge",
    "profile_neighbours",
    "similar_genes",
    "traits",
    "screens",
    "pooled",
]
"""What a column is made of. The number of unseen genes and of reduced ones is of no family."""

SCREEN = "screen "
"""Begins the names of columns of another screen."""
COMPLETED = " completed"
BY_KERNEL = " by kernel"
"""End the names of columns of what another screen lets expect: of two of its strains, and of any genes."""
ALIKE = " alike"
"""Ends the name of that one of them that is in no unit of the screen."""
RISING = ("effect", "rank ", "completed", "kernel ", "one by ", "both by ", "two-step ridge", SCREEN)
"""Begin the names of columns in units of ε, or of another screen: where they are larger, so is ε, all else
equal."""
NOT_RISING = (" weight", ALIKE)
"""End the names of columns beside those, which are in other units."""
CLOSED = ("unseen", "reduced", "effect", "rate", "additive", "rank ", "completed", "kernel ", "profile ",
          "paths ", "one by profile", "both by profile", "one by mixed", "both by mixed", SCREEN)  # fmt: skip
"""Begin the names of columns that answer by themselves, without neighbours and traits of genes."""
ABOUT = ("unseen genes", "reduced strains")
"""Columns that say what sort of pair it is."""
FAMILIES: dict[Family, tuple[str, ...]] = {
    "pooled": ("screen pooled",),
    "screens": (SCREEN,),
    "kernel_ridge": ("kernel ", "two-step ridge"),
    "effects": ("effect", "crosses", "rate ", "additive", "listed "),
    "low_rank": ("rank ", "completed", "profile cosine"),
    "paths": ("paths ",),
    "profile_neighbours": ("one by profile", "both by profile", "one by mixed", "both by mixed"),
    "similar_genes": ("one by ", "both by "),
}
"""Beginnings of names, the first that fits; others are traits, or how alike both genes are."""
FROM_OTHER_GENES = (" by kernel low", " by kernel high", " of similar genes low", " of similar genes high")
"""End the names of effects that kernel ridge says of genes, of this screen."""


def family_of(name: str) -> Family | None:
    """Return what a column is made of."""
    if name in ABOUT:
        return None
    if name.endswith(FROM_OTHER_GENES):
        return "kernel_ridge"
    return next((family for family, begin in FAMILIES.items() if name.startswith(begin)), "traits")


def not_of(families: Collection[Family], names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which columns [f] are of none of some families."""
    return np.array([family_of(name) not in families for name in names], bool)


def rising(names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which columns [f] are in units of ε, or of another screen."""
    return np.array([name.startswith(RISING) and not name.endswith(NOT_RISING) for name in names], bool)


def closed_forms(names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which columns [f] answer by themselves."""
    return np.array([name.startswith(CLOSED) for name in names], bool)


def of_screens(names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which columns [f] are what other screens say."""
    return np.array([name.startswith(SCREEN) for name in names], bool)


def stand_ins(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the column [f] that says the same with less to go by, where a column is not a number; -1: none.

    Where another screen did not measure a pair, its completion stands in, and where it lacks a gene, kernel
    ridge.
    """
    place = {name: i for i, name in enumerate(names)}
    found = np.full(len(names), -1, np.int64)
    for i, name in enumerate(names):
        if name.startswith(SCREEN):
            completed = name.endswith(COMPLETED)
            less = name.removesuffix(COMPLETED) + BY_KERNEL if completed else name + COMPLETED
            found[i] = place.get(less, -1)
    return found
