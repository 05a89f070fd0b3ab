"""Several screens as one matrix, against the plain definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from tests.screened import screened_dataset
from wildtype.evidence.column_families import closed_forms, rising
from wildtype.evidence.learned_kernel import LearnedKernel
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_index import PairIndex, Pairs
from wildtype.evidence.pair_matrix import KINDS, PairMatrix
from wildtype.evidence.pooled_screens import FEWEST, pooled
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import Kind, MutantTable

N = 36


def a_map(genes: range, share: float, seed: int, kind: int = 0) -> PairMatrix:
    """Return a map of some pairs of some genes with values of their own."""
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in genes for j in genes if i < j])
    pairs = pairs[rng.random(len(pairs)) < share]
    return PairMatrix.of(
        MutantTable.from_matrix(pairs, value=rng.normal(size=len(pairs)), kind=np.full(pairs.size, kind))
    )


def as_cells(matrix: PairMatrix) -> dict[tuple[int, int], float]:
    codes = matrix.gene * KINDS + matrix.kind
    return {
        (int(codes[i]), int(codes[j])): float(matrix.values[i, j])
        for i, j in np.argwhere(np.triu(matrix.known))
    }


def linked(
    own: dict[tuple[int, int], float], other: dict[tuple[int, int], float]
) -> dict[tuple[int, int], float]:
    """Return the cells of another screen in the unit of ``own``, by isotonic regression."""
    both = sorted(own.keys() & other.keys(), key=lambda cell: other[cell])
    there = [other[cell] for cell in both]
    fitted = isotonic_regression(np.array([own[cell] for cell in both], np.float64))
    return {cell: float(np.interp(value, there, fitted)) for cell, value in other.items()}


def test_own_cells_stay_and_others_are_means_of_what_their_links_expect() -> None:
    own, first, second = a_map(range(32), 0.9, 0), a_map(range(6, 36), 0.95, 1), a_map(range(4, 33), 0.97, 2)
    found, mine = as_cells(pooled(own, [first, second])), as_cells(own)
    expected: dict[tuple[int, int], list[float]] = {}
    for other in (first, second):
        for cell, value in linked(mine, as_cells(other)).items():
            expected.setdefault(cell, []).append(value)
    assert found.keys() == mine.keys() | expected.keys()
    for cell, value in found.items():
        np.testing.assert_allclose(value, mine.get(cell, np.mean(expected.get(cell, [0]))), atol=1e-5)


def test_the_matrix_is_symmetric_and_its_strains_ascend() -> None:
    own, other = a_map(range(28), 0.9, 0), a_map(range(36), 0.9, 1)
    matrix = pooled(own, [other])
    np.testing.assert_array_equal(matrix.values, matrix.values.T)
    np.testing.assert_array_equal(matrix.known, matrix.known.T)
    assert not matrix.known.diagonal().any()
    assert (np.diff(matrix.gene * KINDS + matrix.kind) > 0).all()
    assert (matrix.values[~matrix.known] == 0).all()


@pytest.mark.parametrize("other", [a_map(range(15), 0.9, 1), a_map(range(36), 1.0, 1, int(Kind.REDUCED))])
def test_a_screen_that_shares_few_cells_is_left_out(other: PairMatrix) -> None:
    own = a_map(range(28), 0.9, 0)
    assert len(as_cells(own).keys() & as_cells(other).keys()) < FEWEST
    assert as_cells(pooled(own, [other])) == as_cells(own)


def test_values_of_unknown_cells_change_nothing() -> None:
    own, other = a_map(range(28), 0.9, 0), a_map(range(36), 0.9, 1)
    changed = [replace(m, values=np.where(m.known, m.values, np.float32(99))) for m in (own, other)]
    first, second = pooled(own, [other]), pooled(changed[0], [changed[1]])
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.known, second.known)


def test_a_gene_that_another_screen_alone_has_is_described_by_all_of_them_together() -> None:
    similarity, own = GeneSimilarity.of(screened_dataset(N).organism), a_map(range(4, N), 0.9, 0)
    other = OtherScreen("scores", a_map(range(N), 0.9, 3))
    learned = LearnedKernel.of_matrix(similarity, own)
    gene = np.stack(np.triu_indices(N, 1), 1)
    pairs = Pairs(gene, np.zeros(gene.shape, np.uint8))
    index = PairIndex(own, similarity, 3, learned, [other])
    columns, unseen = index.columns(pairs)
    names = list(index.names)
    assert names[-3:] == ["screen pooled completed", "screen pooled by kernel", "screen pooled alike"]
    assert closed_forms(names)[-3:].all()
    assert rising(names)[-3:].tolist() == [True, True, False]
    assert set(unseen) == {0, 1, 2}
    assert np.isfinite(columns[:, -3:]).all()
    # Without the other screen, a gene that was never crossed here has no completion.
    alone = PairIndex(own, similarity, 3, learned)
    completed = alone.columns(pairs)[0][:, alone.names.index("completed")]
    assert np.isnan(completed[unseen > 0]).all()


# The second screen shares enough cells with the whole map, and too few with what a fold sees of it.
@pytest.mark.parametrize("genes", [range(N), range(29)])
def test_folds_share_one_completion_and_each_keeps_its_own_answers(genes: range) -> None:
    similarity, own = GeneSimilarity.of(screened_dataset(N).organism), a_map(range(4, N), 0.9, 0)
    maps = {"scores": a_map(genes, 0.9, 3), "alleles": a_map(range(12), 0.9, 4, int(Kind.REDUCED))}
    others = [OtherScreen(name, matrix) for name, matrix in maps.items()]
    learned = LearnedKernel.of_matrix(similarity, own)
    gene = np.concatenate([np.stack(np.triu_indices(N, 1), 1)] * 2)
    kind = np.repeat(np.array([0, int(Kind.REDUCED)], np.uint8), len(gene) // 2)[:, None].repeat(2, axis=1)
    pairs = Pairs(gene, kind)  # a reduced gene that was crossed only as a deletion is asked about, too

    def index() -> PairIndex:
        return PairIndex(own, similarity, 3, learned, others)

    shared = index()
    shared.columns(pairs)  # every fold is there, and the last one has written last
    fold = shared.fold_of(pairs)
    assert set(fold) == {-1, 0, 1, 2}
    for number in range(-1, 3):
        asked = pairs.take(np.flatnonzero(fold == number))
        np.testing.assert_array_equal(shared.columns(asked)[0], index().columns(asked)[0])


def test_nothing_visible_of_a_screen_leaves_nothing_to_link_others_by() -> None:
    own = a_map(range(28), 0.9, 0).part(np.zeros(0, np.int64))
    assert len(pooled(own, [a_map(range(36), 0.9, 1)])) == 0
