"""Hashed gene sets in compiled loops: tables with open addressing, and bits that spare most searches of them.

A gene set is the sum modulo 2⁶⁴ of one random word per gene (Zobrist 1970), so that an edit of a set costs an
addition whatever its size. Buckets hold what has one key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.compiled import njit

# Sums may be reordered; but not "nnan": a NaN score taken for the 0 of an untouched gene would be entered
# again and again, beyond the end of the scratch space of `neighbour_kernels.neighbours`.
# Arrays are copied in loops: how an assignment of slices says that shapes differ takes seconds to compile.
COMPILED = {"cache": True, "nogil": True, "fastmath": {"nsz", "arcp", "contract", "afn", "reassoc"}}


SIX = np.uint64(63)
"""The lowest six bits, a place in a word."""


class Table(NamedTuple):
    """Buckets by key: bucket i is ``start[i]`` … ``start[i + 1]``-1; ``slots`` find it.

    A slot is two words side by side, since every place of a large table that is read is another wait for
    memory: the key and the number of its bucket from 1 on, 0 in a free slot.
    """

    slots: Any
    start: Any


def _make_table(keys: Any, slots: Any) -> None:
    """Enter bucket i at the place of ``keys[i]``; ``slots`` uint64 [2 · power of two] is zero on entry."""
    mask = np.uint64(len(slots) // 2 - 1)
    for i in range(len(keys)):
        at = (keys[i] ^ (keys[i] >> np.uint64(29))) & mask
        while slots[2 * at + 1]:
            at = (at + np.uint64(1)) & mask
        slots[2 * at], slots[2 * at + 1] = keys[i], np.uint64(i + 1)


def _find(key: Any, slots: Any) -> Any:
    """Return the bucket of a key, or -1."""
    mask = np.uint64(len(slots) // 2 - 1)
    at = (key ^ (key >> np.uint64(29))) & mask
    while slots[2 * at + 1]:
        if slots[2 * at] == key:
            return np.int64(slots[2 * at + 1]) - 1
        at = (at + np.uint64(1)) & mask
    return -1


def _word_of(key: Any, marks: Any) -> Any:
    """Return the place of the word with the bits of a key."""
    # Other bits of the key than those that choose its slot.
    return (key >> np.uint64(30)) & np.uint64(len(marks) - 1)


def _set_bits(key: Any, marks: Any) -> None:
    """Set the two bits of a key in ``marks`` uint64 [power of two], both in one word."""
    one, two = np.uint64(1) << ((key >> np.uint64(24)) & SIX), np.uint64(1) << ((key >> np.uint64(58)) & SIX)
    marks[word_of(key, marks)] |= one | two


def _mark(keys: Any, marks: Any) -> None:
    """Set the bits of every key; ``marks`` are zero on entry."""
    for key in keys:
        set_bits(key, marks)


def _held(key: Any, marks: Any) -> Any:
    """Return 1 where a key may be there, else 0: its bits exclude most others, and marks fit into the cache.

    Both bits are read, not the second where the first is set: that could not be foreseen in a fifth of the
    keys, and a wrong guess costs more than a shift.
    """
    word = marks[word_of(key, marks)]
    return (word >> ((key >> np.uint64(24)) & SIX)) & (word >> (key >> np.uint64(58))) & np.uint64(1)


def _may_hold(key: Any, marks: Any) -> Any:
    """Whether a key may be there."""
    return held(key, marks) > np.uint64(0)


make_table = njit(**COMPILED)(_make_table)
find = njit(**COMPILED)(_find)
word_of = njit(inline="always", **COMPILED)(_word_of)
set_bits = njit(**COMPILED)(_set_bits)
mark = njit(**COMPILED)(_mark)
held = njit(**COMPILED)(_held)
may_hold = njit(**COMPILED)(_may_hold)
