"""Closed forms of triple mutants against a plain loop, with missing parts, kinds, doses and conditions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.datasets.closed_forms import applies, closed_form, parts_of
from wildtype.datasets.interactions import tau
from wildtype.errors import ConfigError, ShapeError
from wildtype.mutants import Kind, MutantTable

N = 7
STATE = [(Kind.ABSENT, np.nan), (Kind.REDUCED, 0.5), (Kind.REDUCED, 0.25)]


def random_table(draw: np.random.Generator, orders: list[int]) -> MutantTable:
    sets = [np.sort(draw.choice(N, k, replace=False)) for k in orders]
    states = [STATE[s] for s in draw.integers(0, 3, sum(orders))]
    return MutantTable.from_sets(
        sets,
        kind=np.array([k for k, _ in states], np.uint8),
        dose=np.array([d for _, d in states], np.float32),
        condition=draw.integers(0, 2, len(orders)),
        value=draw.random(len(orders)),
    )


def rows(table: MutantTable) -> list[tuple[tuple[int, ...], ...]]:
    assert table.dose is not None
    state = list(
        zip(table.gene.tolist(), table.kind.tolist(), np.nan_to_num(table.dose).tolist(), strict=True)
    )
    return [tuple(state[a:b]) for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 4), max_size=60), st.integers(1, 12), st.booleans())
def test_parts_and_forms_equal_a_plain_loop(seed: int, orders: list[int], triples: int, known: bool) -> None:
    draw = np.random.default_rng(seed)
    measured, asked = random_table(draw, orders), random_table(draw, [3] * triples)
    single = np.where(draw.random(N) < 0.5, np.nan, draw.random(N)).astype(np.float32) if known else None
    seen: dict[object, list[float]] = {}
    for row, condition, value in zip(rows(measured), measured.condition, measured.value, strict=True):
        seen.setdefault((condition, row), []).append(float(value))
    parts = parts_of(asked, measured, single)
    lost = [0, 0]
    for at, (row, condition) in enumerate(zip(rows(asked), asked.condition, strict=True)):
        alone = []
        for state in row:
            values = seen.get((condition, (state,)))
            fallback = np.nan if single is None else float(single[state[0]])
            lost[1] += values is None and np.isnan(fallback)
            alone.append(np.mean(values) if values else 1.0 if np.isnan(fallback) else fallback)
        pairs = []
        for i, j in combinations(range(3), 2):
            values = seen.get((condition, (row[i], row[j])))
            lost[0] += values is None
            pairs.append(np.mean(values) if values else alone[i] * alone[j])
        np.testing.assert_allclose(parts.singles[:, at], alone)
        np.testing.assert_allclose(parts.pairs[:, at], pairs)
        assert closed_form("min_pairs", "fitness", parts)[at] == pytest.approx(min(pairs))
        assert closed_form("min_pairs", "tau", parts)[at] == pytest.approx(tau(min(pairs), *pairs, *alone))
        without = closed_form("tau_zero", "fitness", parts)[at]
        assert tau(without, *pairs, *alone) == pytest.approx(0, abs=1e-12)
        assert closed_form("tau_zero", "tau", parts)[at] == 0
    assert [parts.missing_pairs, parts.missing_singles] == lost


def test_measured_triples_and_labels_change_nothing() -> None:
    draw = np.random.default_rng(0)
    measured, asked = random_table(draw, [1, 2] * 40), random_table(draw, [3] * 20)
    plain = parts_of(asked, measured)
    more = parts_of(asked, MutantTable.concatenate([measured, asked]))
    np.testing.assert_array_equal(plain.pairs, more.pairs)
    np.testing.assert_array_equal(plain.singles, more.singles)
    assert plain.missing_pairs == more.missing_pairs > 0


def test_where_they_apply() -> None:
    triples = MutantTable.from_matrix([[0, 1, 2]])
    assert applies("tau", triples)
    assert applies("fitness", triples)
    assert not applies("epsilon", triples)
    assert not applies("fitness", MutantTable.from_sets([[0, 1, 2], [0, 1]]))
    assert not applies("tau", triples.take([]))
    parts = parts_of(triples, triples)
    with pytest.raises(ConfigError, match="there is no closed form 'max_pairs'; known: tau_zero, min_pairs"):
        closed_form("max_pairs", "tau", parts)
    with pytest.raises(ConfigError, match="gives fitness and tau, not 'epsilon'"):
        closed_form("min_pairs", "epsilon", parts)
    with pytest.raises(ShapeError):
        parts_of(MutantTable.from_matrix([[0, 1]]), triples)
