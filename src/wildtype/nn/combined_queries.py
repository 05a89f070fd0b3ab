"""Attention of all combinations of some members over N shared keys, by products instead of logits.

Legend: c members · k members of a set · m sets · N keys · d query/key width · e value width · H heads ·
r runs: sets one after the other that differ in their last member only.

Definition: the query of a set is the mean of its members' queries, z_S = softmax_j(q_S · k_j) v_j. Then

    exp(q_S · k_j) = Π_{a ∈ S} w_aj,    w_aj = exp(q_a · k_j / k),

so that for a run, whose sets share all members but the last one b, one product of matrices serves all sets:

    Σ_j exp(q_S · k_j) [v_j, 1] = Σ_j w_bj (Π_{a ∈ S, a ≠ b} w_aj [v_j, 1]).

There are c N exponentials in all, not m N, and m N e multiplications in the shape that processors are best
at. It is exact: each w_a is divided by its largest entry, and a set whose weights fall below what single
precision holds is answered from its logits. Memory: O(H c N), and a tile of RUNS runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from wildtype.nn.shapes import expect_index, expect_shape
from wildtype.nn.threads import each

RUNS = 64
SHORT = 64
"""Sets by which a run may be longer than twice the run before, and stand in one tile with it."""
BLOCK = 1024
FAINT = 1e-25
"""Of the largest possible weight: below it, terms are lost that count."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Sets of up to RUNS runs.

    Attributes
    ----------
    rows : slice
        Which sets.
    lead : int64 [r, k - 1]
        The members that the sets of each run share.
    last : int64 [b]
        The last members of all sets, ascending.
    place : int64 [rows]
        Of each set, where it stands among all last members with all runs.
    """

    rows: slice
    lead: Tensor
    last: Tensor
    place: Tensor


def _tiles(sets: Tensor) -> Iterator[Tile]:
    """Give the tiles of sets [m, k]."""
    new = torch.ones(len(sets), dtype=torch.bool)
    new[1:] = (sets[1:, :-1] != sets[:-1, :-1]).any(1)
    first = new.nonzero()[:, 0]
    ends = [*first.tolist(), len(sets)]
    run = new.cumsum(0) - 1
    there = torch.zeros(int(sets.max()) + 1 if len(sets) else 0, dtype=torch.bool)
    for start, stop in _alike(ends):
        rows = slice(ends[start], ends[stop])
        last = sets[rows, -1]
        there.zero_()
        there[last] = True
        place = (there.cumsum(0) - 1)[last] * (stop - start) + run[rows] - start
        yield Tile(rows, sets[first[start:stop], :-1], there.nonzero()[:, 0], place)


def _alike(ends: list[int]) -> Iterator[tuple[int, int]]:
    """Give ranges of up to RUNS runs, equally many, since few make a slow product. A run that is much longer
    than the one before it begins another range: in one range, every run costs as much as the longest.
    """
    lengths = [stop - start for start, stop in pairwise(ends)]
    longer = [i for i in range(1, len(lengths)) if lengths[i] > 2 * lengths[i - 1] + SHORT]
    for start, stop in pairwise([0, *longer, len(lengths)]):
        count = -(-(stop - start) // RUNS)
        for i in range(count):
            yield start + (stop - start) * i // count, start + (stop - start) * (i + 1) // count


class CombinedQueries:
    """What sets of k of the members read from N keys, for prediction: nothing has a gradient.

    Parameters
    ----------
    query
        [H, c, d], of the members, their scale included.
    keys, values
        [H, N, d] and [H, N, e].
    order
        Members k of a set.

    Raises
    ------
    ShapeError
        Shapes do not agree.
    """

    @torch.no_grad()
    def __init__(self, query: Tensor, keys: Tensor, values: Tensor, order: int) -> None:
        expect_shape("query", query, "H", "c", "d")
        expect_shape("keys", keys, query.shape[0], "N", query.shape[2])
        expect_shape("values", values, query.shape[0], keys.shape[1], "e")
        self.order = order
        self.query, self.keys, self.values = query / order, keys, values
        n = keys.shape[1]
        blocks = -(-n // BLOCK)
        self.block = -(-n // blocks)
        self.weights = query.new_zeros(*query.shape[:2], self.block * blocks)
        logits = self.query @ keys.mT
        top = logits.amax(-1)
        self.top = top.T.contiguous()
        # Each w_a is divided by its largest entry, so that products of k of them are at most 1; `read` adds
        # the tops of the members back to the log-normaliser.
        torch.exp(logits.sub_(top[..., None]), out=self.weights[..., :n])
        ones = values.new_ones(*values.shape[:2], 1)
        columns = torch.cat([values, ones], -1).mT  # the ones sum the weights: mass and values in one product
        self.columns = F.pad(columns, (0, self.weights.shape[-1] - n)).contiguous()

    @staticmethod
    def bytes(heads: int, members: int, keys: int) -> int:
        """Return the memory that this many float32 weights take."""
        return 4 * heads * members * keys

    @torch.no_grad()
    def __call__(self, sets: Tensor) -> tuple[Tensor, Tensor]:
        """Return z [m, H, e] and the log-normaliser [m, H] of sets int64 [m, k]."""
        return self.read(sets, self.sums(sets))

    @torch.no_grad()
    def sums(self, sets: Tensor) -> Tensor:
        """Return Σ_j Π w [v_j, 1] of sets int64 [m, k]: [H, m, e + 1].

        It is fast where sets of one run stand together, as those of ``itertools.combinations`` do.
        """
        expect_shape("sets", sets, "m", self.order)
        expect_index("sets", sets.reshape(-1), self.weights.shape[1])
        heads, wide = self.columns.shape[:2]
        out = self.values.new_empty(heads, len(sets), wide)
        tiles = list(_tiles(sets))

        def one_head(i: int) -> None:
            tile, h = tiles[i // heads], i % heads
            torch.index_select(self._products(tile, h), 0, tile.place, out=out[h, tile.rows])

        each(len(tiles) * heads, one_head)
        return out

    @torch.no_grad()
    def read(self, sets: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
        """Return z [m, H, e] and the log-normaliser [m, H] of sets, given their sums."""
        sums = sums.transpose(0, 1)
        mass = sums[..., -1]
        z = torch.div(sums[..., :-1], mass[..., None], out=sums.new_empty(*mass.shape, sums.shape[2] - 1))
        lse = mass.log() + F.embedding_bag(sets, self.top, mode="sum")
        # Where members look at different keys, all products are tiny and float32 loses their digits.
        faint = (mass < FAINT).any(1).nonzero()[:, 0]
        if len(faint):
            z[faint], lse[faint] = self._from_logits(sets[faint])
        return z, lse

    def of_keys(self, sets: Tensor, lse: Tensor, key: Tensor) -> Tensor:
        """Return the attention [m, s, H] of sets [m, k] with log-normaliser lse [m, H] to keys [m, s]."""
        heads, _, d = self.keys.shape
        query = F.embedding_bag(sets, self.query.transpose(0, 1).flatten(1), mode="sum")
        chosen = F.embedding(key, self.keys.transpose(0, 1).flatten(1))
        logits = (query.unsqueeze(1) * chosen).view(*key.shape, heads, d).sum(-1)
        return (logits - lse.unsqueeze(1)).exp()

    def _products(self, tile: Tile, h: int) -> Tensor:
        """Return Σ_j Π w [v_j, 1] of every last member with every run of a tile, in one head:
        [b r, e + 1].
        """
        weights, columns, size = self.weights[h], self.columns[h], self.block
        low, count, runs = int(tile.last[0]), len(tile.last), len(tile.lead)
        # Consecutive members are a view; gathering rows would copy [b, N] for every tile and head.
        dense = int(tile.last[-1]) - low + 1 == count
        own = weights[low : low + count] if dense else weights[tile.last]
        total = self.values.new_empty(count, runs * len(columns))
        product = self.values.new_ones(runs, size)
        shared = self.values.new_empty(runs, len(columns), size)
        for start in range(0, columns.shape[1], size):
            block = slice(start, start + size)
            for i, column in enumerate(tile.lead.T):
                product = weights[column, block].mul_(product) if i else weights[column, block]
            torch.mul(product[:, None], columns[:, block], out=shared)
            # beta = 0 ignores what `new_empty` holds, nan included; later blocks add to the first.
            total.addmm_(own[:, block], shared.view(-1, size).T, beta=int(start > 0))
        return total.view(-1, len(columns))

    def _from_logits(self, sets: Tensor) -> tuple[Tensor, Tensor]:
        """Return z and the log-normaliser of sets by their definition."""
        out, lse = [], []
        for start in range(0, len(sets), BLOCK):
            logits = self.query[:, sets[start : start + BLOCK]].sum(2) @ self.keys.mT
            lse.append(logits.logsumexp(-1).T)
            out.append((logits.softmax(-1) @ self.values).transpose(0, 1))
        return torch.cat(out), torch.cat(lse)
