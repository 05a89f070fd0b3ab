from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.codes import bits, joint, ragged


@given(st.data(), st.sampled_from([4, 2**31, 2**62]))
def test_joint_codes_are_ordered_as_the_columns_are(data: st.DataObject, size: int) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.sampled_from([0, 1, size - 1])] * 3), min_size=1, max_size=9))
    columns = [(np.array(column, np.int64), size) for column in zip(*rows, strict=True)]
    codes = joint(columns).tolist()
    for a, b in itertools.pairwise(sorted(zip(rows, codes, strict=True))):
        assert (a[0] < b[0]) == (a[1] < b[1])
        assert (a[0] == b[0]) == (a[1] == b[1])


def test_bits_tell_zeros_apart_and_no_two_nans() -> None:
    odd = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    spelled = bits(np.array([math.nan, odd, 0.0, -0.0])).tolist()
    assert spelled[0] == spelled[1]
    assert len(set(spelled)) == 3


@given(st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6), st.data())
def test_ragged_rows_in_any_order(rows: list[list[int]], data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=8)) if rows else []
    flat = np.array([entry for row in rows for entry in row], np.int64)
    counts = np.array([len(row) for row in rows], np.int64)
    starts = np.cumsum(counts) - counts
    at, offsets = ragged(starts[picked], counts[picked])
    spans = [flat[at][a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    assert spans == [rows[i] for i in picked]
