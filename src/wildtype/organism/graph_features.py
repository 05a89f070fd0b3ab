"""Features of genes that are read off the gene graphs: degrees and spectral positions.

Legend: n genes · k nodes of a relation's largest connected part · f columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import eigsh

from wildtype.organism.features import FeatureBlock
from wildtype.organism.relations import GeneGraphs, Relation

DEGREES = "degrees"
SPECTRAL = "spectral."
"""Names of the blocks: of degrees, and what goes before the relation's in those of spectral positions."""
DENSE = 256
"""Below this many nodes all eigenvectors are computed at once: faster, and it cannot fail to converge."""

TOLERANCE = 1e-10
"""Of an eigenvalue: the largest residual at which the iteration ends."""
LARGE, LARGE_BASIS, LARGE_TOLERANCE = 10_000, 64, 1e-6
"""Above so many nodes the iteration keeps so many vectors, and ends at a residual that float32 can show."""


def graph_features(
    graphs: GeneGraphs, *, components: int = 16, minimum_edges: int = 500
) -> list[FeatureBlock]:
    """Return one block of log degrees over all relations, and one of spectral positions per large relation.

    The block ``degrees`` [n, f] holds log(1 + number of edges): out and in of a directed relation, one column
    of an undirected one. The block ``spectral.<relation>`` [n, f] holds ``spectral_components``.

    Parameters
    ----------
    graphs : GeneGraphs
        The relations of one organism.
    components : int
        Spectral columns per relation (fewer where the graph is smaller).
    minimum_edges : int
        Relations with fewer edges within their largest connected part get no spectral block: positions within
        a small part carry no information about most genes.
    """
    blocks = []
    if graphs:
        columns: list[NDArray[np.float64]] = []
        names: list[str] = []
        for relation in graphs.values():
            columns.append(np.log1p(np.diff(relation.adjacency.indptr)))
            names.append(f"{relation.name}.out" if relation.directed else relation.name)
            if relation.directed:
                columns.append(np.log1p(np.diff(relation.transpose.indptr)))
                names.append(f"{relation.name}.in")
        values = np.stack(columns, axis=1).astype(np.float32)
        note = "log(1 + number of edges); what leaks in a gene graph leaks here; well-studied genes have more"
        blocks.append(FeatureBlock(DEGREES, values, tuple(names), source="gene graphs", note=note))
    for relation in graphs.values():
        part = _largest_part(relation)
        # Every edge of a node of the part lies within it.
        inside = int((np.diff(relation.adjacency.indptr)[part]).sum())
        if (inside if relation.directed else inside // 2) < max(minimum_edges, 1):
            continue
        vectors = spectral_components(relation, components)
        blocks.append(
            FeatureBlock(
                f"{SPECTRAL}{relation.name}",
                vectors,
                tuple(f"c{i + 1}" for i in range(vectors.shape[1])),
                source=f"gene graph {relation.name} ({relation.source})",
                note=relation.note,
                comparable=False,
            )
        )
    return blocks


def _largest_part(relation: Relation) -> NDArray[np.int64]:
    """Return the genes of the largest connected part, ascending; the first of equally large ones."""
    _, part = csgraph.connected_components(relation.adjacency, directed=relation.directed, connection="weak")
    return np.flatnonzero(part == np.bincount(part).argmax())


def spectral_components(relation: Relation, components: int) -> NDArray[np.float32]:
    """Return the leading spectral components of a relation, float32 [n, at most ``components``].

    They are the eigenvectors of D^-1/2 A D^-1/2 (A symmetrised) with the largest eigenvalues, within the
    largest connected part; genes outside it are NaN, because every further part would only add an eigenvector
    that names it. The very first one, proportional to the root of the degree, is left out. Columns fall in
    eigenvalue, have mean square 1 over the part, and their entry of largest size is positive. The start
    vector of the iteration is fixed, so the result repeats.
    """
    nodes = _largest_part(relation)
    k = nodes.size
    count = min(components, k - 1)
    if count < 1:
        return np.zeros((relation.n, 0), np.float32)
    normal = _normalised(relation, nodes)
    if k < max(DENSE, components + 2):
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        start = 1.0 + np.arange(k) / k  # not orthogonal to anything by symmetry
        # The eigenvalues of large graphs lie close together: with few Lanczos vectors every restart forgets
        # what it was about to find, and takes thousands of products instead of hundreds.
        basis, tolerance = (LARGE_BASIS, LARGE_TOLERANCE) if k > LARGE else (None, TOLERANCE)
        values, vectors = eigsh(
            normal, k=count + 1, which="LA", v0=start, ncv=basis, tol=tolerance, maxiter=100 * k
        )
    vectors = vectors[:, np.argsort(-values, kind="stable")][:, 1 : count + 1]
    size = np.abs(vectors)
    # the first entry within rounding of the largest, so that mirrored entries cannot flip the sign
    pivot = (size >= size.max(axis=0) * (1.0 - 1e-6)).argmax(axis=0)
    vectors = vectors * np.sign(vectors[pivot, np.arange(count)]) * np.sqrt(k)
    out = np.full((relation.n, count), np.nan, np.float32)
    out[nodes] = vectors
    return out


def _normalised(relation: Relation, nodes: NDArray[np.int64]) -> Any:
    """Return D^-1/2 A D^-1/2 [k, k] of some nodes, float64: symmetric, so its eigenvectors are orthogonal."""
    given = relation.adjacency
    # An undirected relation holds both directions already. Narrow positions halve what every product reads.
    narrow = (given.data.astype(np.float64), given.indices.astype(np.int32), given.indptr.astype(np.int32))
    adjacency: Any = sparse.csr_array(narrow, shape=given.shape)
    if relation.directed:
        adjacency = sparse.csr_array((adjacency + adjacency.T) / 2.0)
    if nodes.size < relation.n:
        adjacency = sparse.csr_array(adjacency[nodes][:, nodes])
    root = 1.0 / np.sqrt(np.asarray(adjacency.sum(axis=1)).reshape(-1))
    row = np.repeat(root, np.diff(adjacency.indptr))
    adjacency.data = row * adjacency.data * root[adjacency.indices]
    return adjacency
