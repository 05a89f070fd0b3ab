"""Genes of contexts as bits: which are there, and which number each has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.compiled import njit
from wildtype.evidence.gene_bits import GeneBits, gene_bits, ones
from wildtype.evidence.neighbour_kernels import search


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 300), seed=st.integers(0, 10**6))
def test_bits_and_counts_are_those_of_the_genes(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = [np.flatnonzero(rng.random(n) < share) for share in (0.0, 0.01, 0.3, 0.9, 1.0)]
    found = bits_of(contexts, n)
    words = -(-n // 64)
    for context, genes in enumerate(contexts):
        row = found.row[context]
        assert (row >= 0) == (len(genes) >= words)
        if row >= 0:
            there = (found.bits[row, np.arange(n) // 64] >> (np.arange(n) % 64).astype(np.uint64)) & 1
            np.testing.assert_array_equal(np.flatnonzero(there), genes)
            np.testing.assert_array_equal(found.before[row], np.searchsorted(genes, 64 * np.arange(words)))
        low, high = found.begin[context], found.begin[context + 1]
        np.testing.assert_array_equal(found.gene[low:high], genes)
        at = [search(x, found.gene, low, high) for x in range(n)]
        expected = np.full(n, -1)
        expected[genes] = low + np.arange(len(genes))
        assert at == expected.tolist()


def bits_of(contexts: list[np.ndarray], n: int) -> GeneBits:
    begin = np.append(0, np.cumsum([len(genes) for genes in contexts])).astype(np.int64)
    return gene_bits(np.concatenate(contexts).astype(np.int32), begin, n)


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x5555555555555555])
def test_ones_of_a_word(word: int) -> None:
    count = njit()(lambda word: ones(word))
    assert count(np.uint64(word)) == word.bit_count()


def test_nothing_measured_has_no_bits() -> None:
    found = gene_bits(np.zeros(0, np.int32), np.zeros(1, np.int64), 0)
    assert found.bits.shape == (0, 0)
