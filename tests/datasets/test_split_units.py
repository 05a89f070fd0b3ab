from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wildtype.datasets import Dataset
from wildtype.datasets.splits import held_out_units

Factory = Callable[..., Dataset]


@pytest.fixture(scope="module")
def dataset(make_dataset: Factory) -> Dataset:
    """Ten double-mutant queries, each crossed with twelve arrays."""
    queries = [(2 * i, 2 * i + 1) for i in range(10)]
    return make_dataset([(*query, array) for query in queries for array in range(20, 32)], 32)


def test_rows_of_one_held_out_query_pair_are_one_unit(dataset: Dataset) -> None:
    split = dataset.split("query-pair", seed=0, validation=0.3, test=0.3)
    for part in ("validation", "test"):
        unit = held_out_units(dataset, split, part)
        pairs = split.held_out_pairs[part]
        names = dataset.organism.genes.names
        table = dataset.table.take(getattr(split, part))
        for number, genes in zip(unit.tolist(), table.sets(), strict=True):
            assert set(pairs[number]) <= {names[g] for g in genes}
        assert set(unit.tolist()) == set(range(len(pairs)))


def test_rows_of_one_held_out_screen_are_one_unit(dataset: Dataset) -> None:
    split = dataset.split("screen", seed=0, by="query", validation=0.3, test=0.3)
    unit = held_out_units(dataset, split, "test")
    assert (unit >= 0).all()
    assert np.unique(unit).size == len(split.held_out_screens["test"])


def test_other_splits_have_none(dataset: Dataset) -> None:
    assert (held_out_units(dataset, dataset.split("random"), "validation") == -1).all()
