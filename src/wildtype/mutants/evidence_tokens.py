"""`EvidenceTokens`: what was measured of mutants like those of a batch, as tensors.

Legend: q queries · Σk their genes · t, u tokens per query one and two edits away · r neighbours per gene ·
c channels of similarity · p phenotypes · s pairs of genes within queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(slots=True)
class EvidenceTokens:
    """Evidence of q queries; masks are True where there is a token.

    Attributes
    ----------
    one : float32 [q, t, c], one_edit, one_old, one_new : int64 [q, t], one_mask : bool [q, t]
        One edit away: similarity of the genes exchanged, kind of edit (see `kernels`), the genes (-1: none).
    one_value : float32 [q, t, p], one_known : bool [q, t, p]
        Measured values, 0 where unknown.
    one_same : float32 [q, t]
        1 where it was measured in the query's condition.
    one_statistics : float32 [q, t, 3 p]
        Of the gene that came in: see ``near_statistics``.
    two : float32 [q, u, 2, c], two_old, two_new : int64 [q, u, 2], two_value, two_known, two_mask, two_same
        The same of two genes exchanged.
    two_all : float32 [q, 2 p]
        Of all of these together, also beyond the u kept: shrunken mean and log weight.
    near : float32 [Σk, r, c], near_gene : int64 [Σk, r], near_mask : bool [Σk, r]
        Neighbours of every gene of a query, the measured ones most similar to it.
    near_statistics : float32 [Σk, r, 3 p]
        Shrunken mean, log number and share of positive values of each.
    own : float32 [Σk, 3 p]
        The same of the gene itself.
    own_effect : float32 [Σk, p]
        Its additive effect, shrunken: see `measured.additive_effects`.
    pair : float32 [s, c], pair_row, pair_left, pair_right : int64 [s]
        Similarity of the pairs of genes within each query.
    pair_traits : float32 [s, 3 k]
        Sum, distance and product of the k traits of both genes.
    equal : float32 [q, p], equal_known : bool [q, p]
        Mean of mutants that lose the same reactions (see `effects`), 0 where unknown.
    bound : float32 [q, p]
        Smallest value of mutants that lose no more reactions than the query, of phenotypes that are no
        interactions; inf where unknown.
    """

    one: Tensor
    one_edit: Tensor
    one_old: Tensor
    one_new: Tensor
    one_mask: Tensor
    one_value: Tensor
    one_known: Tensor
    one_same: Tensor
    one_statistics: Tensor
    two: Tensor
    two_old: Tensor
    two_new: Tensor
    two_mask: Tensor
    two_value: Tensor
    two_known: Tensor
    two_same: Tensor
    two_all: Tensor
    near: Tensor
    near_gene: Tensor
    near_mask: Tensor
    near_statistics: Tensor
    own: Tensor
    own_effect: Tensor
    pair: Tensor
    pair_traits: Tensor
    pair_row: Tensor
    pair_left: Tensor
    pair_right: Tensor
    equal: Tensor
    equal_known: Tensor
    bound: Tensor

    def to(self, device: torch.device | str, non_blocking: bool = False) -> EvidenceTokens:
        """Return the tokens on another device."""
        return self._map(lambda x: x.to(device, non_blocking=non_blocking))

    def first(self, one: int, two: int, near: int) -> EvidenceTokens:
        """Return the first tokens of each kind alone, as views: the best ones, where they were ranked."""
        kept: dict[str, Any] = {}
        for f in fields(self):
            column = getattr(self, f.name)
            count = {"one": one, "two": two, "near": near}.get(f.name.split("_")[0])
            kept[f.name] = column if count is None or f.name == "two_all" else column[:, :count]
        return EvidenceTokens(**kept)

    def slice(self, start: int, stop: int, first: int, last: int) -> EvidenceTokens:
        """Return the tokens of queries ``start`` … ``stop``-1, whose genes are ``first`` … ``last``-1."""
        pairs = ((self.pair_row >= start) & (self.pair_row < stop)).nonzero()[:, 0]
        kept: dict[str, Any] = {"pair_row": self.pair_row.index_select(0, pairs) - start}
        for f in fields(self):
            column = getattr(self, f.name)
            if f.name in PER_GENE:
                kept[f.name] = column[first:last]
            elif f.name in PER_PAIR:
                kept[f.name] = column.index_select(0, pairs)
            elif f.name != "pair_row":
                kept[f.name] = column[start:stop]
        return EvidenceTokens(**kept)

    def pin_memory(self) -> EvidenceTokens:
        """Return the tokens in page-locked memory, for asynchronous copies to a GPU."""
        return self._map(Tensor.pin_memory)

    def double(self) -> EvidenceTokens:
        """Return the tokens in float64; positions and masks stay as they are."""
        return self._map(lambda x: x.double() if x.is_floating_point() else x)

    def _map(self, change: Callable[[Tensor], Tensor]) -> EvidenceTokens:
        return EvidenceTokens(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


PER_GENE = ("near", "near_gene", "near_mask", "near_statistics", "own", "own_effect")
PER_PAIR = ("pair", "pair_traits", "pair_left", "pair_right")


def joined(
    parts: Sequence[EvidenceTokens], rows: Sequence[NDArray[np.int64]], row: NDArray[np.int64]
) -> EvidenceTokens:
    """Put tokens of parts of a batch, its rows ``rows``, back into order; ``row`` [Σk] is the row of every
    gene.
    """
    order = torch.from_numpy(np.argsort(np.concatenate(rows), kind="stable"))
    items = [np.flatnonzero(np.isin(row, r)) for r in rows]
    genes = torch.from_numpy(np.argsort(np.concatenate(items), kind="stable"))
    out: dict[str, Any] = {}
    for f in fields(EvidenceTokens):
        column = torch.cat([getattr(part, f.name) for part in parts])
        if f.name == "pair_row":
            column = torch.cat(
                [torch.from_numpy(r)[part.pair_row] for r, part in zip(rows, parts, strict=True)]
            )
        elif f.name in PER_GENE:
            column = column[genes]
        elif f.name not in PER_PAIR:
            column = column[order]
        out[f.name] = column
    return EvidenceTokens(**out)
