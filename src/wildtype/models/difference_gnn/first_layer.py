"""The first layer of a mutant, where it differs from the wild type's.

Legend: b mutants · n genes · d width · M changed rows of all mutants.

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
from wildtype.nn.message_passing import first_layer_rows
from wildtype.nn.ragged import take_rows
from wildtype.nn.sparse import SparseOperator


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
    """

    inputs: Tensor
    messages: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    output: Tensor


class ChangedRows(NamedTuple):
    """Rows that differ from the wild type: `keys` int64 [M], rising, mutant · n + gene; `states` [M, d]."""

    keys: Tensor
    states: Tensor


def changed_rows(
    layer: RelationLayer,
    first: FirstLayer,
    relations: Sequence[SparseOperator],
    gene: Tensor,
    offsets: Tensor,
) -> ChangedRows:
    """Return the first layer's states of all genes of all mutants that have a neighbour removed.

    Parameters
    ----------
    layer
        The first layer.
    first
        Its pass over the wild type.
    relations
        The shared adjacencies.
    gene, offsets
        int64 [Σ|S|] and [b + 1]: the genes that every mutant lacks, none twice.
    """
    n = len(first.inputs)
    found = []
    for gin, op, messages in zip(layer.gins, relations, first.messages, strict=True):
        rows = first_layer_rows(op, first.inputs, gene, offsets, shared=messages)
        found.append(ChangedRows(rows.changed, gin(take_rows(first.inputs, rows.node), rows.own)))
    keys = torch.unique(torch.cat([rows.keys for rows in found]))
    genes = keys % n
    states = [
        take_rows(whole, genes).index_copy(0, torch.searchsorted(keys, rows.keys), rows.states)
        for whole, rows in zip(first.states, found, strict=True)
    ]
    return ChangedRows(keys, layer.aggregate(states))


def encode_first_layer(layer: RelationLayer, x: Tensor, relations: Sequence[SparseOperator]) -> FirstLayer:
    """Pass the wild type [n, d] through the first layer, and keep what mutants share."""
    messages = tuple(op @ x for op in relations)
    states = tuple(gin(x, message) for gin, message in zip(layer.gins, messages, strict=True))
    return FirstLayer(x, messages, states, layer.aggregate(states))
