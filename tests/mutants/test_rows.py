from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.mutants import MutantTable
from wildtype.mutants.rows import Codes, pairs_of, segment

SETS = st.lists(st.lists(st.integers(0, 11), max_size=5, unique=True), min_size=1, max_size=12)


@given(SETS)
@settings(max_examples=60, deadline=None)
def test_pairs_are_all_unordered_pairs_of_every_row(sets):
    table = MutantTable.from_sets(sets)
    row, left, right = pairs_of(table)
    expected = [(i, a, b) for i, s in enumerate(table.sets()) for a, b in itertools.combinations(s, 2)]
    assert sorted(zip(row.tolist(), left.tolist(), right.tolist(), strict=True)) == sorted(expected)
    assert (np.diff(row) >= 0).all()


def test_codes_leave_out_the_rare_and_find_the_rest():
    book = Codes(np.array([5, 3, 5, 9, 9, 9]), at_least=2)
    np.testing.assert_array_equal(book.find(np.array([5, 3, 9, 100])), [0, -1, 1, -1])
    np.testing.assert_array_equal(Codes(np.zeros(0, np.int64)).find(np.array([1, 2])), [-1, -1])


@given(
    st.lists(
        st.lists(st.one_of(st.floats(-9, 9, width=32), st.just(float("nan"))), max_size=4),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=60, deadline=None)
def test_segments_skip_nan_and_leave_empty_rows_unknown(groups):
    row = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    values = np.array([v for g in groups for v in g], np.float32).reshape(-1, 1)
    found = segment(values, row, len(groups), ("mean", "sum", "min", "max"))
    for group, got in zip(groups, found, strict=True):
        known = np.array([v for v in group if v == v], np.float64)
        want = [known.mean(), known.sum(), known.min(), known.max()] if known.size else [np.nan] * 4
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
