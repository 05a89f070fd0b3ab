"""`QuantisedTrees`: the trees of several forests over the same columns, evaluated on whole numbers.

A node asks whether a value is at most its threshold. How many thresholds of a column lie below a value
answers this for every node of every tree. Each value is therefore searched for once, and a node compares two
small whole numbers, as boosting libraries do in training (Ke et al., NeurIPS 30, 2017). The nodes of one tree
and a block of rows stay in the nearest cache.

No row goes down a tree of at most 64 leaves: each of its nodes takes the leaves below its left child from
the rows that go right there, as bits of one number, for a block of rows at once. The first leaf that remains
is the row's (Lucchese et al., SIGIR 2015). Rows go down larger trees beside each other, so that a step of one
row does not wait for that of another. Nothing is approximated: sums are those of the plain loop, to the last
bit.

Legend: b rows · f columns · u columns that a tree asks for · v nodes of all trees · t trees · w inner nodes
of trees of at most 64 leaves · o forests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.nn.threads import loops

BLOCK = 64
"""Rows that are at a tree together: their codes in 200 columns fill half of a nearest cache."""
PIECE = 4 * BLOCK
"""Rows that a thread takes at a time."""
SURE = 0.95
"""Share of rows that have met their leaf after the steps that all rows take, if every node halves its rows;
the others go on one by one."""

LEAVES = 64
"""Bits of a number: so many leaves a tree may have whose nodes are asked for all rows."""
DE_BRUIJN = 0x03F79D71B4CB0A89
"""Its products with the powers of 2 differ in their six highest bits, so that these tell the power."""

Arrays = tuple[NDArray[Any], ...]


class QuantisedTrees:
    """Trees with whole thresholds.

    Parameters
    ----------
    forests : sequence of tuple
        Of each of the o forests: feature int64 [v] (−1: a leaf), child int64 [v, 2], split float64 [v]
        (threshold, or a leaf's value), missing_left bool [v], root int64 [t], and the value that its trees
        are added to.

    Notes
    -----
    Costs O(b · u · log K + b · w) for K thresholds per column, and O(b · depth) for each larger tree, in as
    many threads as torch has.
    """

    def __init__(self, forests: Sequence[tuple[Arrays, float]]) -> None:
        self.start = np.array([start for _, start in forests])
        sizes = [len(arrays[0]) for arrays, _ in forests]
        before = np.cumsum([0, *sizes])[:-1]
        feature, split, missing_left = (
            np.concatenate([arrays[i] for arrays, _ in forests]) for i in (0, 2, 3)
        )
        child = np.concatenate([arrays[1] + at for (arrays, _), at in zip(forests, before, strict=True)])
        self.root = np.concatenate([arrays[4] + at for (arrays, _), at in zip(forests, before, strict=True)])
        self.forest = np.repeat(np.arange(len(forests)), [len(arrays[4]) for arrays, _ in forests])
        inner = feature >= 0
        self.column, used = np.unique(feature[inner], return_inverse=True)
        # Thresholds of a column in ascending order, and the number of every node's among them.
        order = np.lexsort((split[inner], used))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(used[order]) != 0) | (np.diff(split[inner][order]) != 0)
        self.threshold = split[inner][order][new]
        self.first = np.searchsorted(used[order][new], np.arange(len(self.column) + 1))
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(new) - 1 - self.first[used[order]]
        most = int(np.diff(self.first).max(initial=0))
        # 0 stands for NaN and the largest number for what no value is above: both must be free.
        code = next(np.dtype(kind) for kind in ("u1", "u2", "u4") if most + 2 < np.iinfo(kind).max)
        self.nothing = np.zeros(0, code)
        self._order(feature, child, split, missing_left, used, number, code)
        self.levels = self._sure_levels()

    def _order(
        self,
        feature: NDArray[np.int64],
        child: NDArray[np.int64],
        split: NDArray[np.float64],
        missing_left: NDArray[np.bool_],
        used: NDArray[np.int64],
        number: NDArray[np.int64],
        code: np.dtype[Any],
    ) -> None:
        """Put both children of a node beside each other, level by level of each tree, as whole numbers."""
        place, levels = np.empty(len(feature), np.int64), []
        # Breadth first, all trees together: a level's children stand in the order of their parents.
        level, reached = self.root, 0
        while len(level):
            place[level] = reached + np.arange(len(level))
            reached += len(level)
            levels.append(level)
            level = child[level[feature[level] >= 0]].reshape(-1)
        order = np.concatenate([np.zeros(0, np.int64), *levels])
        tree = self._tree_of(order, child, feature)
        # Nodes of one tree together; the sort is stable, so that siblings stay beside each other.
        by_tree = np.argsort(tree[order], kind="stable")
        order = order[by_tree]
        place[order] = np.arange(len(order))
        self.root = place[self.root].astype(np.uint32)
        inner = feature[order] >= 0
        at = np.cumsum(feature >= 0) - 1  # a node's number among the inner ones
        asks = at[order[inner]]
        self.left = np.arange(len(order), dtype=np.uint32)  # a leaf leads to itself
        self.left[inner] = place[child[order[inner], 0]]
        # Codes are 1 + the number of thresholds below a value, and 0 for NaN. Where NaN goes right, both
        # sides of the comparison are one less: 0 becomes the largest number. Such codes follow the others.
        right = ~missing_left[order[inner]]
        self.asked = np.zeros(len(order), np.uint32)
        self.asked[inner] = (used[asks] + right * len(self.column)) * BLOCK
        self.limit = np.full(len(order), np.iinfo(code).max, code)
        self.limit[inner] = number[asks] + 1 - right
        self.value = split[order]
        self.value[inner] = 0.0
        self._mask(levels, feature, child, split, tree, order[inner], inner)

    def _mask(
        self,
        levels: list[NDArray[np.int64]],
        feature: NDArray[np.int64],
        child: NDArray[np.int64],
        split: NDArray[np.float64],
        tree: NDArray[np.int64],
        order: NDArray[np.int64],
        inner: NDArray[np.bool_],
    ) -> None:
        """Give each of the w nodes the leaves that remain for rows that go right; ``order``: inner nodes."""
        leaves, first = np.ones(len(feature), np.int64), np.zeros(len(feature), np.int64)
        for level in reversed(levels):
            above = level[feature[level] >= 0]
            leaves[above] = leaves[child[above]].sum(axis=1)
        for level in levels:
            above = level[feature[level] >= 0]
            first[child[above, 0]] = first[above]
            first[child[above, 1]] = first[above] + leaves[child[above, 0]]
        root = np.concatenate([*levels[:1], np.zeros(0, np.int64)])
        self.masked = leaves[root] <= LEAVES
        asked = self.masked[tree[order]]
        nodes = order[asked]
        left = child[nodes, 0]
        taken = (np.uint64(1) << leaves[left].astype(np.uint64)) - np.uint64(1)
        self.keep = ~(taken << first[left].astype(np.uint64))
        self.ends = np.cumsum([0, *np.bincount(tree[nodes], minlength=len(root))])
        self.node = tuple(array[inner][asked] for array in (self.asked, self.limit))
        # The values of a tree's leaves from left to right, 64 places each.
        leaf = np.flatnonzero(feature < 0)
        leaf = leaf[self.masked[tree[leaf]]]
        self.leaf = np.zeros((len(root), LEAVES if self.masked.any() else 0))
        self.leaf[tree[leaf], first[leaf]] = split[leaf]

    def _tree_of(
        self, order: NDArray[np.int64], child: NDArray[np.int64], feature: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        tree = np.zeros(len(feature), np.int64)
        tree[self.root] = np.arange(len(self.root))
        level = self.root
        while len(level):
            level = level[feature[level] >= 0]
            tree[child[level]] = tree[level][:, None]
            level = child[level].reshape(-1)
        return tree

    def _sure_levels(self) -> NDArray[np.int64]:
        """Return the steps [t] after which a share of ``SURE`` is at a leaf if every node halves its rows."""
        out = np.zeros(len(self.root), np.int64)
        tree, node = np.arange(len(self.root)), self.root
        left, share, level = np.ones(len(self.root)), 1.0, 0
        while len(node):
            leaf = self.left[node] == node
            np.subtract.at(left, tree[leaf], share)
            out[(left > 1 - SURE) & (out == level)] += 1
            tree = np.repeat(tree[~leaf], 2)
            node = (self.left[node[~leaf]][:, None] + np.arange(2)).reshape(-1)
            share, level = share / 2, level + 1
        return out

    def __call__(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the sum of every forest [b, o] for columns [b, f]."""
        out = np.tile(self.start, (len(x), 1))
        x = np.ascontiguousarray(x)
        kernel = _compiled()
        columns = (self.column, self.first, self.threshold, self.nothing)
        nodes = (self.left, self.asked, self.limit, self.value)
        masks = (self.masked, self.ends, *self.node, self.keep, self.leaf, _powers())

        def work(i: int) -> None:
            rows = slice(i * PIECE, (i + 1) * PIECE)
            kernel(x[rows], *columns, *nodes, *masks, self.root, self.levels, self.forest, out[rows])

        loops(-(-len(x) // PIECE), work)
        return out


@cache
def _powers() -> NDArray[np.uint8]:
    """Return which power of 2 the six highest bits of its product with the sequence mean."""
    out = np.zeros(LEAVES, np.uint8)
    out[[((DE_BRUIJN << power) & (2**64 - 1)) >> 58 for power in range(LEAVES)]] = np.arange(LEAVES)
    return out


@cache
def _compiled() -> Callable[..., None]:
    """Return the loop over blocks, trees and rows, compiled by numba and kept on disk."""
    # numba is slow to import: not before trees are evaluated.
    from wildtype.compiled import njit

    @njit(cache=True, nogil=True, boundscheck=False)  # type: ignore[untyped-decorator]
    def add_trees(
        x: Any,
        column: Any,
        first: Any,
        threshold: Any,
        nothing: Any,
        left: Any,
        asked: Any,
        limit: Any,
        value: Any,
        masked: Any,
        ends: Any,
        column_of: Any,
        limit_of: Any,
        keep: Any,
        leaf: Any,
        powers: Any,
        root: Any,
        levels: Any,
        forest: Any,
        out: Any,
    ) -> None:
        # Whole numbers without a sign: numba looks for negative positions, counted from the end, otherwise.
        width, one, nil = np.uintp(BLOCK), np.uintp(1), np.uintp(0)
        code, right = np.empty(2 * len(column) * BLOCK, nothing.dtype), np.uintp(len(column)) * width
        node = np.empty(BLOCK, np.uint32)
        entry, low = np.empty(BLOCK), np.empty(BLOCK, np.uint32)
        alive, every = np.empty(BLOCK, np.uint64), ~np.uint64(0)
        for start in range(0, len(x), BLOCK):
            rows = np.uintp(min(BLOCK, len(x) - start))
            begin = np.uintp(start)
            for c in range(len(column)):
                place, asks = np.uintp(c) * width, threshold[first[c] : first[c + 1]]
                for i in range(nil, rows):
                    entry[i], low[i] = x[begin + i, column[c]], 0
                # Halving without a jump: which half is next is data, and would be guessed wrongly. Rows take
                # a step beside each other, so that none waits for its own last one.
                size = len(asks)
                while size > 1:
                    half = size >> 1
                    for i in range(nil, rows):
                        low[i] += np.uint32(half) * np.uint32(
                            asks[np.uintp(low[i]) + np.uintp(half - 1)] < entry[i]
                        )
                    size -= half
                for i in range(nil, rows):
                    below = np.uintp(low[i]) + np.uintp(asks[np.uintp(low[i])] < entry[i])
                    number = nil if isnan(entry[i]) else below + one
                    code[place + i] = number
                    # Without a sign: 0 - 1 is the largest number.
                    code[right + place + i] = number - one
            for t in range(len(root)):
                if masked[t]:
                    for i in range(BLOCK):
                        alive[i] = every
                    for v in range(ends[t], ends[t + 1]):
                        place = np.uintp(column_of[v])
                        codes, most, kept = code[place : place + width], limit_of[v], keep[v]
                        for i in range(BLOCK):
                            alive[i] &= kept if codes[i] > most else every
                    for i in range(nil, rows):
                        lowest = alive[i] & (~alive[i] + np.uint64(1))
                        power = powers[np.uintp((lowest * np.uint64(DE_BRUIJN)) >> np.uint64(58))]
                        out[begin + i, forest[t]] += leaf[t, np.uintp(power)]
                    continue
                for i in range(nil, rows):
                    node[i] = root[t]
                for _ in range(levels[t]):
                    for i in range(nil, rows):
                        at = np.uintp(node[i])
                        node[i] = left[at] + np.uint32(code[np.uintp(asked[at]) + i] > limit[at])
                for i in range(nil, rows):
                    at = np.uintp(node[i])
                    while np.uintp(left[at]) != at:
                        at = np.uintp(left[at]) + np.uintp(code[np.uintp(asked[at]) + i] > limit[at])
                    out[begin + i, forest[t]] += value[at]

    return add_trees  # type: ignore[no-any-return]
