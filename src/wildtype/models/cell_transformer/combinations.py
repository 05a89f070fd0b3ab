"""`SetTables`: the head for all sets of k of some members, from tables per member and per pair of members.

Legend: c members (a gene and what is done to it) · k members of a set · m sets · n genes · d width · H heads
· w hidden width.

A screen scores many sets of few members. Up to its first non-linear layer, the head computes sums over
members, sums over pairs, attention within the set, and z_S. Members and pairs pass their layers once for
all sets. Each set then needs sums of rows, a softmax over k, z_S and the last layers. Exact: the same
terms in another order.
"""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag

from wildtype.evidence.lookup import EvidenceIndex
from wildtype.models.cell_transformer.head import MAX_ORDER, PerturbationHead
from wildtype.models.cell_transformer.summaries import SetSummary
from wildtype.models.interface import Members, WildType
from wildtype.nn.combined_queries import CombinedQueries
from wildtype.nn.perturbation_head import perturbation_attention
from wildtype.nn.set_attention import SetEmbeddings
from wildtype.nn.threads import shares

ROOM = 1 << 30
"""Bytes that one table may take."""
CHUNK = 4096
"""Sets that pass the layers together: what is made of them stays in the cache."""
ADDITIVE = ("sum", "mean")


class Summaries:
    """Summaries [m, d] of sets [m, k] of members with rows u [c, d]."""

    def __init__(self, summary: SetSummary, u: Tensor) -> None:
        self.how, self.row = summary.how, summary.project(u)
        self.attention, self.pooled = summary.attention, summary.pooled
        if self.attention is not None:
            self.tables = self.attention.tables(self.row)
            self.static = self.attention.static(self.row).tanh()

    def __call__(self, sets: Tensor) -> Tensor:
        """Return the summary of every set."""
        k = sets.shape[1]
        if self.how in ADDITIVE:
            return embedding_bag(sets, self.row, mode=self.how)
        # Σ_{i≠j} u_i u_j = (Σ u)² − Σ u² (Rendle, ICDM 2010): k rows are read per set, not k² pairs.
        if self.how == "product":  # the mean over pairs of products
            total = embedding_bag(sets, self.row, mode="sum")
            squares = embedding_bag(sets, self.row**2, mode="sum")
            return total.square_().sub_(squares).div_(max(k * (k - 1), 1))
        assert self.attention is not None
        dynamic = self.attention.dynamic(sets, *self.tables)
        return self.pooled(SetEmbeddings(dynamic, embedding(sets, self.static))).mean(1)


