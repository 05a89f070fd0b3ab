from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.mutants.ragged import Ragged, entries_of, first_of_each, joint, ragged_ranks, ranks


@dataclass(frozen=True, eq=False)
class Shelf(Ragged):
    """Ragged rows with one column of entries, one of rows, and an optional one."""

    ENTRIES: ClassVar[tuple[str, ...]] = ("book",)
    ROWS: ClassVar[tuple[str, ...]] = ("height", "dust")

    book: np.ndarray
    height: np.ndarray
    dust: np.ndarray | None = None

    def rows(self) -> list[tuple[list[int], int]]:
        spans = itertools.pairwise(self.offsets.tolist())
        return [(self.book[a:b].tolist(), int(h)) for (a, b), h in zip(spans, self.height, strict=True)]


def shelf(rows: list[list[int]], dust: list[float] | None = None) -> Shelf:
    return Shelf(
        book=np.array([book for row in rows for book in row], np.int64),
        height=np.arange(len(rows)),
        dust=None if dust is None else np.array(dust),
        offsets=np.cumsum([0] + [len(row) for row in rows]),
    )


SHELVES = st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6)


@given(SHELVES, st.data())
def test_take_without_and_holding_equal_python(rows: list[list[int]], data: st.DataObject) -> None:
    table = shelf(rows)
    picked = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=8)) if rows else []
    assert table.take(picked).rows() == [(rows[i], i) for i in picked]
    mask = np.array([i % 2 == 0 for i in range(len(rows))], bool)
    assert table.take(mask).rows() == [(row, i) for i, row in enumerate(rows) if i % 2 == 0]
    odd = table.book % 2 == 1
    assert table.without(odd).rows() == [([b for b in row if b % 2 == 0], i) for i, row in enumerate(rows)]
    assert table.holding(odd).tolist() == [any(b % 2 for b in row) for row in rows]


@given(st.lists(SHELVES, min_size=1, max_size=4))
def test_concatenate_equals_python(parts: list[list[list[int]]]) -> None:
    found = Shelf.concatenate([shelf(rows) for rows in parts])
    assert found.rows() == [(row, i) for rows in parts for i, row in enumerate(rows)]
    assert found.dust is None


def test_an_optional_column_is_unknown_where_a_part_lacks_it() -> None:
    found = Shelf.concatenate([shelf([[1], [2, 3]]), shelf([[]], [0.5])])
    np.testing.assert_array_equal(found.dust, [np.nan, np.nan, 0.5])


@given(SHELVES)
def test_rows_of_one_order_are_a_matrix(rows: list[list[int]]) -> None:
    table, seen = shelf(rows), {}
    for order, which, at in table.by_order():
        for row, books in zip(which.tolist(), table.book[at].tolist(), strict=True):
            assert len(books) == order
            seen[row] = books
    assert [seen[i] for i in range(len(rows))] == rows


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"height has shape \(1,\), expected \(2,\)"):
        Shelf(book=np.arange(3), height=np.arange(1), offsets=np.array([0, 1, 3])).check_lengths(ShapeError)
    with pytest.raises(ShapeError, match="offsets must rise from 0"):
        Shelf(book=np.arange(3), height=np.arange(2), offsets=np.array([0, 4, 3])).check_lengths(ShapeError)


@given(st.data(), st.sampled_from([4, 2**31, 2**62]))
def test_joint_codes_are_ordered_as_the_columns_are(data: st.DataObject, size: int) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.sampled_from([0, 1, size - 1])] * 3), min_size=1, max_size=9))
    columns = [(np.array(column, np.int64), size) for column in zip(*rows, strict=True)]
    codes = joint(columns).tolist()
    for a, b in itertools.pairwise(sorted(zip(rows, codes, strict=True))):
        assert (a[0] < b[0]) == (a[1] < b[1])
        assert (a[0] == b[0]) == (a[1] == b[1])


@given(st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6), st.data())
def test_ragged_rows_in_any_order(rows: list[list[int]], data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=8)) if rows else []
    flat = np.array([entry for row in rows for entry in row], np.int64)
    counts = np.array([len(row) for row in rows], np.int64)
    starts = np.cumsum(counts) - counts
    at, offsets = entries_of(starts[picked], counts[picked])
    spans = [flat[at][a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    assert spans == [rows[i] for i in picked]


small = st.integers(0, 3)
rows = st.lists(st.lists(st.tuples(small, st.integers(0, 2**62)), max_size=4), min_size=1, max_size=12)


@given(
    st.lists(st.tuples(small, st.integers(0, 2**62), small, st.integers(0, 2**62)), min_size=1, max_size=20)
)
def test_ranks_are_those_of_sorted_tuples(table: list[tuple[int, ...]]) -> None:
    order = {row: rank for rank, row in enumerate(sorted(set(table)))}
    found = ranks(*(np.array(column, np.int64) for column in zip(*table, strict=True)))
    assert found.tolist() == [order[row] for row in table]


@given(rows)
def test_ragged_ranks_are_by_length_then_column_by_column(table: list[list[tuple[int, int]]]) -> None:
    keys = [(len(row), [a for a, _ in row], [b for _, b in row]) for row in table]
    order = sorted({repr(key): key for key in keys}.values())
    flat = [pair for row in table for pair in row]
    columns = [np.array([pair[i] for pair in flat], np.int64) for i in range(2)]
    found = ragged_ranks(columns, np.cumsum([0] + [len(row) for row in table]))
    assert found.tolist() == [order.index(key) for key in keys]


def test_first_of_each_rank() -> None:
    assert first_of_each(np.array([2, 0, 0, 1, 2])).tolist() == [1, 3, 0]


def test_nothing_has_no_ranks() -> None:
    nothing = np.zeros(0, np.int64)
    assert ranks(nothing, nothing).tolist() == []
    assert ragged_ranks([nothing], np.zeros(1, np.int64)).tolist() == []
    assert ragged_ranks([nothing], np.zeros(3, np.int64)).tolist() == [0, 0]  # wild types


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["a", "b"])), min_size=1, max_size=20))
def test_ranks_of_columns_of_any_type(table: list[tuple[int, str]]) -> None:
    order = {row: rank for rank, row in enumerate(sorted(set(table)))}
    found = ranks(np.array([number for number, _ in table]), np.array([text for _, text in table]))
    assert found.tolist() == [order[row] for row in table]


def test_every_nan_has_one_rank() -> None:
    assert ranks(np.array([np.nan, 1.0, np.nan, -1.0])).tolist() == [2, 1, 2, 0]
