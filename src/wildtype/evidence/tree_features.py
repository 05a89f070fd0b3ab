"""`EvidenceFeatures`: evidence of a batch as columns of numbers for trees, without parameters.

Means over tokens are weighted by the similarity of the exchanged genes, one column per channel; NaN stands
where there is nothing to average, which trees take as a value of its own.

Legend: b mutants · Σk their genes · t, u tokens one and two edits away · c channels of similarity · p
phenotypes · i traits per gene · f features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wildtype.evidence.edits import ADDED, REMOVED, REPLACED
from wildtype.mutants import Kind
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens


class EvidenceFeatures:
    """Features of a batch: ``shared`` by all phenotypes, and from the ``labels`` of one.

    Parameters
    ----------
    mutants : MutantBatch
        With evidence.
    traits : float [n, i]
        Of every gene.
    conditions : int
        Number of conditions that there are.
    """

    def __init__(self, mutants: MutantBatch, traits: Tensor, conditions: int) -> None:
        assert mutants.evidence is not None
        self.tokens: EvidenceTokens = mutants.evidence
        self.b, self.offsets, self.conditions = len(mutants), mutants.offsets, conditions
        self.row = torch.repeat_interleave(mutants.offsets.diff())
        tokens = self.tokens
        self.one_weight = _weights(tokens.one.similarity, tokens.one.mask & (tokens.one.edit == REPLACED))
        self.two_weight = _weights_of_two(tokens.two.similarity, tokens.two.mask)
        self.near_weight = _weights(tokens.neighbours.similarity, tokens.neighbours.mask)
        self.item = self._exchanged(mutants, tokens.one.old)
        self.shared = self._shared(mutants, traits)

    @staticmethod
    def _exchanged(mutants: MutantBatch, old: Tensor) -> Tensor:
        """Return the gene of a query that each token exchanges [b, t] as a position among all genes."""
        first, last = mutants.offsets[:-1, None], mutants.offsets[1:, None]
        largest = int((last - first).max()) if len(mutants) else 0
        if not largest:
            return old
        at = first + torch.arange(largest, device=old.device)
        genes = mutants.gene[at.clamp(max=len(mutants.gene) - 1)].masked_fill(at >= last, -2)  # -1: none
        return first + (old.unsqueeze(-1) == genes.unsqueeze(1)).int().argmax(-1)

    def _shared(self, mutants: MutantBatch, traits: Tensor) -> Tensor:
        order = mutants.offsets.diff().float()[:, None]
        kinds = torch.nn.functional.one_hot(mutants.kind.long(), len(Kind)).float()
        parts = [
            order,
            mutants.condition.float()[:, None],
            self._sum(kinds, self.row),
            *self._reduced(traits[mutants.gene], self.row),
        ]
        if mutants.dose is not None:
            parts.append(self._sum(torch.nan_to_num(mutants.dose.float())[:, None], self.row))
        pairs = torch.cat([self.tokens.pairs.similarity, self.tokens.pairs.traits], dim=1)
        low, high, _ = self._reduced(pairs, self.tokens.pairs.row)
        parts += [low, high, self._mean(pairs, self.tokens.pairs.row)]
        return torch.cat(parts, dim=1)

    def labels(self, phenotype: int) -> Tensor:
        """Return the columns [b, ·] from the measurements of one phenotype."""
        t, p = self.tokens, self.tokens.one.value.shape[-1]
        own = t.genes.statistics[:, phenotype::p]
        near, _ = _weighted(self.near_weight, t.neighbours.statistics[..., phenotype], t.neighbours.mask)
        near = torch.nan_to_num(near)
        parts = [*self._reduced(own, self.row), self._sum(t.genes.additive[:, [phenotype]], self.row)]
        parts += [*self._reduced(near, self.row), self._mean(near, self.row)]
        value, known = t.one.value[..., phenotype], t.one.known[..., phenotype] & t.one.mask
        parts += _weighted(self.one_weight, value, known)
        if self.conditions > 1:
            parts.append(_weighted(self.one_weight[..., -2:], value, known * t.one.same_condition)[0])
        # Weighted means with each gene of the query exchanged in turn, then the smallest and the largest.
        item = self.item.clamp(min=0, max=max(len(t.genes.statistics) - 1, 0))
        weight = self.one_weight[..., -2] * known
        sums = torch.stack([weight * value, weight], dim=-1).flatten(0, 1)
        sides = (
            sums.new_zeros(len(t.genes.statistics), 2).index_add(0, item.flatten(), sums)
            if len(t.genes.statistics)
            else sums[:0]
        )
        parts += self._reduced(_ratio(sides[:, :1], sides[:, 1:]), self.row)[:2]
        for edit in (REPLACED, REMOVED, ADDED):
            there = known & (t.one.edit == edit)
            number = there.sum(1, keepdim=True).float()
            parts += [
                number,
                _ratio((value * there).sum(1, keepdim=True), number),
                _finite(value.masked_fill(~there, torch.inf).amin(1, keepdim=True)),
                _finite(value.masked_fill(~there, -torch.inf).amax(1, keepdim=True)),
            ]
        value, known = t.two.value[..., phenotype], t.two.known[..., phenotype]
        parts += [*_weighted(self.two_weight, value, known), t.two.pooled[:, phenotype::p]]
        return torch.cat(parts, dim=1)

    def _sum(self, x: Tensor, row: Tensor) -> Tensor:
        return x.new_zeros(self.b, x.shape[1]).index_add(0, row, x)

    def _mean(self, x: Tensor, row: Tensor) -> Tensor:
        return self._sum(x, row) / torch.bincount(row, minlength=self.b).clamp(min=1)[:, None]

    def _reduced(self, x: Tensor, row: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return smallest, largest (NaN: nothing known) and sum over the items of every mutant [b, ·]."""
        index = row[:, None].expand_as(x)
        known = ~x.isnan()
        low = x.new_full((self.b, x.shape[1]), torch.inf)
        low = low.scatter_reduce(0, index, x.masked_fill(~known, torch.inf), "amin")
        high = x.new_full((self.b, x.shape[1]), -torch.inf)
        high = high.scatter_reduce(0, index, x.masked_fill(~known, -torch.inf), "amax")
        return _finite(low), _finite(high), self._sum(torch.nan_to_num(x), row)


