"""Background of calls: from the grid, never a listed set, seeded, counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.datasets import Dataset, Phenotype
from wildtype.datasets.background import ASSUMED, Background, add_background, grid
from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Organism

N = 30
QUERIES = ((0, 1), (2, 3), (0, 4))


def listed(seed: int = 0, share: float = 0.5) -> Dataset:
    """Calls of three query pairs and their control queries with arrays 10 … 29, a share of each."""
    rng = np.random.default_rng(seed)
    triples = [(*q, a) for q in QUERIES for a in range(10, N) if rng.random() < share or a < 13]
    pairs = [(q, a) for q in range(5) for a in range(10, N) if rng.random() < share]
    sets = [*triples, *pairs]
    kinds = [Kind.REDUCED if g == 12 else Kind.ABSENT for genes in sets for g in genes]
    table = MutantTable.from_sets(sets, kind=np.array(kinds), value=np.ones(len(sets)))
    organism = Organism("toy", GeneIndex([f"G{i:02d}" for i in range(N)], organism="toy"))
    return Dataset("toy-calls", organism, table, (Phenotype("call", min_order=2),), targets=("call",))


def sets_of(dataset: Dataset, value: float) -> list[frozenset[int]]:
    rows = np.flatnonzero(dataset.table.value == value)
    return [frozenset(genes) for genes in dataset.table.take(rows).sets()]


def test_the_grid_is_every_query_with_every_array() -> None:
    found = grid(listed(share=1.0).table)
    arrays = range(10, N)
    assert {frozenset(s) for s in found[3].tolist()} == {frozenset({*q, a}) for q in QUERIES for a in arrays}
    assert {frozenset(s) for s in found[2].tolist()} == {frozenset({q, a}) for q in range(5) for a in arrays}


@settings(max_examples=15)
@given(st.integers(0, 50), st.integers(0, 3), st.integers(1, 4))
def test_drawn_sets_are_of_the_grid_and_not_listed(seed: int, twos: int, threes: int) -> None:
    dataset = listed(seed, 0.3)
    full = add_background(dataset, Background({2: twos, 3: threes}, seed))
    drawn, calls = sets_of(full, 0.0), set(sets_of(dataset, 1.0))
    every = {frozenset(s) for sets in grid(dataset.table).values() for s in sets.tolist()}
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) <= every - calls
    for order, per_call in ((2, twos), (3, threes)):
        of_order = sum(len(s) == order for s in calls)
        free = sum(len(s) == order for s in every - calls)
        assert sum(len(s) == order for s in drawn) == min(per_call * of_order, free)
    assert sets_of(full, 1.0) == sets_of(dataset, 1.0)


def test_the_draw_follows_from_seed_and_sets_alone_and_is_counted() -> None:
    dataset = listed(share=0.4)
    one = add_background(dataset, Background(seed=1))
    turned = replace(dataset, table=dataset.table.take(np.arange(len(dataset))[::-1]))
    assert set(sets_of(add_background(turned, Background(seed=1)), 0.0)) == set(sets_of(one, 0.0))
    assert set(sets_of(add_background(dataset, Background(seed=2)), 0.0)) != set(sets_of(one, 0.0))
    added = len(one) - len(dataset)
    assert one.stages[-1].added == {ASSUMED: added}
    assert f"{added:,} rows are background, drawn with seed 1" in one.notes[0]
    assert "assumed to be negative, not measured" in one.notes[0]
    kinds = one.table.kind[one.table.gene == 12]
    assert (kinds == Kind.REDUCED).all()  # as the listed rows have it


def test_what_is_no_list_of_calls_is_refused() -> None:
    dataset = listed()
    two = replace(dataset, conditions=("a", "b"))
    with pytest.raises(DatasetError, match="one phenotype in one condition"):
        add_background(two, Background())
    pairs = dataset.table.take(np.flatnonzero(dataset.table.order == 2))
    with pytest.raises(DatasetError, match="there are none"):
        add_background(replace(dataset, table=pairs), Background())
    single = MutantTable.concatenate([dataset.table, MutantTable.from_sets([[0]], value=[1.0])])
    with pytest.raises(DatasetError, match="two and three genes"):
        add_background(replace(dataset, table=single), Background())
