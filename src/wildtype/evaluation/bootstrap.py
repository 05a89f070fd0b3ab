"""Cluster bootstrap: intervals for metrics on rows that share genes.

Rows that share a gene are not independent: an error in what a model knows of one gene is in all its rows. So
genes are drawn with replacement, not rows, and a row's weight is the product of its genes' multiplicities:
the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics 1:386; McCullagh 2000, Bernoulli 6:285). It
is conservative: if the errors of rows are independent, its variance is up to 2^k − 1 times too large for rows
of k genes (3 for pairs, 7 for triples). Triples of crossed screens are therefore better drawn by query pair
and array, and rows of many genes by gene set.

Legend: m rows · c clusters · Σk cluster memberships · r replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.query_pairs import query_pairs
from wildtype.errors import ConfigError, ShapeError
from wildtype.evaluation.metrics import Statistic
from wildtype.seeds import generator

if TYPE_CHECKING:
    from wildtype.mutants import MutantTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAN = float("nan")
"""One object: NaN != NaN, but tuples compare identical objects as equal, and so do estimates."""

CLUSTERS = ("genes", "query-pairs", "gene-sets")
_ENTRIES = 1 << 22
"""Weights held at once, 32 MiB: of 600,000 rows, seven replicates share each pass over the moments."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A metric with its 95 % interval; NaN where it is not defined."""

    value: float = NAN
    low: float = NAN
    high: float = NAN


UNDEFINED = IntervalEstimate()


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which clusters each row belongs to.

    Attributes
    ----------
    name : str
        ``genes``, ``query-pairs`` or ``gene-sets``.
    member : int64 [Σk]
        Cluster numbers 0 … c-1.
    offsets : int64 [M+1]
        Row i is in clusters ``member[offsets[i]:offsets[i+1]]``.
    pools : tuple of int
        Sizes of the pools of clusters, which are drawn from separately; they sum to c.
    """

    name: str
    member: Ints
    offsets: Ints
    pools: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def count(self) -> int:
        """Number of clusters c."""
        return sum(self.pools)


def find_clusters(table: MutantTable, name: str) -> Clusters:
    """Return the clusters of a table's rows.

    ``genes``: every gene that the rows perturb. ``query-pairs``: for triples only, two pools, the query
    pairs (as ``query_pairs`` infers them) and the remaining array genes. ``gene-sets``: every gene set, with
    all its conditions and alleles.

    Raises
    ------
    ConfigError
        If the name is unknown.
    ShapeError
        If rows of ``query-pairs`` are not triples.
    """
    if name == "genes":
        genes, member = np.unique(table.gene, return_inverse=True)
        return Clusters(name, member.reshape(-1), table.offsets, (len(genes),))
    if name == "gene-sets":
        sets, member = np.unique(table.set_id, return_inverse=True)
        return Clusters(name, member.reshape(-1), np.arange(len(table) + 1), (len(sets),))
    if name == "query-pairs":
        triples, row = np.unique(table.matrix(3), axis=0, return_inverse=True)
        query = query_pairs(triples)
        array = triples.sum(1) - query.sum(1)
        pairs, of_pair = np.unique(query, axis=0, return_inverse=True)
        arrays, of_array = np.unique(array, return_inverse=True)
        both = np.stack([of_pair.reshape(-1), len(pairs) + of_array.reshape(-1)], axis=1)
        member = both[row.reshape(-1)].reshape(-1)
        return Clusters(name, member, np.arange(len(table) + 1) * 2, (len(pairs), len(arrays)))
    raise ConfigError(f"{name!r} is not a kind of cluster; known kinds: {', '.join(CLUSTERS)}")


def clusters_for(table: MutantTable) -> str:
    """Return the default kind of cluster: ``genes`` up to three genes per row, ``gene-sets`` beyond."""
    # A gene's multiplicity is about Poisson(1), 0 with probability 1/e: a product over k genes is 0 for a
    # share 1 − (1 − 1/e)^k of the rows and large for the rest, so genes do not serve for rows of many genes.
    return "genes" if table.order.max() <= 3 else "gene-sets"


def bootstrap_weights(clusters: Clusters, replicates: int, seed: int) -> Iterator[Floats]:
    """Yield the weights of all replicates, some columns [M, r] at a time; draws depend on ``seed`` alone."""
    rows = len(clusters)
    rng = generator(seed, f"bootstrap/{clusters.name}")
    step = max(_ENTRIES // max(rows, clusters.count, 1), 1)
    orders = np.diff(clusters.offsets)
    positions = [np.flatnonzero(orders > j) for j in range(int(orders.max(initial=0)))]
    members = [clusters.member[clusters.offsets[at] + j] for j, at in enumerate(positions)]
    for start in range(0, replicates, step):
        width = min(step, replicates - start)
        # Draw one replicate after the other, so that the result does not depend on how many are held at once.
        weights = np.ones((width, rows))
        drawn = np.empty(clusters.count)
        for own in weights:
            first = 0
            for size in clusters.pools:
                # n draws with replacement from n clusters: multinomial multiplicities with mean 1.
                picks = rng.integers(0, size, size)
                drawn[first : first + size] = np.bincount(picks, minlength=size)
                first += size
            # Product over the clusters of a row, by position: rows have different numbers of clusters.
            for at, member in zip(positions, members, strict=True):
                if at.size == rows:
                    own *= drawn[member]
                else:
                    own[at] *= drawn[member]
        # The weights of one replicate lie beside each other in memory: `Ranking` walks along them.
        yield weights.T


def bootstrap(
    statistics: Mapping[str, Statistic], clusters: Clusters, *, replicates: int = 1000, seed: int = 0
) -> dict[str, Floats]:
    """Return the replicates [..., R] of every statistic under the same resamples; NaN where not defined.

    Raises
    ------
    ShapeError
        If there are no rows.
    ConfigError
        If ``replicates`` is not positive.
    """
    if not len(clusters):
        raise ShapeError("there are no rows to resample: the split or the filter left none")
    if replicates < 1:
        raise ConfigError(f"replicates {replicates} must be at least 1 (1,000 for a 95 % interval)")
    columns: dict[str, list[Floats]] = {name: [] for name in statistics}
    for weights in bootstrap_weights(clusters, replicates, seed):
        for name, statistic in statistics.items():
            columns[name].append(statistic(weights))
    return {name: np.concatenate(parts, axis=-1) for name, parts in columns.items()}


def interval(replicates: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of replicates [R]; NaN when under half of them are defined."""
    # A metric that most resamples leave undefined (rare calls, say) has no interval worth showing.
    defined = replicates[np.isfinite(replicates)]
    if defined.size < max(0.5 * replicates.size, 1):
        return NAN, NAN
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def two_sided_p(differences: Floats) -> float:
    """Return the two-sided bootstrap p of replicates [R] of a difference against 0; NaN as in ``interval``.

    It is twice the smaller share of replicates on either side of 0. One more replicate counts on that side,
    as the observed one does in a Monte Carlo test (Davison & Hinkley 1997, section 4.2), so p ≥ 2 / (R + 1).
    """
    defined = differences[np.isfinite(differences)]
    if defined.size < max(0.5 * differences.size, 1):
        return float("nan")
    tail = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return min(2.0 * (tail + 1) / (defined.size + 1), 1.0)
