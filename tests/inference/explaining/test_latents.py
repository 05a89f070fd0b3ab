from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.decomposition import PCA

from tests.inference.explaining.models import opened
from wildtype.evidence.reference import PARTS
from wildtype.inference.explaining.latents import (
    Latents,
    clustered,
    latents,
    overrepresented,
    principal,
    sample,
    silhouettes,
    whole_cell,
)
from wildtype.inference.explaining.members import members_of


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    centres = 10 * draw.normal(size=(3, 6))
    truth = np.repeat([0, 1, 2], [30, 20, 10])
    return centres[truth] + draw.normal(size=(60, 6)), truth


def test_components_are_those_of_pca() -> None:
    z, _ = blobs()
    xy, share = principal(z)
    pca = PCA(2).fit(z)
    np.testing.assert_allclose(np.abs(xy), np.abs(pca.transform(z)), atol=1e-9)
    assert share == pytest.approx(tuple(pca.explained_variance_ratio_))
    flat, share = principal(z[:, :1])
    assert flat.shape == (60, 2)
    assert share == pytest.approx((1, 0))


def test_planted_clusters_are_found_the_largest_first() -> None:
    z, truth = blobs()
    scores = silhouettes(z, 0)
    assert max(scores, key=lambda count: scores[count]) == 3
    np.testing.assert_array_equal(clustered(z, 3, 0), truth)


def test_what_a_cluster_has_more_of_is_hypergeometric() -> None:
    draw = np.random.default_rng(1)
    _, labels = blobs()
    has = draw.random((60, 12)) < 0.2
    has[:, 5] = labels == 1
    found = overrepresented(sparse.csr_array(has * 1.0), labels, [f"g{i}" for i in range(12)], "gene")
    size = np.bincount(labels)
    inside = np.array([has[labels == c].sum(0) for c in range(3)])
    p = np.array(
        [
            [stats.hypergeom.sf(inside[c, j] - 1, 60, has[:, j].sum(), size[c]) for j in range(12)]
            for c in range(3)
        ]
    )
    q = stats.false_discovery_control(p.reshape(-1)).reshape(p.shape)
    assert [one.name for one in found[1]] == ["g5"]
    assert found[1][0].q == pytest.approx(q[1, 5])
    assert (found[1][0].inside, found[1][0].outside, found[1][0].fold) == (20, 0, pytest.approx(3))
    shuffled = draw.permutation(labels)
    assert not any(overrepresented(sparse.csr_array(has * 1.0), shuffled, ["?"] * 12, "gene"))


def test_latents_of_a_run(tiny_run: Path) -> None:
    members = members_of([opened(tiny_run), opened(tiny_run)])
    found = latents(members, (), mutants=40, seed=0, top=3)
    assert isinstance(found, Latents)
    assert len(found.genes) == len(found.x) == len(found.cluster) <= 40
    assert sum(cluster.mutants for cluster in found.clusters) == len(found.genes)
    # The same model twice agrees with itself.
    assert found.distances_agree == pytest.approx(1)
    assert found.clusters_agree == pytest.approx(1)
    for cluster in found.clusters:
        assert cluster.overlap.mean == pytest.approx(1)
        assert all(one.found_in == 2 for one in cluster.genes)
    table, _, _ = sample(members[0].checkpoint, 40, 0)
    z = whole_cell(members[0], table)
    at = np.array(found.cluster)
    checkpoint = members[0].checkpoint
    typical = {one.phenotype: one for one in found.clusters[0].phenotypes}
    inside = {found.genes[i] for i in np.flatnonzero(at == 1)}
    names, known = checkpoint.genes.names, checkpoint.known
    values = [
        float(known.table.value[row])
        for row, genes in enumerate(known.table.sets())
        if known.table.phenotype[row] == 1 and tuple(names[g] for g in genes) in inside
    ]
    assert typical["epsilon"].median == pytest.approx(np.median(values))
    assert z.shape == (len(found.genes), 16)


def test_test_rows_are_taken_where_there_are_enough(tiny_run: Path) -> None:
    checkpoint = opened(tiny_run).predictor.checkpoint
    held = int((checkpoint.known.part == PARTS.index("test")).sum())
    table, measured, drawn = sample(checkpoint, held, 0)
    assert len(table) == held
    assert "test rows" in drawn
    assert len(measured) == len(checkpoint.known.table)
    table, _, drawn = sample(checkpoint, 10**6, 0)
    assert "all known mutants" in drawn
    keys = {
        tuple(zip(genes, kinds, strict=True))
        for genes, kinds in zip(table.sets(), np.split(table.kind, table.offsets[1:-1]), strict=True)
    }
    assert len(keys) == len(table)
