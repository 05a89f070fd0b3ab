"""Columns of pairs against their plain definitions, and what may never enter them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.evidence.examples import neighbours_of
from tests.screened import screened_dataset, strain_crosses
from wildtype.evidence.column_families import closed_forms, rising
from wildtype.evidence.completion import Additive, low_rank, mixed_neighbours, smoothed
from wildtype.evidence.learned_kernel import LearnedKernel
from wildtype.evidence.pair_columns import FEW, LIKE, PRIOR, PairColumns
from wildtype.evidence.pair_index import PairIndex, Pairs
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.grid import CrossSides, ScreenGrid, VisibleCrosses, gene_hashes

N = 36


@pytest.fixture(scope="module")
def similarity() -> GeneSimilarity:
    return GeneSimilarity.of(screened_dataset(N).organism)


@pytest.fixture(scope="module")
def matrix() -> PairMatrix:
    dataset = screened_dataset(N)
    assert dataset.grid is not None
    words = gene_hashes(dataset.organism.genes.names, 0)
    sides = CrossSides(words, validation=0.1, test=0.1)
    seen = sides.of_table(dataset.table) == 0
    return PairMatrix.of(
        dataset.table.take(seen), VisibleCrosses(dataset.grid, sides, dataset.table.take(seen))
    )


@pytest.fixture(scope="module")
def learned(matrix: PairMatrix, similarity: GeneSimilarity) -> LearnedKernel:
    return LearnedKernel.of_matrix(similarity, matrix)


def every_pair(grid: ScreenGrid) -> Pairs:
    table = strain_crosses(grid)
    return Pairs(table.matrix(2), table.kind.reshape(-1, 2))


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    grid = screened_dataset(N).grid
    assert grid is not None
    return every_pair(grid)


def column(found: np.ndarray, names: tuple[str, ...], name: str) -> np.ndarray:
    return found[:, names.index(name)].astype(np.float64)


def filled_residuals(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel
) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals [s, s], completed where nothing is known, and the neighbours [s, s] that fill them."""
    residual = np.where(matrix.known, matrix.values - Additive.of(matrix).matrix(), np.float32(0))
    kernel = learned.between(similarity, matrix.gene)[matrix.gene]
    near = mixed_neighbours(low_rank(residual, matrix.known, 120), kernel)
    return np.where(matrix.known, residual, smoothed(residual, matrix.known, near)), near.toarray()


