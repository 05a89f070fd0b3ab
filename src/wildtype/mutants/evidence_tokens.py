"""`EvidenceTokens`: what was measured of mutants similar to those of a batch, as nested records of tensors.

Legend: q queries · Σk their genes · t, u tokens per query one and two edits away · r neighbours per gene ·
c channels of similarity · k traits of a gene · p phenotypes · s pairs of genes within queries.

Statistics of a gene are 3 p columns: shrunken mean, log number and fraction of positive values of the
measured mutants with that gene, each for p phenotypes. Masks are True where there is a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(slots=True)
class Record:
    """Base of dataclasses of tensors and nested records, which change as one."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Return the record with every tensor replaced by ``change`` of it."""
        return self.merge([self], lambda tensors: change(tensors[0]))

    @classmethod
    def merge(cls, parts: Sequence[Self], join: Callable[[list[Tensor]], Tensor] = torch.cat) -> Self:
        """Return several records as one: ``join`` puts the tensors of one name together."""
        joined: dict[str, Any] = {}
        for field in fields(cls):
            columns = [getattr(part, field.name) for part in parts]
            nested = isinstance(columns[0], Record)
            joined[field.name] = type(columns[0]).merge(columns, join) if nested else join(columns)
        return cls(**joined)


@dataclass(slots=True)
class OneEdit(Record):
    """Measured mutants that differ from a query in one gene.

    Attributes
    ----------
    similarity : float32 [q, t, c]
        Of the gene replaced and its replacement; 0 where none is replaced.
    edit : int64 [q, t]
        ``REPLACED``, ``REMOVED`` or ``ADDED`` of `wildtype.evidence.edits`.
    old, new : int64 [q, t]
        Gene that the query has alone, and gene that the measured mutant has alone; -1: none.
    mask : bool [q, t]
    value : float32 [q, t, p], known : bool [q, t, p]
        Measured values, 0 where unknown.
    same_condition : float32 [q, t]
        1 where it was measured in the query's condition.
    statistics : float32 [q, t, 3 p]
        Of the gene ``new``.
    """

    similarity: Tensor
    edit: Tensor
    old: Tensor
    new: Tensor
    mask: Tensor
    value: Tensor
    known: Tensor
    same_condition: Tensor
    statistics: Tensor


@dataclass(slots=True)
class TwoEdits(Record):
    """Measured mutants with two genes of a query replaced by neighbours.

    Attributes
    ----------
    similarity : float32 [q, u, 2, c]
        Of each gene replaced and its replacement.
    old, new : int64 [q, u, 2]
        Genes replaced, and their replacements; -1: none.
    mask : bool [q, u]
    value : float32 [q, u, p], known : bool [q, u, p]
        Measured values, 0 where unknown.
    same_condition : float32 [q, u]
        1 where it was measured in the query's condition.
    pooled : float32 [q, 2 p]
        Shrunken mean and log weight over all such mutants, also beyond the u kept.
    """

    similarity: Tensor
    old: Tensor
    new: Tensor
    mask: Tensor
    value: Tensor
    known: Tensor
    same_condition: Tensor
    pooled: Tensor


@dataclass(slots=True)
class Neighbours(Record):
    """Of every gene of the queries, the measured genes most similar to it.

    Attributes
    ----------
    similarity : float32 [Σk, r, c]
    gene : int64 [Σk, r]
        The neighbour; -1: none.
    mask : bool [Σk, r]
    statistics : float32 [Σk, r, 3 p]
        Of the neighbour.
    """

    similarity: Tensor
    gene: Tensor
    mask: Tensor
    statistics: Tensor


@dataclass(slots=True)
class Genes(Record):
    """What was measured of the genes of the queries themselves.

    Attributes
    ----------
    statistics : float32 [Σk, 3 p]
    additive : float32 [Σk, p]
        Shrunken additive effect: see `wildtype.evidence.measured.additive_effects`.
    part : int64 [Σk]
        Number of the measurements that the gene was looked up in. Of one gene with one number, neighbours and
        statistics are the same, whatever the query.
    """

    statistics: Tensor
    additive: Tensor
    part: Tensor


@dataclass(slots=True)
class GenePairs(Record):
    """Pairs of genes within each query.

    Attributes
    ----------
    row, left, right : int64 [s]
        Query and genes of every pair.
    similarity : float32 [s, c]
    traits : float32 [s, 3 k]
        Sum, distance and product of the k traits of both genes.
    """

    row: Tensor
    left: Tensor
    right: Tensor
    similarity: Tensor
    traits: Tensor


@dataclass(slots=True)
class EquivalentMutants(Record):
    """Measured mutants that lose the same reactions as a query, or fewer (see `wildtype.evidence.effects`).

    Attributes
    ----------
    value : float32 [q, p], known : bool [q, p]
        Mean of mutants that lose the same reactions, 0 where unknown.
    bound : float32 [q, p]
        Smallest value of mutants that lose no more reactions than the query, of phenotypes that are no
        interactions; inf where unknown.
    """

    value: Tensor
    known: Tensor
    bound: Tensor


