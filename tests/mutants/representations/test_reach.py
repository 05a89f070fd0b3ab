"""Packed breadth-first search against its definition by sparse products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from wildtype.errors import ConfigError, GeneSetError
from wildtype.mutants.representations.reach import reach, reach_reference, unpack


def symmetric(n: int, edges: int, seed: int) -> sparse.csr_array:
    a, b = np.random.default_rng(seed).integers(0, n, (2, edges))
    ones = np.ones(2 * edges, bool)
    return sparse.csr_array((ones, (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n))


def ragged(sets: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return np.array([g for s in sets for g in s], np.int64), offsets


@given(st.integers(1, 30), st.integers(0, 60), st.integers(0, 5), st.integers(0, 99), st.data())
def test_equals_the_definition(n: int, edges: int, hops: int, seed: int, data: st.DataObject) -> None:
    union = symmetric(n, edges, seed)
    genes = st.sets(st.integers(0, n - 1), max_size=min(n, 4)).map(sorted)
    gene, offsets = ragged(data.draw(st.lists(genes, max_size=7)))
    words = reach(union, gene, offsets, hops)
    np.testing.assert_array_equal(
        unpack(words, len(offsets) - 1), reach_reference(union, gene, offsets, hops)
    )


@pytest.mark.parametrize("mutants", [63, 64, 65, 128, 200])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_many_mutants_fill_several_words(mutants: int, hops: int) -> None:
    union = symmetric(300, 350, 3)
    draw = np.random.default_rng(mutants)
    sets = [draw.choice(300, draw.integers(0, 4), replace=False).tolist() for _ in range(mutants)]
    gene, offsets = ragged(sets)
    words = reach(union, gene, offsets, hops)
    assert words.shape == (-(-mutants // 64), 300)
    mask = unpack(words, mutants)
    assert mask.shape == (300, mutants)
    assert mask.dtype == bool
    expected = reach_reference(union, gene, offsets, hops)
    assert 0 < expected.sum() < expected.size
    np.testing.assert_array_equal(mask, expected)


def test_a_path_is_walked_one_gene_per_hop() -> None:
    n = 9
    chain = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)).tocsr()
    gene, offsets = ragged([[0], [], [4], [0, 8]])
    for hops in range(n + 3):
        mask = unpack(reach(chain, gene, offsets, hops), 4)
        assert mask.sum(0).tolist() == [min(hops + 1, n), 0, min(2 * hops + 1, n), min(2 * (hops + 1), n)]


def test_positions_outside_the_graph_are_refused() -> None:
    union = symmetric(5, 4, 0)
    for gene in (5, -1):
        with pytest.raises(GeneSetError, match=rf"perturbs gene {gene}, outside 0 … 4"):
            reach(union, *ragged([[1], [gene]]), 1)
    with pytest.raises(ConfigError, match="-1 hops"):
        reach(union, *ragged([[1]]), -1)
