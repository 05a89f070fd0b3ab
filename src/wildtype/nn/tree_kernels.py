"""Compiled loops of `wildtype.nn.quantised_trees` over blocks of rows.

They are functions of a file, not of a function: a loop that takes others from a function around it is
compiled anew in every process, since numba tells its versions apart by what such variables hold.

Legend: b rows · f columns · u columns that a tree asks for · t trees · o forests.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from wildtype.compiled import njit

BLOCK = 64
"""Rows that are at a tree together: their codes in 200 columns fill half of a nearest cache."""
COMPILED = {"cache": True, "nogil": True, "boundscheck": False}
# Whole numbers without a sign: numba looks for negative positions, counted from the end, otherwise, and
# these loops are done for many rows at once only where nothing is left to look for.
WIDTH, ONE, NIL, EVERY = np.uintp(BLOCK), np.uintp(1), np.uintp(0), np.uint8(255)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def write_codes(x: Any, column: Any, first: Any, threshold: Any, code: Any) -> None:
    """Write the codes of a block of rows [b, f] column by column, and once more as where NaN goes right."""
    rows, right = np.uintp(len(x)), np.uintp(len(column)) * WIDTH
    entry, low = np.empty(BLOCK), np.empty(BLOCK, np.uint32)
    for c in range(len(column)):
        place, asks = np.uintp(c) * WIDTH, threshold[first[c] : first[c + 1]]
        for i in range(NIL, rows):
            entry[i], low[i] = x[i, column[c]], 0
        # Halving without a jump: which half is next is data, and would be guessed wrongly. Rows take
        # a step beside each other, so that none waits for its own last one.
        size = len(asks)
        while size > 1:
            half = size >> 1
            for i in range(NIL, rows):
                low[i] += np.uint32(half) * np.uint32(asks[np.uintp(low[i]) + np.uintp(half - 1)] < entry[i])
            size -= half
        for i in range(NIL, rows):
            below = np.uintp(low[i]) + np.uintp(asks[np.uintp(low[i])] < entry[i])
            number = NIL if isnan(entry[i]) else below + ONE
            code[place + i] = number
            # Without a sign: 0 - 1 is the largest number.
            code[right + place + i] = number - ONE


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def take_leaves(
    start: Any, stop: Any, asked: Any, limit: Any, byte: Any, keep: Any, code: Any, alive: Any
) -> None:
    """Take the leaves from all rows of a block that the steps ``start`` … ``stop``-1 of a tree take."""
    for s in range(start, stop):
        place, left = np.uintp(asked[s]), np.uintp(byte[s]) * WIDTH
        most, kept = limit[s], keep[s]
        for i in range(NIL, WIDTH):
            alive[left + i] &= kept if code[place + i] > most else EVERY


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def find_leaves(alive: Any, count: Any, found: Any, place: Any) -> None:
    """Write the first leaf that remains of every row: its byte to ``place``, its bit there to ``found``."""
    for i in range(NIL, WIDTH):
        found[i], place[i] = alive[i], 0
    # How many bytes without a leaf come first, and the first byte with one.
    for b in range(ONE, count):
        at = b * WIDTH
        for i in range(NIL, WIDTH):
            place[i] += found[i] == 0
            found[i] = found[i] if found[i] != 0 else alive[at + i]
    for i in range(NIL, WIDTH):
        lowest = np.uint8(found[i] & np.uint8(~found[i] + np.uint8(1)))
        # Which power of 2 it is, bit by bit of the answer.
        high = np.uint8((lowest & 0xF0) != 0) << 2 | np.uint8((lowest & 0xCC) != 0) << 1
        found[i] = np.uint8(high) | np.uint8((lowest & 0xAA) != 0)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def add_leaves(leaf: Any, begin: Any, found: Any, place: Any, out: Any) -> None:
    """Add the value of every row's leaf of one tree to ``out`` [b]."""
    for i in range(NIL, WIDTH):
        out[i] += leaf[begin + (np.uintp(place[i]) << np.uintp(3) | np.uintp(found[i]))]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
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
    """Add the trees of all forests to ``out`` [b, o] for rows ``x`` [b, f].

    ``column`` [u], ``first`` [u + 1] and ``threshold`` are the columns asked for and their thresholds. Steps
    of trees, which end at ``ends`` [t + 1], have a column ``asked``, a ``limit``, a ``byte`` and what to
    ``keep`` of it. ``count`` [t] are the bytes of a tree, ``begin`` [t] its first value in ``leaf``, and
    ``forest`` [t] where it belongs. ``code`` and ``alive`` are scratch.
    """
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
            alive[:] = EVERY
            take_leaves(ends[t], ends[t + 1], asked, limit, byte, keep, code, alive)
            find_leaves(alive, count[t], found, place)
            add_leaves(leaf, begin[t], found, place, total[forest[t]])
        for o in range(len(total)):
            for i in range(rows):
                out[start + i, o] = total[o, i]
