"""Do genes attend to their partners in a relation, or to their fellows in a set, more often than chance?

Chance keeps what the head does and forgets who does it: every gene is given the list of another one. So a
gene that all others attend to stays one, and what is attended to together stays together.

Legend: n genes · k attended genes of each · s exchanges · t sets.
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
"""Genes that exchange lists among each other, at least: fewer, and those of large degree hardly would."""
BINS = 50


@dataclass(frozen=True)
class Enrichment:
    """How often genes attend to partners in something.

    Attributes
    ----------
    name : str
        Of the relation or set.
    count : int
        Pairs of a gene and one it attends to that are an edge; of a set, genes that attend to another of it.
    expected, sd : float
        By chance.
    fold : float
        Count over expected; NaN where none is expected.
    p, q : float
        One-sided, and adjusted for the tests made together (Benjamini & Hochberg 1995).
    """

    name: str
    count: int
    expected: float
    sd: float
    fold: float
    p: float
    q: float


def exchanges(degree: Ints, count: int, draw: np.random.Generator) -> Ints:
    """Return whose list each gene is given [count, n]: that of a gene of about its degree [n]."""
    n = len(degree)
    size = max(SMALLEST_BIN, -(-n // BINS))
    bins = np.arange(n) // size
    out = np.empty((count, n), np.int64)
    for row in out:
        order = np.lexsort((draw.random(n), degree))
        row[order] = order[np.lexsort((draw.random(n), bins))]
    return out


def in_relation(attended: Ints, relation: Relation, given: Ints) -> tuple[int, Floats]:
    """Return how many pairs of a gene and one it attends to [n, k] are edges, in any direction, and how many
    are with the lists of other genes [s].
    """
    keys = _edge_keys(relation)
    found = _held(attended, keys)
    return found, np.array([_held(attended[own], keys) for own in given], dtype=np.float64)


def _edge_keys(relation: Relation) -> Ints:
    """Return one number per edge in each direction, ascending."""
    rows, columns, _ = relation.endpoints()
    return np.unique(np.concatenate([rows * relation.n + columns, columns * relation.n + rows]))


def _held(attended: Ints, keys: Ints) -> int:
    n = len(attended)
    wanted = np.arange(n)[:, None] * n + attended
    if not len(keys):
        return 0
    return int((keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted).sum())


def relations_attended(names: tuple[str, ...], found: Ints, null: Floats) -> list[Enrichment]:
    """Return what counts [r] say beside those with other genes' lists [s, r], tested together.

    The p-value is the larger of two: how far out the count is among normal counts of their mean and sd (t
    distribution, as both are estimated), and among Poisson counts of their mean, for rare ones.
    """
    s = len(null)
    mean, sd = null.mean(0), null.std(0, ddof=1)
    rare = stats.poisson.sf(found - 1, mean + 1 / s)
    spread = sd * np.sqrt(1 + 1 / s)
    far = np.divide(found - mean, spread, out=np.full(len(mean), np.inf), where=spread > 0)
    p = np.maximum(rare, np.where(found > mean, stats.t.sf(far, s - 1), 1.0))
    return _enrichments(names, found, mean, sd, p)


def sets_attended(attended: Ints, sets: GeneSets) -> list[Enrichment]:
    """Return for every set how many of its genes attend to another of it, tested together.

    Of n lists, h hold a gene of the set; by chance the lists of its m genes are any m of the n, and the
    number of those that do is hypergeometric.
    """
    n, k = attended.shape
    ones: Floats = np.ones(n * k)
    graph = sparse.csr_array((ones, attended.reshape(-1), np.arange(n + 1) * k), shape=(n, n))
    hits = sparse.csr_array(((graph @ sets.table) > 0) * 1.0)
    inside = np.rint(np.asarray(hits.multiply(sets.table).sum(0)).reshape(-1)).astype(np.int64)
    able, size = np.bincount(hits.indices, minlength=len(sets)), sets.sizes
    mean = size * able / n
    variance = mean * (1 - able / n) * (n - size) / max(n - 1, 1)
    p = np.asarray(stats.hypergeom.sf(inside - 1, n, able, size), np.float64)
    return _enrichments(sets.names, inside, mean, np.sqrt(variance), p)


def _enrichments(
    names: tuple[str, ...], found: Ints, mean: Floats, sd: Floats, p: Floats
) -> list[Enrichment]:
    if not len(names):
        return []
    q = stats.false_discovery_control(p)
    fold = np.divide(found, mean, out=np.full(len(mean), np.nan), where=mean > 0)
    return [
        Enrichment(name, *(x[i].item() for x in (found, mean, sd, fold, p, q)))
        for i, name in enumerate(names)
    ]
