"""`Ragged`: rows of different lengths as flat columns, the base of mutants, measurements and stages.

The ranks below sort and group such rows by several columns at once.

Legend: m rows · k entries of one row · Σk entries of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import WildtypeError

Ints = NDArray[np.int64]
Column = NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class Ragged:
    """m rows, each with any number of entries.

    A subclass names its columns [Σk] of entries in ``ENTRIES`` and its columns [m] of rows in ``ROWS``. An
    optional column is None where no row has it.

    Attributes
    ----------
    offsets : int64 [m+1]
        Row i owns entries ``offsets[i]:offsets[i+1]``.
    """

    ENTRIES: ClassVar[tuple[str, ...]] = ()
    ROWS: ClassVar[tuple[str, ...]] = ()

    offsets: Ints = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def order(self) -> Ints:
        """Number of entries of every row [m]: of mutants, the number of perturbed genes."""
        return np.diff(self.offsets)

    @cached_property
    def row(self) -> Ints:
        """Row of every entry [Σk]."""
        return np.repeat(np.arange(len(self)), self.order)

    def columns(self, names: Sequence[str]) -> dict[str, Column]:
        """Return the columns of these names, None where an optional one is absent."""
        return {name: getattr(self, name) for name in names}

    def check_lengths(self, error: type[WildtypeError]) -> None:
        """Raise ``error`` unless the offsets rise from 0 and every column has the length of its kind."""
        total = int(self.offsets[-1]) if len(self.offsets) else -1
        if total < 0 or self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
            raise error(f"offsets must rise from 0 to the number of entries, received {self.offsets[:8]}")
        for names, length in ((self.ENTRIES, total), (self.ROWS, len(self))):
            for name, column in self.columns(names).items():
                if column is not None and column.shape != (length,):
                    raise error(f"{name} has shape {column.shape}, expected ({length},)")

    def take(self, rows: ArrayLike) -> Self:
        """Return the given rows (positions or boolean mask), in that order; O(selected entries).

        A mask of all rows gives this very object, since rows never change.
        """
        index = np.asarray(rows)
        if index.dtype == bool and len(index) == len(self) and index.all():
            return self
        if not index.size:
            index = index.astype(np.int64)  # an empty list is an array of floats
        if index.dtype == bool:
            index = np.flatnonzero(index)
        at, offsets = entries_of(self.offsets[index], self.order[index])
        return replace(
            self, offsets=offsets, **self._picked(self.ENTRIES, at), **self._picked(self.ROWS, index)
        )

    def _picked(self, names: Sequence[str], at: NDArray[Any]) -> dict[str, Any]:
        count = int(at.sum()) if at.dtype == bool else len(at)
        return {
            name: None if c is None else repeated(c, count) if is_repeated(c) else c[at]
            for name, c in self.columns(names).items()
        }

    def without(self, marked: NDArray[np.bool_]) -> Self:
        """Return all rows without their marked entries [Σk]."""
        left = self.order - np.bincount(self._rows_of(marked), minlength=len(self))
        return replace(self, offsets=offsets_of(left), **self._picked(self.ENTRIES, ~marked))

    def holding(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows [m] have a marked entry [Σk]."""
        out = np.zeros(len(self), bool)
        out[self._rows_of(marked)] = True
        return out

    def _rows_of(self, marked: NDArray[np.bool_]) -> Ints:
        """Return the row of every marked entry; `row` would be made, and kept, for all entries."""
        return np.searchsorted(self.offsets, np.flatnonzero(marked), "right") - 1

    def blocks(self, most: int) -> Iterator[slice]:
        """Yield all rows, so many at a time."""
        for start in range(0, len(self), most):
            yield slice(start, min(start + most, len(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several, one after the other."""
        return cls(**cls.joined(parts, (*cls.ENTRIES, *cls.ROWS)))

    @classmethod
    def joined(cls, parts: Sequence[Self], names: Sequence[str]) -> dict[str, Any]:
        """Return the offsets and these columns of several, one after the other.

        An optional column is NaN where a part lacks it, and None where all do.
        """
        out: dict[str, Any] = {"offsets": offsets_of(np.concatenate([part.order for part in parts]))}
        for name in names:
            columns = [part.columns([name])[name] for part in parts]
            lengths = [int(p.offsets[-1]) if name in cls.ENTRIES else len(p) for p in parts]
            dtype = next((column.dtype for column in columns if column is not None), None)
            out[name] = None
            if dtype is not None:
                filled = [
                    np.full(length, np.nan, dtype) if column is None else column
                    for column, length in zip(columns, lengths, strict=True)
                ]
                out[name] = joined_columns(filled)
        return out

    def by_order(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield every order k that occurs, ascending, its rows [r] and the places [r, k] of their entries."""
        return rows_by_order(self.offsets)


BLOCK = 1 << 20
"""Rows that are worked on at a time where all at once would need too much memory."""


def repeated(column: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the first number of a column `count` times, read-only and in the memory of one."""
    return np.broadcast_to(column[:1], (count,))


def is_repeated(column: NDArray[Any]) -> bool:
    """Return whether a column is one number many times, as `repeated` gives it."""
    return column.strides == (0,) and len(column) > 1


def compact(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of integers or floats, as `repeated` if all its numbers have the same bits."""
    if is_repeated(column) or len(column) < 2:
        return column
    spelled = column if column.dtype.kind in "iub" else column.view(f"u{column.dtype.itemsize}")
    # Most columns that are not of one number differ at the first glance.
    if spelled[0] != spelled[-1] or spelled[0] != spelled[len(spelled) // 2] or (spelled != spelled[0]).any():
        return column
    return repeated(column[:1].copy(), len(column))


def joined_columns(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return columns one after the other; one number many times stays so."""
    having = [column for column in columns if len(column)]
    if having and all(is_repeated(column) for column in having):
        firsts = compact(np.concatenate([column[:1] for column in having]))
        if len(firsts) == 1 or is_repeated(firsts):
            return repeated(firsts, sum(map(len, having)))
    return np.concatenate(columns)


def offsets_of(counts: NDArray[np.integer[Any]]) -> Ints:
    """Return offsets [m+1] of rows with so many entries [m]."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def entries_of(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the positions [Σk] of the entries of rows, and where each row's begin among them [m+1].

    Parameters
    ----------
    starts, counts : int64 [m]
        Position of every row's first entry, and how many it has.
    """
    offsets = offsets_of(counts)
    at = np.repeat(starts - offsets[:-1], counts)
    at += np.arange(offsets[-1])
    return at, offsets


def rows_by_order(offsets: Ints) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield as ``Ragged.by_order``; rows of one order form a matrix, which NumPy handles without a loop."""
    order = np.diff(offsets)
    for k in np.unique(order).tolist():
        rows = np.flatnonzero(order == k)
        yield k, rows, offsets[rows][:, None] + np.arange(k)


def joint(columns: Sequence[tuple[NDArray[Any], int]]) -> Ints:
    """Return one code [m] per row of several columns of codes, ascending as the rows do, first column first.

    Parameters
    ----------
    columns : sequence of (integers [m], int)
        Codes, none negative, and one more than the largest that the column may hold.
    """
    out, size = columns[0][0].astype(np.int64), columns[0][1]
    for codes, count in columns[1:]:
        if size * count >= 2**63:  # ranks order the rows as the codes do, and stay below the number of rows
            (out, size), (codes, count) = _ranked(out), _ranked(codes)
        out, size = out * count + codes, size * count
    return out


def _ranked(codes: NDArray[Any]) -> tuple[Ints, int]:
    if is_repeated(codes):
        return np.zeros(len(codes), np.int64), 1
    if codes.dtype.kind == "i" and len(codes) and codes.min() >= 0 and codes.max() < 2 * len(codes):
        # Few possible codes: those that occur are counted, which gives the ranks without sorting.
        occurs = np.zeros(int(codes.max()) + 1, bool)
        occurs[codes] = True
        return (np.cumsum(occurs) - 1)[codes], int(occurs.sum())
    distinct, rank = np.unique(codes, return_inverse=True)
    return rank.reshape(-1).astype(np.int64, copy=False), len(distinct)


def ranks(*columns: NDArray[Any]) -> Ints:
    """Return the rank [m] of every row by its columns [m] of any type, the first the most significant.

    Equal rows have equal ranks (every NaN is equal), and ranks are 0 … distinct rows - 1.
    """
    # Codes that count from 0 are used as they are, which saves a sort per column.
    sized = [
        (column, int(column.max()) + 1)
        if column.dtype.kind == "i" and column.size and column.min() >= 0
        else _ranked(column)
        for column in columns
    ]
    return _ranked(joint(sized))[0]


def ragged_ranks(columns: Sequence[Ints], offsets: Ints) -> Ints:
    """Return the rank [m] of ragged rows: by number of entries, then by all entries of the first column, ….

    Parameters
    ----------
    columns : sequence of int64 [Σk]
        Numbers, rows one after the other.
    offsets : int64 [m+1]
        Row i owns entries ``offsets[i]:offsets[i+1]``.
    """
    out = np.zeros(len(offsets) - 1, np.int64)
    used = 0
    for k, rows, at in rows_by_order(offsets):
        # Rows without entries are all equal; longer rows rank above all shorter ones.
        out[rows] = used + (ranks(*(column[at[:, i]] for column in columns for i in range(k))) if k else 0)
        used = int(out[rows].max()) + 1
    return out


def distinct(column: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct numbers of a column, ascending, and which of them [m] every row has."""
    if is_repeated(column):
        return column[:1], repeated(np.zeros(1, np.int64), len(column))
    values, code = np.unique(column, return_inverse=True)
    return values, code.reshape(-1)


def first_of_each(rank: Ints) -> Ints:
    """Return the first row of every rank 0 … distinct rows - 1."""
    return np.unique(rank, return_index=True)[1]
