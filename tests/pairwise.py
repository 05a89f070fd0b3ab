"""`covering_rows`: few combinations of options in which every possible pair of options meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

Row = tuple[int, ...]
Partial = Sequence[int | None]


def covering_rows(sizes: Sequence[int], possible: Callable[[Partial], bool]) -> list[Row]:
    """Return rows with one option of every factor, such that every possible pair of options is in a row.

    Rows are built one after the other, each from the first pair that no row has yet; the factors left take,
    in turn, the option that completes most missing pairs, the first of equals. Nothing is drawn: the same
    factors give the same rows. They are few, not the fewest.

    Parameters
    ----------
    sizes : sequence of int
        Number of options of every factor.
    possible : callable
        Whether a row whose factors are only partly chosen (None: not yet) can be completed.
    """
    missing: dict[tuple[int, int, int, int], None] = {}  # an ordered set
    for f, g in combinations(range(len(sizes)), 2):
        for a in range(sizes[f]):
            for b in range(sizes[g]):
                partial: list[int | None] = [None] * len(sizes)
                partial[f], partial[g] = a, b
                if possible(partial):
                    missing[f, a, g, b] = None
    rows = []
    while missing:
        f, a, g, b = next(iter(missing))
        row: list[int | None] = [None] * len(sizes)
        row[f], row[g] = a, b
        # Factors with most options first: they have most pairs left to place.
        for h in sorted(set(range(len(sizes))) - {f, g}, key=lambda i: (-sizes[i], i)):
            best, most = None, -1
            for option in range(sizes[h]):
                row[h] = option
                if possible(row):
                    gained = sum(_pair(h, option, i, at) in missing for i, at in enumerate(row) if i != h)
                    if gained > most:
                        best, most = option, gained
            row[h] = best
        chosen = tuple(option for option in row if option is not None)
        assert len(chosen) == len(sizes), "a pair was called possible that no row can have"
        for (i, x), (j, y) in combinations(enumerate(chosen), 2):
            missing.pop((i, x, j, y), None)
        rows.append(chosen)
    return rows


def _pair(f: int, a: int, g: int, b: int | None) -> tuple[int, int, int, int] | None:
    if b is None:
        return None
    return (f, a, g, b) if f < g else (g, b, f, a)
