"""Who resembles whom: the gene graphs over which labels are propagated.

Legend: n genes · d width of the joint embedding · r neighbours kept per gene.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism import GeneFeatures, Organism
from wildtype.seeds import derive

NEIGHBOURS = 40  # neighbours kept per gene in the joint graph
SPECTRAL = 48  # singular vectors kept per relation
PROFILE_NEIGHBOURS = 80
PROFILE_FLOOR = 0.03  # cosines of label profiles below this are chance
PROFILE_PRIOR = 10
BLOCK = 512


def _unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.maximum(norm, 1e-9), dtype=np.float32)


def _spectral(adjacency: sparse.csr_array, seed: int) -> NDArray[np.float32]:
    """Return unit rows [n, ≤ SPECTRAL]; inner products resemble cosines of degree-normalised rows."""
    from sklearn.utils.extmath import randomized_svd

    n = adjacency.shape[0]
    width = min(SPECTRAL, n - 1)
    if width < 1 or not adjacency.nnz:
        return np.zeros((n, 0), np.float32)
    into = np.maximum(np.asarray(adjacency.sum(axis=0)).reshape(-1), 1e-9)
    scaled = sparse.csr_array(adjacency @ sparse.diags_array(1 / np.sqrt(into)))
    u, s, _ = randomized_svd(scaled, width, n_oversamples=10, n_iter=3, random_state=seed % 2**32)
    return _unit_rows((u * s).astype(np.float32))


def joint_embedding(organism: Organism, seed: int) -> NDArray[np.float32]:
    """Return unit rows [n, d]: feature blocks and spectral positions in every relation, equally weighted.

    The inner product of two rows is the mean, over what is known of both, of their cosines.
    """
    n = len(organism.genes)
    parts = []
    for block in organism.features.values():
        matrix, _ = GeneFeatures([block]).matrix(n)
        matrix = matrix.copy()
        matrix[~np.isfinite(block.values).any(axis=1)] = 0
        if matrix.shape[1] > 1:
            parts.append(_unit_rows(matrix))
    for at, relation in enumerate(organism.graphs.values()):
        sides = [relation.adjacency, relation.transpose] if relation.directed else [relation.adjacency]
        parts += [_spectral(side, derive(seed, f"spectral {at}", s)) for s, side in enumerate(sides)]
    return _unit_rows(np.concatenate(parts, axis=1)) if parts else np.zeros((n, 0), np.float32)


def nearest(
    unit: NDArray[np.float32] | sparse.csr_array, among: NDArray[np.int64], count: int, floor: float
) -> sparse.csr_array:
    """Return [n, n]: the ``count`` genes of ``among`` nearest to every gene, by cosine above ``floor``.

    ``unit`` [n, d] has unit (or zero) rows, dense or sparse; the weight of an edge is the cosine.
    """
    n = unit.shape[0]
    count = min(count, len(among))
    rows, cols, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    others = unit[among].T if count else unit.T
    for start in range(0, n if count and unit.shape[1] else 0, BLOCK):
        block = np.arange(start, min(start + BLOCK, n))
        product = unit[block] @ others
        cosine = product if isinstance(product, np.ndarray) else product.toarray()
        cosine[among[None, :] == block[:, None]] = -1
        top = np.argpartition(-cosine, count - 1, axis=1)[:, :count]
        found = np.take_along_axis(cosine, top, axis=1)
        row, at = np.nonzero(found > floor)
        rows.append(block[row])
        cols.append(among[top[row, at]])
        values.append(found[row, at])
    out = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(n, n)
    )
    out.sort_indices()
    return out


def profile_graph(labels: sparse.csr_array) -> sparse.csr_array:
    """Return [n, n]: for every gene those with the most similar label profile, weight = cosine².

    Genes of one pathway interact with the same partners (Costanzo et al., Science 353:aaf1420, 2016).
    Partners with many labels say less and are weighed down by the root of their number.

    Parameters
    ----------
    labels : csr [n, n]
        The seen label of every gene pair, symmetric; pairs without one count as 0.
    """
    partners = np.diff(labels.indptr) + PROFILE_PRIOR
    unit = labels.astype(np.float32)
    unit.data = unit.data / np.sqrt(partners[unit.indices]).astype(np.float32)
    norm = np.sqrt(np.asarray(unit.multiply(unit).sum(axis=1)).reshape(-1))
    unit.data = unit.data / np.repeat(np.maximum(norm, 1e-9), np.diff(unit.indptr)).astype(np.float32)
    out = nearest(unit, np.flatnonzero(norm > 0), PROFILE_NEIGHBOURS, PROFILE_FLOOR)
    out.data = out.data**2
    return out


def similarity_graphs(
    organism: Organism, measured: NDArray[np.int64], seed: int
) -> dict[str, sparse.csr_array]:
    """Return gene graphs by name, each csr [n, n] with positive weights and no self-loops.

    One graph per relation (both directions of a directed one), and ``joint``: the nearest ``measured`` genes
    over all feature blocks and relations, with cosine³ for a weight.
    """
    graphs: dict[str, sparse.csr_array] = {}
    for relation in organism.graphs.values():
        adjacency = relation.adjacency
        if relation.directed:
            adjacency = sparse.csr_array(adjacency + relation.transpose)
        if adjacency.nnz:
            graphs[relation.name] = adjacency
    joint = nearest(joint_embedding(organism, seed), measured, NEIGHBOURS, 0.05)
    joint.data = joint.data**3
    graphs["joint"] = joint
    return graphs
