"""Folds: the rows that a kind of split can test are tested as often as its definition says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wildtype.datasets import Dataset, Split
from wildtype.datasets.draws import screens
from wildtype.datasets.folds import make_folds, times_tested
from wildtype.errors import SplitError

Factory = Callable[..., Dataset]


def try_folds(dataset: Dataset, name: str, folds: int, seed: int, **options: object) -> tuple[Split, ...]:
    try:
        return make_folds(dataset, name, folds, seed, **options)
    except SplitError as error:
        if "leaves no" not in str(error):
            raise
        assume(False)
        raise


def fold_of_gene(dataset: Dataset, splits: tuple[Split, ...]) -> dict[int, int]:
    """Return the fold in which each gene is held out, every gene once."""
    names = dataset.organism.genes.names
    pairs = [(names.index(g), i) for i, split in enumerate(splits) for g in split.held_out_genes["test"]]
    assert sorted(g for g, _ in pairs) == dataset.measured_genes().tolist()
    return dict(pairs)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 7))
def test_random_tests_every_row_once_and_each_order_evenly(
    make_random_dataset: Factory, seed: int, folds: int
) -> None:
    dataset = make_random_dataset(seed, 30, 300, (0, 1, 2, 3))
    splits = try_folds(dataset, "R", folds, seed)
    assert (times_tested(splits) == 1).all()
    table = dataset.table
    for order in (1, 2, 3):
        sets = [np.unique(table.set_id[s.test[table.order[s.test] == order]]).size for s in splits]
        assert max(sets) - min(sets) <= 1
    assert len({split.validation.tobytes() for split in splits}) == folds
    assert all(split.dropped == {} for split in splits)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5))
def test_one_unseen_tests_a_row_once_per_gene_at_most(
    make_random_dataset: Factory, seed: int, folds: int
) -> None:
    dataset = make_random_dataset(seed, 30, 300)
    splits = try_folds(dataset, "Q", folds, seed)
    fold = fold_of_gene(dataset, splits)
    sets = dataset.table.sets()
    for i, split in enumerate(splits):
        names = dataset.organism.genes.names
        selecting = {names.index(gene) for gene in split.held_out_genes["validation"]}
        seen = {gene for row in split.train for gene in sets[row]}
        tested = set(split.test.tolist())
        for row, genes in enumerate(sets):
            mine = [gene for gene in genes if fold[gene] == i]
            others = set(genes) - set(mine)
            fits = len(mine) == 1 and len(genes) > 1 and not others & selecting and others <= seen
            assert (row in tested) == fits


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5))
def test_unseen_tests_rows_within_one_fold_once(make_random_dataset: Factory, seed: int, folds: int) -> None:
    dataset = make_random_dataset(seed, 12, 300)
    splits = try_folds(dataset, "G", folds, seed)
    fold = fold_of_gene(dataset, splits)
    within = [len({fold[g] for g in genes}) == 1 for genes in dataset.table.sets()]
    assert times_tested(splits).tolist() == [int(one) for one in within]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5))
def test_any_unseen_tests_a_row_in_every_fold_of_its_genes(
    make_random_dataset: Factory, seed: int, folds: int
) -> None:
    dataset = make_random_dataset(seed, 30, 300, (0, 1, 2, 3))
    splits = try_folds(dataset, "any-unseen", folds, seed)
    fold = fold_of_gene(dataset, splits)
    expected = [len({fold[g] for g in genes}) for genes in dataset.table.sets()]
    assert times_tested(splits).tolist() == expected


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5))
def test_query_pair_tests_every_triple_once(make_random_dataset: Factory, seed: int, folds: int) -> None:
    dataset = make_random_dataset(seed, 12, 200, (1, 2, 3, 3, 3, 4))
    splits = try_folds(dataset, "query-pair", folds, seed)
    assert times_tested(splits).tolist() == (dataset.table.order == 3).astype(int).tolist()
    held = [pair for split in splits for pair in split.held_out_pairs["test"]]
    assert len(held) == len(set(held))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5))
def test_screen_tests_every_row_of_a_screen_once(make_random_dataset: Factory, seed: int, folds: int) -> None:
    dataset = make_random_dataset(seed, 15, 200, (0, 1, 2, 3, 4))
    splits = try_folds(dataset, "screen", folds, seed, by="query")
    _, screen = screens(dataset, "query", splits[0].strains)
    assert times_tested(splits).tolist() == (screen >= 0).astype(int).tolist()


def test_conditions_are_tested_once(make_dataset: Factory) -> None:
    sets = [tuple(range(start, start + 5)) for start in range(10)] * 8
    dataset = make_dataset(sets, 20, condition=np.repeat(np.arange(8), 10))
    splits = dataset.folds("screen", 4, 1, by="condition")
    assert [split.test.size for split in splits] == [20] * 4
    assert (times_tested(splits) == 1).all()


def test_order_tests_every_row_of_the_order_once(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(1, 25, 300, (1, 2, 3, 4))
    splits = make_folds(dataset, "order", 4, 0, order=3)
    assert times_tested(splits).tolist() == (dataset.table.order == 3).astype(int).tolist()
    for split in splits:
        np.testing.assert_array_equal(split.train, splits[0].train)
        np.testing.assert_array_equal(split.validation, splits[0].validation)
        assert set(split.dropped) == {"more genes than the tested order", "tested in another fold"}


@pytest.mark.parametrize(
    "name", ["random", "one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order"]
)
def test_a_fold_is_a_split_of_its_own(make_random_dataset: Factory, name: str) -> None:
    dataset = make_random_dataset(4, 25, 300)
    splits = dataset.folds(name, 3, 5, validation=0.2)
    assert [split.options["fold"] for split in splits] == [0, 1, 2]
    alone = dataset.split(name, 5, fold=1, folds=3, validation=0.2)
    assert alone.to_json() == splits[1].to_json()
    assert Split.from_json(alone.to_json()).to_json() == alone.to_json()


def test_messages(make_dataset: Factory) -> None:
    dataset = make_dataset([(g, g + 1) for g in range(30)], 31)
    with pytest.raises(SplitError, match="expected at least 2 folds"):
        make_folds(dataset, "R", 1)
    with pytest.raises(SplitError, match="'X' is not a split"):
        make_folds(dataset, "X", 3)
