from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.mutants import MutantTable
from wildtype.mutants.identity import (
    MutantIndex,
    SetIndex,
    mean_of_mutants,
    mutant_id,
    mutant_keys,
    perturbation_id,
    set_keys,
)

SETS = st.lists(
    st.sets(st.integers(0, 300), max_size=3).map(lambda s: tuple(sorted(s))), min_size=1, max_size=25
)


SMALL = st.lists(st.lists(st.integers(0, 11), max_size=5, unique=True), min_size=1, max_size=12)


@given(SETS, SETS)
@settings(deadline=None)
def test_find_equals_a_dictionary(known: list[tuple[int, ...]], asked: list[tuple[int, ...]]) -> None:
    first: dict[tuple[int, ...], int] = {}
    for row, genes in enumerate(known):
        first.setdefault(genes, row)
    found = SetIndex(MutantTable.from_sets(known)).find(MutantTable.from_sets(asked + known))
    assert found.tolist() == [first.get(genes, -1) for genes in asked + known]


@given(SMALL, st.data())
@settings(max_examples=60, deadline=None)
def test_keys_are_equal_exactly_where_sets_and_conditions_are(sets, data):
    condition = data.draw(st.lists(st.integers(0, 2), min_size=len(sets), max_size=len(sets)))
    table = MutantTable.from_sets(sets, condition=condition)
    whole, less = set_keys(table, 12)
    members = [(frozenset(s), c) for s, c in zip(sets, condition, strict=True)]
    subsets = [(frozenset(s) - {g}, c) for s, c in zip(table.sets(), condition, strict=True) for g in s]
    keys, things = [*whole.tolist(), *less.tolist()], [*members, *subsets]
    for (a, x), (b, y) in itertools.combinations(zip(keys, things, strict=True), 2):
        assert (a == b) == (x == y)


@given(SMALL, st.data())
@settings(max_examples=60, deadline=None)
def test_numbers_and_keys_of_mutants_are_equal_where_the_mutants_are(sets, data):
    total = sum(map(len, sets))
    kinds = np.array(data.draw(st.lists(st.sampled_from([0, 1]), min_size=total, max_size=total)), np.uint8)
    doses = data.draw(st.lists(st.sampled_from([np.nan, 1.0, 2.0]), min_size=total, max_size=total))
    condition = data.draw(st.lists(st.integers(0, 1), min_size=len(sets), max_size=len(sets)))
    table = MutantTable.from_sets(sets, kind=kinds, dose=doses, condition=condition)
    mutants, states = [], []
    for row, (a, b) in enumerate(itertools.pairwise(table.offsets.tolist())):
        genes, done, dose = table.gene[a:b].tolist(), table.kind[a:b].tolist(), map(str, table.dose[a:b])
        mutants.append(tuple(zip(genes, done, dose, strict=True)))
        states.append((tuple(zip(genes, done, strict=True)), condition[row]))
    number, key = mutant_id(table), mutant_keys(table, 12)
    for i, j in itertools.combinations(range(len(sets)), 2):
        assert (number[i] == number[j]) == (mutants[i] == mutants[j])
        assert (key[i] == key[j]) == (states[i] == states[j])


def test_perturbations_without_a_dose_are_equal() -> None:
    gene, kind = np.array([1, 1, 1, 0]), np.zeros(4, np.uint8)
    assert perturbation_id(gene, kind, None).tolist() == [1, 1, 1, 0]
    assert perturbation_id(gene, kind, np.array([np.nan, 2.0, np.nan, 2.0])).tolist() == [2, 1, 2, 0]


def test_sets_with_unknown_genes_are_not_found_and_long_ones_are() -> None:
    # Three genes are known: as numbers of base 3, {0, 5} is {1, 2}.
    index = SetIndex(MutantTable.from_sets([[0, 1], [1, 2], [2], [0, 1, 2]]))
    asked = MutantTable.from_sets([[0, 1], [0, 4], [1, 3], [0, 5], [3], [2], [], [0, 1, 2], [0, 1, 2, 3]])
    assert index.find(asked).tolist() == [0, -1, -1, -1, -1, 2, -1, 3, -1]
    # Of sets of eight among a thousand genes there are more than numbers of 63 bits.
    rng = np.random.default_rng(0)
    long = [rng.choice(1000, 8, replace=False) for _ in range(50)]
    index = SetIndex(MutantTable.from_sets([*long, [999]]))
    assert index.find(MutantTable.from_sets([*long[::-1], [*range(8)]])).tolist() == [*range(49, -1, -1), -1]


def test_mutants_are_averaged_over_rows_of_equal_genes_kinds_and_condition() -> None:
    sets, kinds, conditions = (
        [[0, 1], [0, 1], [0, 1], [0, 1], [2], []],
        [0, 0, 0, 0, 0, 4, 0, 0, 1],
        [0, 0, 0, 1, 0, 0],
    )
    known = MutantTable.from_sets(
        sets, kind=kinds, condition=conditions, value=[1, 2, 4, 8, 16, 32], sd=[3, 4, np.nan, 1, 1, 1]
    )
    asked = MutantTable.from_sets(
        [[0, 1], [1, 0], [0, 1], [2], [2], [], [3]],
        kind=[0, 0, 0, 0, 0, 4, 1, 0, 0], condition=[0, 1, 0, 0, 0, 0, 0],
    )  # fmt: skip
    value, sd = mean_of_mutants(known, asked)
    np.testing.assert_array_equal(value, [1.5, 8, 4, 16, np.nan, 32, np.nan])
    np.testing.assert_array_equal(sd, [2.5, 1, np.nan, 1, np.nan, 1, np.nan])
    nothing = known.take([])
    assert np.isnan(mean_of_mutants(nothing, asked)[0]).all()
    assert mean_of_mutants(known, nothing)[0].size == 0


def test_mutants_are_found_by_genes_kinds_and_condition() -> None:
    known = MutantTable.from_sets([[0, 1], [2], []], kind=[0, 4, 1], condition=[0, 1, 0])
    asked = MutantTable.from_sets(
        [[0, 1], [0, 1], [0, 1], [2], [2], [], [0]],
        kind=[0, 4, 4, 0, 0, 4, 1, 1, 0], condition=[0, 0, 1, 0, 1, 0, 0],
    )  # fmt: skip
    assert MutantIndex(known, 3).holds(asked).tolist() == [True, False, False, False, True, True, False]
    assert not MutantIndex(known.take([]), 3).holds(asked).any()
