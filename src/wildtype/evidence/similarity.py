"""How similar any two genes are: channel by channel without an n × n matrix, and as graphs of nearest genes.

Legend: n genes · d width of the embedding · r relations · e edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.organism import GeneFeatures, Organism, Relation
from wildtype.organism.gene_kernels import GRAPH_BLOCKS, SMALL
from wildtype.organism.graph_features import DEGREES
from wildtype.organism.similarity import embedding_parts, joint_embedding, nearest

SPECTRAL = 24
NEAREST = 40
"""Neighbours of a gene by what is known before labels are."""
NEAREST_FLOOR = 0.05
"""Cosines of embeddings below this are chance."""
LANE = 8
"""Columns of a lane of the embedding: few, so that small parts are not filled up with zeros. The loop of
`similarity_kernels.similar` over them is written out."""
VECTOR = 16
"""Numbers in the widest vector of a processor."""
PROFILE_SCALE = 5.0
"""Of the channel of label profiles, whose cosines are known only once labels are."""
PROFILE_NEIGHBOURS = 80
PROFILE_FLOOR = 0.03
"""Cosines of label profiles below this are chance."""
PROFILE_PRIOR = 10


@dataclass(frozen=True, eq=False)
class GeneSimilarity:
    """Similarity of genes as far as it is known before a label is seen.

    Attributes
    ----------
    relations : tuple of str
        Names of the r relations.
    parts : tuple of str
        Names of the parts of the embedding.
    unit : float32 [n, d]
        The embedding; rows of all parts together have unit length, so that an inner product is the mean
        cosine over what is known of both genes.
    cuts : int64 [parts + 1]
        Columns of each part.
    indptr, indices, data : int64 [r, n + 1], int64 [e], float32 [e]
        The relations, symmetric, as sparse rows one after the other; the largest weight of each is 1.
    scale : float32 [r + parts + 2]
        What brings each channel to unit mean square among similar genes.
    traits : float32 [n, c]
        Standardised features of few columns (degrees, essentiality, fitness, abundance), which pairs of genes
        are compared by; ``trait_names`` [c].
    """

    relations: tuple[str, ...]
    parts: tuple[str, ...]
    unit: NDArray[np.float32]
    cuts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float32]
    scale: NDArray[np.float32]
    traits: NDArray[np.float32]
    trait_names: tuple[str, ...]

    @classmethod
    def of(cls, organism: Organism, seed: int = 0, like: GeneSimilarity | None = None) -> GeneSimilarity:
        """Return the similarity of an organism's genes by its relations and feature blocks.

        With ``like``, that of another organism, channels are those of the other by name: what this organism
        lacks is 0, and what the other lacks is left out.
        """
        n = len(organism.genes)
        # Spectral features of genes repeat what the parts of the relations hold.
        blocks = [block for name, block in organism.features.items() if not name.startswith(GRAPH_BLOCKS)]
        parts = embedding_parts(replace(organism, features=GeneFeatures(blocks)), seed, SPECTRAL)
        names = [name for name, relation in organism.graphs.items() if relation.nnz]
        if like is not None:
            nothing = np.zeros((n, 0), np.float32)
            parts, names = {name: parts.get(name, nothing) for name in like.parts}, list(like.relations)
        joined = np.concatenate([*parts.values(), np.zeros((n, 0), np.float32)], axis=1, dtype=np.float32)
        length = np.linalg.norm(joined, axis=1, keepdims=True)
        both = [_symmetric(organism.graphs[name]) if name in organism.graphs else _none(n) for name in names]
        starts = np.cumsum([0, *(matrix.nnz for matrix in both)])
        # Dividing the joined parts by their common length makes inner products means over the parts known.
        made = cls(
            relations=tuple(names),
            parts=tuple(parts),
            unit=np.ascontiguousarray(joined / np.maximum(length, 1e-9)),
            cuts=np.cumsum([0, *(part.shape[1] for part in parts.values())]).astype(np.int64),
            indptr=np.array(
                [m.indptr + start for m, start in zip(both, starts, strict=False)], np.int64
            ).reshape(len(names), n + 1),
            indices=np.concatenate([*(m.indices for m in both), np.zeros(0)]).astype(np.int64),
            data=np.concatenate([*(m.data for m in both), np.zeros(0)]).astype(np.float32),
            scale=np.ones(len(names) + len(parts) + 2, np.float32),
            traits=np.zeros((n, 0), np.float32),
            trait_names=(),
        )
        scale = made._scale() if like is None else like.scale
        traits, columns = _traits(organism, like)
        return replace(made, scale=scale, traits=traits, trait_names=columns)

    def _scale(self) -> NDArray[np.float32]:
        """Return factors that bring every channel to unit mean square among similar genes."""
        near = self.near.tocoo()
        left, right = (x.astype(np.int64) for x in near.coords)
        out = self._compared(left, right, np.ones(len(self.channels), np.float32))
        # Root mean square over similar pairs; at least 0.01, so that an empty channel is not blown up.
        size = np.sqrt(np.mean(out**2, axis=0)) if len(left) else np.ones(len(self.channels))
        factor = 1 / np.maximum(size, 0.01)
        factor[-1] = PROFILE_SCALE
        return factor.astype(np.float32)

    def adjacency(self, relation: int) -> sparse.csr_array:
        """Return a relation [n, n] by its position, symmetric; the arrays are shared: do not change them."""
        ends = self.indptr[relation]
        inside = slice(int(ends[0]), int(ends[-1]))
        return sparse.csr_array(
            (self.data[inside], self.indices[inside], ends - ends[0]), shape=(self.genes, self.genes)
        )

    def compare(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how alike pairs of genes are [m, c] in every channel; that of label profiles is 0."""
        return self._compared(left, right, self.scale)

    def _compared(
        self, left: NDArray[np.int64], right: NDArray[np.int64], scale: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        from wildtype.evidence.neighbour_kernels import Csr
        from wildtype.evidence.similarity_kernels import UNKNOWN, similar

        out = np.zeros((len(left), 1, len(self.channels)), np.float32)
        no_profiles = Csr(np.zeros(self.genes + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32))
        graphs, nothing = Csr(self.indptr, self.indices, self.data), np.zeros((0, 0), np.float32)
        ends = (np.ascontiguousarray(genes)[:, None] for genes in (left, right))
        shared = (*self.lanes, graphs, self.links, no_profiles, nothing)
        unknown = np.full((len(left), 1), UNKNOWN)
        similar(0, len(left), *ends, *shared, scale, np.zeros(0, np.float32), unknown, out)
        return out[:, 0]

    @cached_property
    def lanes(self) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
        """The embedding as [n, ``LANE``, l] and the part of each lane; columns added to fill are 0.

        A part takes as many lanes of ``LANE`` columns as it needs, and l is a multiple of ``VECTOR``: inner
        products of all lanes are sums of whole vectors. First stands one lane of every part, then a second of
        those that have it, and so on, so that no sum waits for the one before it.
        """
        widths = np.diff(self.cuts)
        part = np.repeat(np.arange(len(widths)), widths)
        column = np.arange(len(part)) - self.cuts[part]
        turn, of = np.unique([column // LANE, part], axis=1, return_inverse=True)
        out = np.zeros((self.genes, LANE, -(-turn.shape[1] // VECTOR) * VECTOR), np.float32)
        out[:, column % LANE, of] = self.unit
        return out, turn[1].astype(np.uint32)

    @cached_property
    def links(self) -> NDArray[np.uint64]:
        """Bits of pairs of genes with a weight, in any relation and in each: most need no search."""
        from wildtype.evidence.similarity_kernels import mark_links

        # At least 16 bits per edge, of which four are set: 5 % of other pairs look linked, in vain.
        out = np.zeros(max(1 << int(16 * len(self.indices)).bit_length(), 64) // 64, np.uint64)
        mark_links(self.indptr, self.indices, out)
        return out

    @property
    def genes(self) -> int:
        """Number of genes n."""
        return len(self.unit)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels of a pair of genes, in order; the last one is known where labels are."""
        return (*self.relations, *self.parts, "joint", "label profiles")

    def graphs(self, measured: NDArray[np.int64]) -> dict[str, sparse.csr_array]:
        """Return the relations by name, and ``joint``, as `similarity_graphs` does for an organism.

        ``joint`` leads from every gene to the most similar ``measured`` ones.
        """
        relations = {name: self.adjacency(at) for at, name in enumerate(self.relations)}
        return {**relations, "joint": _nearest_cubed(self.unit, measured)}

    @cached_property
    def near(self) -> sparse.csr_array:
        """[n, n]: for every gene the most similar ones, weight = cosine³."""
        return _nearest_cubed(self.unit, np.arange(self.genes))


def profile_graph(labels: sparse.csr_array) -> sparse.csr_array:
    """Return [n, n]: for every gene those with the most similar label profile, weight = cosine².

    Genes of one pathway interact with the same partners (Costanzo et al., Science 353:aaf1420, 2016). A
    partner with c labels is less informative the more there are: it is divided by √(c + 10).

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
        adjacency = _both_directions(relation)
        if adjacency.nnz:
            graphs[relation.name] = adjacency
    graphs["joint"] = _nearest_cubed(joint_embedding(organism, seed), measured)
    return graphs


def _nearest_cubed(unit: NDArray[np.float32], among: NDArray[np.int64]) -> sparse.csr_array:
    """Return [n, n]: for every gene the nearest of ``among``, weight = cosine³, which few have above 0.1."""
    found = nearest(unit, among, NEAREST, NEAREST_FLOOR)
    found.data = (found.data**3).astype(np.float32)
    return found


def _traits(organism: Organism, like: GeneSimilarity | None) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return the columns [n, c] of small blocks, by name those of ``like``, and their names."""
    n = len(organism.genes)
    small = GeneFeatures(
        block
        for name, block in organism.features.items()
        if block.values.shape[1] <= SMALL or name == DEGREES
    )
    values, columns = small.matrix(n)
    if like is None:
        return np.ascontiguousarray(values), columns
    place = {name: i for i, name in enumerate(columns)}
    out = np.zeros((n, len(like.trait_names)), np.float32)
    for i, name in enumerate(like.trait_names):
        if name in place:
            out[:, i] = values[:, place[name]]
    return out, like.trait_names


def _symmetric(relation: Relation) -> sparse.csr_array:
    """Return a relation with both directions of every edge, its largest weight 1."""
    both = _both_directions(relation).copy()
    both.sort_indices()
    if both.nnz:
        both.data = both.data / both.data.max()
    return both


def _both_directions(relation: Relation) -> sparse.csr_array:
    """Return adjacency, plus transpose of a directed relation; the array is shared: do not change it."""
    if not relation.directed:
        return relation.adjacency
    return sparse.csr_array(relation.adjacency + relation.transpose)


def _none(n: int) -> sparse.csr_array:
    return sparse.coo_array(([], ([], [])), shape=(n, n), dtype=np.float32).tocsr()
