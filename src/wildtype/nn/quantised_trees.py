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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        kernel = _compiled()
        columns = (self.column, self.first, self.threshold)
        most = int(self.bytes.max(initial=1))

        def work(i: int) -> None:
            rows = slice(i * PIECE, (i + 1) * PIECE)
            code, alive = np.zeros(2 * len(self.column) * BLOCK, self.code), np.empty(most * BLOCK, np.uint8)
            kernel(x[rows], *columns, *self.steps, *self.leaves, self.forest, code, alive, out[rows])

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


@cache
def _compiled() -> Callable[..., None]:
    """Return the loop over blocks of rows, compiled by numba and kept on disk."""
    # numba is slow to import: not before trees are evaluated.
    from wildtype.compiled import njit

    exact = njit(cache=True, nogil=True, boundscheck=False)
    # Whole numbers without a sign: numba looks for negative positions, counted from the end, otherwise, and
    # these loops are done for many rows at once only where nothing is left to look for.
    width, one, nil, every = np.uintp(BLOCK), np.uintp(1), np.uintp(0), np.uint8(255)

    @exact  # type: ignore[untyped-decorator]
    def write_codes(x: Any, column: Any, first: Any, threshold: Any, code: Any) -> None:
        rows, right = np.uintp(len(x)), np.uintp(len(column)) * width
        entry, low = np.empty(BLOCK), np.empty(BLOCK, np.uint32)
        for c in range(len(column)):
            place, asks = np.uintp(c) * width, threshold[first[c] : first[c + 1]]
            for i in range(nil, rows):
                entry[i], low[i] = x[i, column[c]], 0
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

    @exact  # type: ignore[untyped-decorator]
    def take_leaves(
        start: Any, stop: Any, asked: Any, limit: Any, byte: Any, keep: Any, code: Any, alive: Any
    ) -> None:
        for s in range(start, stop):
            place, left = np.uintp(asked[s]), np.uintp(byte[s]) * width
            most, kept = limit[s], keep[s]
            for i in range(nil, width):
                alive[left + i] &= kept if code[place + i] > most else every

    @exact  # type: ignore[untyped-decorator]
    def find_leaves(alive: Any, count: Any, found: Any, place: Any) -> None:
        for i in range(nil, width):
            found[i], place[i] = alive[i], 0
        # How many bytes without a leaf come first, and the first byte with one.
        for b in range(one, count):
            at = b * width
            for i in range(nil, width):
                place[i] += found[i] == 0
                found[i] = found[i] if found[i] != 0 else alive[at + i]
        for i in range(nil, width):
            lowest = np.uint8(found[i] & np.uint8(~found[i] + np.uint8(1)))
            # Which power of 2 it is, bit by bit of the answer.
            high = np.uint8((lowest & 0xF0) != 0) << 2 | np.uint8((lowest & 0xCC) != 0) << 1
            found[i] = np.uint8(high) | np.uint8((lowest & 0xAA) != 0)

    @exact  # type: ignore[untyped-decorator]
    def add_leaves(leaf: Any, begin: Any, found: Any, place: Any, out: Any) -> None:
        for i in range(nil, width):
            out[i] += leaf[begin + (np.uintp(place[i]) << np.uintp(3) | np.uintp(found[i]))]

    @exact  # type: ignore[untyped-decorator]
    def add_trees(
        x: Any,
        column: Any,
        first: Any,
        threshold: Any,
        ends: Any,
        asked: Any,
        limit: Any,
        byte: Any,
        keep: Any,
        count: Any,
        begin: Any,
        leaf: Any,
        forest: Any,
        code: Any,
        alive: Any,
        out: Any,
    ) -> None:
        total = np.empty((out.shape[1], BLOCK))
        found, place = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint16)
        for start in range(0, len(x), BLOCK):
            rows = min(BLOCK, len(x) - start)
            # A last block is not full: what stands in the other rows is a code, too.
            write_codes(x[start : start + rows], column, first, threshold, code)
            # In loops: how an assignment of arrays says that shapes differ takes numba seconds to compile.
            for o in range(len(total)):
                for i in range(rows):
                    total[o, i] = out[start + i, o]
            for t in range(len(count)):
                alive[:] = every
                take_leaves(ends[t], ends[t + 1], asked, limit, byte, keep, code, alive)
                find_leaves(alive, count[t], found, place)
                add_leaves(leaf, begin[t], found, place, total[forest[t]])
            for o in range(len(total)):
                for i in range(rows):
                    out[start + i, o] = total[o, i]

    return add_trees  # type: ignore[no-any-return]
