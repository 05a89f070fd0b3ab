"""`PairColumns`: what the crosses of a screen say about a pair of genes, as columns of numbers for trees.

A residual is a visible value less the additive model; a visible cross that is not listed has the value 0. A
pair (i, j) is described by the residuals of the same pair with one or both genes replaced by similar ones, by
low-rank models of the whole matrix, by what kernel ridge says of genes without a visible cross, by how often
each gene interacts and how strongly, and by how alike both genes are. Nothing of the pair itself enters:
`wildtype.evidence.pair_index` leaves the pair out of the matrix.

Legend: n genes · s strains · g graphs of similar genes · k neighbours per gene · d width of the embedding ·
m pairs · f columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.completion import (
    MIXED_NEIGHBOURS,
    Additive,
    low_rank,
    mixed_neighbours,
    profile_neighbours,
    residuals,
    smoothed,
    spectrum,
    write_unknown,
)
from wildtype.evidence.learned_kernel import ComputedKernel, StrainKernel
from wildtype.evidence.map_columns import MapColumns
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.pieces import Run, one_after_the_other
from wildtype.evidence.replaced_genes import replace_both, replace_one
from wildtype.evidence.row_products import row_products
from wildtype.evidence.screen_columns import ScreenColumns
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import Kind
from wildtype.organism.graph_features import DEGREES
from wildtype.organism.similarity import nearest, strongest, unit_rows

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
StrainNeighbours = tuple[str, NDArray[np.int32], Floats]
"""Name of a graph, positions [n, k] of strains in a matrix, and their weights [n, k]."""

MOST = 40
"""Neighbours of a gene in each graph."""
FEW = 12
"""Neighbours of each gene where both are replaced: their number counts twice."""
LIKE = "like "
"""Begins the names of graphs of genes with similar features."""
BY_ALL = (f"{LIKE}joint", f"{LIKE}learned")
"""Graphs of genes that are alike in all that is known."""
FLOOR = 0.1
"""Cosines of single feature blocks below this are chance."""
WIDE = 4
"""Feature blocks of fewer columns have no cosine that means much; they are traits."""
PRIOR = 0.3
"""Weight of a residual of 0 beside the neighbours' residuals, as in `completion.profile_completion`."""
RANKS = (20, 60, 120)
LATENT = 24
DEGREE_PRIOR = 10.0
RATE_PRIOR = 2.0
LISTED_PRIOR = 3.0
"""Listed crosses of a gene that the mean of all stands for."""
RIDGE = 3.0
"""Regularisation λ of the two-step ridge on unit vectors, whose kernel has 1 on its diagonal."""
CHUNK = 1 << 13
"""Pairs that are described together: their columns stay in the cache."""
COMPLETED = 200
"""Rank of the completed matrix, whose vectors kernel ridge predicts for unseen genes."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Similar genes of every gene, in several graphs, the most similar first.

    Attributes
    ----------
    names : tuple of str
        Of the g graphs.
    gene : int32 [g, n, k]
        Positions of genes; -1: no further one.
    weight : float32 [g, n, k]
        Positive, 0 where there is none.
    among : int64 [a]
        Genes that may be neighbours, ascending.
    kernel : ComputedKernel
        Of all genes with those, at least.
    """

    names: tuple[str, ...]
    gene: NDArray[np.int32]
    weight: Floats
    among: Ints
    kernel: ComputedKernel

    @classmethod
    def of(cls, similarity: GeneSimilarity, among: Ints, kernel: ComputedKernel) -> Neighbours:
        """Return the neighbours of every gene among some genes: by relation, by feature block, and by all.

        Weights are those of the relation, the squared cosine of a block, the cubed cosine of all blocks
        and relations together, and the learned kernel in units of its mean. No label is read.
        """
        graphs: dict[str, sparse.csr_array] = {}
        chosen = np.zeros(similarity.genes, bool)
        chosen[among] = True
        for r, name in enumerate(similarity.relations):
            graphs[name] = sparse.csr_array(
                similarity.adjacency(r) @ sparse.diags_array(chosen.astype(np.float32))
            )
        for p, name in enumerate(similarity.parts):
            columns = slice(int(similarity.cuts[p]), int(similarity.cuts[p + 1]))
            # Spectral positions in a relation repeat its edges.
            if name.startswith("graph ") or columns.stop - columns.start < WIDE:
                continue
            found = nearest(unit_rows(similarity.unit[:, columns]), among, MOST, FLOOR)
            found.data = found.data**2
            graphs[f"{LIKE}{name}"] = found
        found = nearest(similarity.unit, among, MOST, FLOOR)
        found.data = found.data**3
        graphs[f"{LIKE}joint"] = found
        values = kernel.between(among)
        found = strongest(lambda block: values[block], len(values), among, MOST, 0.0)
        found.data = found.data / max(float(found.data.mean()) if found.nnz else 0.0, 1e-9)
        graphs[f"{LIKE}learned"] = found
        lists = [_padded(graph) for graph in graphs.values()]
        gene, weight = (np.stack(column) for column in zip(*lists, strict=True))
        return cls(tuple(graphs), gene, weight, among, kernel)

    def strains(self, gene: Ints) -> list[StrainNeighbours]:
        """Return the neighbours of every gene among strains of these genes [s], graph by graph."""
        place = np.full(self.gene.shape[1], -1, np.int32)
        # Of a gene with several strains, the first: a deletion where there is one.
        place[gene[::-1]] = np.arange(len(gene))[::-1]
        return [
            (name, np.where(near >= 0, place[near], np.int32(-1)), weight)
            for name, near, weight in zip(self.names, self.gene, self.weight, strict=True)
        ]


