"""Feature maps of genes against kernels computed gene by gene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs
from wildtype.organism.gene_kernels import (
    annotation_map,
    gene_kernel_map,
    kernel_maps,
    membership_map,
    neighbour_map,
)


def cosines(rows: np.ndarray) -> np.ndarray:
    """Return cosines of all pairs of rows, 0 for rows of zeros."""
    out = np.zeros((len(rows), len(rows)))
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            length = np.linalg.norm(a) * np.linalg.norm(b)
            out[i, j] = a @ b / length if length else 0.0
    return out


def inner(of: sparse.csr_array) -> np.ndarray:
    return (of @ of.T).toarray()


def test_sets_give_tf_idf_and_size_weighted_cosines() -> None:
    table = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]], float)
    size = table.sum(0)
    sets = sparse.csr_array(table)
    np.testing.assert_allclose(inner(annotation_map(sets)), cosines(table * np.log(5 / (size + 1))))
    np.testing.assert_allclose(inner(membership_map(sets)), cosines(table / np.sqrt(size)))


def test_neighbours_give_cosines_of_normalised_rows_and_nothing_for_genes_without_any() -> None:
    edges = np.zeros((5, 5))
    for a, b, w in [(0, 1, 1.0), (0, 2, 2.0), (1, 3, 0.5)]:
        edges[a, b] = edges[b, a] = w
    degree = edges.sum(1)
    root = np.array([1 / np.sqrt(d) if d else 0 for d in degree])
    rows = root[:, None] * edges * root + 0.5 * np.diag(degree > 0)
    found = inner(neighbour_map(sparse.csr_array(edges)))
    np.testing.assert_allclose(found, cosines(rows), atol=1e-12)
    assert not found[4].any()


def test_an_organism_gives_one_map_per_relation_side_and_block(world) -> None:
    annotated = np.zeros((40, 5), np.float32)
    annotated[np.arange(30), np.arange(30) % 5] = 1
    blocks = [
        *world.organism.features.values(),
        FeatureBlock("terms", annotated, tuple("vwxyz")),
        FeatureBlock(
            "spectral.complex", np.random.default_rng(0).random((40, 6), np.float32), tuple("abcdef")
        ),
    ]
    maps = kernel_maps(replace(world.organism, features=GeneFeatures(blocks)))
    # Short blocks are no profile, and features of relations repeat the relations.
    assert list(maps) == ["graph complex", "graph regulation out", "graph regulation in", "profile", "terms"]
    for of in maps.values():
        length = np.sqrt(np.diag(inner(of)))
        assert (np.isclose(length, 1, atol=1e-6) | (length == 0)).all()
    # Gene 3 has no profile, genes from 30 on have no term.
    assert not inner(maps["profile"])[3].any()
    np.testing.assert_allclose(inner(maps["terms"]), inner(annotation_map(sparse.csr_array(annotated))))


def test_a_wide_joint_map_is_the_weighted_sum_of_kernels(world) -> None:
    maps = kernel_maps(world.organism)
    weights = {name: 0.1 * (at + 1) for at, name in enumerate(maps)}
    phi = gene_kernel_map(maps, weights, np.arange(40))
    want = sum(weights[name] * inner(of) for name, of in maps.items())
    np.testing.assert_allclose(phi @ phi.T, want, atol=1e-5)
    # Other genes are projected on the directions of those with labels, which keeps kernels between them.
    some = np.arange(0, 40, 2)
    part = gene_kernel_map(maps, weights, some)
    assert part.shape[1] <= len(some)
    np.testing.assert_allclose(part[some] @ part[some].T, want[np.ix_(some, some)], atol=1e-5)
    np.testing.assert_allclose(part @ part[some].T, want[:, some], atol=1e-5)
    narrow = gene_kernel_map(maps, weights, np.arange(40), 3)
    values, vectors = np.linalg.eigh(want)
    best = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    np.testing.assert_allclose(narrow @ narrow.T, best, atol=0.05)


def test_an_organism_without_parts_has_no_map(world) -> None:
    bare = replace(world.organism, graphs=GeneGraphs(), features=GeneFeatures())
    assert kernel_maps(bare) == {}
