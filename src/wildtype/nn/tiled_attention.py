"""Attention with its log-normaliser where there is no kernel for it: a tile of queries at a time, any device.

Legend: g heads (of all batches) · q queries · n keys · d query/key width · dv value width.

The map of a tile is made, used and dropped, and made again for the gradient: O(g (q + n) d) memory and a
tile, where the whole map and its softmax take O(g q n).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

TILE = 1 << 26
"""Attention weights made at a time: 256 MiB in float32."""


def forward(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return attention [g, q, dv] and its log-normaliser [g, q] of q [g, q, d], k [g, n, d], v [g, n, dv]."""
    out, lse = q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(q.shape[:-1])
    with torch.autocast(q.device.type, enabled=False):
        for tile in _tiles(q, k):
            logits = scale * q[:, tile] @ k.mT
            lse[:, tile] = logits.logsumexp(-1)
            out[:, tile] = logits.sub_(lse[:, tile, None]).exp_() @ v
    return out, lse


def backward(
    q: Tensor, k: Tensor, v: Tensor, lse: Tensor, grad: Tensor, shift: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients in q, k and v from that in the output [g, q, dv].

    ``shift`` [g, q] is subtracted from every dO_i · V_j: D_i = dO_i · O_i less the gradient in lse_i.
    """
    into_q, into_k, into_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    with torch.autocast(q.device.type, enabled=False):
        for tile in _tiles(q, k):
            weight = (scale * q[:, tile] @ k.mT).sub_(lse[:, tile, None]).exp_()
            into_v += weight.mT @ grad[:, tile]
            slope = (grad[:, tile] @ v.mT).sub_(shift[:, tile, None]).mul_(weight).mul_(scale)
            into_q[:, tile] = slope @ k
            into_k += slope.mT @ q[:, tile]
    return into_q, into_k, into_v


def _tiles(q: Tensor, k: Tensor) -> Iterator[slice]:
    """Yield ranges of queries whose weights are at most ``TILE``, one query at least."""
    rows = max(TILE // (q.shape[0] * k.shape[1]), 1)
    for first in range(0, q.shape[1], rows):
        yield slice(first, min(first + rows, q.shape[1]))
