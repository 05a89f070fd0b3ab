"""Positive semidefinite kernels of genes as feature maps: inner products of rows are similarities.

Each part of an organism (a relation, a table of annotations, complexes, a block of features) gives a map
whose rows have unit length, or are zero where nothing is known of the gene. The joint kernel is a weighted
sum of the cosines of all parts, by weights of `wildtype.evidence.kernel_weights`, and its map has a few
hundred columns.

Legend: n genes · t sets or columns · d width of the joint map.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.gene_sets import sets_of_metabolism
from wildtype.organism.organism import Organism
from wildtype.organism.relations import Relation
from wildtype.organism.similarity import unit_rows
from wildtype.seeds import derive

WIDTH = 384
"""Columns of the joint map."""
SMALL = 3
"""Blocks of up to so many columns are traits."""
GRAPH_BLOCKS = ("spectral.", "degrees")
"""Begin the names of the blocks that are made of relations."""
SELF = 0.5
"""Weight of a gene as its neighbour, so that direct neighbours resemble each other without common ones."""
COMPLEX = "complex"


def gene_kernel_map(
    maps: Mapping[str, sparse.csr_array],
    weights: Mapping[str, float],
    genes: NDArray[np.int64],
    width: int = WIDTH,
    *,
    seed: int = 0,
) -> NDArray[np.float32]:
    """Return the map [n, ≤ d] of the weighted sum of kernels.

    Columns are the directions of largest variance among ``genes``, those with labels (randomised SVD, Halko,
    Martinsson & Tropp, SIAM Review 53, 2011); other genes are projected on them. Without a part of positive
    weight it has one column of zeros.
    """
    from sklearn.utils.extmath import randomized_svd

    n = next(iter(maps.values())).shape[0] if maps else 0
    # Joined columns add kernels: [Φ₁ Φ₂][Φ₁ Φ₂]ᵀ = K₁ + K₂.
    parts = [maps[name] * math.sqrt(weight) for name, weight in weights.items() if weight > 0]
    if not parts:
        return np.zeros((n, 1), np.float32)
    joined = sparse.csr_array(sparse.hstack(parts, format="csr"), dtype=np.float32)
    own = joined[genes]
    width = min(width, *own.shape)
    _, _, axes = randomized_svd(own, width, n_iter=3, random_state=derive(seed, "gene kernel") % 2**32)
    return np.ascontiguousarray(joined @ axes.T, dtype=np.float32)


def kernel_maps(organism: Organism) -> dict[str, sparse.csr_array]:
    """Return feature maps [n, ·] by name, with unit or zero rows.

    Relations give cosines of neighbours, tables of 0 and 1 tf-idf cosines, the metabolism common complexes,
    and other blocks of more than three columns cosines of standardised values. Features made of relations
    are left out, since the relations stand beside them.
    """
    n = len(organism.genes)
    maps: dict[str, sparse.csr_array] = {}
    for relation in organism.graphs.values():
        if relation.nnz:
            maps |= {f"graph {name}": of for name, of in _of_relation(relation).items()}
    if organism.metabolism is not None:
        for sets in sets_of_metabolism(organism.metabolism, organism.genes):
            if sets.kind == COMPLEX and sets.table.nnz:
                maps["complexes"] = membership_map(sets.table)
    for name, block in organism.features.items():
        if block.values.shape[1] > SMALL and not name.startswith(GRAPH_BLOCKS):
            maps[name] = _of_block(block, n)
    return maps


def annotation_map(table: sparse.csr_array) -> sparse.csr_array:
    """Return the tf-idf map [n, t] of a table of 0 and 1: a term of c genes weighs log((n + 1) / (c + 1))."""
    return _unit(_idf(table))


def membership_map(table: sparse.csr_array) -> sparse.csr_array:
    """Return the map [n, t] of a table of memberships: a set of c genes weighs 1 / √c."""
    size = np.maximum(np.asarray(table.sum(axis=0)).reshape(-1), 1)
    return _unit(sparse.csr_array(table @ sparse.diags_array(1 / np.sqrt(size))))


def neighbour_map(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return unit rows [n, n] of D^-½ A D^-½ + ½ I of a symmetric relation; genes without edges are 0."""
    degree = np.asarray(adjacency.sum(axis=1)).reshape(-1)
    some = degree > 0
    # Hubs are everyone's neighbours: both ends divide by the root of their degree.
    root = sparse.diags_array(np.where(some, 1 / np.sqrt(np.where(some, degree, 1)), 0))
    return _unit(sparse.csr_array(root @ adjacency @ root + SELF * sparse.diags_array(some.astype(float))))


def _of_relation(relation: Relation) -> dict[str, sparse.csr_array]:
    if not relation.directed:
        return {relation.name: neighbour_map(relation.adjacency)}
    # A regulator and its target play different parts: common targets and common regulators are two kernels.
    return {
        f"{relation.name} out": _unit(_idf(relation.adjacency)),
        f"{relation.name} in": _unit(_idf(relation.transpose)),
    }


def _of_block(block: FeatureBlock, n: int) -> sparse.csr_array:
    known = np.isfinite(block.values).any(axis=1)
    values = np.nan_to_num(block.values)
    if np.isin(values, (0, 1)).all():
        return annotation_map(sparse.csr_array(values.astype(np.float64)))
    matrix = GeneFeatures([block]).matrix(n)[0].copy()
    # Standardised missing values are means, which would make unknown genes alike.
    matrix[~known] = 0
    return sparse.csr_array(unit_rows(matrix).astype(np.float64))


def _idf(table: sparse.csr_array) -> sparse.csr_array:
    carriers: NDArray[Any] = np.bincount(table.indices, minlength=table.shape[1])
    return sparse.csr_array(table @ sparse.diags_array(np.log((table.shape[0] + 1) / (carriers + 1))))


def _unit(table: sparse.csr_array) -> sparse.csr_array:
    length = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).reshape(-1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(length, 1e-12)) @ table)
