"""`LabelFeatures`: columns for trees from the labels of a given set of rows, and of no other.

Legend: n genes · m rows · q items (a row and one of its genes) · s subsets · c conditions · f features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.products import entries, row_products
from wildtype.evidence.similarity import profile_graph
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import set_keys
from wildtype.mutants.rows import Codes, pairs_of, segment

SHRINK = 5.0
"""A mean over c labels is shrunken to Σy / (c + this)."""


class LabelFeatures:
    """Label features of rows of any order, made from the rows seen.

    * gene statistics: shrunken mean, number, spread and share of positive labels of the rows with a gene;
    * gene means over a gene's graph neighbours (all there is for an unseen gene);
    * one-sided: labels of seen rows that differ from the row in one gene, weighted by the similarity of the
      two genes;
    * two-sided: labels of seen pairs, weighted by the similarity of both genes (``joint``, ``profile``, their
      sum);
    * from order 3 on, statistics of seen rows that share all genes but one, or a pair, and labels of the row
      less one gene.

    Parameters
    ----------
    seen : MutantTable
        The rows that may be looked at, with labels.
    n : int
        Number of genes.
    graphs : dict of str to csr [n, n]
        Similarity graphs, no self-loops; one is called ``joint``. To these comes ``profile``, made from the
        labels seen: genes that interact alike.
    centre : float
        Labels are taken as deviations from it; the same whichever rows are seen.
    several : bool
        Whether rows of order 3 or more, or of several orders, are asked about: adds the last group of
        features.
    """

    def __init__(
        self, seen: MutantTable, n: int, graphs: dict[str, sparse.csr_array], *, centre: float, several: bool
    ) -> None:
        self.n, self.several = n, several
        value = seen.value.astype(np.float32)
        self._conditions = int(seen.condition.max(initial=0)) + 1
        # Per gene and condition: number, sum, sum of squares, positives.
        code = seen.condition[seen.row] * n + seen.gene
        size = (self._conditions + 1) * n  # the last condition stands for all that were not seen
        y = value[seen.row]
        deviation = y - np.float32(centre)
        stack = (np.ones_like(y), deviation, deviation**2, (y > 0).astype(np.float32))
        self._gene = np.stack(
            [np.bincount(code, w, minlength=size).astype(np.float32) for w in stack], axis=1
        ).reshape(self._conditions + 1, n, 4)
        whole, less = set_keys(seen, n)
        self._subsets = Codes(less)
        at = self._subsets.find(less)
        self._subset = np.stack(
            [np.bincount(at, w, minlength=len(self._subsets)) for w in stack], axis=1
        ).astype(np.float32)
        shape = (max(len(self._subsets), 1), n)
        parts = [sparse.csr_array((w, (at, seen.gene)), shape=shape) for w in stack]
        self._labels = parts[0]
        self._channels = np.stack([part.data for part in parts], axis=1)
        self._wholes = Codes(whole)
        found = self._wholes.find(whole)
        count = np.maximum(np.bincount(found, minlength=len(self._wholes)), 1)
        self._whole_mean = (np.bincount(found, value - centre, minlength=len(self._wholes)) / count).astype(
            np.float32
        )
        # Both directions of every pair, so that a row of the matrix is the whole profile of a gene.
        row, left, right = pairs_of(seen)
        ends = (np.concatenate([left, right]), np.concatenate([right, left]))
        twice = np.concatenate([row, row])
        self._pair_count = sparse.csr_array((np.ones(len(twice), np.float32), ends), shape=(n, n))
        self._pair_sum = sparse.csr_array(((value - np.float32(centre))[twice], ends), shape=(n, n))
        profile = self._pair_sum.copy()
        profile.data = profile.data / self._pair_count.data
        self.graphs = {**graphs, "profile": profile_graph(profile)}
        self._both_ways = [graphs["joint"], self.graphs["profile"], graphs["joint"] + self.graphs["profile"]]

    def __call__(self, table: MutantTable) -> NDArray[np.float32]:
        """Return label features [m, f], NaN where no seen row tells anything."""
        m = len(table)
        condition = np.minimum(table.condition, self._conditions)
        _, less = set_keys(table, self.n)
        subset = self._subsets.find(less)
        parts = [self._gene_features(table, condition), self._one_sided(table, subset)]
        row, left, right = pairs_of(table)
        codes, inverse = np.unique(left * self.n + right, return_inverse=True)
        pairs = self._two_sided(codes // self.n, codes % self.n)
        how = ("mean", "min", "max") if self.several else ("mean",)
        parts.append(segment(pairs[inverse.reshape(-1)], row, m, how))
        if self.several:
            shared = np.full((len(table.gene), 4), np.nan, np.float32)
            hit = subset >= 0
            shared[hit] = _statistics(self._subset[subset[hit]])
            lower = self._wholes.find(less)
            inner = np.where(lower >= 0, self._whole_mean[lower] if len(self._whole_mean) else 0, np.nan)
            items = np.concatenate([shared, inner[:, None].astype(np.float32)], axis=1)
            parts.append(segment(items, table.row, m, ("mean", "min", "max", "sum")))
        return np.concatenate(parts, axis=1)

    def _gene_features(self, table: MutantTable, condition: NDArray[np.int64]) -> NDArray[np.float32]:
        where = (condition[table.row], table.gene)
        columns = [_statistics(self._gene[where])]
        for graph in self.graphs.values():
            around = np.stack([graph @ self._gene[c][:, :2] for c in range(self._conditions + 1)])[where]
            columns.append(
                np.where(around[:, :1] > 0, around[:, 1:] / np.maximum(around[:, :1], 1e-9), np.nan)
            )
        values = np.concatenate(columns, axis=1)
        return segment(values, table.row, len(table), ("mean", "min", "max"))

    def _one_sided(self, table: MutantTable, subset: NDArray[np.int64]) -> NDArray[np.float32]:
        m = len(table)
        out = []
        for graph in self.graphs.values():
            found = row_products(graph, table.gene, self._labels, self._channels[:, :2], subset)
            weight = found[:, 0]
            mean = np.where(weight > 0, found[:, 1] / np.maximum(weight, 1e-9), np.nan)
            pooled = np.stack([np.bincount(table.row, f, minlength=m) for f in found.T], axis=1).astype(
                np.float32
            )
            whole = np.where(pooled[:, 0] > 0, pooled[:, 1] / np.maximum(pooled[:, 0], 1e-9), np.nan)
            out += [
                np.stack([whole, pooled[:, 0]], axis=1),
                segment(mean[:, None].astype(np.float32), table.row, m, ("min", "max")),
            ]
        return np.concatenate(out, axis=1).astype(np.float32)

    def _two_sided(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        out = []
        if self.several:
            count, total = entries(self._pair_count, left, right), entries(self._pair_sum, left, right)
            out += [np.where(count > 0, total / (count + SHRINK), np.nan), count]
        for graph in self._both_ways:
            channel = graph.data[:, None]
            count, total = (
                row_products(graph @ labels, left, graph, channel, right)[:, 0]
                for labels in (self._pair_count, self._pair_sum)
            )
            out += [np.where(count > 0, total / np.maximum(count, 1e-12), np.nan), count]
        return np.stack(out, axis=1).astype(np.float32)


def _statistics(sums: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return shrunken mean, number, SD, share of positives [.., 4] from number, Σ, Σ², positives [.., 4]."""
    count, total, square, positive = np.moveaxis(sums, -1, 0)
    safe = np.maximum(count, 1)
    spread = np.sqrt(np.maximum(square / safe - (total / safe) ** 2, 0))
    unknown = np.where(count > 0, 0, np.nan)
    out = (total / (count + SHRINK) + unknown, count, spread + unknown, positive / safe + unknown)
    return np.stack(out, axis=-1).astype(np.float32)
