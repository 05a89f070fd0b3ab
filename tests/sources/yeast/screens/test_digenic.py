"""Merging strain pairs: orientation never matters, and no row is lost uncounted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.mutants import Kind
from wildtype.sources.yeast.screens.digenic import AGAIN, AVERAGED, RECIPROCAL, StrainPairs, average, distinct


def pairs(rows: list[tuple[int, int, int, int, int, int, float, float]]) -> StrainPairs:
    """Rows of gene, kind, strain of both sides, value, sd."""
    table = np.array(rows, dtype=float).reshape(-1, 8)
    whole = table[:, :6].astype(np.int64)
    return StrainPairs(
        whole[:, [0, 3]],
        whole[:, [1, 4]].astype(np.uint8),
        whole[:, [2, 5]],
        table[:, 6].copy(),
        table[:, 7].copy(),
    )


SIDE = st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2))
ROWS = st.lists(
    st.tuples(SIDE, SIDE, st.floats(-1, 1), st.floats(0, 1)).filter(lambda r: r[0][0] != r[1][0]), min_size=1,
    max_size=25,
)  # fmt: skip


def test_average_adds_the_spread_between_members() -> None:
    value, sd = average(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), np.array([0.5, np.nan, np.nan]))
    assert value.tolist() == [2.0, 5.0]
    assert sd == pytest.approx([np.sqrt(0.25 + 1), np.nan], nan_ok=True)


def test_distinct_tells_missing_from_known_sd() -> None:
    keys, value = np.array([[1], [1], [1], [2]]), np.array([0.5, 0.5, 0.5, 0.5])
    rows = distinct(keys, value, np.array([0.1, 0.1, np.nan, 0.1]))
    assert sorted(rows.tolist()) == [0, 2, 3]


def test_orientation_repeats_and_alleles_are_counted_apart() -> None:
    read = pairs(
        [
            (1, 0, 1, 0, 0, 0, -0.2, 0.1),
            (0, 0, 0, 1, 0, 1, -0.2, 0.1),  # the other way round
            (0, 0, 0, 1, 0, 1, -0.4, 0.1),  # listed again
            (2, 1, 5, 0, 0, 0, -0.3, 0.1),
            (2, 1, 6, 0, 0, 0, -0.5, 0.1),  # another allele
            (2, 0, 7, 0, 0, 0, 0.2, 0.1),  # the deletion of the same gene
        ]
    )
    merged, counts = read.merged()
    assert counts == {AGAIN: 1, RECIPROCAL: 1}
    table, averaged = merged.table("averaged")
    assert averaged == {AVERAGED: 1}
    rows = {
        (tuple(g), tuple(k)): v
        for g, k, v in zip(
            table.matrix(2).tolist(), table.kind.reshape(-1, 2).tolist(), table.value, strict=True
        )
    }
    assert rows[(0, 1), (0, 0)] == pytest.approx(-0.8 / 3)
    assert rows[(0, 2), (Kind.ABSENT, Kind.REDUCED)] == pytest.approx(-0.4)
    assert rows[(0, 2), (Kind.ABSENT, Kind.ABSENT)] == pytest.approx(0.2)
    apart, none = merged.table("apart")
    assert (len(apart), none) == (4, {})
    with pytest.raises(ConfigError, match="allele policy 'mean' is not known: choose one of averaged, apart"):
        merged.table("mean")


@given(ROWS, st.randoms(use_true_random=False))
def test_turning_and_shuffling_rows_changes_nothing(rows: list, random) -> None:
    given_rows = [(*a, *b, v, s) for a, b, v, s in rows]
    turned = [(*b, *a, v, s) if random.random() < 0.5 else (*a, *b, v, s) for a, b, v, s in rows]
    random.shuffle(turned)
    (first, counts), (second, other) = pairs(given_rows).merged(), pairs(turned).merged()
    np.testing.assert_array_equal(first.gene, second.gene)
    np.testing.assert_array_equal(first.strain, second.strain)
    np.testing.assert_allclose(first.value, second.value, atol=1e-12)
    np.testing.assert_allclose(first.sd, second.sd, atol=1e-7)
    assert sum(counts.values()) == sum(other.values()) == len(rows) - len(first)
    assert (first.gene[:, 0] < first.gene[:, 1]).all()
    for policy in ("averaged", "apart"):
        table, dropped = first.table(policy)
        assert len(table) + sum(dropped.values()) == len(first)
        assert (np.abs(table.value) <= 1).all()


def test_allele_agreement_compares_alleles_of_one_pair_in_both_orders() -> None:
    rows = []
    for gene, (x, y) in enumerate([(0.1, 0.2), (0.4, 0.5), (-0.3, -0.1), (0.9, 0.7)], start=1):
        rows += [(0, 0, 0, gene, 1, 10, x, 0.1), (0, 0, 0, gene, 1, 11, y, 0.1)]
    rows.append((0, 0, 0, 9, 0, 0, 5.0, 0.1))  # one allele only: not compared
    r, count = pairs(rows).merged()[0].allele_agreement()
    x, y = np.array([0.1, 0.4, -0.3, 0.9]), np.array([0.2, 0.5, -0.1, 0.7])
    assert count == 4
    assert r == pytest.approx(np.corrcoef(np.r_[x, y], np.r_[y, x])[0, 1])
    r, count = pairs(rows[-1:]).merged()[0].allele_agreement()
    assert (np.isnan(r), count) == (True, 0)


def test_agreement_is_over_shared_gene_pairs_only() -> None:
    first = pairs([(0, 0, 0, g, 0, g, v, 0.1) for g, v in ((1, 0.1), (2, 0.5), (3, -0.2), (4, 9.0))])
    second = pairs([(g, 0, g, 0, 0, 0, v, 0.1) for g, v in ((1, 0.2), (2, 0.9), (3, -0.5), (5, -9.0))])
    r, count = first.agreement(second, 10)
    assert (r, count) == (pytest.approx(np.corrcoef([0.1, 0.5, -0.2], [0.2, 0.9, -0.5])[0, 1]), 3)
    assert np.isnan(first.agreement(pairs([(7, 0, 7, 8, 0, 8, 0.1, 0.1)]), 10)[0])
