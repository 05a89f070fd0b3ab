from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.inference.screening.designs import Combinations, Crossed
from wildtype.inference.screening.stream import Best


@given(st.integers(1, 9), st.integers(1, 4))
def test_combinations_are_all_sets_in_order(c: int, k: int) -> None:
    if c < k:
        with pytest.raises(ConfigError, match=f"there are {c} genes to choose from, and a mutant takes {k}"):
            Combinations(c, k)
        return
    design = Combinations(c, k)
    members, new = design.members(np.arange(design.count))
    assert list(map(tuple, members.tolist())) == list(combinations(range(c), k))
    assert new.all()


def test_the_last_of_very_many_sets() -> None:
    design = Combinations(20_000, 4)
    members, _ = design.members(np.array([0, design.count - 1]))
    assert members.tolist() == [[0, 1, 2, 3], [19_996, 19_997, 19_998, 19_999]]


def test_too_many_to_count_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than can be counted"):
        Combinations(20_000, 6)


@given(st.data())
def test_crossed_holds_every_set_once(data: st.DataObject) -> None:
    c, size = 7, data.draw(st.integers(1, 2))
    every = list(combinations(range(c), size))
    queries = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    candidates = data.draw(st.lists(st.integers(0, c - 1), min_size=1, max_size=c, unique=True))
    design = Crossed(np.array(queries), np.array(candidates))
    members, new = design.members(np.arange(design.count))
    found = [tuple(row) for row in members[new].tolist() if len(set(row)) == size + 1]
    expected = {tuple(sorted({*q, a})) for q in queries for a in candidates if a not in q}
    assert sorted(tuple(sorted(one)) for one in found) == sorted(expected)
    assert design.order == size + 1
    assert design.count == len(queries) * len(candidates)


@given(st.data())
def test_best_of_pieces_is_best_of_all(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("nan")]), max_size=60))
    keep, direction = data.draw(st.integers(1, 8)), data.draw(st.sampled_from(["low", "high"]))
    numbers = np.arange(len(values))
    best = Best(keep, direction)
    order = data.draw(st.permutations(range(0, len(values), 5)))
    for start in order:
        best.add(np.array(values[start : start + 5]), numbers[start : start + 5])
    sign = 1 if direction == "low" else -1
    expected = sorted((sign * x, i) for i, x in enumerate(values) if x == x)[:keep]
    assert best.number.tolist() == [i for _, i in expected]
    assert (sign * best.value).tolist() == [x for x, _ in expected]
