"""Splits: nothing leaks, and nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.datasets.splitting import NAMES, Factory, parts, shares, swap
from wildtype.datasets import Dataset, Split
from wildtype.datasets.splits import make_split
from wildtype.errors import SplitError


def gene_sets(dataset: Dataset, rows: np.ndarray) -> list[frozenset[int]]:
    every = dataset.table.sets()
    return [frozenset(every[i]) for i in rows]


def try_split(dataset: Dataset, name: str, seed: int, **fractions: float) -> Split:
    try:
        return make_split(dataset, name, seed, **fractions)
    except SplitError as error:
        if "leaves no" not in str(error):
            raise
        assume(False)
        raise


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 1000), st.integers(8, 30), st.integers(60, 200))
def test_every_row_is_on_one_side_or_counted(
    make_random_dataset: Factory, name: str, seed: int, genes: int, rows: int
) -> None:
    dataset = make_random_dataset(seed, genes, rows, (0, 1, 2, 3))
    split = try_split(dataset, name, seed)
    placed = np.concatenate(list(parts(split).values()))
    assert np.unique(placed).size == placed.size
    assert placed.size + sum(split.dropped.values()) == len(dataset)
    sides = [set(gene_sets(dataset, rows)) for rows in parts(split).values()]
    for one, two in combinations(sides, 2):
        assert not one & two


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(10, 30), st.sampled_from(["one-unseen", "unseen"]))
def test_unseen_genes_are_unseen(make_random_dataset: Factory, seed: int, genes: int, name: str) -> None:
    dataset = make_random_dataset(seed, genes, 150)
    split = try_split(dataset, name, seed)
    names = dataset.organism.genes.names
    seen = set().union(*gene_sets(dataset, split.train))
    for part in ("validation", "test"):
        held = {names.index(gene) for gene in split.held_out_genes[part]}
        assert not held & seen
        for genes_of_row in gene_sets(dataset, parts(split)[part]):
            if name == "one-unseen":
                assert len(genes_of_row) > 1
                assert len(genes_of_row - seen) == 1
                assert genes_of_row - seen <= held
            else:
                assert genes_of_row <= held
    assert not set(split.held_out_genes["validation"]) & set(split.held_out_genes["test"])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(8, 25))
def test_no_test_query_pair_in_training(make_random_dataset: Factory, seed: int, genes: int) -> None:
    dataset = make_random_dataset(seed, genes, 200, (1, 2, 3, 3, 3, 4))
    split = try_split(dataset, "query-pair", seed)
    names = dataset.organism.genes.names
    training = {pair for s in gene_sets(dataset, split.train) for pair in combinations(sorted(s), 2)}
    selecting = {pair for s in gene_sets(dataset, split.validation) for pair in combinations(sorted(s), 2)}
    for part in ("validation", "test"):
        held = {(names.index(a), names.index(b)) for a, b in split.held_out_pairs[part]}
        assert not held & training
        if part == "test":
            assert not held & selecting
        for s in gene_sets(dataset, parts(split)[part]):
            assert len(s) == 3
            assert held & set(combinations(sorted(s), 2))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.05, 0.4), st.floats(0.05, 0.4))
def test_random_is_stratified_by_order(
    make_random_dataset: Factory, seed: int, validation: float, test: float
) -> None:
    dataset = make_random_dataset(seed, 40, 300)
    split = try_split(dataset, "random", seed, validation=validation, test=test)
    every = set(gene_sets(dataset, np.arange(len(dataset))))
    for part, fraction in (("validation", validation), ("test", test)):
        sets = set(gene_sets(dataset, parts(split)[part]))
        assert abs(len(sets) - fraction * len(every)) <= 0.5 + 1e-9
        for order in (1, 2, 3):
            wanted = fraction * sum(len(s) == order for s in every)
            assert abs(sum(len(s) == order for s in sets) - wanted) <= 1 + 1e-9
    assert split.dropped == {}


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_split_whatever_the_order_of_rows(make_random_dataset: Factory, name: str) -> None:
    dataset = make_random_dataset(3, 25, 200)
    mixed = np.random.default_rng(0).permutation(len(dataset))
    other = replace(dataset, table=dataset.table.take(mixed))
    one, two = (make_split(d, name, 5, **shares(name)) for d in (dataset, other))
    for part, rows in parts(one).items():
        assert sorted(mixed[parts(two)[part]]) == rows.tolist()
    assert one.held_out_genes == two.held_out_genes
    assert one.held_out_screens == two.held_out_screens
    different = make_split(dataset, name, 6, **shares(name))
    assert different.validation.tolist() != one.validation.tolist()


@pytest.mark.parametrize(("alias", "name"), [("R", "random"), ("Q", "one-unseen"), ("G", "unseen")])
def test_aliases(make_random_dataset: Factory, alias: str, name: str) -> None:
    dataset = make_random_dataset(0, 20, 200, (2,))
    split = dataset.split(alias, seed=1)
    assert split.name == name
    np.testing.assert_array_equal(split.test, make_split(dataset, name, 1).test)


def test_one_unseen_drops_and_counts(make_dataset: Factory) -> None:
    genes = 10
    sets: list[tuple[int, ...]] = [(g,) for g in range(genes)] + list(combinations(range(genes), 2))
    split = make_split(make_dataset(sets, genes), "Q", 0)
    assert split.dropped == {"single mutant of a held-out gene": 2, "two or more held-out genes": 1}
    assert (split.test.size, split.validation.size) == (8, 8)
    assert split.train.size == 8 + 28


def test_one_unseen_needs_the_other_gene_in_training(make_dataset: Factory) -> None:
    # Gene 11 is only ever combined with gene 0: once 0 is held out, nothing of 11 is left to learn from.
    dataset = make_dataset([(0, 11), *combinations(range(11), 2)], 12)
    counted = 0
    for seed in range(30):
        try:
            split = make_split(dataset, "Q", seed)
        except SplitError:
            continue
        counted += split.dropped.get("another gene has no training row", 0)
        seen = set().union(*gene_sets(dataset, split.train))
        assert all(len(s - seen) == 1 for s in gene_sets(dataset, split.test))
    assert counted > 0


def test_single_mutants_are_test_rows_when_all_genes_are_unseen(make_dataset: Factory) -> None:
    split = make_split(make_dataset([(g,) for g in range(20)], 20), "G", 0)
    assert (split.train.size, split.validation.size, split.test.size) == (13, 3, 4)
    assert split.dropped == {}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(10, 30))
def test_any_unseen_tests_every_row_with_a_held_out_gene(
    make_random_dataset: Factory, seed: int, genes: int
) -> None:
    dataset = make_random_dataset(seed, genes, 150, (0, 1, 2, 3))
    split = try_split(dataset, "any-unseen", seed, validation=0.1, test=0.1)
    names = dataset.organism.genes.names
    tested, selecting = (
        {names.index(gene) for gene in split.held_out_genes[part]} for part in ("test", "validation")
    )
    assert len(tested) == len(selecting) == max(round(0.1 * dataset.measured_genes().size), 1)
    assert not tested & selecting
    sides = [
        "test" if set(row) & tested else "validation" if set(row) & selecting else "train"
        for row in dataset.table.sets()
    ]
    for part, rows in parts(split).items():
        assert rows.tolist() == [i for i, side in enumerate(sides) if side == part]
    assert split.dropped == {}
    seen = set().union(*gene_sets(dataset, split.train))
    assert all(
        row - seen for part in ("validation", "test") for row in gene_sets(dataset, parts(split)[part])
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["one-unseen", "unseen", "any-unseen"]), st.integers(1, 9))
def test_so_many_genes_are_held_out(make_random_dataset: Factory, seed: int, name: str, genes: int) -> None:
    dataset = make_random_dataset(seed, 31, 300)
    split = try_split(dataset, name, seed, validation=0.1, genes=genes)
    measured = dataset.measured_genes().size
    assert len(split.held_out_genes["test"]) == genes
    assert len(split.held_out_genes["validation"]) == round(0.1 * measured)
    assert split.options == {"validation": 0.1, "genes": genes}
    assert Split.from_json(json.loads(json.dumps(split.to_json()))).options == split.options
    # As many of them as a fraction are the same ones.
    same = make_split(dataset, name, seed, validation=0.1, test=genes / measured)
    assert same.held_out_genes == split.held_out_genes
    np.testing.assert_array_equal(same.test, split.test)


def test_test_rows_of_any_unseen_may_have_genes_held_out_for_validation(make_dataset: Factory) -> None:
    dataset = make_dataset(list(combinations(range(20), 2)), 20)
    split = make_split(dataset, "any-unseen", 0, validation=0.2, genes=3)
    names = dataset.organism.genes.names
    held = {part: {names.index(g) for g in split.held_out_genes[part]} for part in ("validation", "test")}
    assert any(row & held["validation"] for row in gene_sets(dataset, split.test))
    assert (split.train.size, split.validation.size, split.test.size) == (13 * 12 // 2, 58, 54)
    # but a validation row with a gene held out for test is a leak
    row = split.test[[bool(s & held["validation"]) for s in gene_sets(dataset, split.test)]][0]
    moved = {"test": split.test[split.test != row], "validation": np.sort(np.append(split.validation, row))}
    with pytest.raises(SplitError, match="leaks: test rows break its rule"):
        replace(split, **moved).check(dataset)
    with pytest.raises(SplitError, match="leaks: validation rows break its rule"):
        replace(split, held_out_genes={"test": split.held_out_genes["test"]}).check(dataset)


def test_query_pair_drops_other_orders_and_counts(make_dataset: Factory) -> None:
    queries = [(0, 1), (2, 3), (4, 5), (6, 7)]
    sets = (
        [(*q, a) for q in queries for a in range(8, 20)] + queries + [(*q, 20, 21) for q in queries] + [(0,)]
    )
    split = make_split(make_dataset(sets, 22), "query-pair", 2)
    assert split.dropped == {
        "double mutant of a held-out query pair": 2,
        "held-out query pair within four or more genes": 2,
    }
    assert (split.train.size, split.validation.size, split.test.size) == (24 + 2 + 2 + 1, 12, 12)
    assert len(split.held_out_pairs["test"]) == 1


def screen_by_definition(genes: frozenset[int], strains: list[set[int]]) -> int | None:
    """The first query strain whose genes a double (of one) or triple (of two) has."""
    fits = (i for i, strain in enumerate(strains) if len(strain) + 1 == len(genes) and strain <= genes)
    return next(fits, None)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(8, 25))
def test_no_test_query_screen_in_training(make_random_dataset: Factory, seed: int, genes: int) -> None:
    dataset = make_random_dataset(seed, genes, 200, (0, 1, 2, 2, 3, 3, 4))
    split = try_split(dataset, "screen", seed)
    names = dataset.organism.genes.names
    assert split.options["by"] == "query"
    strains = [{names.index(gene) for gene in strain} for strain in split.strains]
    sides = {
        part: {screen_by_definition(s, strains) for s in gene_sets(dataset, rows)}
        for part, rows in parts(split).items()
    }
    for part in ("validation", "test"):
        held = {"+".join(split.strains[i]) for i in sides[part] if i is not None}
        assert held == set(split.held_out_screens[part])
        assert None not in sides[part]
        assert not sides[part] & sides["train"]
    assert not sides["validation"] & sides["test"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.02, 0.4), st.floats(0.02, 0.4), st.integers(0, 3))
def test_fractions_of_screens_are_rounded_up_to_whole_ones(
    make_dataset: Factory, seed: int, validation: float, test: float, folds: int
) -> None:
    rng = np.random.default_rng(seed)
    condition = np.sort(np.append(np.arange(40), rng.integers(0, 40, 200)))
    dataset = make_dataset([(g, *range(241, 245)) for g in range(240)], 245, condition=condition)
    options = {"fold": 1, "folds": folds} if folds > 1 else {"test": test}
    split = try_split(dataset, "screen", seed, validation=validation, by="condition", **options)
    sizes = np.bincount(condition)
    asked = {"validation": validation, "test": test} if folds < 2 else {"validation": validation}
    for part, fraction in asked.items():
        held = sizes[np.unique(condition[parts(split)[part]])]
        assert parts(split)[part].size == held.sum() >= fraction * 240 - 1e-9
        # Without one of them it would have been too few, had that one been drawn last.
        assert held.sum() - held.max() < fraction * 240


@pytest.mark.parametrize(("by", "column"), [("condition", "condition"), ("study", "phenotype")])
def test_whole_conditions_and_studies_are_held_out(make_dataset: Factory, by: str, column: str) -> None:
    sets = [tuple(range(start, start + 5)) for start in range(10)] * 6  # every mutant in every condition
    dataset = make_dataset(sets, 20, **{column: np.repeat(np.arange(6), 10)})
    phenotypes = tuple(
        replace(p, source=f"study{i}:growth + study{i}:size") for i, p in enumerate(dataset.phenotypes)
    )
    dataset = replace(dataset, phenotypes=phenotypes)
    split = make_split(dataset, "screen", 0, by=by)
    values = getattr(dataset.table, column)
    assert {part: np.unique(values[rows]).size for part, rows in parts(split).items()} == {
        "train": 4,
        "validation": 1,
        "test": 1,
    }
    assert split.test.size == 10
    held = [*split.held_out_screens["validation"], *split.held_out_screens["test"]]
    assert held == [
        f"{by}{' ' * (by == 'condition')}{values[getattr(split, p)[0]]}" for p in ("validation", "test")
    ]
    assert split.check(dataset)["gene_sets_on_two_sides"] > 0
    with pytest.raises(SplitError, match="leaks: .* rows break its rule"):
        replace(split, **swap(split, 0, 0)).check(dataset)
    if by == "condition":
        assert make_split(dataset, "screen").options["by"] == "condition"


def test_order_tests_the_highest_or_the_asked_order(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(2, 25, 300, (0, 1, 2, 3, 4))
    order = dataset.table.order
    split = make_split(dataset, "order", 0)
    assert split.test.tolist() == np.flatnonzero(order == 4).tolist()
    assert set(order[split.validation]) == {3}
    of_order = len(set(gene_sets(dataset, np.flatnonzero(order == 3))))
    assert len(set(gene_sets(dataset, split.validation))) == round(0.1 * of_order)
    assert split.dropped == {}
    split = make_split(dataset, "order", 0, order=2)
    assert split.test.tolist() == np.flatnonzero(order == 2).tolist()
    assert set(order[split.train]) == {0, 1}
    assert split.dropped == {"more genes than the tested order": int((order > 2).sum())}


def test_genes_are_held_out_among_queries_or_among_arrays(make_dataset: Factory) -> None:
    queries, arrays = range(4), range(4, 40)
    dataset = make_dataset([(q, a) for q in queries for a in arrays], 40)
    names = dataset.organism.genes.names
    left_out = set()
    for fold in range(4):
        split = make_split(dataset, "one-unseen", 3, folds=4, fold=fold, among="query")
        (query,) = split.held_out_genes["test"]
        left_out.add(query)
        assert len(split.test) == 36
        assert split.options["among"] == "query"
        assert query not in {names[g] for g in dataset.table.take(split.train).gene}
    assert left_out == {names[q] for q in queries}
    split = make_split(dataset, "one-unseen", 3, among="array")
    assert not {names[q] for q in queries} & set(
        split.held_out_genes["test"] + split.held_out_genes["validation"]
    )
    assert len(split.test) == 4 * len(split.held_out_genes["test"]) > 0


def test_messages_of_genes_among_queries(make_dataset: Factory) -> None:
    pairs = make_dataset([(0, 1), (0, 2), (0, 3)], 4)
    with pytest.raises(
        SplitError, match="option among=query is for split 'one-unseen', 'unseen', 'any-unseen', not"
    ):
        make_split(pairs, "random", among="query")
    with pytest.raises(SplitError, match="genes among 'baits' are not known; known: query, array"):
        make_split(pairs, "one-unseen", among="baits")
    with pytest.raises(SplitError, match="genes among which it holds out"):
        make_split(pairs, "any-unseen", among="query", genes=1)
    singles = make_dataset([(g,) for g in range(9)], 9)
    with pytest.raises(SplitError, match="so no query strains"):
        make_split(singles, "unseen", among="query")


def test_more_folds_than_genes_are_refused_and_test_none_twice(make_dataset: Factory) -> None:
    dataset = make_dataset([(q, a) for q in range(4) for a in range(4, 40)], 40)
    tested = [make_split(dataset, "one-unseen", 3, folds=6, fold=f, among="query") for f in range(4)]
    assert len({split.held_out_genes["test"] for split in tested}) == 4
    with pytest.raises(SplitError, match="choose fewer folds"):
        make_split(dataset, "one-unseen", 3, folds=6, fold=4, among="query")


def test_messages(make_dataset: Factory) -> None:
    pairs = make_dataset([(0, 1), (2, 3), (4, 5)], 6)
    with pytest.raises(SplitError, match="'X' is not a split; known splits: random"):
        make_split(pairs, "X")
    with pytest.raises(SplitError, match=r"leaves no validation rows of 3.*raise validation"):
        make_split(pairs, "random", validation=0.1, test=0.4)
    with pytest.raises(SplitError, match=r"leaves no .* or split 'random'"):
        make_split(pairs, "G")
    with pytest.raises(SplitError, match="no rows of three genes"):
        make_split(pairs, "query-pair")
    with pytest.raises(SplitError, match="has single mutants only"):
        make_split(make_dataset([(g,) for g in range(20)], 20), "Q")
    with pytest.raises(SplitError, match="must be positive"):
        make_split(pairs, "random", test=0.0)
    with pytest.raises(SplitError, match="sum to less than 1"):
        make_split(pairs, "random", validation=0.5, test=0.6)
    with pytest.raises(SplitError, match="option by=query is for split 'screen', not 'random'"):
        make_split(pairs, "random", by="query")
    with pytest.raises(SplitError, match="option order=2 is for split 'order'"):
        make_split(pairs, "G", order=2)
    with pytest.raises(
        SplitError, match="option genes=4 is for split 'one-unseen', 'unseen', 'any-unseen', not"
    ):
        make_split(pairs, "random", genes=4)
    with pytest.raises(SplitError, match="the number of genes decides"):
        make_split(pairs, "G", genes=2, test=0.5)
    with pytest.raises(SplitError, match="genes=2 and folds=3 both decide how much is tested"):
        make_split(pairs, "G", genes=2, fold=0, folds=3)
    for genes in (0, -1, 1.5):
        with pytest.raises(SplitError, match=f"{genes:g} genes cannot be held out"):
            make_split(pairs, "any-unseen", genes=genes)
    for genes in (5, 6, 400):
        with pytest.raises(SplitError, match=f"of 6 genes: .*test {genes} genes leave none for training"):
            make_split(pairs, "any-unseen", genes=genes)
    with pytest.raises(SplitError, match=r"leaves no .* \(validation 0.1, test 4 genes\)"):
        make_split(make_dataset([tuple(range(6))], 6), "any-unseen", validation=0.1, genes=4)
    with pytest.raises(SplitError, match="order 7 .* cannot be tested: it has rows of order 2"):
        make_split(pairs, "order", order=7)
    with pytest.raises(SplitError, match="all of an order is tested"):
        make_split(pairs, "order", test=0.5)
    with pytest.raises(SplitError, match="by 'plate' is not known; known: query, condition, study"):
        make_split(pairs, "screen", by="plate")
    with pytest.raises(SplitError, match="has 1 screens by condition, expected at least 3"):
        make_split(pairs, "screen", by="condition")


def test_messages_of_folds(make_dataset: Factory) -> None:
    pairs = make_dataset([(g, g + 1) for g in range(30)], 31)
    with pytest.raises(SplitError, match="give both or neither"):
        make_split(pairs, "R", fold=1)
    for fold, folds in ((0, 1), (3, 3), (-1, 3), (0.5, 3)):
        with pytest.raises(SplitError, match="expected at least 2 folds, and a fold from 0"):
            make_split(pairs, "R", fold=fold, folds=folds)
    with pytest.raises(SplitError, match="the folds decide"):
        make_split(pairs, "R", fold=0, folds=2, test=0.1)
    with pytest.raises(SplitError, match="leaves no test rows of 30: choose fewer folds"):
        make_split(pairs, "R", fold=39, folds=40)


def test_orders_apart_train_below_test_above_and_validate_between(make_random_dataset: Factory) -> None:
    dataset = make_random_dataset(1, 30, 240)
    order = dataset.table.order
    split = make_split(dataset, "order", 0, order=3, up_to=1)
    assert set(order[split.train]) == {1}
    assert set(order[split.validation]) == {2}
    assert split.test.tolist() == np.flatnonzero(order >= 3).tolist()
    assert not split.dropped
    assert Split.from_json(split.to_json()).check(dataset)["rows"]["test"] == split.test.size
    moved = replace(
        split, train=np.union1d(split.train, split.validation[:1]), validation=split.validation[1:]
    )
    with pytest.raises(SplitError, match="leaks"):
        moved.check(dataset)
    with pytest.raises(SplitError, match="none in between"):
        make_split(dataset, "order", 0, order=3, up_to=2)
    with pytest.raises(SplitError, match="leave folds and validation out"):
        make_split(dataset, "order", 0, order=3, up_to=1, folds=2, fold=0)
    with pytest.raises(SplitError, match="'order'"):
        make_split(dataset, "random", 0, up_to=1)
