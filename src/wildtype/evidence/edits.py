"""What a lookup asks and finds: queries, kinds of edit, and measured mutants one and two edits away.

Legend: n genes · q queries · Σk their genes · t, u tokens per query · p phenotypes · r genes ranked per gene.
"""

from __future__ import annotations

from typing import Any, NamedTuple

EDITS = ("replaced", "removed", "added")
REPLACED, REMOVED, ADDED = range(3)
"""How a measured mutant differs from the query: a gene replaced, removed or added."""


class Ranking(NamedTuple):
    """For every gene the most similar measured ones, best first (-1: no more), and their scores [n, r]."""

    gene: Any
    score: Any


class Queries(NamedTuple):
    """Genes int64 [Σk], offsets int64 [q + 1] and conditions int64 [q] of the mutants asked about."""

    gene: Any
    offsets: Any
    condition: Any


class OneEditAway(NamedTuple):
    """Measured mutants one edit away, int64 [q, t]: row among the measured, kind of edit, genes; -1: none.

    The kind is ``REPLACED`` where there is none. ``alike`` float32 [q, t] is the product of the label
    profiles of both genes, or ``UNKNOWN``.
    """

    row: Any
    edit: Any
    old: Any
    new: Any
    alike: Any


class TwoEditsAway(NamedTuple):
    """Measured mutants two edits away: rows [q, u], genes [q, u, 2]; Σ w y and Σ w over all found [q, p].

    ``place`` [q, u, 2] is the number of each new gene among the neighbours of the old one.
    """

    row: Any
    old: Any
    new: Any
    place: Any
    total: Any
    weight: Any