class SetTables:
    """The predictions of a head for sets of k members; no gradient is recorded.

    Parameters
    ----------
    head : PerturbationHead
        In evaluation mode; see `applies`.
    wild_type : WildType
        As the model of the head encodes it.
    members : Members
        The c members, and k.
    evidence : EvidenceIndex or None
        Similarity of genes and their additive effects; needed where the head reads them.
    """

    @torch.no_grad()
    def __init__(
        self, head: PerturbationHead, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> None:
        self.head, self.wild_type, self.members = head, wild_type, members
        k, h = members.order, wild_type.genes
        state = head.kind(members.kind.long())
        u = embedding(members.gene, h) + state
        first = head.out[0]
        assert isinstance(first, nn.Linear)
        ends = list(accumulate(head.columns.values()))
        # W [x_1 ‖ x_2 ‖ …] = Σ_i W_i x_i: the first layer is cut by columns, so each part passes its block
        # once per member or screen.
        parts = torch.tensor_split(first.weight, ends[:-1], dim=1)
        weight = dict(zip(head.columns, parts, strict=True))
        # The same limits as in the head: larger sets than training had use the embedding of its largest.
        known = min(k, MAX_ORDER, int(head.largest_order))
        self.fixed = first.bias + weight["cls"] @ wild_type.cls
        if head.order is not None:
            self.fixed = self.fixed + weight["order"] @ head.order.weight[known]
        if head.condition is not None:
            self.fixed = self.fixed + weight["condition"] @ head.condition.weight[members.condition]
        self.own = u.new_zeros(len(u), first.out_features)
        if head.bare:
            self.own += state @ weight["state"].T / k
        self.outputs = len(head.outputs.place)
        self.part = None if evidence is None else evidence.part()
        self.effects = None
        if head.additive is not None:
            assert self.part is not None  # the model was made with channels of similarity
            effects = torch.from_numpy(self.part.effects)[members.gene, : self.outputs]
            self.effects = head.additive * effects * head.scalar
        self.summaries: list[tuple[Summaries, Tensor]] = []
        for name, summary in head.direct_by_name():
            # Sums commute with linear maps, W Σ u_i = Σ W u_i: these summaries need no table of their own.
            if summary.how in ADDITIVE:
                self.own += summary.project(u) @ weight[name].T / (k if summary.how == "mean" else 1)
            else:
                self.summaries.append((Summaries(summary, u), weight[name]))
        self.combined = None
        if head.heads:
            self.from_cell = weight["whole cell"]
            asking = embedding(members.gene, h) if head.bilinear else u
            self.cell = head.genome(wild_type)
            self.delta = head.difference(self.cell, members.gene, state)
            keys, values = head.by_head(self.cell.keys), head.by_head(self.cell.values)
            if head.summary is None:
                self.combined = CombinedQueries(head.scaled(head.query(asking)), keys, values, k)
            else:
                self.asked = Summaries(head.summary, asking)
        if head.relations is not None:
            pairs = max(k * (k - 1) / 2, 1)
            # The readout is [Σ / P ‖ Σ / √P] over P pairs: both halves are multiples of one sum, so their
            # weights join.
            mean, scaled = weight["relations"].chunk(2, dim=1)
            self.from_pairs = mean / pairs + scaled / pairs**0.5
            c, half = len(u), head.relations.width_out // 2
            self.kept = 4 * half * c * c <= ROOM
            self.pairs = u.new_empty(c * c if self.kept else 0, half)
            self.there = torch.zeros(len(self.pairs), dtype=torch.bool)

    @staticmethod
    def applies(head: PerturbationHead, members: int, genes: int) -> bool:
        """Whether the tables apply to a head.

        They do where it reads neither evidence nor a screen, has no numbers per gene, and the tables fit in
        memory.
        """
        return (
            head.evidence is None
            and head.screen is None
            and not head.outputs.per_gene
            and max(CombinedQueries.bytes(max(head.heads, 1), members, genes), 4 * members**2) <= ROOM
        )

    @torch.no_grad()
    def __call__(self, sets: Tensor) -> Tensor:
        """Return the outputs [m, p] of sets int64 [m, k] of members; no set names a gene twice.

        It is fastest where sets that differ only in their last member are adjacent.
        """
        out = self.fixed.new_empty(len(sets), self.outputs)
        if self.head.relations is not None and self.kept:
            self._fill(sets)

        # Before the sets are cut into chunks: neighbouring sets share the product of their common genes.
        sums = None if self.combined is None else self.combined.sums(sets)

        def part(first: int, last: int) -> None:
            for start in range(first, last, CHUNK):
                chunk = slice(start, min(start + CHUNK, last))
                out[chunk] = self._answer(sets[chunk], None if sums is None else sums[:, chunk])

        shares(len(sets), part)
        return out

    def _answer(self, sets: Tensor, sums: Tensor | None) -> Tensor:
        """Return the outputs [m, p] of sets [m, k], given what their attention sums to where it is known."""
        x = embedding_bag(sets, self.own, mode="sum") + self.fixed
        for summary, weight in self.summaries:
            x.addmm_(summary(sets), weight.T)
        if self.head.heads:
            x.addmm_(self._whole_cell(sets, sums), self.from_cell.T)
        if self.head.relations is not None and sets.shape[1] > 1:
            x.addmm_(self._pairs(sets), self.from_pairs.T)
        out: Tensor = self.head.outputs.columns(self.head.out[1:-1](x))
        return out if self.effects is None else out + embedding_bag(sets, self.effects, mode="sum")

    def _whole_cell(self, sets: Tensor, sums: Tensor | None) -> Tensor:
        """Return z_S [m, d]."""
        m, k = sets.shape
        gene = self.members.gene[sets]
        if self.combined is not None and sums is not None:
            # z_S = Σ_j β_j φ⁰_j + Σ_{i ∈ S} β_i (φ_i − φ⁰_i): the first sum is shared work, the second has k
            # rows.
            shared, lse = self.combined.read(sets, sums)
            beta = self.combined.of_keys(sets, lse, gene)
            own = embedding(sets, self.delta).view(m, k, *shared.shape[1:])
            return shared.add_((beta.unsqueeze(-1) * own).sum(1)).flatten(1)
        split = self.head.by_head
        asked = self.head.scaled(self.head.query(self.asked(sets)))
        z = perturbation_attention(
            asked,
            split(self.cell.keys),
            split(self.cell.values),
            gene.reshape(-1),
            torch.arange(0, m * k + 1, k),
            split(embedding(sets.reshape(-1), self.delta)),
            shared=self.wild_type.encoded,
        )
        return z.transpose(0, 1).flatten(1)

    def _pairs(self, sets: Tensor) -> Tensor:
        """Return the sum of relation readouts over the pairs of each set [m, w]."""
        at = self._numbers(sets)
        if not self.kept:
            return self._relations(at.reshape(-1)).view(*at.shape, -1).sum(1)
        return embedding_bag(at, self.pairs, mode="sum")

    def _numbers(self, sets: Tensor) -> Tensor:
        """Return the numbers of the pairs of each set, their places in the table of pairs."""
        left, right = torch.triu_indices(sets.shape[1], sets.shape[1], 1)
        return sets[:, left] * len(self.members.gene) + sets[:, right]

    def _fill(self, sets: Tensor) -> None:
        """Compute the rows of pairs that no earlier set contained."""
        # A mask instead of unique(): sets repeat the same pairs many times, and marking needs no sort.
        wanted = torch.zeros_like(self.there)
        wanted[self._numbers(sets)] = True
        missing = (wanted & ~self.there).nonzero()[:, 0]
        if len(missing):
            self.pairs[missing] = self._relations(missing)
            self.there[missing] = True

    def _relations(self, at: Tensor) -> Tensor:
        c, relations = len(self.members.gene), self.head.relations
        assert relations is not None
        assert self.part is not None
        left, right = self.members.gene[at // c], self.members.gene[at % c]
        i, j = left.numpy(), right.numpy()
        alike, traits = (torch.from_numpy(x) for x in (self.part.similar(i, j), self.part.traits_of(i, j)))
        return relations.of_pairs(self.wild_type, left, right, alike, traits)
