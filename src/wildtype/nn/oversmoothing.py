"""How alike the states of all nodes have become: monitors of over-smoothing, layer by layer.

Legend: n nodes · d width · e edges.

Source: Rusch, Bronstein & Mishra, "A survey on oversmoothing in graph neural networks", 2023 (energy); Roy &
Vetterli, "The effective rank", EUSIPCO 2007.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from wildtype.nn.shapes import expect_shape
from wildtype.nn.sparse import SparseOperator

_CHUNK = 65_536
"""Edges whose differences are held at a time."""
WATCHED = 16_384
"""Edges of a relation that the log of an epoch looks at."""


def dirichlet_energy(x: Tensor, op: SparseOperator, most: int | None = None) -> float:
    """Mean over edges (i, j) of ½ a_ij |x_i − x_j|², in float64; 0 without edges.

    Parameters
    ----------
    x
        [n, d]; ShapeError if it does not fit the operator.
    op
        [n, n]; stored entries are edges, in both directions where the relation is undirected.
    most
        Take the mean over so many edges at most, evenly spaced in the stored order; None: over all.
    """
    expect_shape("x", x, op.shape[0], "d")
    rows, cols = op.edges()
    values = op.values
    if most is not None and op.nnz > most:
        # Rows are stored in the order of genes: every so many edges, each row counts by its degree.
        at = torch.linspace(0, op.nnz - 1, most, dtype=torch.float64, device=rows.device).long()
        rows, cols, values = rows[at], cols[at], values[at]
    x = x.detach().double()
    total = x.new_zeros(())
    for part in range(0, len(rows), _CHUNK):
        chunk = slice(part, part + _CHUNK)
        gaps = (x[rows[chunk]] - x[cols[chunk]]).pow(2).sum(1)
        total += 0.5 * (values[chunk].double() * gaps).sum()
    return float(total) / max(len(rows), 1)


def pair_energy(x: Tensor) -> float:
    """Mean over all pairs of different nodes of ½ |x_i − x_j|², exact in O(n d): Σ |x_i − x̄|² / (n − 1).

    The Dirichlet energy on the complete graph, along which full attention passes messages. NaN for fewer than
    two nodes.
    """
    expect_shape("x", x, "n", "d")
    if len(x) < 2:
        return float("nan")
    x = x.detach().double()
    return float((x - x.mean(0)).pow(2).sum() / (len(x) - 1))


def mean_cosine(x: Tensor) -> float:
    """Mean cosine of all pairs of different nodes, exact in O(n d): (|Σ x̂|² − m) / (n (n − 1)).

    A node of state zero has cosine zero with every other; m counts the others. NaN for fewer than two nodes.
    """
    expect_shape("x", x, "n", "d")
    x = x.detach().double()
    lengths = x.norm(dim=1, keepdim=True)
    # Σ_{i≠j} x̂_i · x̂_j = |Σ x̂|² − Σ |x̂_i|²: no array of pairs.
    units = x / lengths.masked_fill(lengths == 0, 1.0)
    n = len(x)
    if n < 2:
        return float("nan")
    return float((units.sum(0).pow(2).sum() - (lengths > 0).sum()) / (n * (n - 1)))


def effective_rank(x: Tensor) -> float:
    """Exp of the entropy of the singular values of the centred states, at most d; 0 where all are equal."""
    values = _singular_values(x)
    if not len(values) or float(values[0]) == 0:
        return 0.0
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def numerical_rank(x: Tensor) -> int:
    """Singular values of the centred states above rounding (largest · max(n, d) · float32's epsilon)."""
    values = _singular_values(x)
    if not len(values):
        return 0
    return int((values > values[0] * max(x.shape) * torch.finfo(torch.float32).eps).sum())


def oversmoothing(
    states: Mapping[str, Tensor], relations: Mapping[str, SparseOperator]
) -> list[dict[str, float | int | str]]:
    """Return one row per layer: its name, cosine, ranks, and the energy over every relation.

    Parameters
    ----------
    states
        States [n, d] by name, in order, such as a model's ``layer_states`` gives.
    relations
        Operators [n, n] by name; a column ``energy/<name>`` each.
    """
    table: list[dict[str, float | int | str]] = []
    for name, x in states.items():
        row: dict[str, float | int | str] = {
            "layer": name,
            "mean_cosine": mean_cosine(x),
            "effective_rank": effective_rank(x),
            "numerical_rank": numerical_rank(x),
        }
        table.append(row | {f"energy/{r}": dirichlet_energy(x, op) for r, op in relations.items()})
    return table


def watched(states: Mapping[str, Tensor], relations: Mapping[str, SparseOperator]) -> dict[str, float]:
    """Return what is logged of every epoch: ``cosine/<layer>`` and ``energy/<layer>``, in O(n d) each.

    Parameters
    ----------
    states
        States [n, d] by name of the layer.
    relations
        What messages pass along: the energy is the mean over those with edges, of `WATCHED` edges each; it is
        that of all pairs where there is none.
    """
    there = [op for op in relations.values() if op.nnz]
    found = {}
    for name, x in states.items():
        layer = name.replace(" ", "_")  # names of metrics have no blanks
        found[f"cosine/{layer}"] = mean_cosine(x)
        energies = [dirichlet_energy(x, op, WATCHED) for op in there]
        found[f"energy/{layer}"] = sum(energies) / len(energies) if energies else pair_energy(x)
    return found


def _singular_values(x: Tensor) -> Tensor:
    """Singular values [min(n, d)] of the centred states, largest first; zero where they are rounding."""
    expect_shape("x", x, "n", "d")
    if not x.numel():
        return x.new_zeros(0, dtype=torch.float64)
    x = x.detach().double()
    mean = x.mean(0)
    values = torch.linalg.svdvals(x - mean)
    rounding = float(x.abs().max()) * max(x.shape) * torch.finfo(torch.float64).eps
    return torch.where(values > rounding, values, 0.0)
