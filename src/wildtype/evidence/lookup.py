"""`EvidenceIndex`: what was measured of mutants like the ones asked about, as arrays of tokens.

Legend: n genes · q queries · Σk their genes · t tokens per query · c channels of similarity · p phenotypes
· s pairs of genes within queries.

A measured mutant is one edit away from a query if one gene is replaced by another, removed, or added. Tokens
along two edits (two genes replaced by neighbours) and the statistics of neighbouring genes are all there is
for unseen genes. A record of a query's own gene set is never a token, nor does it enter any statistic: a
query whose set was measured is answered by an index without the tenth of the sets that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.evidence import kernels
from wildtype.evidence.effects import Effect, KnockoutEffects
from wildtype.evidence.measured import MeasuredSets, additive_effects
from wildtype.evidence.measured_effects import MeasuredEffects
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens, joined
from wildtype.mutants.identity import gene_words, keys_of
from wildtype.mutants.rows import pairs_in
from wildtype.mutants.table import MutantTable

FOLDS = np.uint64(10)
PAIRS = 10  # of a large set, pairs of genes of which both are replaced
TWO_PRIOR = 0.01  # products of two likenesses: that of one fair pair
FEW = 512  # genes up to which all products of label profiles are made in advance
CHUNK = 512  # queries per piece of work


@dataclass(frozen=True)
class EvidenceSizes:
    """How much is looked up.

    Attributes
    ----------
    tokens, two : int
        Tokens per query one edit and two edits away. Without ``tokens`` nothing is looked up among the
        measurements: all that they tell is the additive model.
    neighbours : int
        Neighbours per gene whose statistics are read.
    replacements : int
        Neighbours per gene that replace it where two genes are replaced.
    additive : bool
        Whether the additive model is fitted; its effects are 0 otherwise.
    ranked : (int, int)
        So many tokens, one and two edits away, are the best there are, in order; None: all of them, in any
        order.
    """

    tokens: int = 32
    two: int = 16
    neighbours: int = 8
    replacements: int = 32
    additive: bool = True
    ranked: tuple[int, int] | None = None


class EvidenceIndex:
    """Looks up evidence among given measurements.

    Parameters
    ----------
    similarity : GeneSimilarity
        Of the n genes.
    table : MutantTable
        What may be looked at, values scaled so that 0 stands for no effect and 1 for a typical one.
    phenotypes : int
        Number of phenotypes p.
    sizes : EvidenceSizes
        How much is looked up.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.
    effects : KnockoutEffects, optional
        Which mutants lose the same reactions, of an organism with metabolism.
    interactions : sequence of bool [p]
        Phenotypes that also depend on what the genes of a mutant do apart; empty: all.
    """

    def __init__(
        self,
        similarity: GeneSimilarity,
        table: MutantTable,
        phenotypes: int,
        sizes: EvidenceSizes | None = None,
        run: Callable[[int, Callable[[int], None]], None] | None = None,
        effects: KnockoutEffects | None = None,
        interactions: Sequence[bool] = (),
    ) -> None:
        self.similarity, self.table, self.phenotypes = similarity, table, phenotypes
        self.sizes = sizes or EvidenceSizes()
        self.run = run or _one_after_the_other
        self.words = gene_words(similarity.genes)
        self.keys = keys_of(table.gene, table.offsets, self.words)
        self.near = similarity.near
        self.looks_up = self.sizes.tokens > 0
        self._measured, first, of = np.unique(self.keys, return_index=True, return_inverse=True)
        self._parts: dict[int, EvidencePart] = {}
        self.effects = effects
        effect = self.effect_of(table)
        self._effect = self.keys[first] if effect is None else effect.keys[first, 0]
        self.interactions = np.ones(phenotypes, bool)
        self.interactions[: len(interactions)] = interactions
        self.hidden_with = self._effect[of]
        """Rows of one word are hidden together out of fold: of one gene set or of one known effect."""
        self.gene_hidden_with = self.words if effects is None else effects.alone
        """The same of genes."""

    def part(self, hidden: NDArray[np.bool_] | None = None) -> EvidencePart:
        """Return the evidence without the rows ``hidden`` of the table; the whole is made once."""
        if hidden is None:
            return self._fold(-1)
        return self._of(self.table.take(~hidden))

    def _of(self, table: MutantTable) -> EvidencePart:
        return EvidencePart(self, MeasuredSets(table, len(self.words), self.phenotypes))

    def effect_of(self, asked: Asked) -> Effect | None:
        """Return what mutants lose; None where it cannot be told."""
        if self.effects is None:
            return None
        gene, offsets, condition = arrays(asked)
        kind, dose = (
            x if x is None or isinstance(x, np.ndarray) else x.numpy() for x in (asked.kind, asked.dose)
        )
        assert kind is not None
        return self.effects.of(gene, offsets, kind, condition, dose)

    def hides(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the words of ``hidden_with`` for keys [q] of measured gene sets."""
        if not len(self._measured):
            return keys
        return self._effect[np.minimum(np.searchsorted(self._measured, keys), len(self._measured) - 1)]

    def tokens_of(self, asked: Asked) -> EvidenceTokens:
        """Return the evidence of every mutant asked about; measured values in it are not read.

        A mutant whose gene set was measured is answered without the records of the tenth of the sets it is
        in. The additive model alone, in which one record hardly counts, is that of all records.
        """
        gene, offsets, condition = arrays(asked)
        if not self.looks_up:
            return self.part().tokens_of(gene, offsets, condition)
        keys = keys_of(gene, offsets, self.words)
        at = np.minimum(np.searchsorted(self._measured, keys), max(len(self._measured) - 1, 0))
        measured = self._measured[at] == keys if len(self._measured) else np.zeros(len(keys), bool)
        number = np.where(measured, (keys % FOLDS).astype(np.int64), -1)
        return answer(self._fold, number, gene, offsets, condition, self.effect_of(asked))

    def _fold(self, fold: int) -> EvidencePart:
        if fold not in self._parts:
            self._parts[fold] = self._of(
                self.table if fold < 0 else self.table.take(self.keys % FOLDS != fold)
            )
        return self._parts[fold]


