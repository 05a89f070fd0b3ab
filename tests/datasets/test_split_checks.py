"""The record of a split, and its leak check, which can fail."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.datasets.splitting import NAMES, Factory, parts, shares, swap
from wildtype.datasets import Split
from wildtype.datasets.splits import make_split
from wildtype.errors import SplitError


@pytest.mark.parametrize("name", NAMES)
def test_json_round_trip(make_random_dataset: Factory, name: str) -> None:
    dataset = make_random_dataset(1, 25, 200)
    split = make_split(dataset, name, 4, **shares(name))
    again = Split.from_json(json.loads(json.dumps(split.to_json())))
    for part, rows in parts(again).items():
        np.testing.assert_array_equal(rows, parts(split)[part])
        assert rows.dtype == np.int64
    assert again.to_json() == split.to_json()
    assert again.check(dataset) == split.check(dataset)


def test_check_reports_what_it_found(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(1, 25, 200)
    split = make_split(dataset, "Q", 0)
    report = split.check(dataset)
    assert report["rows"]["dropped"] == sum(split.dropped.values())
    assert set(report["unseen_genes_per_row"]["test"]) == {"1"}
    assert report["gene_sets_on_two_sides"] == 0


@pytest.mark.parametrize("name", ["one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order"])
def test_check_finds_a_planted_leak(make_random_dataset: Factory, name: str) -> None:
    dataset = make_random_dataset(1, 25, 200)
    split = make_split(dataset, name, 0, **shares(name))
    with pytest.raises(SplitError, match="leaks"):
        replace(split, **swap(split, 0, 0)).check(dataset)


@pytest.mark.parametrize("name", ["one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order"])
@pytest.mark.parametrize(("source", "target"), [("test", "train"), ("train", "test"), ("test", "validation")])
def test_check_finds_a_row_on_the_wrong_side(
    make_random_dataset: Factory, name: str, source: str, target: str
) -> None:
    dataset = make_random_dataset(1, 25, 200)
    split = make_split(dataset, name, 0, **shares(name))
    alone = np.bincount(dataset.table.set_id)[dataset.table.set_id] == 1  # else its gene set tells at once
    rows = parts(split)[source]
    row = rows[alone[rows]][-1]
    moved = {source: rows[rows != row], target: np.sort(np.append(parts(split)[target], row))}
    with pytest.raises(SplitError, match=r"leaks: \w+ rows break its rule"):
        replace(split, **moved).check(dataset)


def test_check_finds_a_gene_set_on_two_sides(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(20)] * 2, 21, condition=np.repeat([0, 1], 20))
    split = make_split(dataset, "R", 0)
    with pytest.raises(SplitError, match="gene sets are on two sides"):
        replace(split, **swap(split, 0, 0)).check(dataset)
    twice = np.sort(np.append(split.train, split.test[0]))
    with pytest.raises(SplitError, match="a row is on two sides"):
        replace(split, train=twice).check(dataset)


def test_check_finds_rows_that_vanish(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(30)], 31)
    split = make_split(dataset, "R", 0)
    with pytest.raises(SplitError, match="counted dropped rows"):
        replace(split, train=split.train[1:]).check(dataset)


def test_check_refuses_other_data(make_dataset: Factory) -> None:
    sets = [(g, g + 1) for g in range(30)]
    dataset = make_dataset(sets, 31)
    split = make_split(dataset, "R", 0)
    relabelled = make_dataset(sets, 31, value=np.ones(30))
    with pytest.raises(SplitError, match="another version of dataset 'toy'"):
        split.check(relabelled)
    reordered = replace(dataset, table=dataset.table.take(np.arange(30)[::-1]))
    assert reordered.sha256 == dataset.sha256
    with pytest.raises(SplitError, match="another version"):
        split.check(reordered)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": "tvx"},
        {"rows": 3},
        {"name": "other"},
        {"dropped": None},
        {"seed": "a"},
        {"name": "screen"},
        {"name": "order"},
        {"options": {"test": None}},
        {"strains": 3},
    ],
)
def test_damaged_records_are_refused(make_dataset: Factory, change: dict[str, Any]) -> None:
    record = make_split(make_dataset([(g, g + 1) for g in range(30)], 31), "R").to_json()
    with pytest.raises(SplitError):
        Split.from_json(record | change)
    with pytest.raises(SplitError, match="not a stored split"):
        Split.from_json({})
