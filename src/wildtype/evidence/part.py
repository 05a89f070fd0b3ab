"""`EvidencePart`: lookup in one set of measurements.

Legend: n genes · q queries · Σk their genes · t, u tokens per query one and two edits away · c channels of
similarity · p phenotypes · s pairs of genes within queries.

A measured mutant is one edit away from a query if one gene is replaced by another, removed, or added. For
unseen genes there are only mutants two edits away (two genes replaced by their neighbours) and the statistics
of neighbouring genes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence import (
    one_edit_kernels,
    ranked_kernels,
    similarity_kernels,
    token_kernels,
    two_edits_kernels,
)
from wildtype.evidence.edits import OneEditAway, Queries, Ranking, TwoEditsAway
from wildtype.evidence.effects import Effect, MeasuredEffects
from wildtype.evidence.first_genes import by_first_gene
from wildtype.evidence.measured import MeasuredSets, additive_effects
from wildtype.evidence.nearest_genes import NearestGenes, not_made
from wildtype.evidence.neighbour_kernels import Csr
from wildtype.evidence.shared import Shared
from wildtype.evidence.similarity_kernels import UNKNOWN
from wildtype.mutants.evidence_tokens import (
    EquivalentMutants,
    EvidenceTokens,
    GenePairs,
    Genes,
    Neighbours,
    OneEdit,
    TwoEdits,
)
from wildtype.mutants.rows import pairs_in
from wildtype.mutants.table import MutantTable

PAIRS = 10
"""Of a large set, pairs of genes of which both are replaced: each costs a lookup per pair of neighbours."""
TWO_PRIOR = 0.01
"""Weight of no effect in the mean over mutants two edits away: that of one fairly similar pair."""
GENE_PRIOR = 4.0
"""Measurements without effect that the statistics of a gene are shrunken by."""
LOG_SCALE = 3.0
"""Logarithms of numbers of measurements are divided by this: 20 measurements become about 1."""
FEW = 512
"""Genes up to which all products of label profiles are made in advance."""
TABLE = 128 << 20
"""Largest table, in bytes, of what genes and their neighbours have in common, and of rankings of genes."""
RANKED = 12
"""Bytes of a place in a ranking."""
CHUNK = 512
"""Queries per piece of work: their results stay in the cache, and there are enough pieces for all threads."""
NUMBERS = itertools.count()
"""Of parts, as they are made."""


class EvidencePart:
    """Lookup in one set of measurements; made by `EvidenceIndex.part`.

    One that is ``lasting`` serves many calls, and keeps what genes and their neighbours have in common.

    Attributes
    ----------
    number : int
        No other part of this process has it.
    effects : float32 [n, p]
        Additive effects.
    statistics : float32 [n, 3 p]
        Shrunken mean Σy / (count + 4), log(1 + count) / 3 and (number of y > 0) / (count + 4) of the measured
        mutants with each gene.
    """

    def __init__(self, shared: Shared, table: MutantTable, *, lasting: bool = False) -> None:
        self.shared, self.number = shared, next(NUMBERS)
        n, p, sizes = shared.similarity.genes, shared.phenotypes, shared.sizes
        measured = MeasuredSets(table, n, p)
        self.effects = additive_effects(measured) if sizes.additive else np.zeros((n, p), np.float32)
        if not shared.looks_up:
            measured = MeasuredSets(measured.mutants.take([]), n, p)
        self.measured = measured
        # Few genes in many sets have long profiles, and few products.
        self._profiles = _csr(measured.profiles)
        few = n <= FEW
        self.products = (
            (measured.profiles @ measured.profiles.T).toarray() if few else np.zeros((0, 0), np.float32)
        )
        self._embedded = _csr(shared.similarity.near)
        # Memory is taken page by page as genes are looked up.
        shape = (n, sizes.replacements, len(shared.similarity.channels))
        lasting &= 4 * math.prod(shape) <= TABLE
        self._table = np.empty(shape, np.float32) if lasting else None
        self._made = np.zeros(n if lasting else 0, bool)
        known, self._contexts = measured.statistics[:, :p].sum(axis=1) > 0, _csr(measured.profiles.T.tocsr())
        # Entries of all contexts of a gene: what its products with all profiles cost.
        ends = np.append(0, np.cumsum(np.diff(self._contexts.indptr)[measured.profiles.indices]))
        self._paths = np.diff(ends[measured.profiles.indptr]).astype(np.int64)
        reach, alike = self._reach(measured), (known, self._embedded, self._profiles, self._contexts)
        self._nearest = NearestGenes(*alike, max(reach, sizes.replacements), shared.run).of
        self._ranking: Ranking | None = None
        if reach:
            # The best tokens are found gene by gene: all genes are ranked at once, and far.
            ranking = self._nearest()
            self._ranking = Ranking(ranking.gene.astype(np.int32), ranking.score)
            first = Ranking(*(np.ascontiguousarray(x[:, : sizes.replacements]) for x in ranking))
            self._nearest = lambda genes=None: first
        self.known = np.isfinite(measured.value).astype(np.float32)
        self.filled = np.where(self.known > 0, measured.value, 0).astype(np.float32)
        count, total, positive = (measured.statistics[:, i * p : (i + 1) * p] for i in range(3))
        shrunken = count + GENE_PRIOR
        self.statistics = np.concatenate(
            [total / shrunken, np.log1p(count) / LOG_SCALE, positive / shrunken], axis=1
        ).astype(np.float32)

    def nearest(self, genes: NDArray[np.int64] | None = None) -> Ranking:
        """Return the measured genes most similar to each of ``genes``, best first; without, to all genes."""
        return self._nearest(genes)

    @property
    def profiles(self) -> sparse.csr_array:
        """Label profiles of genes: see `MeasuredSets`."""
        return self.measured.profiles

    def _reach(self, measured: MeasuredSets) -> int:
        """Return how many genes are ranked for each gene: so many that a query with very many candidates has
        all its tokens among the first; 0 where candidates are few.
        """
        if not len(measured) or len(self.products):
            return 0
        size = np.diff(measured.less.start).astype(np.float64)
        # What a measured mutant has for candidates: those that share all its genes but a given one.
        crowd = float(size @ size / size.sum())
        reach = int(self.shared.sizes.tokens * measured.n / crowd)
        return reach if reach < measured.n and measured.n * reach * RANKED <= TABLE else 0

    def similar(
        self, left: NDArray[np.int64], right: NDArray[np.int64], alike: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Return the similarity of genes [m, ...] in every channel [m, ..., c]; 0 where one of them is -1.

        A row that repeats a left gene is cheaper than several rows with it. ``alike`` [m, ...]: products of
        label profiles, or ``UNKNOWN``.
        """
        s = self.shared.similarity
        rows, channels = len(left), len(s.channels)
        i, j = (np.ascontiguousarray(x).reshape(rows, math.prod(left.shape[1:])) for x in (left, right))
        graphs = Csr(s.indptr, s.indices, s.data)
        products = np.full(i.shape, UNKNOWN) if alike is None else alike.reshape(i.shape)
        out = np.zeros((*i.shape, channels), np.float32)
        piece = max(CHUNK * 16 // max(i.shape[1], 1), 1)

        def work(at: int) -> None:
            spread = np.zeros(0 if len(self.products) else self.profiles.shape[1], np.float32)
            span = (at * piece, min((at + 1) * piece, rows))
            genes = (*s.lanes, graphs, s.links, self._profiles, self.products, s.scale)
            similarity_kernels.similar(*span, i, j, *genes, spread, products, out)

        self.shared.run(-(-rows // piece), work)
        return out.reshape(*left.shape, channels)

    def _similar_neighbours(self, gene: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the similarity of genes [m, t] and their neighbours by place [m, t]: [m, t, c]; -1: none.

        What a gene and its neighbours have in common is looked up many times in a screen, and made once.
        """
        if self._table is None:
            at = np.where((gene >= 0) & (place >= 0), place, 0)
            near = self.nearest(gene).gene[np.maximum(gene, 0), at]
            return self.similar(np.where(place >= 0, gene, -1), np.where(place >= 0, near, -1))
        self._compare_neighbours(gene, self._table)
        table, out = self._table, np.zeros((*gene.shape, self._table.shape[-1]), np.float32)
        self._by_rows(
            len(gene), lambda *span: similarity_kernels.copy_similar(*span, gene, place, table, out)
        )
        return out

    def _compare_neighbours(self, gene: NDArray[np.int64], table: NDArray[np.float32]) -> None:
        """Write the rows of ``gene`` (-1: none) to the table of what genes and their neighbours share."""
        todo = not_made(self._made, gene)
        if len(todo):
            near = self.nearest(todo).gene[todo]
            table[todo] = self.similar(np.broadcast_to(todo[:, None], near.shape), near)
            self._made[todo] = True

    def traits_of(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return sum, distance and product of the k traits of genes [s] and [s]: [s, 3 k]."""
        a, b = (self.shared.similarity.traits[genes] for genes in (left, right))
        return np.concatenate([a + b, np.abs(a - b), a * b], axis=1)

    def one_edit(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> OneEditAway:
        """Return the measured mutants one edit away from each query, the best where there are too many."""
        shared, measured = self.shared, self.measured
        queries = Queries(gene, offsets, condition)
        q, t = len(offsets) - 1, shared.sizes.tokens
        ranked = t if shared.sizes.ranked is None else shared.sizes.ranked[0]
        row, edit, old, new = (np.empty((q, t), np.int64) for _ in range(4))
        found = OneEditAway(row, edit, old, new, alike=np.empty((q, t), np.float32))
        done = np.zeros(q, bool)
        mutants = (measured.whole.table, measured.whole.order, measured.condition)

        def crowded(first: int, last: int) -> None:
            assert self._ranking is not None
            ranked_kernels.from_the_most_similar(
                first,
                last,
                shared.words,
                queries,
                measured.less.table,
                measured.entries,
                *mutants,
                measured.only_condition,
                measured.orders,
                self._ranking,
                found,
                done,
            )

        if self._ranking is not None:
            self._by_rows(q, crowded, CHUNK)
        asked = by_first_gene(gene, offsets)

        def others(first: int, last: int) -> None:
            one_edit_kernels.one_edit(
                first,
                last,
                asked,
                shared.words,
                queries,
                measured.less.table,
                measured.entry_row,
                measured.entry_gene,
                *mutants,
                measured.only_condition,
                measured.orders,
                self._embedded,
                self._profiles,
                self._contexts,
                self._paths,
                self.products,
                np.zeros(measured.profiles.shape[1], np.float32),
                np.zeros(t, np.float32),
                ranked,
                found,
                done,
            )

        self._by_rows(q if t else 0, others, CHUNK)
        return found

    def two_edits(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> TwoEditsAway:
        """Return the measured mutants with two genes of a query replaced by neighbours, and sums over all."""
        shared, measured = self.shared, self.measured
        queries = Queries(gene, offsets, condition)
        q, u = len(offsets) - 1, shared.sizes.two
        ranked = u if shared.sizes.ranked is None else shared.sizes.ranked[1]
        found = TwoEditsAway(
            np.empty((q, u), np.int64),
            *(np.empty((q, u, 2), np.int64) for _ in range(3)),
            *(np.zeros((q, measured.phenotypes), np.float32) for _ in range(2)),
        )
        marks, nearest, asked = measured.whole.marks, self.nearest(gene), by_first_gene(gene, offsets)

        def work(first: int, last: int) -> None:
            two_edits_kernels.two_edits(
                first,
                last,
                asked,
                shared.words,
                queries,
                measured.whole.table,
                measured.whole.order,
                measured.condition,
                marks,
                measured.orders,
                measured.less.start,
                measured.entry_gene,
                measured.alone,
                *nearest,
                PAIRS,
                self.filled,
                self.known,
                np.zeros(u, np.float32),
                ranked,
                found,
            )

        self._by_rows(q if u else 0, work, CHUNK)
        return found

    def tokens_of(
        self,
        gene: NDArray[np.int64],
        offsets: NDArray[np.int64],
        condition: NDArray[np.int64],
        effect: Effect | None = None,
    ) -> EvidenceTokens:
        """Return the evidence of mutants; their own gene sets must not be among the measurements.

        Without their ``effect`` neither equivalents nor bounds are looked up.
        """
        return EvidenceTokens(
            one=self._one_edit_tokens(gene, offsets, condition),
            two=self._two_edits_tokens(gene, offsets, condition),
            neighbours=self._neighbours_tokens(gene),
            genes=self._genes_tokens(gene),
            pairs=self._pairs_tokens(gene, offsets),
            equivalents=self._equivalents_tokens(condition, effect),
        )

    def _one_edit_tokens(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> OneEdit:
        found = self.one_edit(gene, offsets, condition)
        mask, value, known, same = self._values(found.row, condition)
        return OneEdit(
            similarity=_tensor(self.similar(found.old, found.new, found.alike)),
            edit=_tensor(found.edit),
            old=_tensor(found.old),
            new=_tensor(found.new),
            mask=_tensor(mask),
            value=_tensor(value),
            known=_tensor(known),
            same_condition=_tensor(same),
            statistics=_tensor(self._rows_of(found.new, self.statistics)),
        )

    def _two_edits_tokens(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> TwoEdits:
        found = self.two_edits(gene, offsets, condition)
        mask, value, known, same = self._values(found.row, condition)
        mean, weight = found.total / (found.weight + TWO_PRIOR), np.log1p(found.weight / TWO_PRIOR)
        shape = found.old.shape
        ends = (x.reshape(len(x), math.prod(shape[1:])) for x in (found.old, found.place))
        alike = self._similar_neighbours(*ends)
        return TwoEdits(
            similarity=_tensor(alike.reshape(*shape, alike.shape[-1])),
            old=_tensor(found.old),
            new=_tensor(found.new),
            mask=_tensor(mask),
            value=_tensor(value),
            known=_tensor(known),
            same_condition=_tensor(same),
            pooled=_tensor(np.concatenate([mean, weight], axis=1)),
        )

    def _neighbours_tokens(self, gene: NDArray[np.int64]) -> Neighbours:
        near = self._rows_of(gene[:, None], self.nearest(gene).gene[:, : self.shared.sizes.neighbours])[:, 0]
        if self._table is None:
            alike = self.similar(np.broadcast_to(gene[:, None], near.shape), near)
        else:
            self._compare_neighbours(gene, self._table)
            # The neighbours of a gene are its first ones in the table, one row of memory.
            wide = near.shape[1] * self._table.shape[-1]
            rows = self._table.reshape(len(self._table), math.prod(self._table.shape[1:]))[:, :wide]
            alike = self._rows_of(gene[:, None], rows).reshape(*near.shape, self._table.shape[-1])
        return Neighbours(
            similarity=_tensor(alike),
            gene=_tensor(near),
            mask=_tensor(near >= 0),
            statistics=_tensor(self._rows_of(near, self.statistics)),
        )

    def _genes_tokens(self, gene: NDArray[np.int64]) -> Genes:
        columns = self.statistics[gene], self.effects[gene], np.full(len(gene), self.number)
        return Genes(*map(_tensor, columns))

    def _pairs_tokens(self, gene: NDArray[np.int64], offsets: NDArray[np.int64]) -> GenePairs:
        row, left, right = pairs_in(gene, offsets)
        return GenePairs(
            row=_tensor(row),
            left=_tensor(left),
            right=_tensor(right),
            similarity=_tensor(self.similar(left, right)),
            traits=_tensor(self.traits_of(left, right)),
        )

    def _equivalents_tokens(self, condition: NDArray[np.int64], effect: Effect | None) -> EquivalentMutants:
        """Return what mutants of the same effect have, and the least of those that lose no more."""
        measured = self._by_effect if effect is not None and len(self.measured) else None
        if effect is None or measured is None:
            shape = (len(condition), self.measured.phenotypes)
            nothing = (np.zeros(shape, np.float32), np.zeros(shape, bool), np.full(shape, np.inf, np.float32))
            return EquivalentMutants(*map(_tensor, nothing))
        return EquivalentMutants(*map(_tensor, (*measured.equal(effect), measured.bound(effect, condition))))

    @cached_property
    def _by_effect(self) -> MeasuredEffects | None:
        effect = self.shared.effect_of(self.measured.mutants)
        return None if effect is None else MeasuredEffects(effect, self.measured, self.shared.interactions)

    def _values(
        self, row: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Return where rows [q, t] are (-1: none), their values, which are known, and whose condition is a
        query's.
        """
        shape = (*row.shape, self.measured.phenotypes)
        values = (np.zeros(shape, np.float32), np.zeros(shape, bool), np.zeros(row.shape, np.float32))
        out = (np.empty(row.shape, bool), *values)
        measured = (self.measured.value, self.measured.condition)
        self._by_rows(len(row), lambda *span: token_kernels.read_rows(*span, row, condition, *measured, *out))
        return out

    def _rows_of(self, genes: NDArray[np.int64], table: NDArray[Any]) -> NDArray[Any]:
        """Return the rows [q, t, c] of genes [q, t] in a table [n, c]; 0 where there is none (-1)."""
        out = np.zeros((*genes.shape, table.shape[1]), table.dtype)
        self._by_rows(len(genes), lambda *span: token_kernels.gather(*span, genes, table, out))
        return out

    def _by_rows(self, count: int, work: Callable[[int, int], None], piece: int = CHUNK * 4) -> None:
        """Call work(first, last) on pieces of so many rows."""
        self.shared.run(-(-count // piece), lambda i: work(i * piece, min((i + 1) * piece, count)))


def _csr(matrix: sparse.csr_array) -> Csr:
    return Csr(matrix.indptr, matrix.indices.astype(np.uint32), matrix.data)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """Return an array as a tensor that shares its memory."""
    return torch.from_numpy(np.ascontiguousarray(array))
