"""`EvidenceReadout`: measurements of similar mutants as a vector per mutant, for the output of the head.

Legend: b mutants · Σk their genes · n genes · t tokens · c channels of similarity · d width · p phenotypes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.evidence.kernels import EDITS
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
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
        self.token_dropout = token_dropout
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

    def forward(self, h: Tensor, mutants: MutantBatch, tokens: EvidenceTokens) -> Tensor:
        """Return the pooled evidence [b, width_out] of mutants over gene states h [n, d]."""
        features, content = self._one(h, tokens)
        one = self.one(features, tokens.one.value, self._dropped(tokens.one.mask), content)
        two = self.two(self._two(h, tokens), tokens.two.value, self._dropped(tokens.two.mask))
        p = tokens.one.value.shape[-1]
        near = self.near(
            torch.cat([tokens.neighbours.similarity, tokens.neighbours.statistics], dim=-1),
            tokens.neighbours.statistics[..., :p],
            self._dropped(tokens.neighbours.mask),
        )
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
        features, content = self._one(h, tokens)
        return (
            self.one.weights(features, tokens.one.mask, content),
            self.two.weights(self._two(h, tokens), tokens.two.mask),
        )

    def _one(self, h: Tensor, tokens: EvidenceTokens) -> tuple[Tensor, Tensor]:
        """Return features and content of the tokens one edit away."""
        # The product of the states of both genes, for replacements only: others have no second gene.
        c = self.content(h)
        new, old = tokens.one.new.clamp(min=0), tokens.one.old.clamp(min=0)
        content = nn.functional.embedding(new, c) * nn.functional.embedding(old, c)
        content = content * (tokens.one.edit == 0).unsqueeze(-1)
        kind = nn.functional.one_hot(tokens.one.edit, self.edits).to(h.dtype)
        same = tokens.one.same_condition.unsqueeze(-1)
        features = torch.cat(
            [
                tokens.one.similarity,
                tokens.one.value,
                tokens.one.known.to(h.dtype),
                tokens.one.statistics,
                same,
                kind,
            ],
            dim=-1,
        )
        return features, content

    @staticmethod
    def _two(h: Tensor, tokens: EvidenceTokens) -> Tensor:
        """Return features of the tokens two edits away."""
        # Symmetric in both replacements: they have no order.
        left, right = tokens.two.similarity.unbind(-2)
        return torch.cat(
            [
                left + right,
                left * right,
                tokens.two.value,
                tokens.two.known.to(h.dtype),
                tokens.two.same_condition.unsqueeze(-1),
            ],
            dim=-1,
        )

    def _dropped(self, mask: Tensor) -> Tensor:
        if not (self.training and self.token_dropout):
            return mask
        # A token is dropped as a whole: prediction meets mutants with fewer measured relatives than training
        # had.
        return mask & (torch.rand(mask.shape, device=mask.device) >= self.token_dropout)
