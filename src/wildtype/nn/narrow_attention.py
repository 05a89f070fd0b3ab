"""Flash attention for narrow heads on a CPU, with its backward pass, in float32.

torch's kernel hands tiles to a matrix-product library, whose overhead rules at head widths of 8 or 16. Here
a tile is one query against a block of keys, so that every inner loop runs over keys at full vector width,
its sums stay in registers and its block stays in the first cache: 2.3 times faster forward and backward at
width 8, 1.2 times at 20, slower at 32. numba compiles the loops when they are first used, some seconds once
per machine.

Legend: t heads of all examples · m queries · n keys · d query/key width · e value width · B keys of a block.

Method: FlashAttention-2 (Dao, 2023): running maximum in the forward pass; the backward pass recomputes the
probabilities from lse. Base-2 exponentials by a polynomial of degree 6 (relative error 2e-7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from wildtype.nn.narrow_kernels import BLOCK, LOWEST, ROWS, kernels
from wildtype.nn.threads import loops

_LOG2_E = math.log2(math.e)


def forward(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return softmax(scale q kᵀ) v [t, m, e] and its lse [t, m] for q [t, m, d], k [t, n, d], v [t, n, e]."""
    heads, queries, width = q.shape
    values = v.shape[-1]
    # exp x = 2^(x log2 e): the factor goes into the queries once, and the kernel needs base 2 alone.
    scaled = F.pad(q.detach() * (scale * _LOG2_E), (0, _even(width) - width)).contiguous().numpy()
    keys, entries = _columns(k), _columns(v)
    out = np.zeros((heads, queries, _even(values)), np.float32)
    mass = np.zeros((heads, queries), np.float32)
    top = np.full((heads, queries), LOWEST, np.float32)
    attend, _ = kernels(_even(width), _even(values))
    parts = _parts(heads)
    edges = [queries * part // parts for part in range(parts + 1)]

    def work(head: int, part: int) -> None:
        rows = slice(edges[part], edges[part + 1])
        attend(
            scaled[head, rows],
            keys[head],
            entries[head],
            k.shape[-2],
            top[head, rows],
            mass[head, rows],
            out[head, rows],
        )

    _share(work, heads, parts)
    # top + log2 Σ 2^(s − top), back in nats.
    lse = (np.log2(mass) + top) / np.float32(_LOG2_E)
    return torch.from_numpy(out[..., :values] / mass[..., None]), torch.from_numpy(lse)


def backward(
    q: Tensor, k: Tensor, v: Tensor, lse: Tensor, grad_out: Tensor, shift: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients in q, k and v.

    Parameters
    ----------
    q, k, v, lse
        As given to and returned by `forward`.
    grad_out
        [t, m, e].
    shift
        [t, m]: Σ_e grad_out · out, less the gradient in lse; the gradient in a logit is
        α_ij (grad_out_i · v_j − shift_i).
    """
    heads, queries, width = q.shape
    values, count = v.shape[-1], k.shape[-2]
    wide, wide_v = _even(width), _even(values)
    extra = -queries % ROWS

    def rows(x: Tensor, to: int) -> Any:
        return F.pad(x.detach(), (0, to - x.shape[-1], 0, extra)).contiguous().numpy()

    scaled, grads = rows(q * (scale * _LOG2_E), wide), rows(grad_out, wide_v)
    lse2, shifts = (F.pad(x.detach(), (0, extra)).contiguous().numpy() for x in (lse * _LOG2_E, shift))
    keys, entries = _columns(k), _columns(v)
    grad_k, grad_v = np.zeros_like(keys), np.zeros_like(entries)
    parts = _parts(heads)
    # Parts of one head work on different keys but add to the gradient of the same queries: each has an array
    # of its own, summed at the end in the order of the parts, whichever thread ends first.
    grad_q = np.zeros((parts, *scaled.shape), np.float32)
    _, differentiate = kernels(wide, wide_v)
    blocks = keys.shape[1]
    edges = [blocks * part // parts for part in range(parts + 1)]

    def work(head: int, part: int) -> None:
        of = slice(edges[part], edges[part + 1])
        differentiate(
            scaled[head],
            grads[head],
            lse2[head],
            shifts[head],
            keys[head, of],
            entries[head, of],
            count - edges[part] * BLOCK,
            grad_q[part, head],
            grad_k[head, of],
            grad_v[head, of],
        )

    _share(work, heads, parts)
    summed = torch.from_numpy(grad_q.sum(0) if parts > 1 else grad_q[0])
    return (
        summed[:, :queries, :width] * scale,
        _rows(grad_k, count, width) / _LOG2_E,  # the kernel's queries carry scale · log2 e
        _rows(grad_v, count, values),
    )


def _even(width: int) -> int:
    return -(-width // 4) * 4


def _columns(x: Tensor) -> Any:
    """Lay keys out by block and channel: [t, n, d] -> [t, blocks, d · B], zeros behind the last key."""
    heads, count, width = x.shape
    wide = F.pad(x.detach(), (0, _even(width) - width, 0, -count % BLOCK))
    return (
        wide.reshape(heads, -1, BLOCK, _even(width))
        .transpose(2, 3)
        .reshape(heads, -1, BLOCK * _even(width))
        .numpy()
    )


def _rows(x: Any, count: int, width: int) -> Tensor:
    """Undo `_columns`."""
    heads, blocks, size = x.shape
    back = torch.from_numpy(x).reshape(heads, blocks, size // BLOCK, BLOCK).transpose(2, 3)
    return back.reshape(heads, blocks * BLOCK, -1)[:, :count, :width]


def _parts(heads: int) -> int:
    """Pieces of work per head: one where there are enough heads for all threads."""
    return max(1, -(-torch.get_num_threads() // heads))


def _share(work: Callable[[int, int], None], heads: int, parts: int) -> None:
    tasks = [(head, part) for head in range(heads) for part in range(parts)]
    loops(len(tasks), lambda i: work(*tasks[i]))
