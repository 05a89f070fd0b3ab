"""How each kind of split is drawn: from a dataset, a random stream and two fractions to a side for every row.

Legend: m rows · n genes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SplitError
from wildtype.mutants import MutantTable
from wildtype.phenotypes.query_pairs import contains_pair, query_pairs

if TYPE_CHECKING:
    from wildtype.phenotypes.dataset import Dataset

PARTS = ("train", "validation", "test")
DROPPED = len(PARTS)

DEFAULT_FRACTIONS: dict[str, tuple[float, float]] = {
    "random": (0.10, 0.10),
    "one-unseen": (0.10, 0.10),
    "unseen": (0.15, 0.20),
    "query-pair": (0.10, 0.10),
}
"""Default (validation, test) fractions: of gene sets, of genes, of genes, and of triples."""

ALIASES = {"R": "random", "Q": "one-unseen", "G": "unseen"}


def canonical_name(name: str) -> str:
    """Return the full name of a split; raises ``SplitError`` naming the known ones."""
    full = ALIASES.get(name, name)
    if full not in DEFAULT_FRACTIONS:
        raise SplitError(
            f"{name!r} is not a split; known splits: {', '.join(DEFAULT_FRACTIONS)} (or R, Q, G)"
        )
    return full


RULES = {
    "random": "no gene set of a test or validation row is in training",
    "one-unseen": "exactly one gene of every test and validation row is in no training row",
    "unseen": "no gene of any test or validation row is in a training row",
    "query-pair": "the query pair of every test and validation triple is in no training row of any order",
}
"""What ``Split.check`` verifies, by name of the split."""


def count_genes(table: MutantTable, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return [M] how many genes of each row are flagged in ``flags`` [n]."""
    return np.bincount(table.row, weights=flags[table.gene], minlength=len(table)).astype(np.int64)


@dataclass
class Draft:
    """A split in the making: ``side`` [M] (index into PARTS, or DROPPED) with reasons."""

    side: NDArray[np.int8]
    dropped: dict[str, int] = field(default_factory=dict)
    held_out_genes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held_out_pairs: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def drop(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Take rows off all sides and count those that were on one."""
        count = int((rows & (self.side != DROPPED)).sum())
        if count:
            self.side[rows] = DROPPED
            self.dropped[reason] = self.dropped.get(reason, 0) + count


def _random(dataset: Dataset, rng: np.random.Generator, validation: float, test: float) -> Draft:
    table = dataset.table
    first = np.unique(table.set_id, return_index=True)[1]
    order = table.order[first]
    shuffled = rng.permutation(first.size)
    ranked = shuffled[np.argsort(order[shuffled], kind="stable")]
    side_of_set = np.zeros(first.size, np.int8)
    done = 0
    for size in np.unique(order, return_counts=True)[1]:
        # Quotas are differences of rounded cumulative ones: each order, and the total, is within one set.
        low, high = done, done + int(size)
        tests, validations = (round(f * high) - round(f * low) for f in (test, validation))
        side_of_set[ranked[low : low + tests]] = 2
        side_of_set[ranked[low + tests : low + tests + validations]] = 1
        done = high
    return Draft(side_of_set[table.set_id])


def _hold_out_genes(
    dataset: Dataset, rng: np.random.Generator, validation: float, test: float
) -> tuple[Draft, NDArray[np.int8]]:
    """Return rows on the side of their genes, and the side [n] of every gene (0 kept, 1 validation, 2 test).

    A row with a gene held out for test is on the side of test, whatever its other genes.
    """
    genes = rng.permutation(dataset.measured_genes())
    tests, validations = (max(round(f * genes.size), 1) for f in (test, validation))
    group = np.zeros(len(dataset.organism.genes), np.int8)
    group[genes[:tests]] = 2
    group[genes[tests : tests + validations]] = 1
    names = dataset.organism.genes.names
    draft = Draft(np.zeros(len(dataset), np.int8))
    for side, part in ((1, "validation"), (2, "test")):
        draft.side[count_genes(dataset.table, group == side) > 0] = side
        draft.held_out_genes[part] = tuple(names[i] for i in np.flatnonzero(group == side))
    return draft, group


def _one_unseen(dataset: Dataset, rng: np.random.Generator, validation: float, test: float) -> Draft:
    table = dataset.table
    if not (table.order > 1).any():
        raise SplitError(f"dataset {dataset.name!r} has single mutants only: use split random or unseen")
    draft, group = _hold_out_genes(dataset, rng, validation, test)
    held = count_genes(table, group > 0)
    draft.drop((held == 1) & (table.order == 1), "single mutant of a held-out gene")
    draft.drop(held > 1, "two or more held-out genes")
    seen = np.zeros(group.size, bool)
    seen[table.take(draft.side == 0).gene] = True
    draft.drop(count_genes(table, ~seen & (group == 0)) > 0, "another gene has no training row")
    return draft


def _unseen(dataset: Dataset, rng: np.random.Generator, validation: float, test: float) -> Draft:
    table = dataset.table
    draft, group = _hold_out_genes(dataset, rng, validation, test)
    for_validation, for_test = (count_genes(table, group == side) for side in (1, 2))
    held = for_validation + for_test
    draft.drop((held > 0) & (held < table.order), "held-out and other genes mixed")
    draft.drop((for_validation > 0) & (for_test > 0), "genes held out for validation and for test mixed")
    return draft


def _query_pair(dataset: Dataset, rng: np.random.Generator, validation: float, test: float) -> Draft:
    table, n = dataset.table, len(dataset.organism.genes)
    triples = np.unique(table.take(table.order == 3).gene.reshape(-1, 3), axis=0)
    if not len(triples):
        raise SplitError(
            f"dataset {dataset.name!r} has no rows of three genes: use split random, one-unseen or unseen"
        )
    pairs, counts = np.unique(query_pairs(triples), axis=0, return_counts=True)
    shuffled = rng.permutation(len(pairs))
    share = np.cumsum(counts[shuffled]) / len(triples)
    stop = int(np.searchsorted(share, test - 1e-12)) + 1
    reached = share[min(stop, len(pairs)) - 1]
    further = int(np.searchsorted(share, reached + validation - 1e-12)) + 1
    chosen = {"test": np.sort(shuffled[:stop]), "validation": np.sort(shuffled[stop:further])}
    in_test, in_validation = (contains_pair(table, pairs[chosen[p]], n) for p in ("test", "validation"))
    draft = Draft(np.where(in_test, 2, np.where(in_validation, 1, 0)).astype(np.int8))
    names = dataset.organism.genes.names
    draft.held_out_pairs = {
        part: tuple((names[a], names[b]) for a, b in pairs[chosen[part]]) for part in ("validation", "test")
    }
    draft.drop((draft.side > 0) & (table.order == 2), "double mutant of a held-out query pair")
    draft.drop((draft.side > 0) & (table.order > 3), "held-out query pair within four or more genes")
    return draft


MAKERS: dict[str, Callable[[Dataset, np.random.Generator, float, float], Draft]] = {
    "random": _random,
    "one-unseen": _one_unseen,
    "unseen": _unseen,
    "query-pair": _query_pair,
}
