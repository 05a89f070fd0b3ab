from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.stages.ranks import first_of_each, ragged_ranks, ranks

small = st.integers(0, 3)
rows = st.lists(st.lists(st.tuples(small, st.integers(0, 2**62)), max_size=4), min_size=1, max_size=12)


@given(
    st.lists(st.tuples(small, st.integers(0, 2**62), small, st.integers(0, 2**62)), min_size=1, max_size=20)
)
def test_ranks_are_those_of_sorted_tuples(table: list[tuple[int, ...]]) -> None:
    order = {row: rank for rank, row in enumerate(sorted(set(table)))}
    found = ranks([np.array(column, np.int64) for column in zip(*table, strict=True)])
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
    assert ranks([nothing, nothing]).tolist() == []
    assert ragged_ranks([nothing], np.zeros(1, np.int64)).tolist() == []
    assert ragged_ranks([nothing], np.zeros(3, np.int64)).tolist() == [0, 0]  # wild types
