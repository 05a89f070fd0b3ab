"""Who resembles whom: the gene graphs over which labels are propagated.

Legend: n genes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism import Organism
from wildtype.organism.similarity import joint_embedding, nearest

NEIGHBOURS = 40  # neighbours kept per gene in the joint graph
PROFILE_NEIGHBOURS = 80
PROFILE_FLOOR = 0.03  # cosines of label profiles below this are chance
PROFILE_PRIOR = 10


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
