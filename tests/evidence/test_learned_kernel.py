"""The learned kernel of genes against its plain definition, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.screened import screened_dataset
from wildtype.evidence.learned_kernel import ComputedKernel, LearnedKernel, gene_maps, left_out
from wildtype.evidence.similarity import GeneSimilarity

N = 36


@pytest.fixture(scope="module")
def similarity() -> GeneSimilarity:
    return GeneSimilarity.of(screened_dataset(N).organism)


def test_it_is_a_sum_of_powers_of_a_mixture_of_cosines(similarity: GeneSimilarity) -> None:
    maps = {name: of.toarray().astype(np.float64) for name, of in gene_maps(similarity).items()}
    assert len(maps) >= 2
    for of in maps.values():
        length = np.linalg.norm(of, axis=1)
        np.testing.assert_allclose(length[length > 0], 1, atol=1e-5)
    rng = np.random.default_rng(0)
    source = rng.dirichlet(np.ones(len(maps))).astype(np.float32)
    power = np.array([0.2, 0.5, 0.3], np.float32)
    genes = np.array([2, 3, 30])
    found = LearnedKernel(source, power, 1.0).between(similarity, genes)
    mixed = sum(w * of @ of.T for w, of in zip(source, maps.values(), strict=True))
    expected = sum(c * mixed ** (p + 1) for p, c in enumerate(power))
    np.testing.assert_allclose(found, expected[:, genes], atol=1e-5)
    assert np.linalg.eigvalsh(expected).min() > -1e-6


def test_the_error_without_a_gene_is_that_of_a_fit_without_it() -> None:
    rng = np.random.default_rng(1)
    phi, target = rng.normal(size=(12, 5)), rng.normal(size=(12, 3))
    kernel = phi @ phi.T
    found = left_out(torch.from_numpy(kernel + 0.7 * np.eye(12)), torch.from_numpy(target)).numpy()
    for i in range(12):
        rest = np.flatnonzero(np.arange(12) != i)
        weights = np.linalg.solve(kernel[np.ix_(rest, rest)] + 0.7 * np.eye(11), target[rest])
        np.testing.assert_allclose(found[i], target[i] - kernel[i, rest] @ weights, rtol=1e-8)


def test_kernel_ridge_predicts_every_gene() -> None:
    rng = np.random.default_rng(2)
    phi, own = rng.normal(size=(15, 4)), np.array([1, 4, 4, 9, 14])
    kernel, target = phi @ phi[own].T, rng.normal(size=(5, 2))
    genes = np.unique(own)
    computed = ComputedKernel(genes, (phi @ phi[genes].T).astype(np.float32), 0.5)
    strains = computed.strains(own)
    np.testing.assert_allclose(strains[np.array([1, 4])], kernel[own][[1, 4]], atol=1e-5)
    np.testing.assert_allclose(strains.diagonal(), kernel[own].diagonal(), atol=1e-5)
    found = strains.predict(target.astype(np.float32))
    expected = kernel @ np.linalg.solve(kernel[own] + 0.5 * np.eye(5), target)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    nothing = computed.strains(own[:0]).predict(np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(nothing, np.zeros((15, 2), np.float32))


def test_it_learns_which_source_profiles_follow(similarity: GeneSimilarity) -> None:
    maps = gene_maps(similarity)
    names, rng = list(maps), np.random.default_rng(3)
    for at in (0, len(names) - 1):
        of = maps[names[at]].toarray()
        profile = (of @ rng.normal(size=(of.shape[1], 200))).astype(np.float32)
        found = LearnedKernel.of(similarity, np.arange(N), profile)
        assert found.source.argmax() == at
        np.testing.assert_allclose(found.source.sum(), 1, rtol=1e-5)
        assert found.ridge < 1
        again = LearnedKernel.of(similarity, np.arange(N), profile)
        np.testing.assert_array_equal(again.source, found.source)


def test_without_profiles_all_sources_count_alike(similarity: GeneSimilarity) -> None:
    found = LearnedKernel.of(similarity, np.arange(N), np.zeros((N, 3), np.float32))
    np.testing.assert_allclose(found.source, 1 / len(found.source), rtol=1e-5)


def test_a_computed_kernel_is_the_learned_one_of_any_of_its_genes(similarity: GeneSimilarity) -> None:
    profile = np.random.default_rng(2).normal(size=(N, 3)).astype(np.float32)
    learned = LearnedKernel.of(similarity, np.arange(N), profile)
    kernel = ComputedKernel.of(learned, similarity, np.arange(0, N, 2))
    some = np.array([4, 4, 0, 10])
    np.testing.assert_array_equal(kernel.between(some), learned.between(similarity, some))
    assert kernel.ridge == learned.ridge
