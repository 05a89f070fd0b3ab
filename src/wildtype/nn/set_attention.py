"""Self-attention inside small sets, as in Hyper-SAGNN: a member is described by the others it appears with.

Legend: B sets · k members of the largest set · d width in · w width out · h heads. mask [B, k],
True = a member.

Source: Zhang, Zou & Ma, "Hyper-SAGNN: a self-attention based graph neural network for hypergraphs",
ICLR 2020.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from wildtype.errors import ShapeError
from wildtype.nn.shapes import expect_shape


class SetEmbeddings(NamedTuple):
    """The two views of every member, [B, k, w] each, zero in the gaps: in this set, and by itself."""

    dynamic: Tensor
    static: Tensor


class SetAttention(nn.Module):
    """Dynamic and static embedding of the members of padded sets.

    dynamic_i = tanh(W_O Σ_j α_ij W_V x_j), the sum over the members j ≠ i of the set (over all members with
    `exclude_self=False`), and static_i = tanh(W_S x_i). Hyper-SAGNN scores a set by how far the two are
    apart. No map has a bias, so a member without others has dynamic embedding zero, and a set without members
    has none.

    Parameters
    ----------
    width
        d, the width of the members.
    heads
        h; must divide `width_out`.
    width_out
        w; d when left out.
    exclude_self
        Leave a member out of its own attention.
    """

    def __init__(
        self, width: int, heads: int, *, width_out: int | None = None, exclude_self: bool = True
    ) -> None:
        super().__init__()
        self.width, self.heads, self.exclude_self = width, heads, exclude_self
        width_out = width if width_out is None else width_out
        if width_out % heads:
            raise ShapeError(f"heads: received {heads}, expected a divisor of the width {width_out}")
        self.query = nn.Linear(width, width_out, bias=False)
        self.key = nn.Linear(width, width_out, bias=False)
        self.value = nn.Linear(width, width_out, bias=False)
        self.output = nn.Linear(width_out, width_out, bias=False)
        self.static = nn.Linear(width, width_out, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> SetEmbeddings:
        """Embed members x [B, k, d] under mask bool [B, k]; ShapeError if they do not fit."""
        expect_shape("x", x, "B", "k", self.width)
        expect_shape("mask", mask, *x.shape[:2])
        if mask.dtype != torch.bool:
            raise ShapeError(f"mask: received dtype {mask.dtype}, expected torch.bool")
        x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        q, k, v = (self._split_heads(layer(x)) for layer in (self.query, self.key, self.value))
        weights = self._weights(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, mask)
        dynamic = self.output((weights @ v).transpose(1, 2).flatten(2)).tanh()
        return SetEmbeddings(dynamic, self.static(x).tanh())

    def tables(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tables from which sets of members x [c, d] are computed.

        They are the logits [h, c, c] of every member for every other, and rows [h, c, w] whose weighted
        sum is the dynamic embedding before its tanh.
        """
        q, k, v = (
            self._split_heads(layer(x).unsqueeze(0))[0] for layer in (self.query, self.key, self.value)
        )
        output = self.output.weight.view(-1, self.heads, v.shape[-1]).permute(1, 2, 0)
        return q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, v @ output

    def dynamic(self, sets: Tensor, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the dynamic embeddings [m, k, w] in sets int64 [m, k] of members, from their ``tables``."""
        k, c = sets.shape[1], rows.shape[1]
        other = torch.arange(k, device=sets.device).expand(k, k)
        if self.exclude_self:
            other = other[~torch.eye(k, dtype=torch.bool, device=sets.device)].view(k, k - 1)
        seen = sets[:, other].flatten(0, 1)
        pairs = (sets.unsqueeze(2) * c).flatten(0, 1) + seen
        if not seen.shape[1]:  # nobody but itself
            return rows.new_zeros(*sets.shape, rows.shape[2])
        by_head = [
            embedding_bag(seen, row, per_sample_weights=own.take(pairs).softmax(-1), mode="sum")
            for own, row in zip(logits, rows, strict=True)
        ]
        return reduce(torch.add, by_head).tanh().view(*sets.shape, -1)

    def _split_heads(self, x: Tensor) -> Tensor:
        """[B, k, w] -> [B, h, k, w / h]."""
        return x.reshape(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _weights(self, logits: Tensor, mask: Tensor) -> Tensor:
        """Softmax over the allowed members; a row with none has weights zero."""
        allowed = mask.unsqueeze(1) & mask.unsqueeze(2)
        if self.exclude_self:
            allowed = allowed & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        blocked = ~allowed.unsqueeze(1)
        logits = logits.masked_fill(blocked, torch.finfo(logits.dtype).min)
        return logits.softmax(-1).masked_fill(blocked, 0.0)
