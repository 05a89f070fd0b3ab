"""The first layer of a mutant, where it differs from the wild type's.

Legend: b mutants · n genes · d width · a neighbour counts as a · M changed rows of all mutants.

All mutants enter the first layer with the same states x. Removing S changes the message of a gene only where
it has a neighbour in S: A (keep ∘ x) = A x − A[:, S] x[S]. On real and random graphs of yeast's size that is
one gene in fifty per relation, so only those rows pass the relation's GIN again, only the rows changed under
any relation are aggregated again, and all others are the wild type's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from wildtype.models.difference_gnn.layers import RelationLayer
from wildtype.nn.ragged import take_rows
from wildtype.nn.sparse import SparseOperator


@dataclass(frozen=True, slots=True)
class Receivers:
    """Who receives from a gene: `rows` int64 [e] and `values` [e] of column j from `starts[j]` on."""

    starts: Tensor
    rows: Tensor
    values: Tensor

    @classmethod
    def of(cls, op: SparseOperator) -> Receivers:
        """Return the columns of an operator."""
        columns = op.t()
        counts = columns.row_counts
        return cls(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), columns.edges()[1], columns.values)


@dataclass(slots=True)
class FirstLayer:
    """What the wild type's first layer leaves for the mutants.

    Attributes
    ----------
    inputs : [n, d]
        States that enter the layer.
    messages, states : R times [n, d]
        Per relation, sums over neighbours, and the states made of them.
    output : [n, d]
        The layer's result.
    receivers : R times Receivers
        The columns of every relation.
    """

    inputs: Tensor
    messages: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    output: Tensor
    receivers: tuple[Receivers, ...]


class ChangedRows(NamedTuple):
    """Rows that differ from the wild type: `keys` int64 [M], rising, mutant · n + gene; `states` [M, d]."""

    keys: Tensor
    states: Tensor


def changed_rows(
    layer: RelationLayer, first: FirstLayer, gene: Tensor, owner: Tensor, gone: Tensor
) -> ChangedRows:
    """Return the first layer's states of all genes of all mutants that have a neighbour removed.

    Parameters
    ----------
    layer
        The first layer.
    first
        Its pass over the wild type.
    gene, owner
        int64 [Σ|S|]: removed genes, and the mutant of each.
    gone
        bool [b, n], True = removed; such rows are left out.
    """
    n = len(first.inputs)
    found = [_relation_rows(first, r, gin, gene, owner, gone.view(-1)) for r, gin in enumerate(layer.gins)]
    keys = torch.unique(torch.cat([rows.keys for rows in found]))
    genes = keys % n
    states = [
        take_rows(whole, genes).index_copy(0, torch.searchsorted(keys, rows.keys), rows.states)
        for whole, rows in zip(first.states, found, strict=True)
    ]
    return ChangedRows(keys, layer.aggregate(states))


def _relation_rows(
    first: FirstLayer, r: int, gin: torch.nn.Module, gene: Tensor, owner: Tensor, gone: Tensor
) -> ChangedRows:
    """The rows that change under one relation alone."""
    x, n = first.inputs, len(first.inputs)
    receivers = first.receivers[r]
    begin = receivers.starts[gene]
    counts = receivers.starts[gene + 1] - begin
    before = counts.cumsum(0) - counts
    edge = torch.arange(int(counts.sum()), device=x.device) + torch.repeat_interleave(begin - before, counts)
    hit = torch.repeat_interleave(owner * n, counts) + receivers.rows[edge]
    sender = torch.repeat_interleave(gene, counts)
    there = ~gone[hit]
    keys, place = torch.unique(hit[there], return_inverse=True)
    lost = receivers.values[edge[there]].to(x.dtype).unsqueeze(1) * take_rows(x, sender[there])
    message = take_rows(first.messages[r], keys % n).index_add(0, place, lost, alpha=-1)
    return ChangedRows(keys, gin(take_rows(x, keys % n), message))


def encode_first_layer(layer: RelationLayer, x: Tensor, relations: Sequence[SparseOperator]) -> FirstLayer:
    """Pass the wild type [n, d] through the first layer, and keep what mutants share."""
    messages = tuple(op @ x for op in relations)
    states = tuple(gin(x, message) for gin, message in zip(layer.gins, messages, strict=True))
    receivers = tuple(Receivers.of(op) for op in relations)
    return FirstLayer(x, messages, states, layer.aggregate(states), receivers)
