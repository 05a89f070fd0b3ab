"""A set scored by how far its members' states in company are from their states alone (Hyper-SAGNN).

Legend: B sets · Σk members in all · k members of the largest set · d width · h heads · p outputs.
mask [B, k], True = a member.

Source: Zhang, Zou & Ma, "Hyper-SAGNN: a self-attention based graph neural network for hypergraphs",
ICLR 2020, in the form of Zhang, Ma & Ma, "DANGO: predicting higher-order genetic interactions",
bioRxiv 2020.11.26.400739: residual attention with a ReZero scalar, a rectified static state, and biases.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.errors import ShapeError
from wildtype.nn.dropout import Dropout
from wildtype.nn.ragged import pad_ragged
from wildtype.nn.shapes import expect_shape

REZERO = 0.01


class PartnerAttention(nn.Module):
    """One residual layer: x_i + β · O(Σ_j α_ij V x_j), the sum over the other members j ≠ i of the set.

    A member without others keeps its state. All four maps have biases.

    Parameters
    ----------
    width
        d.
    heads
        h; must divide d.
    dropout
        On what is added to the state.
    """

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if width % heads:
            raise ShapeError(f"heads: received {heads}, expected a divisor of the width {width}")
        self.heads = heads
        self.query, self.key, self.value, self.output = (rectified_linear(width, width) for _ in range(4))
        self.beta = nn.Parameter(torch.tensor(REZERO))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Update members x [B, k, d] under mask bool [B, k]; what stands in the gaps does not matter."""
        partner = mask.unsqueeze(1) & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        blocked = ~partner.unsqueeze(1)
        q, k, v = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        logits = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(blocked, -torch.inf)
        alone = blocked.all(-1, keepdim=True)
        attention = logits.masked_fill(alone, 0.0).softmax(-1)
        change = self.output((attention @ v).transpose(1, 2).flatten(2))
        updated: Tensor = x + self.beta * self.dropout(change.masked_fill(alone.squeeze(1), 0.0))
        return updated


class HyperSagnn(nn.Module):
    """Outputs [B, p] of ragged sets: the mean over members of Linear((dynamic − static)²).

    static_i = ReLU(W x_i + b) sees a member alone, dynamic_i is what `layers` layers of `PartnerAttention`
    make of it. An empty set has outputs zero.

    Parameters
    ----------
    width, heads
        d and h; h must divide d.
    layers
        Attention layers.
    outputs
        p.
    dropout
        In every attention layer.
    """

    def __init__(
        self, width: int, heads: int, *, layers: int = 2, outputs: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.width = width
        self.static = rectified_linear(width, width)
        self.attention = nn.ModuleList(PartnerAttention(width, heads, dropout=dropout) for _ in range(layers))
        self.score = rectified_linear(width, outputs)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Score the sets with members x [Σk, d] and offsets int64 [B + 1]; ShapeError if they do not fit."""
        gaps, mask = self._gaps(x, offsets)
        return mean_of_members(self.score(gaps), mask)

    def latent(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Mean over the members of (dynamic − static)² [B, d]: the scores are one linear map of it."""
        return mean_of_members(*self._gaps(x, offsets))

    def _gaps(self, x: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """(dynamic − static)² of padded members [B, k, d], and their mask [B, k]."""
        expect_shape("x", x, "members", self.width)
        padded, mask = pad_ragged(x, offsets)
        dynamic = padded
        for layer in self.attention:
            dynamic = layer(dynamic, mask)
        return (dynamic - self.static(padded).relu()) ** 2, mask


def mean_of_members(x: Tensor, mask: Tensor) -> Tensor:
    """Mean of [B, k, ·] over members; 0 for an empty set."""
    sizes = mask.sum(1, keepdim=True).clamp(min=1)
    means: Tensor = x.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1) / sizes
    return means


def rectified_linear(width_in: int, width_out: int) -> nn.Linear:
    """A linear map with Xavier-uniform weights of the gain that suits ReLU, and bias zero."""
    layer = nn.Linear(width_in, width_out)
    nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("relu"))
    nn.init.zeros_(layer.bias)
    return layer
