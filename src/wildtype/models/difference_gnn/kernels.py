"""GELU with its slope, and LayerNorm with GELU, in one pass each: float32 loops compiled by numba.

A GELU's value and slope share their one exponential, so that the backward pass is a product. Φ(x) is computed
from it by Abramowitz & Stegun 7.1.26 (error below 1e-7): as close to the float64 result as torch's own.

Legend: m rows · d width · s slope dy/dx.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from wildtype.compiled import njit
from wildtype.nn.narrow_kernels import COMPILED, INLINED, exp2

f32 = float32
HALF_ROOT = 0.7071067811865476
MINUS_LOG2_E = -1.4426950408889634
DENSITY = 0.3989422804014327
LOWEST = -60.0
"""Smallest exponent of two: far below rounding, and far above denormal numbers, which are slow."""
P, A1, A2, A3, A4, A5 = 0.3275911, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429


@njit(**INLINED)  # type: ignore[untyped-decorator]
def value_and_slope(x: Any) -> Any:
    """X Φ(x) and Φ(x) + x φ(x)."""
    z = abs(x) * f32(HALF_ROOT)
    t = f32(1) / (f32(1) + f32(P) * z)
    # exp(−x²/2) = 2^(−z² log₂ e) with z = |x| / √2.
    fall = exp2(max(z * z * f32(MINUS_LOG2_E), f32(LOWEST)))
    # Horner's rule for erfc(z) ≈ (a₁ t + … + a₅ t⁵) e^(−z²), t = 1 / (1 + p z).
    p = f32(A5) * t + f32(A4)
    p = p * t + f32(A3)
    p = p * t + f32(A2)
    p = p * t + f32(A1)
    tail = f32(0.5) * p * t * fall
    # The tail is computed for |x| and reflected: for x < 0, Φ(x) is the small tail itself, without
    # cancellation.
    mass = f32(1) - tail if x >= f32(0) else tail
    return x * mass, mass + x * fall * f32(DENSITY)


GELU = [(float32[:, ::1], float32[::1], float32[:, ::1], float32[:, ::1])]


@njit(GELU, **COMPILED)  # type: ignore[untyped-decorator]
def gelu(x: Any, bias: Any, y: Any, slope: Any) -> None:
    """Write y = GELU(x + bias) and slope [m, d]; not in place, for loops that could overlap are slow."""
    m, d = x.shape
    for i in range(m):
        for c in range(d):
            y[i, c], slope[i, c] = value_and_slope(x[i, c] + bias[c])


NORM_GELU = [
    (
    float32[:, ::1], float32[::1], float32[::1], float32[::1], float32,
    float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[::1],
    )
]  # fmt: skip


@njit(NORM_GELU, **COMPILED)  # type: ignore[untyped-decorator]
def norm_gelu(
    x: Any, bias: Any, weight: Any, shift: Any, epsilon: Any, y: Any, slope: Any, normal: Any, scale: Any
) -> None:
    """Write y = GELU(weight · x̂ + shift), its slope, x̂ = normal and scale = 1 / sd [m], x̂ of x + bias."""
    m, d = x.shape
    for i in range(m):
        total = f32(0)
        for c in range(d):
            v = x[i, c] + bias[c]
            normal[i, c] = v
            total += v
        mean = total / f32(d)
        # A second pass for the variance: Σ v² − m² / d would cancel in float32.
        spread = f32(0)
        for c in range(d):
            v = normal[i, c] - mean
            normal[i, c] = v
            spread += v * v
        inverse = f32(1) / math.sqrt(spread / f32(d) + epsilon)
        scale[i] = inverse
        for c in range(d):
            v = normal[i, c] * inverse
            normal[i, c] = v
            y[i, c], slope[i, c] = value_and_slope(v * weight[c] + shift[c])


NORM_GELU_BACKWARD = [
    (
    float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[::1], float32[::1],
    float32[:, ::1], float32[::1], float32[::1],
    )
]  # fmt: skip


@njit(NORM_GELU_BACKWARD, **COMPILED)  # type: ignore[untyped-decorator]
def norm_gelu_backward(
    grad: Any, slope: Any, normal: Any, scale: Any, weight: Any, grad_x: Any, grad_weight: Any, grad_bias: Any
) -> None:
    """Write grad_x [m, d]; add to grad_weight and grad_bias [d]."""
    m, d = grad.shape
    for i in range(m):
        # dx = (g − mean(g) − x̂ mean(g x̂)) / sd, where g = weight · dy · slope.
        mean, along = f32(0), f32(0)
        for c in range(d):
            g = grad[i, c] * slope[i, c]
            grad_bias[c] += g
            grad_weight[c] += g * normal[i, c]
            g *= weight[c]
            grad_x[i, c] = g
            mean += g
            along += g * normal[i, c]
        mean /= f32(d)
        along /= f32(d)
        for c in range(d):
            grad_x[i, c] = scale[i] * (grad_x[i, c] - mean - normal[i, c] * along)
