from __future__ import annotations

import numpy as np

from wildtype.evidence.pair_features import PairFeatures
from wildtype.mutants import MutantTable


def dense(world, name):
    return world.organism.graphs[name].adjacency.toarray()


def test_pair_columns_equal_their_definitions(world):
    table = world.pairs
    features = PairFeatures(world.organism, table, world.fitness)
    values = features(table)
    found = {name: values[:, at] for at, name in enumerate(features.names)}
    a, b = table.matrix(2).T
    undirected, directed = dense(world, "complex"), dense(world, "regulation")
    np.testing.assert_allclose(found["complex weight mean"], undirected[a, b])
    np.testing.assert_allclose(
        found["regulation weight max mean"], np.maximum(directed[a, b], directed[b, a])
    )
    np.testing.assert_allclose(
        found["regulation weight min mean"], np.minimum(directed[a, b], directed[b, a])
    )
    for side, matrix in (("targets", directed), ("sources", directed.T)):
        links = (matrix > 0).astype(float)
        common = (links @ links.T)[a, b]
        degree = links.sum(1)
        np.testing.assert_allclose(found[f"regulation {side} common mean"], common)
        union = np.maximum(degree[a] + degree[b] - common, 1)
        np.testing.assert_allclose(found[f"regulation {side} jaccard mean"], common / union, rtol=1e-5)
        norm = np.maximum(np.linalg.norm(matrix, axis=1), 1e-12)
        cosine = (matrix @ matrix.T)[a, b] / (norm[a] * norm[b])
        np.testing.assert_allclose(found[f"regulation {side} cosine mean"], cosine, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["regulation out degree min"], np.minimum(*(directed > 0).sum(1)[[a, b]]))
    f = world.fitness
    np.testing.assert_allclose(found["fitness product"], f[a] * f[b], rtol=1e-6)
    np.testing.assert_allclose(found["fitness sum"], f[a] + f[b], rtol=1e-6)
    assert np.isnan(found["profile cosine mean"][(a == 3) | (b == 3)]).all()
    assert np.isfinite(found["profile cosine mean"][(a != 3) & (b != 3)]).all()


def test_triples_aggregate_their_pairs(world):
    triples = MutantTable.from_sets([(0, 8, 1), (2, 10, 18), (0, 1, 2)])
    features = PairFeatures(world.organism, triples, None)
    whole = features(triples)
    values = dict(zip(features.names, whole.T, strict=True))
    np.testing.assert_allclose(values["complex weight mean"], [1 / 3, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(values["complex weight max"], [1, 1, 0])
    np.testing.assert_allclose(values["complex weight min"], [0, 1, 0])


def test_unknown_single_fitness_stays_unknown(world):
    fitness = world.fitness.copy()
    fitness[0] = np.nan
    features = PairFeatures(world.organism, world.pairs, fitness)
    table = MutantTable.from_sets([(0, 1), (1, 2)])
    whole = features(table)
    values = dict(zip(features.names, whole.T, strict=True))
    assert np.isnan(values["fitness product"]).tolist() == [True, False]
    assert values["fitness min"][0] == fitness[1]
