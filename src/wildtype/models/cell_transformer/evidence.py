"""`EvidenceReadout`: measurements of similar mutants as a vector per mutant, for the output of the head.

Legend: b mutants · Σk their genes · n genes · t tokens · c channels of similarity · d width · p phenotypes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.evidence.edits import EDITS
from wildtype.models.interface import WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import (
    ROW_BLOCK,
    EvidenceTokens,
    Neighbours,
    OneEdit,
    TwoEdits,
    without_gaps,
)
from wildtype.nn.evidence_attention import EvidenceAttention
from wildtype.nn.ragged import segment_sum


class EvidenceReadout(nn.Module):
    """Pools the evidence of a batch: tokens one edit away, two edits away, and neighbours of each gene.

    Parameters
    ----------
    width, channels, phenotypes : int
        d, c and p.
    heads, value, hidden : int
        Heads, width of a head's value, hidden width of each attention.
    token_dropout : float
        Share of tokens that are left out in training.
    """

    def __init__(
        self,
        width: int,
        channels: int,
        phenotypes: int,
        *,
        heads: int = 4,
        value: int = 12,
        hidden: int = 40,
        dropout: float = 0.1,
        token_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        p = phenotypes
        self.token_dropout, self.hidden = token_dropout, hidden
        self.edits = len(EDITS)

        def attention(features: int) -> EvidenceAttention:
            return EvidenceAttention(features, p, heads=heads, width=value, hidden=hidden, dropout=dropout)

        # A token's features: similarity c, value p, known p, statistics of its genes 3 p, same condition 1,
        # kind of edit.
        self.one = attention(channels + 5 * p + 1 + self.edits)
        self.two = attention(2 * channels + 2 * p + 1)
        self.near = attention(channels + 3 * p)
        self.content = nn.Linear(width, hidden, bias=False)
        self.gene = nn.Sequential(nn.Linear(3 * p + self.near.width_out, hidden), nn.GELU())
        self.width_out = self.one.width_out + self.two.width_out + 2 * hidden + 5 * p

    def forward(self, wild_type: WildType, mutants: MutantBatch, tokens: EvidenceTokens) -> Tensor:
        """Return the pooled evidence [b, width_out] of mutants."""
        h = wild_type.genes
        if h.device.type == "cpu" and not torch.is_grad_enabled() and not self.training:
            one, two = self._pooled(h, tokens)
            gene = self._described(wild_type, mutants.gene, tokens)
        else:
            features, content = self._one(h, tokens.one)
            one = self.one(features, tokens.one.value, self._dropped(tokens.one.mask), content)
            two = self.two(self._two(h, tokens.two), tokens.two.value, self._dropped(tokens.two.mask))
            near = self.near(*self._near(tokens.neighbours), self._dropped(tokens.neighbours.mask))
            gene = self.gene(torch.cat([tokens.genes.statistics, near], dim=-1))
        # The mean over pairs of elementwise products, Σ_{i<j} g_i g_j = ((Σ g)² - Σ g²) / 2 (Rendle 2010).
        total = segment_sum(gene, mutants.offsets)
        count = (mutants.offsets[1:] - mutants.offsets[:-1]).to(h.dtype)[:, None]
        pairs = (total**2 - segment_sum(gene**2, mutants.offsets)) / (count * (count - 1)).clamp(min=1)
        return torch.cat(
            [
                one,
                two,
                tokens.two.pooled,
                total,
                pairs,
                segment_sum(tokens.genes.statistics, mutants.offsets),
            ],
            dim=-1,
        )

    def weights(self, h: Tensor, tokens: EvidenceTokens) -> tuple[Tensor, Tensor]:
        """Return the weights of tokens one edit away [b, t, heads] and two edits away [b, u, heads]."""
        features, content = self._one(h, tokens.one)
        return (
            self.one.weights(features, tokens.one.mask, content),
            self.two.weights(self._two(h, tokens.two), tokens.two.mask),
        )

    def _pooled(self, h: Tensor, tokens: EvidenceTokens) -> tuple[Tensor, Tensor]:
        """Return what is pooled of the tokens one and two edits away, without the gaps between them.

        Of 32 places for tokens one edit away, a screen of yeast's listed pairs fills 11.
        """
        one, of_one = without_gaps(tokens.one)
        features, content = self._one(h, one)
        two, of_two = without_gaps(tokens.two)
        return (
            self.one.pool(features, one.value, of_one, content),
            self.two.pool(self._two(h, two), two.value, of_two),
        )

    def _described(self, wild_type: WildType, gene: Tensor, tokens: EvidenceTokens) -> Tensor:
        """Return what was measured of genes [Σk] and of their neighbours [Σk, hidden].

        It depends on no mutant: the wild type keeps it, and a screen asks about each gene thousands of times.
        """
        n, part = len(wild_type.genes), tokens.genes.part
        out = wild_type.genes.new_empty((len(gene), self.hidden))
        for number in torch.unique(part).tolist():
            key = number, out.dtype  # a copy of the wild type in double precision shares what is kept
            if key not in wild_type.described:
                wild_type.described[key] = out.new_empty((n, self.hidden)), torch.zeros(n, dtype=torch.bool)
            found, there = wild_type.described[key]
            rows = (part == number).nonzero()[:, 0]
            genes = gene[rows]
            if not there[genes].all():
                missing = rows[~there[genes]]
                of_gene = gene.new_full((n,), -1).index_copy_(0, gene[missing], missing)
                new = (of_gene >= 0).nonzero()[:, 0]
                # Two threads that miss a gene write the same bits.
                found[new] = self._of_genes(of_gene[new], tokens).to(found)  # half precision, under autocast
                there[new] = True
            out.index_copy_(0, rows, found[genes])
        return out

    def _of_genes(self, rows: Tensor, tokens: EvidenceTokens) -> Tensor:
        near, of_near = without_gaps(tokens.neighbours.map(lambda x: x[rows]))
        pooled = self.near.pool(*self._near(near), of_near)
        joined = torch.cat([tokens.genes.statistics[rows], pooled], dim=-1)
        # Whole blocks of rows: see `without_gaps`.
        padded = nn.functional.pad(joined, (0, 0, 0, -len(joined) % ROW_BLOCK))
        found: Tensor = self.gene(padded).narrow(0, 0, len(rows))
        return found

    def _one(self, h: Tensor, one: OneEdit) -> tuple[Tensor, Tensor]:
        """Return features and content of the tokens one edit away."""
        # The product of the states of both genes, for replacements only: others have no second gene.
        c = self.content(h)
        new, old = one.new.clamp(min=0), one.old.clamp(min=0)
        content = nn.functional.embedding(new, c) * nn.functional.embedding(old, c)
        content = content * (one.edit == 0).unsqueeze(-1)
        kind = nn.functional.one_hot(one.edit, self.edits).to(h.dtype)
        known, same = one.known.to(h.dtype), one.same_condition.unsqueeze(-1)
        features = torch.cat([one.similarity, one.value, known, one.statistics, same, kind], dim=-1)
        return features, content

    @staticmethod
    def _two(h: Tensor, two: TwoEdits) -> Tensor:
        """Return features of the tokens two edits away."""
        # Symmetric in both replacements: they have no order.
        left, right = two.similarity.unbind(-2)
        known, same = two.known.to(h.dtype), two.same_condition.unsqueeze(-1)
        return torch.cat([left + right, left * right, two.value, known, same], dim=-1)

    @staticmethod
    def _near(near: Neighbours) -> tuple[Tensor, Tensor]:
        """Return features and values of the neighbours of each gene."""
        phenotypes = near.statistics.shape[-1] // 3
        features = torch.cat([near.similarity, near.statistics], dim=-1)
        return features, near.statistics[..., :phenotypes]

    def _dropped(self, mask: Tensor) -> Tensor:
        if not (self.training and self.token_dropout):
            return mask
        # A token is dropped as a whole: prediction meets mutants with fewer measured relatives than training
        # had.
        return mask & (torch.rand(mask.shape, device=mask.device) >= self.token_dropout)
