"""Interactions against their definitions, written out subset by subset."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wildtype.datasets.interactions import (
    epsilon,
    fitness_from_epsilon,
    fitness_from_interaction,
    fitness_from_tau,
    interaction,
    interactions,
    tau,
)
from wildtype.errors import ConfigError, DatasetError, ShapeError

FITNESS = st.floats(0.0, 1.5, allow_subnormal=False)


@st.composite
def subset_fitness(draw: st.DrawFn, low: int = 1, high: int = 5) -> tuple[int, np.ndarray]:
    k = draw(st.integers(low, high))
    rows = draw(st.integers(1, 3))
    f = draw(hnp.arrays(np.float64, (rows, 1 << k), elements=FITNESS))
    f[:, 0] = 1.0
    return k, f


def bits(genes: tuple[int, ...]) -> int:
    return sum(1 << g for g in genes)


def moebius_by_definition(f: np.ndarray, genes: tuple[int, ...]) -> np.ndarray:
    total = np.zeros(len(f))
    for size in range(len(genes) + 1):
        for inside in combinations(genes, size):
            outside = [g for g in genes if g not in inside]
            singles = np.prod([f[:, 1 << g] for g in outside], axis=0) if outside else 1.0
            total += (-1.0) ** len(outside) * f[:, bits(inside)] * singles
    return total


def partitions(genes: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    if not genes:
        return [[]]
    out = []
    for size in range(len(genes)):
        for others in combinations(genes[1:], size):
            block = (genes[0], *others)
            rest = tuple(g for g in genes if g not in block)
            out += [[block, *tail] for tail in partitions(rest)]
    return out


def cumulant_by_definition(f: np.ndarray, genes: tuple[int, ...]) -> np.ndarray:
    total = np.zeros(len(f))
    for blocks in partitions(genes):
        sign = (-1.0) ** (len(blocks) - 1) * float(np.prod(np.arange(1, len(blocks))))
        total += sign * np.prod([f[:, bits(block)] for block in blocks], axis=0)
    return total


@given(subset_fitness())
def test_general_order_is_the_sum_over_subsets(case: tuple[int, np.ndarray]) -> None:
    k, f = case
    every = interactions(f)
    for size in range(1, k + 1):
        for genes in combinations(range(k), size):
            expected = moebius_by_definition(f, genes)
            np.testing.assert_allclose(every[:, bits(genes)], expected, atol=1e-9)
    np.testing.assert_array_equal(every[:, 0], 1.0)


@given(subset_fitness())
def test_cumulant_is_the_sum_over_partitions(case: tuple[int, np.ndarray]) -> None:
    k, f = case
    genes = tuple(range(k))
    np.testing.assert_allclose(interaction(f, "cumulant"), cumulant_by_definition(f, genes), atol=1e-9)


@given(subset_fitness(2, 3))
def test_definitions_agree_with_epsilon_and_tau(case: tuple[int, np.ndarray]) -> None:
    k, f = case
    named = (
        epsilon(f[:, 3], f[:, 1], f[:, 2])
        if k == 2
        else tau(f[:, 7], f[:, 3], f[:, 5], f[:, 6], f[:, 1], f[:, 2], f[:, 4])
    )
    np.testing.assert_allclose(interaction(f), named, atol=1e-12)
    np.testing.assert_allclose(interaction(f, "cumulant"), named, atol=1e-12)


@given(subset_fitness(4, 4))
def test_cumulant_of_four_also_removes_pairs_of_pairs(case: tuple[int, np.ndarray]) -> None:
    _, f = case
    e = interactions(f)
    pairs = e[:, 0b0011] * e[:, 0b1100] + e[:, 0b0101] * e[:, 0b1010] + e[:, 0b1001] * e[:, 0b0110]
    np.testing.assert_allclose(interaction(f, "cumulant"), e[:, 15] - pairs, atol=1e-9)


def test_definitions_differ_at_order_four() -> None:
    # Two independent pairs: nothing is left for the four together but the product of the two.
    masks = np.arange(16)
    f = np.where(masks & 3 == 3, 0.5, 1.0) * np.where(masks & 12 == 12, 0.5, 1.0)
    assert interaction(f) == pytest.approx(0.25)
    assert interaction(f, "cumulant") == pytest.approx(0.0)


def test_tau_is_what_single_and_pair_effects_leave() -> None:
    a, b, c, ab, ac, bc, abc = 0.9, 0.8, 0.7, 0.6, 0.65, 0.5, 0.1
    by_epsilon = abc - a * b * c - a * epsilon(bc, b, c) - b * epsilon(ac, a, c) - c * epsilon(ab, a, b)
    assert tau(abc, ab, ac, bc, a, b, c) == pytest.approx(by_epsilon)
    assert tau(a * b * c, a * b, a * c, b * c, a, b, c) == pytest.approx(0.0)


@given(subset_fitness(1, 4), st.floats(-1, 1), st.sampled_from(["moebius", "cumulant"]))
def test_fitness_from_interaction_is_the_inverse(
    case: tuple[int, np.ndarray], value: float, definition: str
) -> None:
    _, f = case
    f[:, -1] = fitness_from_interaction(value, f, definition)  # type: ignore[arg-type]
    if f.shape[-1] > 2 or definition == "cumulant":
        np.testing.assert_allclose(interaction(f, definition), value, atol=1e-9)  # type: ignore[arg-type]


@given(hnp.arrays(np.float64, (7, 4), elements=FITNESS))
def test_named_inverses(f: np.ndarray) -> None:
    abc, ab, ac, bc, a, b, c = f
    np.testing.assert_allclose(fitness_from_epsilon(epsilon(ab, a, b), a, b)[0], ab, atol=1e-12)
    found, sd = fitness_from_tau(tau(abc, ab, ac, bc, a, b, c), ab, ac, bc, a, b, c)
    np.testing.assert_allclose(found, abc, atol=1e-12)
    np.testing.assert_array_equal(sd, 0.0)


def test_sd_matches_simulation() -> None:
    rng = np.random.default_rng(0)
    mean = np.array([-0.1, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7])
    sd = np.array([0.02, 0.03, 0.01, 0.02, 0.03, 0.02, 0.01])
    draws = rng.normal(mean[:, None], sd[:, None], (7, 200_000))
    _, pair_sd = fitness_from_epsilon(mean[0], mean[4], mean[5], sd[0], sd[4], sd[5])
    _, triple_sd = fitness_from_tau(*mean, *sd)
    assert pair_sd == pytest.approx((draws[0] + draws[4] * draws[5]).std(), rel=0.02)
    assert triple_sd == pytest.approx(fitness_from_tau(*draws)[0].std(), rel=0.02)


def test_unknown_sd_gives_unknown_sd() -> None:
    _, sd = fitness_from_epsilon([0.1, 0.1], 0.9, 0.8, [0.1, np.nan], 0.1, 0.1)
    assert np.isfinite(sd).tolist() == [True, False]


def test_refusals() -> None:
    with pytest.raises(ShapeError, match="one column per subset"):
        interaction(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="one column per subset"):
        interaction(1.0)
    with pytest.raises(DatasetError, match="wild type"):
        interaction(np.full(4, 0.9))
    with pytest.raises(ConfigError, match="'sum' is not a definition"):
        interaction(np.ones(4), "sum")  # type: ignore[arg-type]
