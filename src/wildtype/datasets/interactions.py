"""Genetic interactions from fitness, and fitness from genetic interactions, to any order.

Fitness is relative to the wild type (f_∅ = 1); interactions are in the same unit. All functions work on
float64 arrays of any broadcastable shape: one entry per mutant.

General order: the fitness of all subsets of k genes is one array [..., 2^k] whose last axis is indexed by bit
mask: bit i of the column number says that gene i is perturbed. So for two genes the columns are ∅, a, b, ab.

Literature: ε as in Mani et al. 2008 (PNAS 105:3461, product definition); τ as in Kuzmin et al. 2018
(Science 360:eaao1729); the joint cumulant as in Kuzmin et al. 2018 up to order 3 and McCullagh 1987 (Tensor
Methods in Statistics, section 2.3) above.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import ConfigError, DatasetError, ShapeError

Floats = NDArray[np.float64]
Definition = Literal["moebius", "cumulant"]


def _float64(*values: ArrayLike) -> list[Floats]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def epsilon(f_ab: ArrayLike, f_a: ArrayLike, f_b: ArrayLike) -> Floats:
    """Return the digenic interaction ε_ab = f_ab − f_a f_b [M], in fitness units."""
    ab, a, b = _float64(f_ab, f_a, f_b)
    return np.asarray(ab - a * b)


def tau(
    f_abc: ArrayLike,
    f_ab: ArrayLike,
    f_ac: ArrayLike,
    f_bc: ArrayLike,
    f_a: ArrayLike,
    f_b: ArrayLike,
    f_c: ArrayLike,
) -> Floats:
    """Return the trigenic interaction τ_abc [M] in fitness units (Kuzmin et al. 2018).

    τ_abc = f_abc − f_ab f_c − f_ac f_b − f_bc f_a + 2 f_a f_b f_c, which is
    f_abc − f_a f_b f_c − f_a ε_bc − f_b ε_ac − f_c ε_ab.
    """
    abc, ab, ac, bc, a, b, c = _float64(f_abc, f_ab, f_ac, f_bc, f_a, f_b, f_c)
    return np.asarray(abc - ab * c - ac * b - bc * a + 2.0 * a * b * c)


def _subsets(fitness: ArrayLike) -> tuple[Floats, int]:
    f = np.array(fitness, dtype=np.float64)
    size = f.shape[-1] if f.ndim else 0
    if size < 2 or size & (size - 1):
        raise ShapeError(
            f"fitness has shape {f.shape}, expected [..., 2^k]: one column per subset of k genes, by bit mask"
        )
    if not np.allclose(f[..., 0], 1.0, rtol=0.0, atol=1e-9):
        raise DatasetError("the wild type's fitness (column 0, the empty set) must be 1: divide by it first")
    return f, size.bit_length() - 1


def interactions(fitness: ArrayLike, definition: Definition = "moebius") -> Floats:
    """Return the interactions [..., 2^k] of all subsets of k genes, columns by bit mask as in ``fitness``.

    ``"moebius"`` is τ_S = Σ_{T ⊆ S} (−1)^{|S∖T|} f_T ∏_{i ∈ S∖T} f_i: what is left of f_S after every
    interaction of fewer genes, each times the single fitness of the others, is taken away. ``"cumulant"`` is
    the joint cumulant κ_S = f_S − Σ_{T ⊊ S, T ∋ first gene of S} κ_T f_{S∖T}, which also takes away products
    of two or more interactions. The two agree at orders 2 and 3 (ε and τ) and differ from order 4 on, where
    κ_abcd = τ_abcd − ε_ab ε_cd − ε_ac ε_bd − ε_ad ε_bc.

    Column 0 is 1. A single gene has no interaction under ``"moebius"`` (0); its cumulant is its fitness.

    Parameters
    ----------
    fitness : float64 [..., 2^k]
        Fitness of every subset; column 0 must be 1.
    definition : {"moebius", "cumulant"}
        See above.

    Raises
    ------
    ShapeError
        If the last axis is not a power of two.
    DatasetError
        If the wild type's fitness is not 1.
    ConfigError
        If the definition is unknown.
    """
    f, k = _subsets(fitness)
    columns = np.arange(1 << k)
    if definition == "moebius":
        # The sum factorises over genes, so k passes over the columns replace the sum over pairs T ⊆ S.
        out = f.copy()
        for i in range(k):
            with_gene = columns[(columns >> i) & 1 == 1]
            out[..., with_gene] -= f[..., 1 << i, None] * out[..., with_gene ^ (1 << i)]
        return out
    if definition == "cumulant":
        out = f.copy()
        for s in range(1, 1 << k):
            first, rest = s & -s, s & (s - 1)
            part = (rest - 1) & rest
            while rest:
                out[..., s] -= out[..., part | first] * f[..., s ^ (part | first)]
                if not part:
                    break
                part = (part - 1) & rest
        return out
    raise ConfigError(f"{definition!r} is not a definition of interaction; known: moebius, cumulant")


def interaction(fitness: ArrayLike, definition: Definition = "moebius") -> Floats:
    """Return the interaction [...] of all k genes together, given the fitness of every subset [..., 2^k].

    At k = 2 this is ε and at k = 3 it is τ. Arguments and errors as in ``interactions``.
    """
    return interactions(fitness, definition)[..., -1]


def fitness_from_interaction(
    value: ArrayLike, fitness: ArrayLike, definition: Definition = "moebius"
) -> Floats:
    """Return the fitness [...] of the k-fold mutant whose interaction is ``value`` [...].

    The inverse of ``interaction``: ``fitness`` [..., 2^k] holds the fitness of every proper subset; its last
    column is not read. With ``value`` 0 this is the fitness expected without an interaction of all k genes.
    Errors as in ``interactions``.
    """
    f, _ = _subsets(fitness)
    f[..., -1] = 0.0
    # Both definitions contain f_S once, with coefficient 1.
    return np.asarray(np.asarray(value, dtype=np.float64) - interaction(f, definition))


def fitness_from_epsilon(
    eps: ArrayLike,
    f_a: ArrayLike,
    f_b: ArrayLike,
    sd_eps: ArrayLike = 0.0,
    sd_a: ArrayLike = 0.0,
    sd_b: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:
    """Return fitness of the double mutant and its sd, each [M]: f_ab = ε + f_a f_b.

    The sd is first-order error propagation with independent errors of ε, f_a and f_b; it is NaN where one of
    the given sd is.
    """
    e, a, b, se, sa, sb = _float64(eps, f_a, f_b, sd_eps, sd_a, sd_b)
    return np.asarray(e + a * b), np.sqrt(se**2 + (b * sa) ** 2 + (a * sb) ** 2)


def fitness_from_tau(
    tau: ArrayLike,
    f_ab: ArrayLike,
    f_ac: ArrayLike,
    f_bc: ArrayLike,
    f_a: ArrayLike,
    f_b: ArrayLike,
    f_c: ArrayLike,
    sd_tau: ArrayLike = 0.0,
    sd_ab: ArrayLike = 0.0,
    sd_ac: ArrayLike = 0.0,
    sd_bc: ArrayLike = 0.0,
    sd_a: ArrayLike = 0.0,
    sd_b: ArrayLike = 0.0,
    sd_c: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:
    """Return fitness of the triple mutant and its sd, each [M].

    f_abc = τ + f_ab f_c + f_ac f_b + f_bc f_a − 2 f_a f_b f_c. The sd is first-order error propagation
    with independent errors of the seven inputs (each measured in its own strain); it is NaN where one of the
    given sd is.
    """
    t, ab, ac, bc, a, b, c = _float64(tau, f_ab, f_ac, f_bc, f_a, f_b, f_c)
    st, sab, sac, sbc, sa, sb, sc = _float64(sd_tau, sd_ab, sd_ac, sd_bc, sd_a, sd_b, sd_c)
    fitness = t + ab * c + ac * b + bc * a - 2.0 * a * b * c
    variance = (
        st**2
        + (c * sab) ** 2
        + (b * sac) ** 2
        + (a * sbc) ** 2
        + ((bc - 2.0 * b * c) * sa) ** 2
        + ((ac - 2.0 * a * c) * sb) ** 2
        + ((ab - 2.0 * a * b) * sc) ** 2
    )
    return np.asarray(fitness), np.sqrt(variance)
