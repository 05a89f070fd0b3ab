"""Designs of screens: mutants by number, without a list of them.

A mutant is given by its number in the design, from 0. The members of a range of numbers are computed when
they are needed, so a screen of 10¹⁰ mutants takes no more memory than one of 10³.

Legend: c members (a gene with a perturbation) · k members per mutant · q queries · m numbers · M ≤ m mutants.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.mutants import MutantTable

Ints = NDArray[np.int64]


class Design(Protocol):
    """Mutants of k members by number."""

    @property
    def count(self) -> int:
        """Size of the range of numbers; some numbers may stand for no mutant."""

    @property
    def order(self) -> int:
        """Members k of every mutant."""

    def members(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the members [m, k] of numbers [m], and which numbers stand for a mutant not met before [m].

        Between neighbouring numbers the last member varies fastest.
        """

    def describe(self) -> list[object]:
        """Return JSON values that differ between designs."""


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
        if self.order < 1:
            raise ConfigError(f"a mutant of order {self.order} has no genes: choose an order of 1 or more")
        if self.c < self.order:
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
        """Return the sets of these numbers, members ascending; none of them occurs twice.

        Counted back from the last set, a number is Σ_j C(x_j, j) with x_k > … > x_1, one binomial per member
        (the combinatorial number system; Knuth, The Art of Computer Programming 4A, 7.2.1.3).
        """
        out = np.empty((len(numbers), self.order), np.int64)
        # The system enumerates sets in colexicographic order; counting from the end and mirroring the members
        # (c - 1 - x) makes the order lexicographic, so that sets with equal first members are neighbours.
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
    """Every query with every candidate, query by query, as query strains are crossed with an array.

    A set that several queries lead to (AB with C, and AC with B) counts once, with the first query.

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
        """Members of a query plus one."""
        return int(self.queries.shape[1]) + 1

    def members(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return query and candidate of these numbers, in this order, and which sets are new."""
        number = np.asarray(numbers, np.int64)
        query, candidate = number // len(self.candidates), self.candidates[number % len(self.candidates)]
        members = np.concatenate([self.queries[query], candidate[:, None]], axis=1)
        out = np.sort(members, axis=1)
        new = np.ones(len(number), bool)
        if len(self.queries) > 1:
            # A set is not new if leaving out one member gives an earlier query and that member is a
            # candidate. This needs no memory of earlier pieces: any piece of the design can be computed by
            # itself.
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
    """Return one key [m] per sorted set; keys compare like the sets."""
    # Big-endian bytes of non-negative integers sort like the integers.
    return np.ascontiguousarray(sets.astype(">i8")).view(f"V{8 * sets.shape[1]}").reshape(-1)


@dataclass(frozen=True, eq=False)
class Mutants:
    """The mutants that a range of m numbers stands for, as arrays.

    Attributes
    ----------
    genes : int64 [M, k]
        Ascending.
    kinds : uint8 [M, k]
        Perturbation of each gene.
    condition : int
        Condition that phenotypes are predicted in.
    members : int64 [M, k]
        Members of the design, in its order.
    number : int64 [M]
        Number of each mutant.
    rows : bool [m]
        Numbers that stand for one of these mutants.
    new : bool [m]
        Numbers that stand for a mutant not met before.
    doses : float32 [number of kinds]
        Dose of every perturbation of a kind; NaN: none.
    """

    genes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    condition: int
    members: NDArray[np.int64]
    number: NDArray[np.int64]
    rows: NDArray[np.bool_]
    new: NDArray[np.bool_]
    doses: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.genes)

    @cached_property
    def table(self) -> MutantTable:
        """The mutants as the table that models take."""
        condition, kind = np.full(len(self), self.condition, np.int64), self.kinds.reshape(-1)
        table = MutantTable.from_matrix(self.genes, kind=kind, condition=condition)
        dose = self.doses[kind]
        return table if np.isnan(dose).all() else replace(table, dose=dose)

    def take(self, rows: NDArray[np.int64]) -> Mutants:
        """Return the mutants at these rows of ``genes``."""
        return Mutants(
            self.genes[rows],
            self.kinds[rows],
            self.condition,
            self.members[rows],
            self.number[rows],
            self.rows,
            self.new,
            self.doses,
        )
