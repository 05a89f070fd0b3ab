"""Columns of a map of measured pairs against their plain definitions, and where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.evidence.examples import neighbours_of
from tests.tiny import tiny_dataset
from wildtype.evidence.column_families import closed_forms, rising
from wildtype.evidence.completion import Additive, low_rank
from wildtype.evidence.kernel_ridge import residuals
from wildtype.evidence.learned_kernel import LearnedKernel
from wildtype.evidence.map_columns import RANKS
from wildtype.evidence.pair_columns import PairColumns
from wildtype.evidence.pair_index import PairIndex, Pairs
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.sampled_factors import sampled_factors
from wildtype.evidence.similarity import GeneSimilarity


@pytest.fixture(scope="module")
def matrix() -> PairMatrix:
    table = tiny_dataset().table
    return PairMatrix.of(table.take(np.flatnonzero(table.order == 2)))


@pytest.fixture(scope="module")
def similarity() -> GeneSimilarity:
    return GeneSimilarity.of(tiny_dataset().organism)


def test_columns_are_completions_and_kernel_ridge_on_them(
    matrix: PairMatrix, similarity: GeneSimilarity
) -> None:
    # The last two strains are left out, so that there are pairs of unseen genes.
    part = matrix.part(np.arange(len(matrix) - 2))
    assert not part.of_grid
    learned = LearnedKernel.of_matrix(similarity, part)
    kernel = learned.between(similarity, part.gene)
    columns = PairColumns(part, similarity, neighbours_of(similarity, part, learned))
    new, old = matrix.gene[-2:], part.gene[:2]
    gene = np.array([[old[0], old[1]], [old[1], new[0]], [new[0], new[1]]])
    kind = np.full(gene.shape, part.kind[0], np.uint8)
    found = dict(zip(columns.names, columns(gene, kind).T.astype(np.float64), strict=True))

    additive = Additive.of(part)
    residual = residuals(part, additive)
    own = kernel[part.gene].astype(np.float64)
    step = kernel.astype(np.float64) @ np.linalg.inv(own + learned.ridge * np.eye(len(part)))
    factors = sampled_factors(residual, part.known, kernel[part.gene]).astype(np.float64)
    for rank in RANKS:
        expected = low_rank(residual, part.known, rank).matrix()[0, 1]
        np.testing.assert_allclose(found[f"rank {rank} alone"], [expected, np.nan, np.nan], rtol=1e-5)
    np.testing.assert_allclose(found["completed by factors"], [factors[0, 1], np.nan, np.nan], rtol=1e-5)
    one, both = step @ factors, step @ factors @ step.T
    ends = [one[old[0], 1], one[old[1], 0]]
    np.testing.assert_allclose(found["kernel factors low"][:2], [min(ends), one[new[0], 1]], atol=1e-5)
    np.testing.assert_allclose(found["kernel factors high"][:2], [max(ends), one[new[0], 1]], atol=1e-5)
    np.testing.assert_allclose(found["kernel factors both"], both[gene[:, 0], gene[:, 1]], atol=1e-5)
    mean = additive.effect.mean()
    smooth = mean + step @ (additive.effect - mean)
    effects = [
        additive.effect[0] + additive.effect[1],
        additive.effect[1] + smooth[new[0]],
        smooth[new].sum(),
    ]
    np.testing.assert_allclose(found["kernel additive"], additive.mean + np.array(effects), atol=1e-5)


def test_they_count_as_closed_forms_in_units_of_the_measurement_and_a_grid_has_none(
    matrix: PairMatrix, similarity: GeneSimilarity
) -> None:
    learned = LearnedKernel.of_matrix(similarity, matrix)
    neighbours = neighbours_of(similarity, matrix, learned)
    of_map = PairColumns(matrix, similarity, neighbours).names
    names = PairColumns(replace(matrix, of_grid=True), similarity, neighbours).names
    of_grid = tuple(name for name in names if not name.startswith("listed "))
    assert names[: len(of_grid)] == of_grid
    assert len(names) == len(of_grid) + 8
    assert of_map[: len(of_grid)] == of_grid
    assert len(of_map) == len(of_grid) + len(RANKS) + 5
    assert rising(of_map)[len(of_grid) :].all()
    assert closed_forms(of_map)[len(of_grid) :].all()


def test_all_pairs_of_a_map_are_described_without_single_cells(
    matrix: PairMatrix, similarity: GeneSimilarity
) -> None:
    learned = LearnedKernel.of_matrix(similarity, matrix)
    i, j = np.nonzero(np.triu(matrix.known))
    pairs = Pairs(
        np.stack([matrix.gene[i], matrix.gene[j]], 1), np.stack([matrix.kind[i], matrix.kind[j]], 1)
    )
    index = PairIndex(matrix, similarity, 2, learned)
    parts = list(index.out_of_fold(pairs, 0))
    np.testing.assert_array_equal(np.sort(np.concatenate([rows for rows, _ in parts])), np.arange(len(pairs)))
    # Two folds of cells, and none of blocks; each pair as it is answered later.
    assert len(parts) == 2
    for rows, columns in parts:
        np.testing.assert_array_equal(columns, index.columns(pairs.take(rows))[0])
