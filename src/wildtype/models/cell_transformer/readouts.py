"""Relations among the perturbed genes S, as a vector for the output of the head.

Legend: b mutants · s pairs of genes within them · n genes · d width · c channels of similarity · r
regularised heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.models.interface import WildType
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.nn.dropout import Dropout

HIDDEN = 64


class RelationReadout(nn.Module):
    """Reads every pair of genes of S: traits, weights and similarities, logits of regularised heads, product.

    Pairs are summed and averaged, so that a set of any order has one vector.

    Parameters
    ----------
    width, channels, traits, regularised : int
        d, c, the number of traits of a gene, and r.
    width_out : int
        Of each of the two halves of the result.
    """

    def __init__(
        self,
        width: int,
        channels: int,
        traits: int,
        regularised: int,
        *,
        width_out: int = 32,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.project = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(channels + 3 * traits + width, HIDDEN)
        # Apart from the others, since another organism may have other relations.
        # A layer without bias: with other relations it can be replaced or omitted, and the rest is kept.
        self.logits = nn.Linear(2 * regularised, HIDDEN, bias=False) if regularised else None
        self.out = nn.Sequential(nn.GELU(), Dropout(dropout), nn.Linear(HIDDEN, width_out))
        self.width_out = 2 * width_out

    def forward(self, wild_type: WildType, mutants: int, tokens: EvidenceTokens) -> Tensor:
        """Return the readout [b, width_out] of ``mutants`` = b sets; zero for a set without pairs."""
        out = self.of_pairs(
            wild_type, tokens.pairs.left, tokens.pairs.right, tokens.pairs.similarity, tokens.pairs.traits
        )
        total = out.new_zeros(mutants, out.shape[-1]).index_add(0, tokens.pairs.row, out)
        count = torch.bincount(tokens.pairs.row, minlength=mutants).clamp(min=1).to(out.dtype)[:, None]
        # The mean does not depend on the number of pairs. Σ / √P grows with it as a sum of P independent
        # terms does, so the output can tell orders apart.
        return torch.cat([total / count, total / count.sqrt()], dim=-1)

    def of_pairs(
        self, wild_type: WildType, left: Tensor, right: Tensor, alike: Tensor, traits: Tensor
    ) -> Tensor:
        """Return the readout [s, width_out / 2] of pairs of genes left and right [s].

        ``alike`` [s, c] and ``traits`` [s, 3 k] are as in `EvidenceTokens`.
        """
        g = self.project(wild_type.genes)
        # A product is symmetric, as an interaction is: the order of the two genes has no meaning.
        product = nn.functional.embedding(left, g) * nn.functional.embedding(right, g)
        inner = self.pair(torch.cat([alike, traits, product], dim=-1))
        if self.logits is not None and wild_type.regularised is not None:
            # Both directions, in an order that does not depend on which gene stands first.
            q, k = wild_type.regularised
            forth, back = _logits(q, k, left, right), _logits(q, k, right, left)
            inner = inner + self.logits(torch.cat([forth + back, (forth - back).abs()], dim=-1))
        out: Tensor = self.out(inner)
        return out


def _logits(q: Tensor, k: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Return attention logits [s, r] of genes ``row`` for genes ``column``."""
    shape = (len(row), *q.shape[1:])
    chosen = nn.functional.embedding(row, q.flatten(1)).view(shape)
    return (chosen * nn.functional.embedding(column, k.flatten(1)).view(shape)).sum(-1)