Asked = MutantTable | MutantBatch


def arrays(asked: Asked) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return genes, offsets and conditions of what is asked about, as arrays."""
    gene, offsets, condition = (
        x if isinstance(x, np.ndarray) else x.numpy() for x in (asked.gene, asked.offsets, asked.condition)
    )
    return gene, offsets, condition


def answer(
    part: Callable[[int], EvidencePart],
    number: NDArray[np.int64],
    gene: NDArray[np.int64],
    offsets: NDArray[np.int64],
    condition: NDArray[np.int64],
    effect: Effect | None,
) -> EvidenceTokens:
    """Return the evidence of queries, each answered by the part of its ``number`` [q]."""
    found = np.unique(number)
    if len(found) == 1:
        return part(int(found[0])).tokens_of(gene, offsets, condition, effect)
    sizes = np.diff(offsets)
    row = np.repeat(np.arange(len(number)), sizes)
    rows = [np.flatnonzero(number == i) for i in found]
    parts = []
    for i, chosen in zip(found, rows, strict=True):
        ends = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        inside = gene[np.isin(row, chosen)]
        own = None if effect is None else effect.take(chosen)
        parts.append(part(int(i)).tokens_of(inside, ends, condition[chosen], own))
    return joined(parts, rows, row)


@dataclass(frozen=True)
class Found:
    """Measured mutants one edit away [q, t]: row among the measured, kind of edit, genes; -1: none."""

    row: NDArray[np.int64]
    edit: NDArray[np.int64]
    old: NDArray[np.int64]
    new: NDArray[np.int64]


@dataclass(frozen=True)
class FoundPairs:
    """Measured mutants two edits away: rows [q, u], genes [q, u, 2]; Σ w y and Σ w over all found [q, p]."""

    row: NDArray[np.int64]
    old: NDArray[np.int64]
    new: NDArray[np.int64]
    total: NDArray[np.float32]
    weight: NDArray[np.float32]


class EvidencePart:
    """Lookup in one set of measurements; made by `EvidenceIndex.part`."""

    def __init__(self, index: EvidenceIndex, measured: MeasuredSets) -> None:
        self.index = index
        self.effects = np.zeros((measured.n, measured.phenotypes), np.float32)
        if index.sizes.additive:
            self.effects = additive_effects(measured)
        if not index.looks_up:
            measured = MeasuredSets(measured.mutants.take([]), measured.n, measured.phenotypes)
        self.measured = measured
        self.profiles = measured.profiles
        n = index.similarity.genes
        # Few genes in many sets have long profiles, and few products.
        few = n <= FEW
        self.products = (self.profiles @ self.profiles.T).toarray() if few else np.zeros((0, 0), np.float32)
        transpose = self.profiles.T.tocsr()
        self.neighbour = np.full((n, index.sizes.replacements), -1, np.int64)
        self.near = np.zeros((n, index.sizes.replacements), np.float32)
        known = measured.statistics[:, : measured.phenotypes].sum(axis=1) > 0
        near, profiles = index.near, self.profiles
        pieces = -(-n // CHUNK)

        def work(i: int) -> None:
            score = np.zeros(n, np.float32)
            best = np.zeros(index.sizes.replacements, np.float32)
            kernels.neighbours(
                i * CHUNK,
                min((i + 1) * CHUNK, n),
                known,
                near.indptr,
                near.indices,
                near.data,
                profiles.indptr,
                profiles.indices,
                profiles.data,
                transpose.indptr,
                transpose.indices,
                transpose.data,
                score,
                best,
                self.neighbour,
                self.near,
            )

        index.run(pieces, work)
        self.known = np.isfinite(measured.value).astype(np.float32)
        self.filled = np.where(self.known > 0, measured.value, 0).astype(np.float32)
        p = measured.phenotypes
        count, total, positive = (measured.statistics[:, i * p : (i + 1) * p] for i in range(3))
        self.statistics = np.concatenate(
            [total / (count + 4), np.log1p(count) / 3, positive / (count + 4)], axis=1
        ).astype(np.float32)

    def similar(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the similarity of genes [any] in every channel [any, c]."""
        s, profiles = self.index.similarity, self.profiles
        shape, size = left.shape, left.size
        i, j = np.ascontiguousarray(left).reshape(-1), np.ascontiguousarray(right).reshape(-1)
        out = np.empty((size, len(s.channels)), np.float32)
        piece = CHUNK * 16

        def work(at: int) -> None:
            kernels.similar(
                at * piece,
                min((at + 1) * piece, size),
                i,
                j,
                s.unit,
                s.cuts,
                s.indptr,
                s.indices,
                s.data,
                profiles.indptr,
                profiles.indices,
                profiles.data,
                self.products,
                s.scale,
                out,
            )

        self.index.run(-(-size // piece), work)
        return out.reshape(*shape, len(s.channels))

    def one_edit(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> Found:
        """Return the measured mutants one edit away from each query, the most telling ones where there are
        more than there is room for.
        """
        index, less, whole = self.index, self.measured.less, self.measured.whole
        q, t, near, profiles = len(offsets) - 1, index.sizes.tokens, index.near, self.profiles
        ranked = t if index.sizes.ranked is None else index.sizes.ranked[0]
        row, edit, old, new = (np.full((q, t), -1, np.int64) for _ in range(4))

        def work(i: int) -> None:
            kernels.one_edit(
                i * CHUNK,
                min((i + 1) * CHUNK, q),
                index.words,
                gene,
                offsets,
                condition,
                less.keys,
                less.slots,
                less.start,
                self.measured.entry_row,
                self.measured.entry_gene,
                whole.keys,
                whole.slots,
                whole.start,
                whole.order,
                self.measured.condition,
                near.indptr,
                near.indices,
                near.data,
                profiles.indptr,
                profiles.indices,
                profiles.data,
                self.products,
                np.zeros(profiles.shape[1], np.float32),
                np.zeros(t, np.float32),
                ranked,
                row,
                edit,
                old,
                new,
            )

        index.run(-(-q // CHUNK) if t else 0, work)
        return Found(row, edit, old, new)

    def two_edits(
        self, gene: NDArray[np.int64], offsets: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> FoundPairs:
        """Return the measured mutants with two genes of a query replaced by neighbours, and what all say."""
        index, whole = self.index, self.measured.whole
        q, u = len(offsets) - 1, index.sizes.two
        ranked = u if index.sizes.ranked is None else index.sizes.ranked[1]
        row = np.full((q, u), -1, np.int64)
        old, new = (np.full((q, u, 2), -1, np.int64) for _ in range(2))
        total, weight = (np.zeros((q, self.measured.phenotypes), np.float32) for _ in range(2))
        marks, orders = whole.marks, self.measured.orders

        def work(i: int) -> None:
            kernels.two_edits(
                i * CHUNK,
                min((i + 1) * CHUNK, q),
                index.words,
                gene,
                offsets,
                condition,
                whole.keys,
                whole.slots,
                whole.start,
                whole.order,
                self.measured.condition,
                marks,
                orders,
                self.neighbour,
                self.near,
                PAIRS,
                self.filled,
                self.known,
                np.zeros(u, np.float32),
                ranked,
                row,
                old,
                new,
                total,
                weight,
            )

        index.run(-(-q // CHUNK) if u else 0, work)
        return FoundPairs(row, old, new, total, weight)

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
        one = self.one_edit(gene, offsets, condition)
        two = self.two_edits(gene, offsets, condition)
        neighbours = self.index.sizes.neighbours
        value, known, same = self._values(one.row, condition)
        value2, known2, same2 = self._values(two.row, condition)
        near = self.neighbour[gene, :neighbours]
        of, left, right = pairs_in(gene, offsets)
        equal, equal_known, bound = self._of_effect(len(offsets) - 1, condition, effect)
        arrays = {
            "one": self.similar(one.old, one.new),
            "one_edit": np.maximum(one.edit, 0),
            "one_old": one.old,
            "one_new": one.new,
            "one_mask": one.row >= 0,
            "one_value": value,
            "one_known": known,
            "one_same": same,
            "one_statistics": self.statistics[one.new] * (one.new >= 0)[..., None],
            "two": self.similar(two.old, two.new),
            "two_old": two.old,
            "two_new": two.new,
            "two_mask": two.row >= 0,
            "two_value": value2,
            "two_known": known2,
            "two_same": same2,
            "two_all": np.concatenate(
                [two.total / (two.weight + TWO_PRIOR), np.log1p(two.weight / TWO_PRIOR)], axis=1
            ),
            "near": self.similar(np.broadcast_to(gene[:, None], near.shape), near),
            "near_gene": near,
            "near_mask": near >= 0,
            "near_statistics": self.statistics[near] * (near >= 0)[..., None],
            "own": self.statistics[gene],
            "own_effect": self.effects[gene],
            "pair": self.similar(left, right),
            "pair_traits": self.traits_of(left, right),
            "pair_row": of,
            "pair_left": left,
            "pair_right": right,
            "equal": equal,
            "equal_known": equal_known,
            "bound": bound,
        }
        return EvidenceTokens(
            **{name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
        )

    def _of_effect(
        self, queries: int, condition: NDArray[np.int64], effect: Effect | None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Return what mutants of the same effect have, whether there are any, and bounds [q, p]."""
        measured = self._by_effect if effect is not None and len(self.measured) else None
        if effect is None or measured is None:
            shape = (queries, self.measured.phenotypes)
            return np.zeros(shape, np.float32), np.zeros(shape, bool), np.full(shape, np.inf, np.float32)
        return (*measured.equal(effect), measured.bound(effect, condition))

    def traits_of(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return sum, distance and product of the k traits of genes [s] and [s]: [s, 3 k]."""
        a, b = (self.index.similarity.traits[genes] for genes in (left, right))
        return np.concatenate([a + b, np.abs(a - b), a * b], axis=1)

    @cached_property
    def _by_effect(self) -> MeasuredEffects | None:
        effect = self.index.effect_of(self.measured.mutants)
        return None if effect is None else MeasuredEffects(effect, self.measured, self.index.interactions)

    def _values(
        self, row: NDArray[np.int64], condition: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        there = row >= 0
        if not len(self.measured):
            shape = (*row.shape, self.measured.phenotypes)
            return np.zeros(shape, np.float32), np.zeros(shape, bool), np.zeros(row.shape, np.float32)
        value = self.measured.value[row]
        known = np.isfinite(value) & there[..., None]
        same = (self.measured.condition[row] == condition[:, None]) & there
        return np.where(known, value, 0).astype(np.float32), known, same.astype(np.float32)


def _one_after_the_other(count: int, work: Callable[[int], None]) -> None:
    for i in range(count):
        work(i)
