"""Degrees and spectral positions read off gene graphs."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.organism import GeneGraphs, Relation
from wildtype.organism.graph_features import graph_features, spectral_components


def random_relation(n: int, edges: int, seed: int = 0, directed: bool = False, name: str = "r") -> Relation:
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, (2, edges))
    return Relation.from_edges(name, rows, cols, n, rng.random(edges) + 0.5, directed=directed)


def reference(relation: Relation, nodes: np.ndarray) -> np.ndarray:
    a = relation.adjacency.toarray().astype(np.float64)
    a = ((a + a.T) / 2)[np.ix_(nodes, nodes)]
    root = 1 / np.sqrt(a.sum(1))
    return root[:, None] * a * root


def test_degrees_are_logs_of_out_and_in() -> None:
    arrow = Relation.from_edges("arrow", [0, 0, 1], [1, 2, 2], 4, directed=True)
    line = Relation.from_edges("line", [0, 1], [1, 2], 4, directed=False)
    blocks = graph_features(GeneGraphs([arrow, line]))
    assert [b.name for b in blocks] == ["degrees"]
    assert blocks[0].columns == ("arrow.out", "arrow.in", "line")
    np.testing.assert_allclose(
        np.expm1(blocks[0].values), [[2, 0, 1], [1, 1, 2], [0, 2, 1], [0, 0, 0]], atol=1e-6
    )


@pytest.mark.parametrize(("n", "edges"), [(60, 400), (400, 3000)])
@pytest.mark.parametrize("directed", [False, True])
def test_components_are_the_leading_eigenvectors(n: int, edges: int, directed: bool) -> None:
    relation = random_relation(n, edges, directed=directed)
    vectors = spectral_components(relation, 8)
    nodes = np.flatnonzero(np.isfinite(vectors).all(1))
    assert vectors.shape == (n, 8)
    assert len(nodes) > 0.9 * n
    matrix, v = reference(relation, nodes), vectors[nodes].astype(np.float64)
    values = np.sort(np.linalg.eigvalsh(matrix))[::-1]
    np.testing.assert_allclose(matrix @ v, v * values[1:9], atol=2e-5)
    np.testing.assert_allclose(v.T @ v / len(nodes), np.eye(8), atol=1e-4)
    assert (v[np.abs(v).argmax(0), np.arange(8)] > 0).all()


def test_components_of_a_large_graph_are_eigenvectors_as_far_as_float32_can_show() -> None:
    n, size = 10_400, 650  # sixteen groups of unequal size, joined by few edges
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n, 60_000)
    within = rows // size * size + rng.integers(0, size, rows.size)
    cols = np.where(
        rng.random(rows.size) < 0.9 - 0.02 * (rows // size), within, rng.integers(0, n, rows.size)
    )
    relation = Relation.from_edges("groups", rows, cols, n, directed=False)
    vectors = spectral_components(relation, 6)
    nodes = np.flatnonzero(np.isfinite(vectors).all(1))
    assert len(nodes) > 10_000
    a = relation.restrict(nodes).adjacency.astype(np.float64)
    root = 1 / np.sqrt(a.sum(1))
    v = vectors[nodes].astype(np.float64)
    product = root[:, None] * (a @ (root[:, None] * v))
    values = (v * product).mean(0)
    np.testing.assert_allclose(product, v * values, atol=1e-4)
    np.testing.assert_allclose(v.T @ v / len(nodes), np.eye(6), atol=1e-4)
    assert (np.diff(values) < 0).all()
    np.testing.assert_array_equal(spectral_components(relation, 6), vectors)


def test_components_repeat_and_survive_a_new_order_of_genes() -> None:
    relation = random_relation(400, 3000)
    once, twice = spectral_components(relation, 6), spectral_components(relation, 6)
    np.testing.assert_array_equal(once, twice)
    order = np.random.default_rng(1).permutation(400)
    np.testing.assert_allclose(spectral_components(relation.restrict(order), 6), once[order], atol=1e-4)


def test_only_the_largest_part_has_positions() -> None:
    star = [(0, i) for i in range(1, 6)]
    pair = [(7, 8)]
    rows, cols = zip(*star, *pair, strict=True)
    relation = Relation.from_edges("parts", rows, cols, 10, directed=False)
    vectors = spectral_components(relation, 16)
    assert vectors.shape == (10, 5)
    assert np.isfinite(vectors[:6]).all()
    assert np.isnan(vectors[6:]).all()


def test_small_and_empty_relations_get_no_positions() -> None:
    empty = Relation.from_edges("empty", [], [], 5, directed=False)
    assert spectral_components(empty, 4).shape == (5, 0)
    graphs = GeneGraphs([empty, random_relation(5, 9, name="small")])
    assert [b.name for b in graph_features(graphs)] == ["degrees"]
    assert [b.name for b in graph_features(graphs, minimum_edges=1)] == ["degrees", "spectral.small"]
    assert graph_features(GeneGraphs()) == []


def test_note_and_source_of_the_relation_go_with_its_positions() -> None:
    relation = Relation.from_edges(
        "ppi", *np.triu_indices(40, 1), 40, directed=False, source="a screen", note="may leak"
    )
    block = graph_features(GeneGraphs([relation]))[1]
    assert block.note == "may leak"
    assert "a screen" in block.source
    assert block.values.dtype == np.float32
