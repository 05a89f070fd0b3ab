"""Do pairs of genes fall into a relation, or into sets, more often than those of genes with equal degrees?

Genes change places at random with others of about the same degree, so that both the pairs and the relation
keep their shape, hubs stay hubs, and only who is who is lost. Counts of the shuffled genes are the null.

Legend: n genes · m pairs · s shuffles · t sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from wildtype.organism import Relation
from wildtype.organism.gene_sets import GeneSets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SMALLEST_BIN = 10
"""Genes that change places among each other, at least: fewer, and hubs would hardly move."""
BINS = 50


@dataclass(frozen=True)
class Enrichment:
    """How often pairs fall into something.

    Attributes
    ----------
    name : str
        Of the relation or set.
    pairs : int
        Pairs that do.
    expected, sd : float
        Of shuffled genes.
    fold : float
        Pairs over expected; NaN where none are expected.
    p, q : float
        One-sided, and adjusted for the tests made together (Benjamini & Hochberg 1995).
    """

    name: str
    pairs: int
    expected: float
    sd: float
    fold: float
    p: float
    q: float


def shuffles(degree: Ints, count: int, draw: np.random.Generator) -> Ints:
    """Return random places [count, n] of the genes, each among those of about its degree [n]."""
    n = len(degree)
    size = max(SMALLEST_BIN, -(-n // BINS))
    out = np.empty((count, n), np.int64)
    for row in out:
        order = np.lexsort((draw.random(n), degree))
        bin_of = np.arange(n) // size
        row[order] = order[np.lexsort((draw.random(n), bin_of))]
    return out


def pairs_in_relation(pairs: Ints, relation: Relation, places: Ints) -> tuple[int, Floats]:
    """Return how many pairs [m, 2] are edges, in any direction, and how many of shuffled genes are [s]."""
    keys = edge_keys(relation)
    found = [_held(pairs, keys, relation.n)]
    found += [_held(place[pairs], keys, relation.n) for place in places]
    return int(found[0]), np.array(found[1:], dtype=np.float64)


def edge_keys(relation: Relation) -> Ints:
    """Return one number per edge in each direction, ascending."""
    rows, columns, _ = relation.endpoints()
    return np.unique(np.concatenate([rows * relation.n + columns, columns * relation.n + rows]))


def _held(pairs: Ints, keys: Ints, n: int) -> int:
    if not len(keys):
        return 0
    wanted = pairs[:, 0] * n + pairs[:, 1]
    return int((keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted).sum())


def pairs_in_sets(pairs: Ints, sets: GeneSets, places: Ints) -> tuple[Ints, Floats]:
    """Return how many pairs [m, 2] lie in each set [t], and how many of shuffled genes do [s, t]."""
    n = sets.table.shape[0]
    ones: Floats = np.ones(len(pairs))
    graph = sparse.coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()

    def count(table: sparse.csr_array) -> Floats:
        return np.asarray((graph @ table).multiply(table).sum(0)).reshape(-1)

    null = np.array([count(sparse.csr_array(sets.table[place])) for place in places])
    return np.rint(count(sets.table)).astype(np.int64), null.reshape(len(places), len(sets))


def chance(found: Ints, null: Floats) -> Floats:
    """Return one-sided p-values [t] of counts, given those of shuffled genes [s, t].

    The larger of two: how far out the count is among normal counts with the mean and sd of the shuffled ones
    (t distribution, as both are estimated), and among Poisson counts of their mean. The first takes care of
    counts that come in clumps, the second of rare ones.
    """
    s = len(null)
    mean, sd = null.mean(0), null.std(0, ddof=1)
    out = stats.poisson.sf(found - 1, mean + 1 / s)
    spread = sd * np.sqrt(1 + 1 / s)
    far = np.divide(found - mean, spread, out=np.full(len(mean), np.inf), where=spread > 0)
    return np.asarray(np.maximum(out, np.where(found > mean, stats.t.sf(far, s - 1), 1.0)))


def enrichments(names: tuple[str, ...], found: Ints, null: Floats) -> list[Enrichment]:
    """Return what counts [t] say beside those of shuffled genes [s, t], tested together."""
    if not len(names):
        return []
    p = chance(found, null)
    q = stats.false_discovery_control(p)
    mean, sd = null.mean(0), null.std(0, ddof=1)
    fold = np.divide(found, mean, out=np.full(len(mean), np.nan), where=mean > 0)
    return [
        Enrichment(
            name, int(found[i]), float(mean[i]), float(sd[i]), float(fold[i]), float(p[i]), float(q[i])
        )
        for i, name in enumerate(names)
    ]
