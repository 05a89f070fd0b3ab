"""Contributions to one prediction of one model, of parts of the head's input and of single genes.

The head reads one vector x: h_CLS, the number of genes, z_S = Σ_i β_i φ_i, summaries of S, and features of
relations and measurements. Let x_0 be that of the wild type (the empty set, without evidence) and f the
output:

    integrated   (x - x_0)_c ∫ ∂f/∂x_c (x_0 + t (x - x_0)) dt, t from 0 to 1: sums to f(x) - f(x_0)
                 (integrated gradients: Sundararajan, Taly & Yan 2017, ICML)
    linear       ∇f(x)·β_i φ_i for gene i, and ∇f(x)·Δ(β_i φ_i) for its change from the wild type

z_S is a sum over all genes, so its integrated part is one, too: Δ(β_i φ_i) times the mean gradient on the
path, a check of the linear one. Parts that are sums over S are divided among the perturbed genes, half of a
pair's term to each; other parts belong to the set. A term that is added to the output unchanged is its own
contribution.

Legend: n genes · k perturbed · d width · h heads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.inference.explaining.members import EnsembleMember
from wildtype.models.explainable import ADDITIVE, WHOLE_CELL, ExplainableHead
from wildtype.models.interface import WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

Floats = NDArray[np.float64]
Reader = Callable[[Tensor], Tensor]
STEPS = (64, 256, 1024)
"""Points on the path; the next number is tried if the sum misses the tolerance."""
TOLERANCE = 1e-6
"""Largest error of the sum, in scaled labels, relative if the difference exceeds 1."""


@dataclass(frozen=True, eq=False)
class WholeCell:
    """Contribution of each gene i through z_S [n], in the phenotype's unit.

    Attributes
    ----------
    weight, weight_before : float64 [n]
        β_i, mean over heads, in the mutant and in the wild type; 0 there where genes ask by themselves.
    linear, linear_change, integrated : float64 [n]
        See the formulas of this module.
    """

    weight: Floats
    weight_before: Floats
    linear: Floats
    linear_change: Floats
    integrated: Floats


@dataclass(frozen=True, eq=False)
class Carried:
    """Contributions to one prediction of one model, in the phenotype's unit (binary: the logit).

    Attributes
    ----------
    predicted : float
        Prediction of the model: network, trees and equivalents.
    network, baseline : float
        Output of the network for the mutant and for the wild type.
    integrated, linear : dict of str to float
        Contribution of every part, by name.
    perturbed : float64 [k]
        Integrated contribution of each perturbed gene in the parts that are sums over S.
    to_genes : tuple of str
        Names of these parts.
    cell : WholeCell or None
        None if the model has no whole-cell latent.
    steps : int
        Points on the path.
    error : float
        Sum of all contributions minus (network - baseline).
    """

    predicted: float
    network: float
    baseline: float
    integrated: dict[str, float]
    linear: dict[str, float]
    perturbed: Floats
    to_genes: tuple[str, ...]
    cell: WholeCell | None
    steps: int
    error: float


def batch_of(member: EnsembleMember, table: MutantTable) -> MutantBatch:
    """Return the mutants of a table as a batch, with what a member's checkpoint looks up."""
    return member.checkpoint.looked_up(MutantBatch.from_table(table))


def in_double(member: EnsembleMember, batch: MutantBatch) -> tuple[ExplainableHead, WildType, MutantBatch]:
    """Return a copy of a member's head, its wild type and the network's batch in float64."""
    # Contributions are small differences of large numbers; in float32 their sum would miss the tolerance.
    wild = member.wild_type
    regularised = wild.regularised
    doubled = replace(
        wild,
        cls=wild.cls.double(),
        genes=wild.genes.double(),
        regularised=None if regularised is None else (regularised[0].double(), regularised[1].double()),
    )
    own = member.attentive.for_network(batch)
    own = replace(
        own,
        dose=None if own.dose is None else own.dose.double(),
        evidence=None if own.evidence is None else own.evidence.double(),
        columns=None if own.columns is None else own.columns.double(),
    )
    return copy.deepcopy(member.attentive.head).double(), doubled, own


