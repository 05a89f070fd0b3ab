"""Ragged rows to flat arrays and back: gene pairs, left-one-out subsets, segment statistics, code books.

Legend: m rows · k genes of a row · p pairs of all rows, Σ k(k−1)/2 · q items, Σk · f features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import Kind, MutantTable
from wildtype.seeds import generator


class Codes:
    """A code book: the distinct integers seen in training, and where a code stands among them.

    Parameters
    ----------
    codes : int64 or uint64 [any]
        Codes seen, with repeats.
    at_least : int
        Codes seen less often are left out.
    """

    def __init__(self, codes: NDArray[np.int64] | NDArray[np.uint64], at_least: int = 1) -> None:
        values, counts = np.unique(codes, return_counts=True)
        self.values = values[counts >= at_least]

    def __len__(self) -> int:
        return len(self.values)

    def find(self, codes: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the position of every code, -1 where it was not seen."""
        if not len(self.values):
            return np.full(codes.shape, -1, np.int64)
        at = np.minimum(np.searchsorted(self.values, codes), len(self.values) - 1)
        return np.where(self.values[at] == codes, at, -1)


def pairs_of(table: MutantTable) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return row, smaller and larger gene of every unordered pair [p] within a row, sorted by row."""
    return pairs_in(table.gene, table.offsets)


def pairs_in(
    gene: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return `pairs_of` ragged rows given as arrays."""
    rows, lefts, rights = [], [], []
    order = np.diff(offsets)
    for k in np.unique(order):
        if k < 2:
            continue
        at = np.flatnonzero(order == k)
        genes = gene[offsets[at][:, None] + np.arange(k)]
        i, j = np.triu_indices(int(k), 1)
        rows.append(np.repeat(at, len(i)))
        lefts.append(genes[:, i].reshape(-1))
        rights.append(genes[:, j].reshape(-1))
    if not rows:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate(lefts)[order], np.concatenate(rights)[order]


def gene_words(n: int) -> NDArray[np.uint64]:
    """Return one random word per gene, the same for equal n: see `keys_of`."""
    return generator(0, "gene keys").integers(0, 2**64, n, dtype=np.uint64)


def keys_of(
    gene: NDArray[np.int64], offsets: NDArray[np.int64], words: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return a 64-bit key of every gene set of ragged rows [m].

    A key is the sum modulo 2⁶⁴ of one random word per gene (Zobrist hashing), so that a set less one gene
    costs one subtraction whatever its size; two of 10⁶ sets collide with probability below 10⁻⁷.
    """
    with np.errstate(over="ignore"):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words[gene], dtype=np.uint64)])
        return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def mixed_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return well mixed 64-bit words, one per word: SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        x = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def set_keys(table: MutantTable, n: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return a key of every row's gene set and condition [m], and of every row less one gene [q]."""
    genes = gene_words(n)
    with np.errstate(over="ignore"):
        whole = keys_of(table.gene, table.offsets, genes) + _condition_words(table)
        return whole, whole[table.row] - genes[table.gene]


def mutant_keys(table: MutantTable, n: int) -> NDArray[np.uint64]:
    """Return a key of every row's genes, kinds and condition [m]; doses count for nothing."""
    words = generator(0, "mutant keys").integers(0, 2**64, n * len(Kind), dtype=np.uint64)
    with np.errstate(over="ignore"):
        return keys_of(table.gene * len(Kind) + table.kind, table.offsets, words) + _condition_words(table)


def _condition_words(table: MutantTable) -> NDArray[np.uint64]:
    """Return the random word of every row's condition [m]."""
    count = int(table.condition.max(initial=0)) + 1
    return generator(0, "condition keys").integers(0, 2**64, count, dtype=np.uint64)[table.condition]


def segment(
    values: NDArray[np.float32], row: NDArray[np.int64], m: int, how: Sequence[str]
) -> NDArray[np.float32]:
    """Reduce values [p, f] by row (ascending) to [m, len(how)·f]; NaN is skipped, nothing gives NaN.

    ``how`` names any of ``mean``, ``sum``, ``min``, ``max``; the sum over nothing is NaN too.
    """
    p, f = values.shape
    out = np.full((m, len(how) * f), np.nan, np.float32)
    if not p or not f:
        return out
    starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    seen, missing = row[starts], np.isnan(values)
    count = np.add.reduceat((~missing).astype(np.float32), starts, axis=0)
    for at, name in enumerate(how):
        if name in ("mean", "sum"):
            part = np.add.reduceat(np.where(missing, 0, values), starts, axis=0)
            if name == "mean":
                part = part / np.maximum(count, 1)
        else:
            ufunc, fill = (np.minimum, np.inf) if name == "min" else (np.maximum, -np.inf)
            part = ufunc.reduceat(np.where(missing, np.float32(fill), values), starts, axis=0)
        out[seen, at * f : (at + 1) * f] = np.where(count > 0, part, np.nan)
    return out
