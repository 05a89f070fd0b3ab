"""Designs of screens: which mutants there are, by number, without a list of them.

Legend: c members (a gene and what is done to it) · k members per mutant · q queries · m mutants asked for.

A mutant is given by its number in the design, from 0; the members of any run of numbers are made when they
are asked for, so that a screen of 10¹⁰ mutants needs no more memory than one of 10³.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError

Ints = NDArray[np.int64]


class Design(Protocol):
    """Mutants of k members by number."""

    @property
    def count(self) -> int:
        """Numbers that there are; some of them may stand for no mutant."""

    @property
    def order(self) -> int:
        """Members k of every mutant."""

    def members(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the members [m, k] of numbers [m], and which of them stand for a mutant of their own [m].

        In a run of numbers, it is the last member that differs.
        """

    def describe(self) -> list[object]:
        """Return what tells this design from others, as JSON."""


@dataclass(frozen=True)
class Combinations:
    """All sets of k out of c members, in lexicographic order.

    Raises
    ------
    ConfigError
        If there are fewer than k members, or more sets than can be counted in 63 bits.
    """

    c: int
    order: int
    _sets: tuple[Ints, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.order < 1 or self.c < self.order:
            raise ConfigError(
                f"there are {self.c} genes to choose from, and a mutant takes {self.order}: name more"
            )
        if comb(self.c, self.order) >= 2**63:
            raise ConfigError(
                f"sets of {self.order} of {self.c} genes are more than can be counted: name fewer with among"
            )
        sizes = [np.array([comb(i, k) for i in range(self.c + 1)], np.int64) for k in range(self.order + 1)]
        object.__setattr__(self, "_sets", tuple(sizes))

    @property
    def count(self) -> int:
        """Number of sets."""
        return comb(self.c, self.order)

    def members(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the sets of these numbers, members ascending.

        Counted from the last set, the number is a sum of binomials, one per member (the combinatorial number
        system; Knuth, The Art of Computer Programming 4A, 7.2.1.3).
        """
        out = np.empty((len(numbers), self.order), np.int64)
        rest = self.count - 1 - np.asarray(numbers, np.int64)
        for column, k in enumerate(range(self.order, 0, -1)):
            largest = np.searchsorted(self._sets[k], rest, side="right") - 1
            out[:, column] = self.c - 1 - largest
            rest = rest - self._sets[k][largest]
        return out, np.ones(len(numbers), bool)

    def describe(self) -> list[object]:
        """Return the kind of design and its numbers."""
        return ["combinations", self.c, self.order]


@dataclass(frozen=True)
class Crossed:
    """Every query with every candidate: query by query, as arrays of strains are crossed.

    A set that several queries lead to (query AB with C, query AC with B) counts once, with the first.

    Attributes
    ----------
    queries : int64 [q, k - 1]
        Members of every query.
    candidates : int64 [a]
        Members that each is crossed with.
    """

    queries: Ints
    candidates: Ints

    @property
    def count(self) -> int:
        """Queries times candidates."""
        return len(self.queries) * len(self.candidates)

    @property
    def order(self) -> int:
        """Members of a query, and one more."""
        return int(self.queries.shape[1]) + 1

    def members(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return query and candidate of these numbers, in this order, and whether the set is new."""
        number = np.asarray(numbers, np.int64)
        query, candidate = number // len(self.candidates), self.candidates[number % len(self.candidates)]
        members = np.concatenate([self.queries[query], candidate[:, None]], axis=1)
        out = np.sort(members, axis=1)
        new = np.ones(len(number), bool)
        if len(self.queries) > 1:
            keys = _keys(np.sort(self.queries, axis=1))
            order = np.argsort(keys, kind="stable")
            for left_out in range(self.order):
                key = _keys(np.delete(out, left_out, axis=1))
                at = np.minimum(np.searchsorted(keys, key, sorter=order), len(keys) - 1)
                earlier = (keys[order[at]] == key) & (order[at] < query)
                new &= ~(earlier & np.isin(out[:, left_out], self.candidates))
        return members, new

    def describe(self) -> list[object]:
        """Return the kind of design and its numbers."""
        return ["crossed", self.queries.tolist(), self.candidates.tolist()]


def _keys(sets: Ints) -> NDArray[np.void]:
    """Return one key [m] per sorted set, which compares as its members do."""
    return np.ascontiguousarray(sets.astype(">i8")).view(f"V{8 * sets.shape[1]}").reshape(-1)