def _centred(x: Floats) -> Floats:
    """Return numbers [s] less their mean, which no numbers have none of."""
    return x - x.mean() if len(x) else x


def _padded(graph: sparse.csr_array, most: int = MOST) -> tuple[NDArray[np.int32], Floats]:
    """Return the ``most`` strongest neighbours [n, k] of every row by falling weight, and their weights."""
    graph.eliminate_zeros()
    n = graph.shape[0]
    row = np.repeat(np.arange(n), np.diff(graph.indptr))
    order = np.lexsort((graph.indices, -graph.data, row))
    rank = np.arange(len(order)) - graph.indptr[row]
    kept = order[rank < most]
    at = row[order][rank < most], rank[rank < most]
    gene, weight = np.full((n, most), -1, np.int32), np.zeros((n, most), np.float32)
    gene[at], weight[at] = graph.indices[kept], graph.data[kept]
    return gene, weight


class PairColumns:
    """Columns of pairs from one visible matrix.

    Parameters
    ----------
    matrix : PairMatrix
        What may be seen.
    similarity : GeneSimilarity
        Of the n genes.
    neighbours : Neighbours
        Of the same genes; labels do not enter, so that several matrices share it.
    others : sequence of ScreenColumns
        What other screens say.
    pooled : ScreenColumns, optional
        What this screen and the others say as one.
    near : sequence, optional
        ``neighbours.strains(matrix.gene)``, where it was made before.
    folds : tuple, optional
        Cells that are known, as uint8 [s, s] with 0 for the others, and a number of cells that are not known
        here: one array for matrices that lack a fold each, which would have one of their own.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.
    seed : int
        Of the subspace iterations.

    Attributes
    ----------
    names : tuple of str
        Of the f columns.
    pooled : ScreenColumns or None
        As given.
    """

    def __init__(
        self,
        matrix: PairMatrix,
        similarity: GeneSimilarity,
        neighbours: Neighbours,
        others: Sequence[ScreenColumns] = (),
        pooled: ScreenColumns | None = None,
        *,
        near: Sequence[StrainNeighbours] | None = None,
        folds: tuple[NDArray[np.uint8], int] | None = None,
        run: Run = one_after_the_other,
        seed: int = 0,
    ) -> None:
        # Residuals hold what is visible: cells would be two more matrices of s² numbers for every fold.
        nothing = np.zeros((0, 0), np.float32)
        self.matrix = replace(matrix, values=nothing, known=nothing.astype(bool))
        self._folds = (matrix.known.view(np.uint8), 0) if folds is None else folds
        self.similarity, self._others, self.pooled, self._run = similarity, others, pooled, run
        known, additive = matrix.known, Additive.of(matrix)
        residual = residuals(matrix, additive)
        self._mean = additive.mean
        solution = low_rank(residual, known, RANKS[-1], seed=seed)
        self._low_rank = solution
        kernel = neighbours.kernel.strains(matrix.gene)
        self._map = None if matrix.of_grid else MapColumns(matrix, additive, residual, kernel, seed=seed)
        mixed = mixed_neighbours(solution, kernel)
        # Whole blocks of related pairs may be unknown (arrays with one another, a hidden pathway): means over
        # neighbours' visible crosses alone then rest on the least related ones.
        write_unknown(residual, known, smoothed(residual, known, mixed, run))
        self._completed = spectrum(smoothed(residual, None, mixed, run), COMPLETED, seed=seed)
        self._profile, self._mixed = _padded(profile_neighbours(solution)), _padded(mixed, MIXED_NEIGHBOURS)
        self._unit_profile = unit_rows(solution.profiles())
        count = known.sum(axis=1, dtype=np.float64)
        negative, positive = _listed(matrix)
        self._genes = [("effect", additive.effect.astype(np.float32)), ("crosses", count.astype(np.float32))]
        for name, flags in (("negative", negative), ("positive", positive)):
            # Shrunken to the mean rate, so that genes with few crosses are like others.
            mean = flags.sum() / max(count.sum(), 1)
            rate = (flags.sum(axis=1) + RATE_PRIOR * mean) / (count + RATE_PRIOR)
            self._genes.append((f"rate {name}", rate.astype(np.float32)))
        # Of a map every known cross is listed, and "effect" says as much.
        self._listed = _strengths(matrix.values, negative, positive) if matrix.of_grid else []
        # √(degree + 10): partners of hubs say less of a gene than partners of few others.
        self._latent = []
        for name, flags in (("negative", negative), ("positive", positive), ("either", negative | positive)):
            listed = np.where(known, residual, 0) if name == "either" else flags.astype(np.float32)
            scale = (1 / np.sqrt(flags.sum(axis=1) + DEGREE_PRIOR)).astype(np.float32)
            listed *= scale[:, None]
            listed *= scale
            self._latent.append((name, spectrum(listed, LATENT, seed=seed)))
            del listed, flags  # matrices of s² numbers, of which few should be there at a time
        del negative, positive
        self._ridge(residual)
        self._kernel_ridge(kernel)
        self._filled = residual
        self._near = neighbours.strains(matrix.gene) if near is None else near
        no_pair = np.zeros((0, 2), np.int64)
        columns = self._block(no_pair, no_pair.astype(np.uint8))
        self.names = tuple(name for name, _ in columns)

    def _ridge(self, residual: Floats) -> None:
        """Fit the two-step kernel ridge in the width of the embedding, and gene columns by kernel ridge.

        With Φ [s, d] of the strains, G = P Φᵀ R Φ P and P = (ΦᵀΦ + λI)⁻¹, a pair is predicted as φ_iᵀ G φ_j:
        the same as k_iᵀ (K + λI)⁻¹ R (K + λI)⁻¹ k_j for K = ΦΦᵀ, for seen and unseen genes alike.
        """
        unit = self.similarity.unit
        phi = unit[self.matrix.gene]
        inner = np.linalg.inv(phi.T @ phi + RIDGE * np.eye(phi.shape[1], dtype=np.float32))
        half = phi @ inner
        self._two_step = (unit @ (half.T @ residual @ half)).astype(np.float32)
        self._smooth = [
            (f"{name} of similar genes", (unit @ (half.T @ _centred(x))).astype(np.float32))
            for name, x in self._genes
            if name != "crosses"
        ]

    def _kernel_ridge(self, kernel: StrainKernel) -> None:
        """Predict by the learned kernel what completion says of each strain, for genes without one, too.

        A matrix V diag(w) Vᵀ of strains becomes H diag(w) Vᵀ of genes and strains, and H diag(w) Hᵀ of genes,
        with the rows H of V as kernel ridge predicts them. Completed residuals are a better target than those
        that were measured: few of them are not 0.
        """
        rates = [(name, _centred(x)) for name, x in (*self._genes, *self._listed) if name != "crosses"]
        parts = [self._completed.vectors, self._low_rank.vectors, *(x[:, None] for _, x in rates)]
        found = kernel.predict(np.concatenate(parts, axis=1))
        ends = np.cumsum([0, *(part.shape[1] for part in parts)])
        of = [np.ascontiguousarray(found[:, a:b]) for a, b in pairwise(ends.tolist())]
        self._by_kernel = [("completed", self._completed, of[0]), ("rank", self._low_rank, of[1])]
        smooth = [(f"{name} by kernel", x[:, 0]) for (name, _), x in zip(rates, of[2:], strict=True)]
        end = len(smooth) - len(self._listed)
        self._smooth += smooth[:end]
        self._listed_smooth = smooth[end:]

    def unseen(self, gene: Ints, kind: NDArray[np.uint8]) -> Ints:
        """Return how many genes of each pair [m, 2] have no visible cross."""
        return np.asarray((self.matrix.find(gene, kind) < 0).sum(axis=1))

    def __call__(self, gene: Ints, kind: NDArray[np.uint8]) -> Floats:
        """Return the columns [m, f] of pairs of genes [m, 2], perturbed by ``kind`` [m, 2]; NaN: not known.

        They do not depend on the order of both genes.
        """
        out = np.empty((len(gene), len(self.names)), np.float32)
        turned = gene[:, 0] > gene[:, 1]
        gene, kind = (np.where(turned[:, None], x[:, ::-1], x) for x in (gene, kind))
        # Pairs of one gene stand together, so that what is looked up of it is in the cache for all of them.
        order = np.lexsort((gene[:, 1], kind[:, 0], gene[:, 0]))

        def work(i: int) -> None:
            rows = order[i * CHUNK : (i + 1) * CHUNK]
            for f, (_, values) in enumerate(self._block(gene[rows], kind[rows])):
                out[rows, f] = values

        self._run(-(-len(order) // CHUNK), work)
        return out

    def _block(self, gene: Ints, kind: NDArray[np.uint8]) -> list[tuple[str, NDArray[Any]]]:
        """Return names and values [m] of the columns of pairs whose genes ascend."""
        strain = self.matrix.find(gene, kind)
        seen = strain >= 0
        both = seen.all(axis=1)
        columns: list[tuple[str, NDArray[Any]]] = [("unseen genes", (~seen).sum(axis=1))]
        columns.append(("reduced strains", (kind == Kind.REDUCED).sum(axis=1)))

        def ends(name: str, x: Floats, at: Ints, there: NDArray[np.bool_]) -> None:
            # Smallest and largest of both genes: their order has no meaning.
            value = np.where(there, x[np.maximum(at, 0)], np.nan) if len(x) else np.full(at.shape, np.nan)
            with np.errstate(invalid="ignore"):
                columns.append((f"{name} low", np.fmin(value[:, 0], value[:, 1]).astype(np.float32)))
                columns.append((f"{name} high", np.fmax(value[:, 0], value[:, 1]).astype(np.float32)))

        for name, x in self._genes:
            ends(name, x, strain, seen)
        for name, x in self._smooth:
            ends(name, x, gene, np.ones_like(seen))
        effect = np.zeros(strain.shape)
        if len(self.matrix):
            effect = np.where(seen, dict(self._genes)["effect"][np.maximum(strain, 0)], 0)
        columns.append(("additive", np.float32(self._mean) + np.sum(effect, axis=1).astype(np.float32)))
        left, right = (np.ascontiguousarray(strain[:, i]) for i in range(2))
        v, w = self._low_rank.vectors, self._low_rank.values
        below, total = 0, np.where(both, np.float32(0), np.float32(np.nan))
        # Eigenvalues fall in magnitude: a lower rank is the sum of the first terms.
        for rank in RANKS:
            total = total + row_products(v, left, v, right, w[below:rank], below)
            columns.append((f"rank {rank}", total))
            below = min(rank, len(w))
        unit = self._unit_profile
        columns.append(("profile cosine", row_products(unit, left, unit, right)))
        for name, found in self._latent:
            # Powers of the matrix count paths of one, two and three listed crosses between both genes.
            for power in (1, 2, 3):
                paths = row_products(found.vectors, left, found.vectors, right, found.values**power)
                columns.append((f"paths {power} {name}", paths))
        ridge = row_products(self._two_step, gene[:, 0], self.similarity.unit, gene[:, 1])
        columns.append(("two-step ridge", ridge))
        columns += self._predicted_by_kernel(gene, strain)
        columns += self._replaced(gene, strain)
        columns += self._alike(gene)
        for other in self._others:
            columns += other(gene, kind)
        if self._map is not None:
            columns += self._map(gene, strain)
        # The last: forests that were stored without these columns know the others by their place.
        if self.pooled is not None:
            columns += self.pooled(gene, kind)
        for name, x in self._listed:
            ends(name, x, strain, seen)
        for name, x in self._listed_smooth:
            ends(name, x, gene, np.ones_like(seen))
        return columns

    def _predicted_by_kernel(self, gene: Ints, strain: Ints) -> list[tuple[str, Floats]]:
        """Return the columns of pairs with one gene, or both, as kernel ridge predicts them."""
        out: list[tuple[str, Floats]] = []
        (i, j), (left, right) = (np.ascontiguousarray(x.T) for x in (gene, strain))
        for name, matrix, found in self._by_kernel:
            seen, weight = matrix.vectors, matrix.values
            if name == "completed":
                out.append((name, row_products(seen, left, seen, right, weight)))
            one = [row_products(found, i, seen, right, weight), row_products(found, j, seen, left, weight)]
            out.append((f"kernel {name} low", np.fmin(*one)))
            out.append((f"kernel {name} high", np.fmax(*one)))
            out.append((f"kernel {name} both", row_products(found, i, found, j, weight)))
        return out

    def _replaced(self, gene: Ints, strain: Ints) -> list[tuple[str, Floats]]:
        """Return the columns of pairs with one gene, or both, replaced by similar ones."""
        out: list[tuple[str, Floats]] = []
        m = len(gene)

        value, (fold, hidden) = self._filled, self._folds

        def one(name: str, near: Any, weight: Floats, row: Ints, *, every: bool = False) -> None:
            found = np.full((m, 4), np.nan, np.float32)
            sides = [np.ascontiguousarray(np.stack([row[:, i], strain[:, i]], axis=1)) for i in range(2)]
            replace_one(near, weight, value, fold, hidden, every, *sides, PRIOR, found)
            # The weight of every neighbour says nothing of the pair.
            for i, what in enumerate(("", " low", " high") if every else ("", " low", " high", " weight")):
                out.append((f"one by {name}{what}", found[:, i]))

        def two(name: str, near: Any, weight: Floats, row: Ints, *, every: bool = False) -> None:
            found = np.full((m, 2), np.nan, np.float32)
            sides = [np.ascontiguousarray(np.stack([row[:, i], strain[:, i]], axis=1)) for i in range(2)]
            replace_both(near, weight, value, fold, hidden, every, *sides, FEW, found)
            out.append((f"both by {name}", found[:, 0]))
            if not every:
                out.append((f"both by {name} weight", found[:, 1]))

        for name, graph in (("profile", self._profile), ("mixed", self._mixed)):
            one(name, *graph, strain)
            two(name, *graph, strain)
        one("mixed completed", *self._mixed, strain, every=True)
        two("mixed completed", *self._mixed, strain, every=True)
        for name, near, weight in self._near:
            one(name, near, weight, gene)
            # Of a relation, few pairs have neighbours of both genes that were crossed.
            if name.startswith(LIKE):
                two(name, near, weight, gene)
            if name in BY_ALL:
                one(f"{name} completed", near, weight, gene, every=True)
                two(f"{name} completed", near, weight, gene, every=True)
        return out

    def _alike(self, gene: Ints) -> list[tuple[str, Floats]]:
        """Return how alike both genes are in every channel, and their traits; no label is read."""
        channels = self.similarity.compare(gene[:, 0], gene[:, 1])
        # Spectral positions in a relation and degrees say less of a pair than the relation's edges do.
        out = [
            (f"alike {name}", column)
            for name, column in zip(self.similarity.channels, channels.T, strict=True)
            if not name.startswith("graph ")
        ]
        traits = self.similarity.traits[gene]
        for i, name in enumerate(self.similarity.trait_names):
            if name.startswith(f"{DEGREES}."):
                continue
            out.append((f"{name} low", traits[..., i].min(axis=1)))
            out.append((f"{name} high", traits[..., i].max(axis=1)))
        return out


def _strengths(
    values: Floats, negative: NDArray[np.bool_], positive: NDArray[np.bool_]
) -> list[tuple[str, Floats]]:
    """Return the mean value of the listed crosses of every strain [s], and their mean size.

    Shrunken to those of all listed crosses. Effects and rates are of all crosses, most of which are 0.
    """
    # Sums over cells of either sign give both, without another matrix of s² numbers.
    below, above = (values.sum(axis=1, dtype=np.float64, where=flags) for flags in (negative, positive))
    count = negative.sum(axis=1) + positive.sum(axis=1)
    out = []
    for name, total in (("mean", above + below), ("size", above - below)):
        prior = LISTED_PRIOR * total.sum() / max(count.sum(), 1)
        out.append((f"listed {name}", ((total + prior) / (count + LISTED_PRIOR)).astype(np.float32)))
    return out


def _listed(matrix: PairMatrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which known cells [s, s] are negative and positive interactions.

    Of a list, those with a value; of a dense map, those beyond one standard deviation.
    """
    values, known = matrix.values, matrix.known
    count = np.count_nonzero(known)
    listed = count > 0 and np.count_nonzero(known & (values != 0)) < 0.5 * count
    cut = 0.0 if listed or not count else float(values[known].std())
    return known & (values < -cut), known & (values > cut)