def carried(member: EnsembleMember, table: MutantTable, phenotype: int) -> Carried:
    """Return the contributions to the prediction of a table of one row, for an output by position.

    The output is a regression or binary one; per-gene outputs are not explained.
    """
    batch = batch_of(member, table)
    with torch.no_grad():
        predicted = float(member.model(member.wild_type, batch).mean[0, phenotype])
    head, wild, own = in_double(member, batch)
    with torch.no_grad():
        found = head.perturbed(wild, own) | head.looked_up(wild, own)
        parts = {name: found[name] for name in head.columns}
        nothing = _nothing(own)
        before = head.perturbed(wild, nothing)
        start = [before.get(name, torch.zeros_like(x))[0] for name, x in parts.items()]
        x0, x1 = torch.cat(start), torch.cat([x[0] for x in parts.values()])
        added = {name: float(x[0, phenotype]) for name, x in head.added(own).items()}

    def read(x: Tensor) -> Tensor:
        return head.read(x)[:, phenotype]

    with torch.no_grad():
        base, end = (float(read(x[None])[0]) for x in (x0, x1))
    last = _gradient(read, x1[None])[0]
    # Completeness (Sundararajan et al., proposition 1): contributions sum to f(x) - f(x_0). The error of that
    # sum measures the error of the quadrature, and decides on more points.
    for steps in STEPS:
        mean = mean_gradient(read, x0, x1, steps)
        error = float(mean @ (x1 - x0)) - (end - base)
        if abs(error) < TOLERANCE * max(1.0, abs(end - base)):
            break
    widths = [x.shape[1] for x in parts.values()]
    of = dict(
        zip(parts, zip(*(torch.split(x, widths) for x in (x1 - x0, mean, last)), strict=True), strict=True)
    )
    scale = float(member.checkpoint.sd[phenotype])
    integrated = {name: scale * float(g @ change) for name, (change, g, _) in of.items()}
    linear = {name: scale * float(g @ change) for name, (change, _, g) in of.items()}
    for name, value in added.items():
        integrated[name] = linear[name] = scale * value
    perturbed: Floats = np.zeros(len(table.gene))
    with torch.no_grad():
        shares = head.shares(wild, own)
    for name, share in shares.items():
        each = share[:, phenotype] if name == ADDITIVE else share @ of[name][1]
        perturbed += scale * each.numpy()
    cell = None
    if WHOLE_CELL in of:
        cell = _whole_cell(head, wild, own, nothing, of[WHOLE_CELL][1:], scale)
    centre, total = float(member.checkpoint.mean[phenotype]), sum(added.values())
    return Carried(
        predicted=centre + scale * predicted,
        network=centre + scale * (end + total),
        baseline=centre + scale * base,
        integrated=integrated,
        linear=linear,
        perturbed=perturbed,
        to_genes=tuple(shares),
        cell=cell,
        steps=steps,
        error=scale * error,
    )


def mean_gradient(read: Reader, x0: Tensor, x1: Tensor, steps: int) -> Tensor:
    """Return the mean gradient [w] of ``read`` on the straight path from x0 to x1.

    Gauss-Legendre quadrature with s points is exact for polynomials of degree 2 s − 1.
    """
    node, weight = np.polynomial.legendre.leggauss(steps)
    # Nodes of [-1, 1] moved to [0, 1]; weights sum to 2 there and to 1 here.
    t, w = (torch.from_numpy(x) for x in ((node + 1) / 2, weight / 2))
    gradient = _gradient(read, x0 + t[:, None] * (x1 - x0))
    return w @ gradient


def _gradient(read: Reader, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        found: Tensor = torch.autograd.grad(read(x).sum(), x)[0]
    return found


def _nothing(batch: MutantBatch) -> MutantBatch:
    """Return the wild type as a batch: the empty set, in the mutant's condition."""
    empty = MutantTable.build([], [0, 0], condition=batch.condition.numpy())
    return MutantBatch.from_table(empty)


@torch.no_grad()
def _whole_cell(
    head: ExplainableHead,
    wild: WildType,
    batch: MutantBatch,
    nothing: MutantBatch,
    gradients: tuple[Tensor, Tensor],
    scale: float,
) -> WholeCell:
    """Return the contributions of all genes through z_S; ``gradients`` [d]: mean on the path, at its end."""
    mean, last = gradients
    beta, phi = head.attended(wild, batch)
    beta_0, phi_0 = head.attended(wild, nothing)
    here, before = (
        (b.unsqueeze(-1) * p).transpose(0, 1).flatten(1) for b, p in ((beta, phi), (beta_0, phi_0))
    )
    return WholeCell(
        weight=beta.mean(0).numpy(),
        weight_before=beta_0.mean(0).numpy(),
        linear=scale * (here @ last).numpy(),
        linear_change=scale * ((here - before) @ last).numpy(),
        integrated=scale * ((here - before) @ mean).numpy(),
    )
