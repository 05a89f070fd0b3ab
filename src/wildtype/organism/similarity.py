"""How much genes resemble each other: unit vectors of every feature block and relation, and nearest
neighbours.

Legend: n genes · d width of the joint embedding · r neighbours kept per gene.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism.features import GeneFeatures
from wildtype.organism.organism import Organism
from wildtype.seeds import derive

SPECTRAL = 48  # singular vectors kept per relation
BLOCK = 512


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows of a matrix scaled to length 1; rows of zeros stay."""
    norm = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.maximum(norm, 1e-9), dtype=np.float32)


def _spectral(adjacency: sparse.csr_array, width: int, seed: int) -> NDArray[np.float32]:
    """Return unit rows [n, ≤ width]; inner products resemble cosines of degree-normalised rows."""
    from sklearn.utils.extmath import randomized_svd

    n = adjacency.shape[0]
    width = min(width, n - 1)
    if width < 1 or not adjacency.nnz:
        return np.zeros((n, 0), np.float32)
    # Dividing by √in-degree keeps hubs, which neighbour everyone, from dominating cosines.
    into = np.maximum(np.asarray(adjacency.sum(axis=0)).reshape(-1), 1e-9)
    scaled = sparse.csr_array(adjacency @ sparse.diags_array(1 / np.sqrt(into)))
    u, s, _ = randomized_svd(scaled, width, n_oversamples=10, n_iter=3, random_state=seed % 2**32)
    return unit_rows((u * s).astype(np.float32))


def embedding_parts(
    organism: Organism, seed: int, spectral: int = SPECTRAL
) -> dict[str, NDArray[np.float32]]:
    """Return unit (or zero) rows [n, ·] by name: of every wider feature block, and of positions in every
    relation.

    Directed relations give two parts. ``spectral`` is the number of singular vectors kept per relation.
    """
    n = len(organism.genes)
    parts = {}
    for block in organism.features.values():
        matrix, _ = GeneFeatures([block]).matrix(n)
        matrix = matrix.copy()
        matrix[~np.isfinite(block.values).any(axis=1)] = 0
        if matrix.shape[1] > 1:
            parts[block.name] = unit_rows(matrix)
    for at, relation in enumerate(organism.graphs.values()):
        sides = {relation.name: relation.adjacency}
        if relation.directed:
            sides[f"{relation.name} reversed"] = relation.transpose
        for s, (name, side) in enumerate(sides.items()):
            parts[f"graph {name}"] = _spectral(side, spectral, derive(seed, f"spectral {at}", s))
    return parts


def joint_embedding(organism: Organism, seed: int) -> NDArray[np.float32]:
    """Return unit rows [n, d]: feature blocks and spectral positions in every relation, equally weighted.

    The inner product of two rows is the mean, over what is known of both, of their cosines.
    """
    parts = list(embedding_parts(organism, seed).values())
    return (
        unit_rows(np.concatenate(parts, axis=1)) if parts else np.zeros((len(organism.genes), 0), np.float32)
    )


def nearest(
    unit: NDArray[np.float32] | sparse.csr_array, among: NDArray[np.int64], count: int, floor: float
) -> sparse.csr_array:
    """Return [n, n]: the ``count`` genes of ``among`` nearest to every gene, by cosine above ``floor``.

    ``unit`` [n, d] has unit (or zero) rows, dense or sparse; the weight of an edge is the cosine.
    """
    others = unit[among].T if len(among) else unit.T

    def cosine(block: NDArray[np.int64]) -> NDArray[np.float32]:
        product = unit[block] @ others
        return product if isinstance(product, np.ndarray) else product.toarray()

    return strongest(cosine, unit.shape[0], among, count if unit.shape[1] else 0, floor)


def strongest(
    weight: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    n: int,
    among: NDArray[np.int64],
    count: int,
    floor: float,
) -> sparse.csr_array:
    """Return [n, n]: for every gene the ``count`` of ``among`` [a] of largest weight above ``floor``.

    ``weight`` gives the weights [b, a] of a block of genes [b], as an array of its own; none below -1.
    """
    import torch

    count = min(count, len(among))
    rows, cols, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for start in range(0, n if count else 0, BLOCK):
        block = np.arange(start, min(start + BLOCK, n))
        weights = weight(block)
        # A gene is not its own neighbour.
        weights[among[None, :] == block[:, None]] = -1
        # NumPy's partition takes five times as long, and chooses among equal weights by the processor.
        found, top = (x.numpy() for x in torch.from_numpy(weights).topk(count, dim=1))
        row, at = np.nonzero(found > floor)
        rows.append(block[row])
        cols.append(among[top[row, at]])
        values.append(found[row, at])
    out = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(n, n)
    )
    out.sort_indices()
    return out
