"""The neighbourhood of a few genes in the relations that a checkpoint keeps.

Legend: n genes · k genes of a mutant · r relations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.models.interface import OrganismTensors

SHOWN = 16
"""Neighbours that are shown of all genes of a mutant together."""
EDGES = 400


@dataclass(frozen=True)
class Edge:
    """A pair of shown genes (positions in ``Neighbourhood.genes``), and its weight in a relation."""

    left: int
    right: int
    relation: str
    weight: float


@dataclass(frozen=True)
class Neighbourhood:
    """Genes worth showing around a mutant.

    Attributes
    ----------
    genes : tuple of int
        The k genes of the mutant, then their neighbours, the strongest first.
    perturbed : int
        k.
    edges : tuple of Edge
        Between any two of them, those of the mutant's own genes first.
    left_out : int
        Neighbours of the mutant's genes that are not shown.
    """

    genes: tuple[int, ...]
    perturbed: int
    edges: tuple[Edge, ...]
    left_out: int


def relations_of(organism: OrganismTensors) -> dict[str, sparse.csr_array]:
    """Return the relations [n, n] that a checkpoint keeps by name, symmetric, the largest weight of each 1.

    They are the relations of evidence retrieval and of message passing.
    """
    found: dict[str, sparse.csr_array] = {}
    similarity = organism.similarity
    if similarity is not None:
        n = similarity.genes
        for name, indptr in zip(similarity.relations, similarity.indptr, strict=True):
            own = slice(int(indptr[0]), int(indptr[-1]))
            parts = similarity.data[own], similarity.indices[own], indptr - indptr[0]
            found[name] = sparse.csr_array(parts, shape=(n, n))
    for name, operator in organism.relations.items():
        if name in found:
            continue
        rows, columns = (x.numpy() for x in operator.edges())
        # Drawings have no arrows: the larger weight of both directions stands for the edge.
        one_way = sparse.coo_array((operator.values.numpy(), (rows, columns)), shape=operator.shape).tocsr()
        both = sparse.csr_array(abs(one_way).maximum(abs(one_way).T))
        both.data = both.data / both.data.max(initial=1e-9)
        found[name] = both
    return found


def neighbourhood(
    relations: Mapping[str, sparse.csr_array], genes: Sequence[int], shown: int = SHOWN
) -> Neighbourhood:
    """Return the strongest neighbours of a mutant's genes.

    The strength of a neighbour is the sum of its weights to a gene over all relations. The genes of the
    mutant choose in turn, so that a hub does not crowd out the neighbours of other genes. Ties are broken by
    the strength to all genes of the mutant, then by the gene index.
    """
    if not relations or not genes:
        return Neighbourhood(tuple(genes), len(genes), (), 0)
    own = [np.sum([_row(matrix, gene) for matrix in relations.values()], axis=0) for gene in genes]
    together = np.sum(own, axis=0)
    together[list(genes)] = 0
    lists = []
    for weights in own:
        # np.lexsort sorts by its last key first.
        near = np.flatnonzero((weights > 0) & (together > 0))
        lists.append(iter(near[np.lexsort((near, -together[near], -weights[near]))].tolist()))
    chosen: dict[int, None] = {}
    while lists and len(chosen) < shown:
        for mine in list(lists):
            gene = next((gene for gene in mine if gene not in chosen), None)
            if gene is None:
                lists.remove(mine)
            elif len(chosen) < shown:
                chosen[gene] = None
    everyone = (*genes, *chosen)
    edges = [edge for name, matrix in relations.items() for edge in _edges(name, matrix, everyone)]
    edges.sort(key=lambda edge: (edge.left >= len(genes), -edge.weight))
    left_out = int((together > 0).sum()) - len(chosen)
    return Neighbourhood(everyone, len(genes), tuple(edges[:EDGES]), left_out)


def _row(matrix: sparse.csr_array, gene: int) -> NDArray[np.float64]:
    """Return a row [n], dense."""
    out = np.zeros(matrix.shape[1])
    own = slice(matrix.indptr[gene], matrix.indptr[gene + 1])
    out[matrix.indices[own]] = matrix.data[own]
    return out


def _edges(name: str, matrix: sparse.csr_array, genes: Sequence[int]) -> list[Edge]:
    found = []
    for left, gene in enumerate(genes):
        weights = _row(matrix, gene)[list(genes)]
        found += [
            Edge(left, right, name, float(weights[right]))
            for right in np.flatnonzero(weights).tolist()
            if right > left
        ]
    return found