def test_pairs_with_one_gene_replaced_are_weighted_means_of_residuals(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    neighbours = neighbours_of(similarity, matrix, learned)
    columns = PairColumns(matrix, similarity, neighbours)
    found = columns(pairs.gene, pairs.kind)
    base = Additive.of(matrix).matrix().astype(np.float64)
    strain = matrix.find(pairs.gene, pairs.kind)
    place = {int(g): int(np.flatnonzero(matrix.gene == g)[0]) for g in np.unique(matrix.gene)}
    for g, name in enumerate(neighbours.names):
        for m in range(0, len(pairs), 7):
            sums, weights, means = 0.0, 0.0, []
            for own, other in ((0, 1), (1, 0)):
                one, below = 0.0, 0.0
                if strain[m, other] >= 0:
                    near = neighbours.gene[g, pairs.gene[m, own]]
                    for gene, w in zip(near, neighbours.weight[g, pairs.gene[m, own]], strict=True):
                        at = place.get(int(gene), -1)
                        if at >= 0 and matrix.known[strain[m, other], at]:
                            one += w * (matrix.values[strain[m, other], at] - base[strain[m, other], at])
                            below += w
                if below > 0:
                    means.append(one / (below + PRIOR))
                sums, weights = sums + one, weights + below
            expected = sums / (weights + PRIOR) if weights > 0 else np.nan
            np.testing.assert_allclose(column(found, columns.names, f"one by {name}")[m], expected, atol=1e-6)
            if means:
                low = column(found, columns.names, f"one by {name} low")[m]
                high = column(found, columns.names, f"one by {name} high")[m]
                np.testing.assert_allclose([low, high], [min(means), max(means)], atol=1e-6)


def test_pairs_with_both_genes_replaced_are_weighted_means_of_residuals(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    neighbours = neighbours_of(similarity, matrix, learned)
    columns = PairColumns(matrix, similarity, neighbours)
    found = columns(pairs.gene, pairs.kind)
    residual = matrix.values.astype(np.float64) - Additive.of(matrix).matrix()
    place = {int(g): int(np.flatnonzero(matrix.gene == g)[0]) for g in np.unique(matrix.gene)}
    name, g = neighbours.names[-1], len(neighbours.names) - 1
    for m in range(0, len(pairs), 7):
        total, mass = 0.0, 0.0
        ends = [
            list(zip(neighbours.gene[g, gene][:FEW], neighbours.weight[g, gene][:FEW], strict=True))
            for gene in pairs.gene[m]
        ]
        for i, w in ends[0]:
            for j, v in ends[1]:
                a, b = place.get(int(i), -1), place.get(int(j), -1)
                if a >= 0 and b >= 0 and matrix.known[a, b]:
                    total += w * v * residual[a, b]
                    mass += w * v
        expected = total / mass if mass > 0 else np.nan
        np.testing.assert_allclose(column(found, columns.names, f"both by {name}")[m], expected, atol=1e-5)


def test_unknown_pairs_of_neighbours_count_as_they_are_completed(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    columns = PairColumns(matrix, similarity, neighbours_of(similarity, matrix, learned))
    found = columns(pairs.gene, pairs.kind)
    filled, near = (x.astype(np.float64) for x in filled_residuals(matrix, similarity, learned))
    assert (~matrix.known[near > 0]).any()
    for m, (i, j) in enumerate(matrix.find(pairs.gene, pairs.kind)[::5]):
        sums, both = [], np.outer(near[i], near[j])
        for own, other in ((i, j), (j, i)):
            weight = np.where(np.arange(len(filled)) == other, 0, near[own])
            sums.append((weight @ filled[:, other], weight.sum()))
        top, below = np.sum(sums, axis=0)
        expected = top / (below + PRIOR)
        np.testing.assert_allclose(
            column(found, columns.names, "one by mixed completed")[5 * m], expected, atol=1e-5
        )
        # Of both strains, the few strongest neighbours count.
        ends = [np.argsort(-near[at], kind="stable")[:FEW] for at in (i, j)]
        np.fill_diagonal(both, 0)
        part = np.ix_(*ends)
        np.testing.assert_allclose(
            column(found, columns.names, "both by mixed completed")[5 * m],
            (both * filled)[part].sum() / both[part].sum(),
            atol=1e-5,
        )


def test_the_two_step_ridge_is_that_of_kernels(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    columns = PairColumns(matrix, similarity, neighbours_of(similarity, matrix, learned))
    found = column(columns(pairs.gene, pairs.kind), columns.names, "two-step ridge")
    residual = filled_residuals(matrix, similarity, learned)[0].astype(np.float64)
    unit = similarity.unit.astype(np.float64)
    phi = unit[matrix.gene]
    inverse = np.linalg.inv(phi @ phi.T + 3.0 * np.eye(len(phi)))
    expected = (unit @ phi.T) @ inverse @ residual @ inverse @ (phi @ unit.T)
    np.testing.assert_allclose(found, expected[pairs.gene[:, 0], pairs.gene[:, 1]], atol=1e-5)


def test_no_column_of_a_visible_pair_holds_its_own_value_or_listing(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    index = PairIndex(matrix, similarity, 4, learned)
    before = index.columns(pairs)[0]
    fold = index.fold_of(pairs)
    strain = matrix.find(pairs.gene, pairs.kind)
    rows = np.flatnonzero(fold == 2)
    values = matrix.values.copy()
    for a, b in strain[rows]:
        values[a, b] = values[b, a] = 0.0 if values[a, b] else 0.3
    after = PairIndex(replace(matrix, values=values), similarity, 4, learned).columns(pairs)[0]
    np.testing.assert_array_equal(before[rows], after[rows])
    assert not np.array_equal(before[fold != 2], after[fold != 2], equal_nan=True)


@pytest.mark.parametrize("of_grid", [True, False])
def test_cells_that_are_not_known_are_never_read(
    of_grid: bool, matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    """What a fold hides stays in the array of values that all folds share."""
    known = matrix.known & (np.random.default_rng(0).random(len(matrix)) < 0.9)
    hidden = [
        replace(
            matrix, of_grid=of_grid, known=known & known.T, values=np.where(known & known.T, values, other)
        )
        for values, other in ((matrix.values, np.float32(0)), (matrix.values, np.float32(np.nan)))
    ]
    before, after = (
        PairColumns(each, similarity, neighbours_of(similarity, matrix, learned))(pairs.gene, pairs.kind)
        for each in hidden
    )
    np.testing.assert_array_equal(before, after)


def test_out_of_fold_columns_are_those_of_prediction(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    index = PairIndex(matrix, similarity, 3, learned)
    found, _ = index.columns(pairs)
    # Folds of crosses come first, then folds of blocks.
    parts = list(index.out_of_fold(pairs, 0))
    assert len(parts) == 6
    for rows, columns in parts[:3]:
        assert len(rows)
        # Products of fewer rows round differently.
        np.testing.assert_allclose(columns, found[rows], atol=1e-7)
    seen = np.concatenate([rows for rows, _ in parts])
    assert sorted(seen) == np.flatnonzero(index.fold_of(pairs) >= 0).tolist()


def test_folds_of_blocks_hide_all_crosses_between_related_genes(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs, monkeypatch
) -> None:
    monkeypatch.setattr("wildtype.evidence.pair_index.BLOCK_GENES", 6)
    index = PairIndex(matrix, similarity, 3, learned)
    block = index.blocks(0)
    assert len(np.unique(block)) == 6
    kernel = learned.between(similarity, np.arange(N))
    # Genes of a block are more alike than others.
    same = (block[:, None] == block) & ~np.eye(N, dtype=bool)
    assert kernel[same].mean() > 1.5 * kernel[block[:, None] != block].mean()
    before = list(index.out_of_fold(pairs, 0))[3:]
    for number, (rows, columns) in enumerate(before):
        assert len(rows)
        hidden = {tuple(sorted(block[genes])) for genes in pairs.gene[rows]}
        own = block[matrix.gene]
        cells = np.array([[tuple(sorted((a, b))) in hidden for b in own] for a in own])
        values = np.where(cells & matrix.known, np.float32(0.7), matrix.values)
        other = PairIndex(replace(matrix, values=values), similarity, 3, learned)
        again, after = list(other.out_of_fold(pairs, 0))[3 + number]
        np.testing.assert_array_equal(rows, again)
        np.testing.assert_array_equal(columns, after)


def test_genes_that_look_unseen_leave_no_trace(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    index = PairIndex(matrix, similarity, 3, learned)
    found = list(index.with_unseen_genes(pairs, 4, 0, 1.0))
    counts = np.zeros(len(pairs), np.int64)
    for rows, columns, hidden in found:
        names = index.columns(pairs.take(rows))[0].shape[1]
        assert columns.shape == (len(rows), names)
        # The first column counts unseen genes: those that were hidden, and those without any cross.
        np.testing.assert_array_equal(columns[:, 0], hidden)
        counts[rows] += 1
    assert (counts >= 1).all()
    # Whatever is measured of hidden genes, pairs of two of them are described alike.
    rows, columns, hidden = found[0]
    both = rows[hidden == 2]
    genes = np.unique(pairs.gene[both])
    touched = np.isin(matrix.gene, genes)
    values = np.where(touched[:, None] | touched[None, :], np.float32(0), matrix.values)
    again = next(
        iter(
            PairIndex(replace(matrix, values=values), similarity, 3, learned).with_unseen_genes(
                pairs, 4, 0, 1.0
            )
        )
    )
    np.testing.assert_array_equal(again[1][again[2] == 2], columns[hidden == 2])


def test_more_pairs_of_two_genes_that_look_unseen_are_those_of_further_folds(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    index = PairIndex(matrix, similarity, 3, learned)
    share = np.where(np.arange(len(pairs)) % 2, 1.0, 1e-12)
    found = list(index.with_unseen_genes(pairs, 4, 0, share, again=2))
    assert len(found) == 6
    hidden = np.concatenate([hidden for _, _, hidden in found[:4]])
    rows = np.concatenate([rows for rows, _, _ in found[:4]])
    # Of pairs with one gene in a fold, those that are drawn surely, and no other.
    assert (rows[hidden == 1] % 2 == 1).all()
    assert np.isin(np.arange(1, len(pairs), 2), rows).all()
    more = np.concatenate([rows for rows, _, _ in found[4:]])
    assert len(more)
    assert len(np.unique(more)) == len(more)
    for _, columns, hidden in found[4:]:
        assert (hidden == 2).all()
        np.testing.assert_array_equal(columns[:, 0], 2)


def test_columns_say_the_mean_of_what_is_listed_of_a_gene(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    index = PairIndex(matrix, similarity, 3, learned)
    part = index._part(-1)
    found = dict(zip(part.names, part(pairs.gene, pairs.kind).T, strict=True))
    listed = [
        matrix.values[row][(matrix.values[row] != 0) & matrix.known[row]].tolist()
        for row in range(len(matrix))
    ]
    strain = matrix.find(pairs.gene, pairs.kind)
    for what, of in (("mean", lambda x: x), ("size", abs)):
        every = [of(x) for row in listed for x in row]
        expected = [(sum(map(of, row)) + 3 * sum(every) / len(every)) / (len(row) + 3) for row in listed]
        both = np.array(expected)[strain]
        np.testing.assert_allclose(found[f"listed {what} low"], both.min(axis=1), atol=1e-6)
        np.testing.assert_allclose(found[f"listed {what} high"], both.max(axis=1), atol=1e-6)
        assert not np.isnan(found[f"listed {what} by kernel low"]).any()


def test_an_unseen_gene_is_counted(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel
) -> None:
    strains = np.flatnonzero(matrix.gene != 5)
    index = PairIndex(matrix.part(strains), similarity, 3, learned)
    pairs = Pairs(np.array([[5, 20], [4, 20]]), np.zeros((2, 2), np.uint8))
    columns, unseen = index.columns(pairs)
    assert unseen.tolist() == [1, 0]
    assert columns[:, 0].tolist() == [1.0, 0.0]


def test_neighbours_by_the_learned_kernel_are_those_of_the_largest_kernel(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel
) -> None:
    neighbours = neighbours_of(similarity, matrix, learned)
    kernel = learned.between(similarity, np.arange(N)).astype(np.float64)
    gene, weight = neighbours.gene[-1], neighbours.weight[-1]
    near = {i: [j for j in np.unique(matrix.gene) if j != i and kernel[i, j] > 0] for i in range(N)}
    mean = np.mean([kernel[i, j] for i in near for j in near[i]])
    for i in range(N):
        own = sorted(near[i], key=lambda j: -kernel[i, j])
        np.testing.assert_allclose(kernel[i, gene[i][: len(own)]], kernel[i, own], rtol=1e-4)
        np.testing.assert_allclose(weight[i][: len(own)], kernel[i, own] / mean, rtol=1e-4)
        assert (gene[i][len(own) :] == -1).all()


def test_kernel_columns_are_kernel_ridge_on_completed_residuals(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    hidden = matrix.part(np.flatnonzero(~np.isin(matrix.gene, (3, 8, 20))))
    columns = PairColumns(hidden, similarity, neighbours_of(similarity, matrix, learned))
    found = columns(pairs.gene, pairs.kind)
    additive = Additive.of(hidden)
    residual = np.where(hidden.known, hidden.values - additive.matrix(), np.float32(0))
    solution = low_rank(residual, hidden.known, 120)
    # Of a small matrix, 200 eigenpairs are all there are.
    near = mixed_neighbours(solution, learned.between(similarity, hidden.gene)[hidden.gene])
    filled = np.where(hidden.known, residual, smoothed(residual, hidden.known, near))
    completed = smoothed(filled, np.ones_like(hidden.known), near)
    kernel = learned.between(similarity, hidden.gene).astype(np.float64)
    hat = kernel @ np.linalg.inv(kernel[hidden.gene] + learned.ridge * np.eye(len(hidden)))
    strain = hidden.find(pairs.gene, pairs.kind)
    assert set((strain < 0).sum(axis=1).tolist()) == {0, 1, 2}
    for name, target in (("completed", completed), ("rank", solution.matrix())):
        half = hat @ target.astype(np.float64)
        both = half @ hat.T
        ends = [
            [half[gene[i], at[1 - i]] for i in range(2) if at[1 - i] >= 0]
            for gene, at in zip(pairs.gene, strain, strict=True)
        ]
        for what, of in (("low", min), ("high", max)):
            expected = [of(each) if each else np.nan for each in ends]
            np.testing.assert_allclose(
                column(found, columns.names, f"kernel {name} {what}"), expected, atol=1e-4
            )
        np.testing.assert_allclose(
            column(found, columns.names, f"kernel {name} both"), both[tuple(pairs.gene.T)], atol=1e-4
        )
    expected = [completed[i, j] if min(i, j) >= 0 else np.nan for i, j in strain]
    np.testing.assert_allclose(column(found, columns.names, "completed"), expected, atol=1e-4)
    by_kernel = hat @ (additive.effect - additive.effect.mean())
    np.testing.assert_allclose(
        column(found, columns.names, "effect by kernel high"), by_kernel[pairs.gene].max(axis=1), atol=1e-4
    )


def test_columns_in_units_of_epsilon_and_closed_forms_are_named(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel
) -> None:
    names = PairColumns(matrix, similarity, neighbours_of(similarity, matrix, learned)).names
    up = {name for name, flag in zip(names, rising(names), strict=True) if flag}
    closed = {name for name, flag in zip(names, closed_forms(names), strict=True) if flag}
    assert {"kernel completed low", "two-step ridge", "rank 60", "effect high", "one by profile"} <= up
    assert not {"unseen genes", "rate negative low", "one by profile weight", "alike joint"} & up
    assert {"unseen genes", "completed", "kernel rank both", "rate positive low", "one by profile"} <= closed
    assert {"one by mixed completed", "both by mixed completed"} <= up & closed
    assert not {"two-step ridge", "alike joint", f"one by {LIKE}learned"} & closed


def test_pairs_are_described_where_no_strain_is_visible(
    matrix: PairMatrix, similarity: GeneSimilarity, learned: LearnedKernel, pairs: Pairs
) -> None:
    nothing = PairIndex(matrix.part(np.zeros(0, np.int64)), similarity, 3, learned)
    found, unseen = nothing.columns(pairs)
    assert (unseen == 2).all()
    assert (column(found, nothing.names, "additive") == 0).all()
    assert np.isnan(column(found, nothing.names, "rank 20")).all()
    # Of one fold of genes, all are hidden.
    rows, columns, hidden = next(
        PairIndex(matrix, similarity, 3, learned).with_unseen_genes(pairs, 1, 0, 1.0)
    )
    assert len(rows) == len(pairs) == len(columns)
    assert (hidden == 2).all()
