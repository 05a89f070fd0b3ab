"""`QuantisedTrees`: the trees of several forests over the same columns, evaluated on whole numbers.

A node asks whether a value is at most its threshold. How many thresholds of a column lie below a value
answers this for every node of every tree. Each value is therefore searched for once, and a node compares two
small whole numbers, as boosting libraries do in training (Ke et al., NeurIPS 30, 2017).

No row goes down a tree: each node takes the leaves below its left child from the rows that go right there, as
bits, and the first leaf that remains is the row's (Lucchese et al., SIGIR 2015). A block of rows is at a tree
together, with eight leaves of every row in a byte, so that one instruction takes leaves from many rows, and
most nodes touch one byte or two (Ye et al., KDD 2018). Nothing is approximated: sums are those of the plain
loop, to the last bit.

Legend: b rows · f columns · u columns that a tree asks for · v nodes of all trees · t trees · l leaves of a
tree · o forests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.nn.threads import loops
from wildtype.nn.tree_kernels import BLOCK, add_trees

PIECE = 4 * BLOCK
"""Rows that a thread takes at a time."""
BITS = 8
"""Leaves in a byte."""

Arrays = tuple[NDArray[Any], ...]
Ints = NDArray[np.int64]


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
    Costs O(b · u · log K + b · t · l · log l) for K thresholds per column, in as many threads as torch has:
    l log l of the cheapest steps there are, for balanced trees. Where every right child is a leaf it is l².
    """

    def __init__(self, forests: Sequence[tuple[Arrays, float]]) -> None:
        self.start = np.array([start for _, start in forests])
        self.forest = np.repeat(np.arange(len(forests)), [len(arrays[4]) for arrays, _ in forests])
        nodes = _Nodes.of([arrays for arrays, _ in forests])
        inner = nodes.feature >= 0
        self.column, used = np.unique(nodes.feature[inner], return_inverse=True)
        # Thresholds of a column in ascending order, and the number of every node's among them.
        split = nodes.split[inner]
        order = np.lexsort((split, used))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(used[order]) != 0) | (np.diff(split[order]) != 0)
        self.threshold = split[order][new]
        self.first = np.searchsorted(used[order][new], np.arange(len(self.column) + 1))
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(new) - 1 - self.first[used[order]]
        # 0 stands for NaN, and one more than there are thresholds for what no value is above.
        self.code = _smallest(int(np.diff(self.first).max(initial=0)) + 1)
        # Codes are 1 + the number of thresholds below a value, and 0 for NaN. Where NaN goes right, both
        # sides of the comparison are one less: 0 becomes the largest number. Such codes follow the others.
        right = ~nodes.missing_left[inner]
        asked, limit = np.zeros(len(inner), np.uint32), np.zeros(len(inner), self.code)
        asked[inner] = (used + right * len(self.column)) * BLOCK
        limit[inner] = number + 1 - right
        tree, leaves, before = nodes.leaves()
        self._take(nodes, tree, leaves, before, asked, limit)
        # The values of all leaves, those of a tree from left to right.
        count, leaf = leaves[nodes.root], np.flatnonzero(~inner)
        begin, value = np.cumsum(count) - count, np.empty(len(leaf))
        value[begin[tree[leaf]] + before[leaf]] = nodes.split[leaf]
        self.bytes = (-(-count // BITS)).astype(np.uint64)
        self.leaves = self.bytes, begin.astype(np.uint64), value

    def _take(
        self, nodes: _Nodes, tree: Ints, leaves: Ints, before: Ints, asked: NDArray[Any], limit: NDArray[Any]
    ) -> None:
        """Give each byte of leaves that a node takes from rows that go right a step of its own."""
        inner = np.flatnonzero(nodes.feature >= 0)
        first, last = before[inner], before[inner] + leaves[nodes.child[inner, 0]]  # the left child's
        touched = (last - 1) // BITS - first // BITS + 1
        of = np.repeat(np.arange(len(inner)), touched)
        byte = first[of] // BITS + _within(touched)
        node, owner = inner[of], tree[inner[of]]
        low, high = np.maximum(first[of], byte * BITS) % BITS, np.minimum(last[of] - byte * BITS, BITS)
        keep = 255 - ((1 << high) - (1 << low))
        # Steps that follow each other take from different bytes, so that none waits for the one before it.
        by_byte = np.lexsort((byte, owner))
        new = np.ones(len(by_byte), bool)
        new[1:] = (np.diff(byte[by_byte]) != 0) | (np.diff(owner[by_byte]) != 0)
        turn = np.empty(len(byte), np.int64)
        turn[by_byte] = _within(np.diff(np.append(np.flatnonzero(new), len(new))))
        order = np.lexsort((byte, turn, owner))
        ends = np.cumsum([0, *np.bincount(owner, minlength=len(nodes.root))])
        self.steps = (
            ends.astype(np.uint64),
            asked[node[order]],
            limit[node[order]],
            byte[order].astype(np.uint32),
            keep[order].astype(np.uint8),
        )

    def __call__(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the sum of every forest [b, o] for columns [b, f]."""
        out = np.tile(self.start, (len(x), 1))
        x = np.ascontiguousarray(x)
        columns = (self.column, self.first, self.threshold)
        most = int(self.bytes.max(initial=1))

        def work(i: int) -> None:
            rows = slice(i * PIECE, (i + 1) * PIECE)
            code, alive = np.zeros(2 * len(self.column) * BLOCK, self.code), np.empty(most * BLOCK, np.uint8)
            add_trees(x[rows], *columns, *self.steps, *self.leaves, self.forest, code, alive, out[rows])

        loops(-(-len(x) // PIECE), work)
        return out


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of all trees; arrays as of `QuantisedTrees`."""

    feature: Ints
    child: Ints
    split: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    root: Ints

    @classmethod
    def of(cls, forests: Sequence[Arrays]) -> _Nodes:
        """Return the nodes of all forests, numbered one forest after the other."""
        before = np.cumsum([0, *(len(arrays[0]) for arrays in forests)])[:-1].tolist()
        columns: list[list[NDArray[Any]]] = [
            [feature, child + at, split, missing_left, root + at]
            for (feature, child, split, missing_left, root), at in zip(forests, before, strict=True)
        ]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def leaves(self) -> tuple[Ints, Ints, Ints]:
        """Return of every node its tree, its number of leaves, and that of its tree's leaves left of them."""
        tree, leaves, before = (np.zeros(len(self.feature), np.int64) for _ in range(3))
        levels, level = [], self.root
        tree[level] = np.arange(len(level))
        while len(level):
            above = level[self.feature[level] >= 0]
            levels.append(above)
            tree[self.child[above]] = tree[above][:, None]
            level = self.child[above].reshape(-1)
        leaves[self.feature < 0] = 1
        for above in reversed(levels):
            leaves[above] = leaves[self.child[above]].sum(axis=1)
        for above in levels:
            left, right = self.child[above].T
            before[left] = before[above]
            before[right] = before[above] + leaves[left]
        return tree, leaves, before


def _within(sizes: Ints) -> Ints:
    """Return 0 … size − 1 of each group, one group after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _smallest(most: int) -> np.dtype[Any]:
    """Return the smallest type of whole numbers without a sign that holds ``most``."""
    return next(np.dtype(kind) for kind in ("u1", "u2", "u4") if most <= np.iinfo(kind).max)
