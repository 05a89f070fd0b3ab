"""The loops of `narrow_attention`, compiled by numba and kept on disk: one head against blocks of keys.

One scratch array holds everything a block needs: keys, values, their gradients, and probabilities and logit
gradients of ROWS queries. Its parts lie at distances known when compiling, so that the compiler can prove
them apart and vectorise without checks; that is why the helpers are inlined and offsets are constants.

Legend: m queries · n keys · d query/key width · e value width · B = BLOCK keys.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from wildtype.compiled import njit

BLOCK = 256
ROWS = 4  # queries whose contributions to a block of keys are added together
LOWEST = -1e30
INLINED = {"inline": "always", "nogil": True, "fastmath": True, "error_model": "numpy"}
COMPILED = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}
f32, i32 = np.float32, np.int32


@njit(**INLINED)
def exp2(x: Any) -> Any:
    """2 to the x, at least 2⁻¹²⁶: a polynomial of degree 6 (relative error 2e-7) and the exponent's bits."""
    x = max(x, f32(-126))  # below, the exponent's bits would wrap around
    whole = np.floor(x + f32(0.5))
    x = x - whole
    p = f32(1.5353362e-4)
    p = p * x + f32(1.3398874e-3)
    p = p * x + f32(9.6184373e-3)
    p = p * x + f32(5.5503324e-2)
    p = p * x + f32(2.4022648e-1)
    p = p * x + f32(6.9314720e-1)
    p = p * x + f32(1)
    return p * i32((i32(whole) + i32(127)) << i32(23)).view(f32)


@njit(**INLINED)
def dots(space: Any, rows: Any, i: int, start: Any, at: int, width: int, to: int) -> None:
    """Write start + Σ_c rows[i, c] · channel c at ``at``, for every key, to ``to``."""
    for j in range(BLOCK):
        s = start
        for c in range(width):
            s += rows[i, c] * space[at + c * BLOCK + j]
        space[to + j] = s


@njit(**INLINED)
def gather(space: Any, at: int, of: int, width: int, out: Any, i: int) -> None:
    """Add Σ_keys weight · channel to every channel of out[i]."""
    # Four sums at a time: each is a chain of dependent additions, and four chains hide their latency.
    for c in range(0, width, 4):
        s0, s1, s2, s3 = f32(0), f32(0), f32(0), f32(0)
        for j in range(BLOCK):
            w = space[at + j]
            s0 += w * space[of + c * BLOCK + j]
            s1 += w * space[of + (c + 1) * BLOCK + j]
            s2 += w * space[of + (c + 2) * BLOCK + j]
            s3 += w * space[of + (c + 3) * BLOCK + j]
        out[i, c] += s0
        out[i, c + 1] += s1
        out[i, c + 2] += s2
        out[i, c + 3] += s3


@njit(**INLINED)
def scatter(space: Any, rows: Any, i: int, at: int, width: int, to: int) -> None:
    """Add Σ_r rows[i + r, c] · weight r to every channel c at ``to``, for every key; r runs over ROWS."""
    for c in range(0, width, 2):
        a0, a1, a2, a3 = rows[i, c], rows[i + 1, c], rows[i + 2, c], rows[i + 3, c]
        b0, b1, b2, b3 = rows[i, c + 1], rows[i + 1, c + 1], rows[i + 2, c + 1], rows[i + 3, c + 1]
        o = to + c * BLOCK
        for j in range(BLOCK):
            w0, w1 = space[at + j], space[at + BLOCK + j]
            w2, w3 = space[at + 2 * BLOCK + j], space[at + 3 * BLOCK + j]
            space[o + j] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
            space[o + BLOCK + j] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3


@cache
def kernels(d: int, e: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the forward and backward loops over one head for widths d and e (multiples of 4).

    ``attend(q [m, d], k [blocks, d · B], v [blocks, e · B], n, top [m], total [m], out [m, e])`` updates the
    running maximum, mass and unnormalised output (base 2). ``differentiate(q [m, d], grad [m, e], lse [m],
    shift [m], k, v, n, grad_q [m, d], grad_k, grad_v)`` adds to grad_q and fills the others; m is a multiple
    of ROWS.
    """
    values = d * BLOCK
    grad_keys = values + e * BLOCK
    grad_values = grad_keys + d * BLOCK
    weights = grad_values + e * BLOCK
    logits = weights + ROWS * BLOCK
    size = logits + ROWS * BLOCK

    @njit(**COMPILED)
    def attend(q: Any, k: Any, v: Any, n: int, top: Any, total: Any, out: Any) -> None:
        space = np.zeros(size, f32)
        for b in range(k.shape[0]):
            for x in range(k.shape[1]):
                space[x] = k[b, x]
            for x in range(v.shape[1]):
                space[values + x] = v[b, x]
            left = n - b * BLOCK
            for i in range(q.shape[0]):
                dots(space, q, i, f32(0), 0, d, weights)
                # Keys of padding get the weight 2^LOWEST = 0. A finite number: fast-math assumes there is no
                # inf.
                for j in range(left, BLOCK):
                    space[weights + j] = f32(LOWEST)
                high = f32(LOWEST)
                for j in range(BLOCK):
                    high = max(high, space[weights + j])
                # Online softmax: what was summed under the old maximum fades by 2^(old − new).
                if high > top[i]:
                    fade = exp2(top[i] - high)
                    top[i] = high
                    total[i] *= fade
                    for c in range(e):
                        out[i, c] *= fade
                high = top[i]
                mass = f32(0)
                for j in range(BLOCK):
                    w = exp2(space[weights + j] - high)
                    space[weights + j] = w
                    mass += w
                total[i] += mass
                gather(space, weights, values, e, out, i)

    @njit(**COMPILED)
    def differentiate(
        q: Any, grad: Any, lse: Any, shift: Any, k: Any, v: Any, n: int, grad_q: Any, grad_k: Any, grad_v: Any
    ) -> None:
        space = np.zeros(size, f32)
        for b in range(k.shape[0]):
            for x in range(k.shape[1]):
                space[x] = k[b, x]
            for x in range(v.shape[1]):
                space[values + x] = v[b, x]
            space[grad_keys:weights] = f32(0)
            left = n - b * BLOCK
            for i in range(0, q.shape[0], ROWS):
                for r in range(ROWS):
                    at, to = weights + r * BLOCK, logits + r * BLOCK
                    # α = 2^(s − lse) is recomputed: keeping it would be the N × N map.
                    dots(space, q, i + r, -lse[i + r], 0, d, at)
                    for j in range(BLOCK):
                        space[at + j] = exp2(space[at + j])
                    for j in range(left, BLOCK):
                        space[at + j] = f32(0)
                    dots(space, grad, i + r, -shift[i + r], values, e, to)
                    for j in range(BLOCK):
                        space[to + j] *= space[at + j]
                    gather(space, to, 0, d, grad_q, i + r)
                scatter(space, q, i, logits, d, grad_keys)
                scatter(space, grad, i, weights, e, grad_values)
            for x in range(grad_k.shape[1]):
                grad_k[b, x] = space[grad_keys + x]
            for x in range(grad_v.shape[1]):
                grad_v[b, x] = space[grad_values + x]

    return attend, differentiate
