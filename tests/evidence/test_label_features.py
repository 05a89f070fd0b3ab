from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from wildtype.evidence.label_features import SHRINK, LabelFeatures
from wildtype.evidence.similarity import profile_graph, similarity_graphs
from wildtype.mutants import MutantTable
from wildtype.organism.similarity import nearest


def graph(edges, n=8):
    matrix = np.zeros((n, n), np.float32)
    for a, b, w in edges:
        matrix[a, b] = matrix[b, a] = w
    return sparse.csr_array(matrix)


def column_values(evidence, sets, **columns):
    """All features of the rows, without NaN, as a set of rounded numbers per row."""
    found = evidence(MutantTable.from_sets(sets, **columns))
    return [set(np.round(row[~np.isnan(row)].astype(float), 4)) for row in found]


def test_one_sided_and_two_sided_means_of_a_pair_equal_their_definitions():
    # 0 ~ 2 (weight 1), 0 ~ 3 (weight 3), 1 ~ 4 (weight 2); asked: (0, 1).
    joint = graph([(0, 2, 1.0), (0, 3, 3.0), (1, 4, 2.0)])
    seen = MutantTable.from_sets(
        [(1, 2), (1, 3), (2, 4), (3, 4), (5, 6)], value=[1.0, 5.0, 10.0, 20.0, -36.0]
    )
    evidence = LabelFeatures(seen, 8, {"joint": joint}, centre=0.0, several=False)
    values = column_values(evidence, [(0, 1)])[0]
    assert (1 * 1 + 3 * 5) / 4 in values  # genes 2 and 3 in the place of 0
    assert (2 * 10 + 6 * 20) / 8 in values  # (2, 4) and (3, 4) in the place of (0, 1)
    assert round(6 / (2 + SHRINK), 4) in values  # shrunken mean of gene 1
    assert (
        round((1 * 11 + 3 * 25) / (1 * 2 + 3 * 2), 4) in values
    )  # mean label of the genes around the unseen gene 0


def test_an_own_label_or_any_label_of_unrelated_rows_never_enters():
    joint = graph([(0, 1, 1.0), (0, 2, 1.0)])
    sets = [(0, 1), (0, 2), (3, 4), (5, 6)]
    base = [1.0, 2.0, 3.0, -6.0]
    asked = MutantTable.from_sets([(0, 7)])

    def features(values):
        return LabelFeatures(
            MutantTable.from_sets(sets, value=values), 8, {"joint": joint}, centre=0.0, several=False
        )(asked)

    # Nothing near (0, 7) has to do with rows (3, 4) and (5, 6).
    np.testing.assert_allclose(features(base), features([1.0, 2.0, -6.0, 30.0]))
    changed = features([4.0, 2.0, 3.0, -6.0])
    assert not np.array_equal(np.nan_to_num(features(base)), np.nan_to_num(changed))


def test_triples_see_rows_that_share_all_genes_but_one_and_the_row_less_one_gene():
    joint = graph([(2, 3, 1.0)])
    seen = MutantTable.from_sets([(0, 1, 3), (0, 1, 4), (0, 1), (5, 6, 7)], value=[8.0, 4.0, -3.0, -9.0])
    evidence = LabelFeatures(seen, 8, {"joint": joint}, centre=0.0, several=True)
    values = column_values(evidence, [(0, 1, 2)])[0]
    assert 8.0 in values  # 3 in the place of 2
    assert round(12 / (2 + SHRINK), 4) in values  # all rows with 0, 1 and one other gene
    assert -3.0 in values  # the pair (0, 1) itself


def test_singles_and_conditions():
    joint = graph([(0, 1, 2.0), (0, 2, 1.0)])
    seen = MutantTable.from_sets(
        [(1,), (2,), (1,), (2,)], value=[1.0, 4.0, -1.0, -4.0], condition=[0, 0, 1, 1]
    )
    evidence = LabelFeatures(seen, 8, {"joint": joint}, centre=0.0, several=False)
    first, second, other = column_values(evidence, [(0,), (0,), (0,)], condition=[0, 1, 2])
    assert other == {0.0}
    assert 2.0 in first
    assert -2.0 in second
    assert -2.0 not in first


@pytest.mark.parametrize("several", [False, True])
def test_nothing_seen_gives_no_number_but_counts(several):
    seen = MutantTable.from_sets([(6, 7)], value=[1.0])
    evidence = LabelFeatures(seen, 8, {"joint": graph([(0, 1, 1.0)])}, centre=0.0, several=several)
    found = evidence(MutantTable.from_sets([(0, 1), (2,), ()]))
    assert set(np.unique(found[~np.isnan(found)])) <= {0.0}


def test_similarity_graphs_have_no_loops_and_join_modules(world):
    graphs = similarity_graphs(world.organism, np.arange(0, 40), seed=0)
    assert list(graphs) == ["complex", "regulation", "joint"]
    for matrix in graphs.values():
        assert not matrix.diagonal().any()
        assert (matrix.data > 0).all()
    first = graphs["joint"].toarray().argmax(1)
    assert np.mean(first % 8 == np.arange(40) % 8) > 0.5


def test_nearest_keeps_to_the_genes_allowed_and_their_number():
    embedding = np.random.default_rng(0).random((30, 4)).astype(np.float32)
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    found = nearest(embedding, np.arange(0, 30, 2), 5, 0.0)
    assert (np.diff(found.indptr) <= 5).all()
    assert not (found.indices % 2).any()
    cosine = embedding @ embedding.T
    np.fill_diagonal(cosine, -1)
    assert (
        found.toarray().argmax(1).tolist()
        == (np.where(np.arange(30) % 2 == 0, cosine, -1)).argmax(1).tolist()
    )


def test_profile_graph_joins_genes_whose_labels_agree():
    labels = np.zeros((6, 6), np.float32)
    labels[0, 3:] = labels[3:, 0] = [1.0, -1.0, 2.0]
    labels[1, 3:] = labels[3:, 1] = [0.9, -1.2, 2.1]
    labels[2, 3:] = labels[3:, 2] = [-1.0, 1.0, -2.0]
    found = profile_graph(sparse.csr_array(labels)).toarray()
    a, b = labels[0], labels[1]
    # Every partner has equally many labels, so that their weights cancel.
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    np.testing.assert_allclose(found[0, 1], cosine**2, rtol=1e-5)
    assert found[0, 2] == 0
    assert not found.diagonal().any()


def test_genes_that_interact_alike_lend_their_labels_without_any_other_graph():
    sets = [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (1, 5), (0, 6), (6, 7)]
    value = [1.0, -1.0, 2.0, 1.0, -1.0, 2.0, 7.0, 0.5, -11.5]
    evidence = LabelFeatures(
        MutantTable.from_sets(sets, value=value), 8, {"joint": graph([])}, centre=0.0, several=False
    )
    assert 7.0 in column_values(evidence, [(0, 5)])[0]
