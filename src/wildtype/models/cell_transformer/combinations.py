"""`SetTables`: the head for all sets of k of some members, from tables per member and per pair of members.

Legend: c members (a gene and what is done to it) · k members of a set · m sets · n genes · d width · H heads
· w hidden width.

A screen scores many sets of few members. Up to its first non-linear layer the head adds terms of members,
terms of pairs of members (relations, products, what a gene reads of another's change), attention within the
set, and z_S where the set queries as one. Terms of members and pairs pass the layer once for all sets, and a
set is a sum of rows. Exact: the same terms in another order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag

from wildtype.evidence.lookup import EvidenceIndex
from wildtype.models.cell_transformer.head import MAX_ORDER, GeneKeyValues, PerturbationHead
from wildtype.models.cell_transformer.summaries import SetSummary
from wildtype.models.interface import Members, WildType
from wildtype.nn.attention import attention_with_lse
from wildtype.nn.perturbation_head import perturbation_attention
from wildtype.nn.set_attention import SetEmbeddings
from wildtype.nn.threads import shares

ROOM = 1 << 30
"""Bytes that one table may take."""
CHUNK = 4096
"""Sets that pass the layers together: what is made of them stays in the cache."""
ON_A_GPU = 1 << 16
"""The same on a GPU."""
ADDITIVE = ("sum", "mean")
PairTerm = Callable[[Tensor, Tensor], Tensor]


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


class OwnReads:
    """What members read by themselves: a of the wild type and of its own change, and a and b of each other's.

    z_S is the mean over a ∈ S of Σ_i β_ai φ⁰_i + Σ_{b ∈ S} β_ab (φ_b − φ⁰_b).
    """

    def __init__(
        self, head: PerturbationHead, cell: GeneKeyValues, gene: Tensor, asking: Tensor, delta: Tensor
    ) -> None:
        split = head.by_head
        query = head.scaled(head.query(asking))
        keys = split(cell.keys)
        read, lse = attention_with_lse(query[None], keys[None], split(cell.values)[None], scale=1.0)
        self.query, self.lse, self.keys, self.delta = query, lse[0], keys[:, gene], split(delta)
        one = torch.arange(len(gene), device=gene.device)
        self.alone = read[0].transpose(0, 1).flatten(1) + self._told(one, one)

    def together(self, left: Tensor, right: Tensor) -> Tensor:
        """Return what members left and right [s] read of each other's change [s, d]."""
        return self._told(left, right) + self._told(right, left)

    def _told(self, reader: Tensor, changed: Tensor) -> Tensor:
        logits = (self.query[:, reader] * self.keys[:, changed]).sum(-1)
        beta = (logits - self.lse[:, reader]).exp()
        return (beta.unsqueeze(-1) * self.delta[:, changed]).transpose(0, 1).flatten(1)


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
            effects = torch.from_numpy(self.part.effects).to(u)[members.gene, : self.outputs]
            self.effects = head.additive * effects * head.scalar
        self.summaries: list[tuple[Summaries, Tensor]] = []
        self.by_pair: list[PairTerm] = []
        for name, summary in head.direct_by_name():
            # Sums commute with linear maps, W Σ u_i = Σ W u_i.
            if summary.how in ADDITIVE:
                self.own += summary.project(u) @ weight[name].T / (k if summary.how == "mean" else 1)
            elif summary.how == "product":
                mean = weight[name].T * (2 / max(k * (k - 1), 1))  # over pairs
                self.by_pair.append(partial(_products, summary.project(u), mean))
            else:
                self.summaries.append((Summaries(summary, u), weight[name]))
        if head.heads:
            asking = embedding(members.gene, h) if head.bilinear else u
            self.cell = head.genome(wild_type)
            self.delta = head.difference(self.cell, members.gene, state)
            self.from_cell = weight["whole cell"].T
            if head.summary is None:
                reads = OwnReads(head, self.cell, members.gene, asking, self.delta)
                self.own += reads.alone @ (self.from_cell / k)
                self.by_pair.append(partial(_read, reads, self.from_cell / k))
            else:
                self.asked = Summaries(head.summary, asking)
        if head.relations is not None:
            pairs = max(k * (k - 1) / 2, 1)
            # The readout is [Σ / P ‖ Σ / √P] over P pairs: both halves are multiples of one sum, so their
            # weights join.
            mean, scaled = weight["relations"].chunk(2, dim=1)
            self.by_pair.append(partial(self._relations, (mean / pairs + scaled / pairs**0.5).T))
        # Of pairs alone no table is made: every row would be used once.
        count = len(u) * (len(u) - 1) // 2 if self.by_pair and k > 2 else 0
        self.kept = 0 < 4 * self.own.shape[1] * count <= ROOM
        self.pairs = u.new_empty(count if self.kept else 0, self.own.shape[1])
        self.there = torch.zeros(len(self.pairs), dtype=torch.bool, device=u.device)
        # A GPU has its memory for itself, and waits between small pieces.
        self.chunk = CHUNK if u.device.type == "cpu" else ON_A_GPU

    @staticmethod
    def applies(head: PerturbationHead, members: int) -> bool:
        """Whether the tables apply to a head.

        They do where it reads neither evidence nor a screen, has no numbers per gene, and a row per member
        fits in memory.
        """
        first = head.out[0]
        assert isinstance(first, nn.Linear)
        return (
            head.evidence is None
            and head.screen is None
            and not head.outputs.per_gene
            and 4 * members * first.out_features <= ROOM
        )

    @torch.no_grad()
    def __call__(self, sets: Tensor) -> Tensor:
        """Return the outputs [m, p] of sets int64 [m, k] of members; no set names a gene twice."""
        out = self.fixed.new_empty(len(sets), self.outputs)
        if self.kept:
            self._fill(sets)

        def part(first: int, last: int) -> None:
            for start in range(first, last, self.chunk):
                chunk = slice(start, min(start + self.chunk, last))
                out[chunk] = self._answer(sets[chunk])

        self._shares(len(sets), part)
        return out

    def _answer(self, sets: Tensor) -> Tensor:
        """Return the outputs [m, p] of sets [m, k]."""
        x = embedding_bag(sets, self.own, mode="sum").add_(self.fixed)
        if self.by_pair and sets.shape[1] > 1:
            x += self._of_pairs(sets)
        for summary, weight in self.summaries:
            x.addmm_(summary(sets), weight.T)
        if self.head.heads and self.head.summary is not None:
            x.addmm_(self._whole_cell(sets), self.from_cell)
        out: Tensor = self.head.outputs.columns(self.head.out[1:-1](x))
        return out if self.effects is None else out + embedding_bag(sets, self.effects, mode="sum")

    def _whole_cell(self, sets: Tensor) -> Tensor:
        """Return z_S [m, d] of sets that query as one."""
        m, k = sets.shape
        split = self.head.by_head
        z = perturbation_attention(
            self.head.scaled(self.head.query(self.asked(sets))),
            split(self.cell.keys),
            split(self.cell.values),
            self.members.gene[sets].reshape(-1),
            torch.arange(0, m * k + 1, k, device=sets.device),
            split(embedding(sets.reshape(-1), self.delta)),
            shared=self.wild_type.encoded,
        )
        return z.transpose(0, 1).flatten(1)

    def _of_pairs(self, sets: Tensor) -> Tensor:
        """Return the sum of terms over the pairs of each set [m, w]."""
        left, right = _ends(sets)
        if self.kept:
            return embedding_bag(_number(left, right), self.pairs, mode="sum")
        return self._terms(left.reshape(-1), right.reshape(-1)).view(*left.shape, -1).sum(1)

    def _terms(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the terms [s, w] of pairs of members left and right [s]."""
        out: Tensor = self.own.new_zeros(len(left), self.own.shape[1])
        for term in self.by_pair:
            out += term(left, right)
        return out

    def _shares(self, count: int, work: Callable[[int, int], None]) -> None:
        """Call work(first, last) on ranges of so many things: those of a GPU are one."""
        shares(count, work, together=self.own.device.type == "cpu")

    def _fill(self, sets: Tensor) -> None:
        """Compute the rows of pairs that no earlier set contained."""
        # A mask instead of unique(): sets repeat the same pairs many times, and marking needs no sort.
        wanted = torch.zeros_like(self.there)
        wanted[_number(*_ends(sets))] = True
        missing = (wanted & ~self.there).nonzero()[:, 0]

        def part(first: int, last: int) -> None:
            for at in torch.split(missing[first:last], self.chunk):
                self.pairs[at] = self._terms(*_pair(at))

        self._shares(len(missing), part)
        self.there |= wanted

    def _relations(self, weight: Tensor, left: Tensor, right: Tensor) -> Tensor:
        relations = self.head.relations
        assert relations is not None
        assert self.part is not None
        left, right = self.members.gene[left], self.members.gene[right]
        i, j = left.cpu().numpy(), right.cpu().numpy()
        found = self.part.similar(i, j), self.part.traits_of(i, j)
        alike, traits = (torch.from_numpy(x).to(left.device) for x in found)
        return relations.of_pairs(self.wild_type, left, right, alike, traits) @ weight


def _read(reads: OwnReads, weight: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return reads.together(left, right) @ weight


def _products(row: Tensor, weight: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return (embedding(left, row) * embedding(right, row)) @ weight


def _ends(sets: Tensor) -> tuple[Tensor, Tensor]:
    """Return both members of every pair in each set [m, k (k - 1) / 2]."""
    left, right = torch.triu_indices(sets.shape[1], sets.shape[1], 1, device=sets.device)
    return sets[:, left], sets[:, right]


def _number(a: Tensor, b: Tensor) -> Tensor:
    """Return the number of the pair of members a and b, in either order: its place in a triangle."""
    high = torch.maximum(a, b)
    return high * (high - 1) // 2 + torch.minimum(a, b)


def _pair(number: Tensor) -> tuple[Tensor, Tensor]:
    """Return the members of the pairs with these numbers, the lower first."""
    # The root of the triangle's formula; float64 is exact far beyond any table that fits in memory.
    high = ((1 + (8.0 * number.double() + 1).sqrt()) / 2).long()
    return number - high * (high - 1) // 2, high
