"""Columns from other screens against their plain definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.evidence.examples import computed
from tests.screened import screened_dataset
from wildtype.evidence.column_families import closed_forms, rising
from wildtype.evidence.completion import Additive, low_rank, mixed_neighbours, smoothed, spectrum
from wildtype.evidence.learned_kernel import LearnedKernel
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_index import PairIndex, Pairs
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.screen_columns import COMPLETED_RANK, RANK, ScreenColumns
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable

N = 36
GENES = 30
"""Genes that the other screen has."""


@pytest.fixture(scope="module")
def similarity() -> GeneSimilarity:
    return GeneSimilarity.of(screened_dataset(N).organism)


@pytest.fixture(scope="module")
def own() -> PairMatrix:
    return PairMatrix.of(screened_dataset(N).table)


@pytest.fixture(scope="module")
def learned(own: PairMatrix, similarity: GeneSimilarity) -> LearnedKernel:
    return LearnedKernel.of_matrix(similarity, own)


@pytest.fixture(scope="module")
def screen() -> OtherScreen:
    rng = np.random.default_rng(3)
    pairs = np.stack(np.triu_indices(GENES, 1), 1)
    pairs = pairs[rng.random(len(pairs)) < 0.8]
    return OtherScreen(
        "scores", PairMatrix.of(MutantTable.from_matrix(pairs, value=rng.normal(0, 3, len(pairs))))
    )


@pytest.fixture(scope="module")
def asked() -> Pairs:
    gene = np.stack(np.triu_indices(N, 1), 1)
    return Pairs(gene, np.zeros(gene.shape, np.uint8))


def test_columns_are_the_screens_own_values_and_their_completion(
    screen: OtherScreen, similarity: GeneSimilarity, learned: LearnedKernel, asked: Pairs
) -> None:
    found = dict(ScreenColumns(screen, computed(learned, similarity))(asked.gene, asked.kind))
    matrix = screen.matrix
    base = Additive.of(matrix).matrix()
    residual = np.where(matrix.known, matrix.values - base, np.float32(0))
    solution = low_rank(residual, matrix.known, RANK)
    kernel = computed(learned, similarity).strains(matrix.gene)
    near = mixed_neighbours(solution, kernel[:])
    completed = smoothed(residual, matrix.known, near)
    filled = np.where(matrix.known, residual, completed)
    whole = spectrum(smoothed(filled, np.ones_like(matrix.known), near), COMPLETED_RANK)
    vectors = kernel.predict(whole.vectors)
    for strain, gene in enumerate(matrix.gene):
        vectors[gene] = whole.vectors[strain]
    profile = solution.profiles().astype(np.float64)
    for m, (i, j) in enumerate(asked.gene):
        if max(i, j) >= GENES:  # a gene that the other screen lacks
            assert np.isnan(found["screen scores"][m])
            assert np.isnan(found["screen scores completed"][m])
            assert np.isnan(found["screen scores alike"][m])
        else:
            expected = matrix.values[i, j] if matrix.known[i, j] else np.nan
            np.testing.assert_equal(found["screen scores"][m], np.float32(expected))
            np.testing.assert_allclose(
                found["screen scores completed"][m], base[i, j] + completed[i, j], atol=1e-5
            )
            lengths = np.linalg.norm(profile[i]) * np.linalg.norm(profile[j])
            np.testing.assert_allclose(
                found["screen scores alike"][m], profile[i] @ profile[j] / lengths, atol=1e-5
            )
        by_kernel = (vectors[i] * whole.values) @ vectors[j]
        np.testing.assert_allclose(found["screen scores by kernel"][m], by_kernel, atol=1e-4)


def test_all_but_the_cosine_rise_with_epsilon(
    screen: OtherScreen, similarity: GeneSimilarity, learned: LearnedKernel, asked: Pairs
) -> None:
    names = [name for name, _ in ScreenColumns(screen, computed(learned, similarity))(asked.gene, asked.kind)]
    assert rising(names).tolist() == [True, True, True, False]
    assert closed_forms(names).all()


def test_hidden_genes_leave_nothing_behind(
    screen: OtherScreen, similarity: GeneSimilarity, learned: LearnedKernel, asked: Pairs
) -> None:
    hidden = np.zeros(N, bool)
    hidden[:5] = True
    values = screen.matrix.values.copy()
    values[:5], values[:, :5] = 99, 99
    changed = OtherScreen("scores", replace(screen.matrix, values=values))
    first, second = (
        ScreenColumns(each.without(hidden), computed(learned, similarity))(asked.gene, asked.kind)
        for each in (screen, changed)
    )
    for (name, value), (_, other) in zip(first, second, strict=True):
        np.testing.assert_array_equal(value, other, err_msg=name)
    assert np.isnan(first[0][1][(asked.gene < 5).any(axis=1)]).all()


def test_a_screen_without_genes_has_its_columns(
    screen: OtherScreen, similarity: GeneSimilarity, learned: LearnedKernel, asked: Pairs
) -> None:
    nothing = screen.without(np.ones(N, bool))
    found = ScreenColumns(nothing, computed(learned, similarity))(asked.gene, asked.kind)
    whole = ScreenColumns(screen, computed(learned, similarity))(asked.gene, asked.kind)
    assert [name for name, _ in found] == [name for name, _ in whole]
    assert all(np.isnan(value).all() for _, value in found)


def test_stored_screens_are_equal(screen: OtherScreen) -> None:
    again = OtherScreen.from_arrays("scores", screen.to_arrays())
    for name in ("gene", "kind", "values", "known"):
        np.testing.assert_array_equal(getattr(again.matrix, name), getattr(screen.matrix, name))


def test_every_second_fold_of_genes_is_hidden_in_other_screens_too(
    own: PairMatrix, screen: OtherScreen, similarity: GeneSimilarity, learned: LearnedKernel, asked: Pairs
) -> None:
    index = PairIndex(own, similarity, 3, learned, [screen])
    seen_in_other: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for number, (rows, columns, _) in enumerate(index.with_unseen_genes(asked, 4, 0, 1.0)):
        value = columns[:, index.names.index("screen scores")]
        there = (asked.gene[rows] < GENES).all(axis=1)
        there[there] = screen.matrix.known[tuple(asked.gene[rows[there]].T)]
        seen_in_other[number % 2].append(np.isfinite(value[there]))
    assert all(seen.all() for seen in seen_in_other[0])
    assert not any(seen.any() for seen in seen_in_other[1])
