"""Subsets for scaling studies: exact, nested, in proportion, whatever the order of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.datasets import Dataset
from wildtype.datasets.subsets import subset
from wildtype.errors import SplitError

Factory = Callable[..., Dataset]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_exact_nested_and_in_proportion(make_random_dataset: Factory, seed: int, data: st.DataObject) -> None:
    dataset = make_random_dataset(seed % 7, 30, 240)
    rows = np.sort(np.random.default_rng(seed).permutation(len(dataset))[:200])
    small, large = sorted(data.draw(st.tuples(st.integers(1, 200), st.integers(1, 200))))
    one, two = (subset(dataset, rows, size=size, seed=seed) for size in (small, large))
    assert one.size == small
    assert set(one) <= set(two) <= set(rows)
    assert (np.diff(two) > 0).all()
    t = dataset.table
    strata = 3 * t.phenotype + t.order
    for stratum in np.unique(strata[rows]):
        wanted = large * (strata[rows] == stratum).mean()
        assert abs((strata[two] == stratum).sum() - wanted) < 1.5


def test_fractions_and_seeds(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(1, 30, 240)
    rows = np.arange(100, 250)
    half = subset(dataset, rows, fraction=0.5, seed=3)
    np.testing.assert_array_equal(half, subset(dataset, rows[::-1], size=75, seed=3))
    assert half.tolist() != subset(dataset, rows, fraction=0.5, seed=4).tolist()
    np.testing.assert_array_equal(subset(dataset, rows, fraction=1.0), rows)


def test_the_order_of_rows_does_not_matter(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(2, 30, 240)
    dataset = replace(dataset, table=replace(dataset.table, value=np.zeros(len(dataset), np.float32)))
    mixed = np.random.default_rng(0).permutation(len(dataset))
    other = replace(dataset, table=dataset.table.take(mixed))
    one, two = (
        d.to_pandas().iloc[subset(d, np.arange(len(d)), size=70)].astype(str) for d in (dataset, other)
    )
    assert sorted(map(tuple, one.to_numpy())) == sorted(map(tuple, two.to_numpy()))


def test_a_small_stratum_enters_when_its_share_rounds_to_a_row(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(297)] + [(g,) for g in range(3)], 298)
    singles = {
        size: int((dataset.table.order[subset(dataset, np.arange(300), size=size)] == 1).sum())
        for size in (1, 45, 55, 145, 155, 245, 255, 300)
    }
    assert list(singles.values()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_messages(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(2, 30, 40)
    for options in ({}, {"size": 3, "fraction": 0.5}):
        with pytest.raises(SplitError, match="give one of the two"):
            subset(dataset, [1, 2, 3], **options)
    for options in ({"size": 4}, {"size": 0}, {"fraction": 1.1}, {"fraction": 0.1}, {"fraction": np.nan}):
        with pytest.raises(SplitError, match="of 3 rows: expected between 1 row and all of them"):
            subset(dataset, [1, 2, 3], **options)
    for rows in ([1, 1], [-1], [50]):
        with pytest.raises(SplitError, match="must be different row numbers within 0 … 49"):
            subset(dataset, rows, size=1)