def _weights(alike: Tensor, there: Tensor) -> Tensor:
    """Return weights [.., c + 2] of tokens: similarity in every channel where it is above 0, its sum over
    channels, and the cube of the sum, which only the nearest genes have; 0 without a token.
    """
    # Written in place: with trees this is the largest tensor of a prediction, [b, t, c + 2].
    out = alike.new_empty(*alike.shape[:-1], alike.shape[-1] + 2)
    own, total = out[..., :-2], out[..., -2]
    torch.mul(alike, there.unsqueeze(-1), out=own).clamp_(min=0)
    torch.sum(own, -1, out=total)
    torch.pow(total, 3, out=out[..., -1])
    return out


def _weights_of_two(alike: Tensor, there: Tensor) -> Tensor:
    """Return weights [.., c + 1] of tokens [.., 2, c]: products of both similarities, and of their sums over
    channels; 0 without a token.
    """
    left, right = alike.clamp(min=0).unbind(-2)
    out = alike.new_empty(*there.shape, alike.shape[-1] + 1)
    torch.mul(left, right, out=out[..., :-1])
    torch.mul(left.sum(-1), right.sum(-1), out=out[..., -1])
    return out.mul_(there.unsqueeze(-1))


def _weighted(weight: Tensor, value: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Return means [b, c] of the known values [b, t] by weights [b, t, c], and the sums of these weights; the
    mean is NaN where all weights are 0.
    """
    known = known.to(weight)
    mass = torch.einsum("btc,bt->bc", weight, known)
    return _ratio(torch.einsum("btc,bt->bc", weight, value * known), mass), mass


def _ratio(total: Tensor, weight: Tensor) -> Tensor:
    return torch.where(weight > 1e-9, total / weight.clamp(min=1e-9), torch.nan)


def _finite(x: Tensor) -> Tensor:
    return x.masked_fill(x.isinf(), torch.nan)
