"""From the pooled difference and from the perturbed set to phenotypes, and one number from both.

Legend: b mutants · Σk perturbed genes of all · k of the largest set · d width · p phenotypes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.layers import ACTIVATIONS
from wildtype.nn.hyper_sagnn import PartnerAttention
from wildtype.nn.ragged import pad_ragged


class GlobalHead(nn.Module):
    """W₂ act(W₁ z + c₁) + c₂: a score per phenotype from what the mutant lost."""

    def __init__(self, config: DifferenceGNNConfig, phenotypes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.width, config.width)
        self.score = nn.Linear(config.width, phenotypes)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, z: Tensor) -> Tensor:
        """[..., d] -> [..., p]."""
        score: Tensor = self.score(self.activation(self.hidden(z)))
        return score


class LocalHead(nn.Module):
    """Mean over members of W (dynamic − static)² + c, zero for an empty set.

    static = act(V x + a) sees a member alone, dynamic is what self-excluding attention makes of it among the
    others, as in Hyper-SAGNN (Zhang, Zou & Ma, ICLR 2020).
    """

    def __init__(self, config: DifferenceGNNConfig, phenotypes: int) -> None:
        super().__init__()
        d = config.width
        self.static = nn.Linear(d, d)
        self.attention = nn.ModuleList(
            PartnerAttention(d, config.heads) for _ in range(config.attention_layers)
        )
        self.score = nn.Linear(d, phenotypes)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, members: Tensor, offsets: Tensor) -> Tensor:
        """Members [Σk, d] of sets with offsets int64 [b + 1] -> [b, p]."""
        x, mask = pad_ragged(members, offsets)
        dynamic = x
        for layer in self.attention:
            dynamic = layer(dynamic, mask)
        scores = self.score((dynamic - self.activation(self.static(x))) ** 2)
        total: Tensor = scores.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1)
        return total / mask.sum(1, keepdim=True).clamp(min=1)


class Gate(nn.Module):
    """A softmax over the two scores of a phenotype, from an MLP of both; the same MLP for every phenotype."""

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(2, config.width)
        self.score = nn.Linear(config.width, 2)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, overall: Tensor, local: Tensor) -> Tensor:
        """Two scores [b, p] -> [b, p]."""
        both = torch.stack([overall, local], -1)
        weights = self.score(self.activation(self.hidden(both))).softmax(-1)
        score: Tensor = (weights * both).sum(-1)
        return score
