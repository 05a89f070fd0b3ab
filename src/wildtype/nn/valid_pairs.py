"""Which pairs of tokens a relation knows the status of (R): pairs that nobody tested are no non-edges.

Legend: T tokens (rows and keys of one head) · d head width · M listed pairs · m tested tokens · r rows.

R has one of three forms: the pairs among a set of tested tokens, a list of tested pairs, or all pairs but a
list of untested ones. α over the valid keys needs its own normaliser. Keys can not be subtracted from one
that was computed over all: log(1 − exp(lse_invalid − lse)) cancels where they hold nearly all the mass. So it
is computed anew: attention among the set, sums over the list, or the affected rows alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from wildtype.nn.attention import attention_with_lse
from wildtype.nn.shapes import expect_index, expect_shape
from wildtype.nn.sparse import SparseOperator, promoted

TILE = 512
"""Rows whose logits for all keys are in memory at a time."""


@dataclass(frozen=True, eq=False)
class ValidPairs:
    """The pairs (i, j) of T tokens whose relation was tested, R_ij = 1; make it by one of the three methods.

    Attributes
    ----------
    tokens : int
        T.
    form : str
        ``among``: both are in ``listed`` [m]; ``tested``: the pair is in ``listed``; ``untested``: it is not.
    listed : int64
        Tokens, ascending; or pairs as numbers i · T + j, ascending.
    unknown : int
        Listed names that are no tokens, for messages.
    """

    tokens: int
    form: Literal["among", "tested", "untested"]
    listed: Tensor
    unknown: int = 0

    @classmethod
    def among(cls, tested: Tensor, tokens: int, *, unknown: int = 0) -> ValidPairs:
        """Return the pairs among a set of tested tokens, int64 [m]; a token with itself is one of them."""
        expect_index("tested", tested, tokens)
        return cls(tokens, "among", torch.unique(tested), unknown)

    @classmethod
    def of_pairs(cls, pairs: Tensor, tokens: int, *, tested: bool, unknown: int = 0) -> ValidPairs:
        """Return the listed pairs, rows and keys int64 [2, M], or with ``tested=False`` all others."""
        expect_shape("pairs", pairs, 2, "M")
        expect_index("pairs", pairs.flatten(), tokens)
        codes = torch.unique(pairs[0] * tokens + pairs[1])
        return cls(tokens, "tested" if tested else "untested", codes, unknown)

    def to(self, device: torch.device | str) -> ValidPairs:
        """Return the same on another device."""
        return ValidPairs(self.tokens, self.form, self.listed.to(device), self.unknown)

    def __str__(self) -> str:
        """Return in words which pairs are valid."""
        said = {
            "among": "pairs among {:,} tested genes are valid",
            "tested": "{:,} tested pairs are valid",
            "untested": "all pairs but {:,} untested ones are valid",
        }[self.form].format(len(self.listed))
        return f"{said}; {self.unknown:,} names are no genes of this run" if self.unknown else said

    def holds(self, rows: Tensor, keys: Tensor) -> Tensor:
        """Return R of pairs, bool in the shape of ``rows`` and ``keys`` int64."""
        if self.form == "among":
            return torch.isin(rows, self.listed) & torch.isin(keys, self.listed)
        there = torch.isin(rows * self.tokens + keys, self.listed)
        return there if self.form == "tested" else ~there

    def edges_of(self, op: SparseOperator) -> SparseOperator:
        """Return the entries of an operator [T, T] that are valid pairs, R ∘ A."""
        return op.only(self.holds(*op.edges()))

    def lse(self, q: Tensor, k: Tensor, lse: Tensor, outside: Tensor, *, scale: float) -> Tensor:
        """Return the log-normaliser over valid keys, log Σ_j R_ij exp s_ij, of every row [T].

        Parameters
        ----------
        q, k, lse
            [T, d], [T, d] and [T] of one head; lse over the inside keys.
        outside
            int64 tokens that are no keys of lse (CLS, appended genes), and no valid ones here.
        scale
            Factor of the logits.

        Returns
        -------
        [T]; −inf in rows without a valid key.
        """
        inside = torch.ones(self.tokens, dtype=torch.bool, device=q.device)
        inside[outside] = False
        with torch.autocast(q.device.type, enabled=False):
            q, k = promoted(q), promoted(k)
            if self.form == "among":
                return self._among(q, k, lse, inside, scale)
            rows, keys = self.listed // self.tokens, self.listed % self.tokens
            both = inside[rows] & inside[keys]
            rows, keys = rows[both], keys[both]
            if self.form == "tested":
                empty = torch.full_like(lse, -math.inf)
                return add_pairs(q, k, empty, torch.stack([rows, keys]), scale=scale)
            return _without(q, k, lse, rows, keys, inside, scale)

    def _among(self, q: Tensor, k: Tensor, lse: Tensor, inside: Tensor, scale: float) -> Tensor:
        tested = self.listed[inside[self.listed]]
        empty = torch.full_like(lse, -math.inf)
        if not len(tested):
            return empty
        few_q, few_k = (F.embedding(tested, x)[None, None] for x in (q, k))
        # Values are not wanted: one column is the least that the kernel takes.
        _, found = attention_with_lse(few_q, few_k, few_k[..., :1], scale=scale)
        return empty.index_copy(0, tested, found[0, 0].to(lse.dtype))


def add_pairs(q: Tensor, k: Tensor, lse: Tensor, pairs: Tensor, *, scale: float) -> Tensor:
    """Extend lse [T] by listed pairs int64 [2, M]: log(exp lse_i + Σ_{(i, j) listed} exp s_ij).

    Rows of lse may be −inf, and stay so without a listed pair. O(M d) memory.
    """
    rows, keys = pairs
    logits = scale * (F.embedding(rows, q) * F.embedding(keys, k)).sum(-1)
    # The shift cancels in value and gradient; it only keeps the exponentials in range.
    shift = lse.detach().scatter_reduce(0, rows, logits.detach(), "amax")
    shift = shift.masked_fill(shift == -math.inf, 0.0)
    # Rows of −inf start without mass, exp gives 0, and only listed pairs count.
    total = (lse - shift).exp().index_add(0, rows, (logits - F.embedding(rows, shift[:, None])[:, 0]).exp())
    empty = total == 0  # log would be −inf with an infinite gradient: 1 stands in and is masked out
    return (total.masked_fill(empty, 1.0).log() + shift).masked_fill(empty, -math.inf)


def add_keys(q: Tensor, k: Tensor, lse: Tensor, keys: Tensor, *, scale: float) -> Tensor:
    """Extend every row of lse [T] by the same few keys int64 [c], as CLS: logaddexp(lse_i, s_ic)."""
    with torch.autocast(q.device.type, enabled=False):
        logits = scale * promoted(q) @ F.embedding(keys, promoted(k)).T
        return torch.logaddexp(lse, logits.logsumexp(-1))


def _without(
    q: Tensor, k: Tensor, lse: Tensor, rows: Tensor, keys: Tensor, inside: Tensor, scale: float
) -> Tensor:
    """Return lse [T] with the affected rows computed anew over the keys that stay."""
    affected, at = torch.unique(rows, return_inverse=True)
    open_to = inside.nonzero()[:, 0]
    column = torch.full((len(inside),), -1, dtype=torch.int64, device=q.device)
    column[open_to] = torch.arange(len(open_to), device=q.device)
    few_q, few_k = F.embedding(affected, q), F.embedding(open_to, k)

    def tile(first: int, last: int, q_rd: Tensor, k_nd: Tensor) -> Tensor:
        here = (at >= first) & (at < last)
        closed = torch.zeros(last - first, len(open_to), dtype=torch.bool, device=q.device)
        closed[at[here] - first, column[keys[here]]] = True
        logits = (scale * q_rd @ k_nd.T).masked_fill(closed, -math.inf)
        # A row whose keys are all closed: zeros stand in, so that its gradient is no nan.
        none = closed.all(1)
        return logits.masked_fill(none[:, None], 0.0).logsumexp(-1).masked_fill(none, -math.inf)

    parts = []
    for first in range(0, len(affected), TILE):
        last = min(first + TILE, len(affected))
        # Recomputed in the backward pass: the logits of one tile are in memory at a time.
        found = checkpoint(tile, first, last, few_q[first:last], few_k, use_reentrant=False)
        assert isinstance(found, Tensor)
        parts.append(found)
    return lse.index_copy(0, affected, torch.cat(parts).to(lse.dtype)) if parts else lse