@dataclass(slots=True)
class EvidenceTokens(Record):
    """Evidence of q queries.

    ``one``, ``two`` and ``equivalents`` have a row per query, ``neighbours`` and ``genes`` one per gene of
    the queries, and ``pairs`` one per pair of genes of a query.
    """

    one: OneEdit
    two: TwoEdits
    neighbours: Neighbours
    genes: Genes
    pairs: GenePairs
    equivalents: EquivalentMutants

    def to(self, device: torch.device | str, non_blocking: bool = False) -> EvidenceTokens:
        """Return the tokens on another device."""
        return self.map(lambda x: x.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> EvidenceTokens:
        """Return the tokens in page-locked memory, for asynchronous copies to a GPU."""
        return self.map(Tensor.pin_memory)

    def double(self) -> EvidenceTokens:
        """Return the tokens in float64; positions and masks stay as they are."""
        return self.map(lambda x: x.double() if x.is_floating_point() else x)

    def first(self, one: int, two: int, neighbours: int) -> EvidenceTokens:
        """Return the first tokens of each kind, as views: the best ones, where they were ranked."""
        return replace(
            self,
            one=self.one.map(lambda x: x[:, :one]),
            # What all mutants two edits away say together stays: it does not depend on how many are kept.
            two=replace(self.two.map(lambda x: x[:, :two]), pooled=self.two.pooled),
            neighbours=self.neighbours.map(lambda x: x[:, :neighbours]),
        )

    def slice(self, start: int, stop: int, first: int, last: int) -> EvidenceTokens:
        """Return the tokens of queries ``start`` … ``stop``-1, whose genes are ``first`` … ``last``-1.

        All are views but those of pairs, which are not in the order of queries where parts were joined.
        """
        chosen = ((self.pairs.row >= start) & (self.pairs.row < stop)).nonzero()[:, 0]
        pairs = self.pairs.map(lambda x: x.index_select(0, chosen))
        return EvidenceTokens(
            one=self.one.map(lambda x: x[start:stop]),
            two=self.two.map(lambda x: x[start:stop]),
            neighbours=self.neighbours.map(lambda x: x[first:last]),
            genes=self.genes.map(lambda x: x[first:last]),
            pairs=replace(pairs, row=pairs.row - start),
            equivalents=self.equivalents.map(lambda x: x[start:stop]),
        )


Tokens = TypeVar("Tokens", OneEdit, TwoEdits, Neighbours)
ROW_BLOCK = 64
"""Rows that a product of matrices treats alike: a row at the end would be rounded in another way than inside,
and a prediction depend on those beside it."""


def without_gaps(tokens: Tokens) -> tuple[Tokens, Tensor]:
    """Return the tokens [T, ...] that a mask shows, those of the first query first, and where each begins.

    The second is int64 [q + 1]. Of neighbours, a query is a gene of one. Rows behind the last token, copies
    of the first place, make T a multiple of ``ROW_BLOCK``.
    """
    mask = tokens.mask
    there = mask.flatten().nonzero()[:, 0]
    there = nn.functional.pad(there, (0, -len(there) % ROW_BLOCK))
    offsets = mask.new_zeros(len(mask) + 1, dtype=torch.int64)
    torch.cumsum(mask.sum(1), 0, out=offsets[1:])

    def taken(x: Tensor) -> Tensor:
        # What all tokens of a query say together has no place for each.
        return x.flatten(0, 1).index_select(0, there) if x.shape[:2] == mask.shape else x

    return tokens.map(taken), offsets


def joined(
    parts: Sequence[EvidenceTokens],
    rows: Sequence[NDArray[np.int64]],
    row: NDArray[np.int64],
    whole: EvidenceTokens | None = None,
) -> EvidenceTokens:
    """Return the tokens of a batch from those of its parts.

    Parameters
    ----------
    parts : sequence of EvidenceTokens
        Of each part of the batch.
    rows : sequence of int64 [any]
        Rows of the batch, ascending, that each part answers: all rows, unless there is a ``whole``.
    row : int64 [Σk]
        Row of every gene of the batch.
    whole : EvidenceTokens, optional
        Of all rows; those that parts answer are written over.
    """
    by_query = _at_rows(rows, whole is not None)
    by_gene = _at_rows([np.flatnonzero(np.isin(row, part)) for part in rows], whole is not None)
    # Each pair of genes names its query, in the numbers of the batch.
    numbered = [
        replace(part.pairs, row=torch.from_numpy(r)[part.pairs.row])
        for r, part in zip(rows, parts, strict=True)
    ]
    pairs = GenePairs.merge(numbered)  # in the order of the parts: a sum over pairs needs no other
    if whole is not None:
        at = [np.flatnonzero(np.isin(whole.pairs.row.numpy(), part)) for part in rows]
        pairs = GenePairs.merge([whole.pairs, *numbered], _at_rows(at, True))
    every = [*([] if whole is None else [whole]), *parts]
    return EvidenceTokens(
        one=OneEdit.merge([part.one for part in every], by_query),
        two=TwoEdits.merge([part.two for part in every], by_query),
        neighbours=Neighbours.merge([part.neighbours for part in every], by_gene),
        genes=Genes.merge([part.genes for part in every], by_gene),
        pairs=pairs,
        equivalents=EquivalentMutants.merge([part.equivalents for part in every], by_query),
    )


def _at_rows(rows: Sequence[NDArray[np.int64]], over: bool) -> Callable[[list[Tensor]], Tensor]:
    """Return what puts the tensor of each part at its rows, ``over`` the first tensor or into a new one."""
    at = [torch.from_numpy(part) for part in rows]

    def put(tensors: list[Tensor]) -> Tensor:
        parts = tensors[1:] if over else tensors
        out = tensors[0] if over else tensors[0].new_empty((sum(map(len, at)), *tensors[0].shape[1:]))
        for where, part in zip(at, parts, strict=True):
            out.index_copy_(0, where, part)
        return out

    return put
