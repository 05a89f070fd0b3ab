"""The layers of the difference GNN: a preprocessor, one masked GIN per relation, and a masked pooling.

Legend: n nodes · R relations · d width · T mutants of a tile.

States are mutant-major, [..., n, d]: those of one mutant lie together and fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.fused import compiled, gelu, gin
from wildtype.nn.relation_aggregation import make_aggregation
from wildtype.nn.sparse import SparseOperator

Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": F.relu, "silu": F.silu}


class Preprocessor(nn.Module):
    """Twice Linear, LayerNorm, activation, dropout; both times the same LayerNorm."""

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        d = config.width
        self.linears = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.norm = nn.LayerNorm(d)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d] -> [..., d]."""
        for linear in self.linears:
            x = self.dropout(self.activation(self.norm(linear(x))))
        return x


class RelationGIN(nn.Module):
    """What a node becomes under one relation: act(LN(MLP((1 + ε) x + message))), ε learned, 0 at first.

    Source: Xu, Hu, Leskovec & Jegelka, "How powerful are graph neural networks?", ICLR 2019, eq. 4.1.
    """

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        d = config.width
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.linears = nn.ModuleList(nn.Linear(d, d) for _ in range(config.gin_layers))
        self.norm = nn.LayerNorm(d)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, message: Tensor) -> Tensor:
        """States and summed states of the neighbours, [..., d] each -> [..., d]."""
        if self._fits(x, message):
            return gin(x, message, self.epsilon, list(self.linears), self.norm)
        x = (1 + self.epsilon) * x + message
        for i, linear in enumerate(self.linears):
            x = linear(self.dropout(self.activation(x)) if i else x)
        out: Tensor = self.dropout(self.activation(self.norm(x)))
        return out

    def _fits(self, x: Tensor, message: Tensor) -> bool:
        """Whether the one-step form computes the same."""
        return (
            self.activation is gelu
            and not (self.training and self.dropout.p)
            and not torch.is_autocast_enabled(x.device.type)
            and compiled(x)
            and compiled(message)
            and compiled(self.epsilon)
        )


class RelationLayer(nn.Module):
    """One layer: a GIN per relation, then an aggregation over relations and a LayerNorm."""

    def __init__(self, config: DifferenceGNNConfig, relations: int) -> None:
        super().__init__()
        self.gins = nn.ModuleList(RelationGIN(config) for _ in range(relations))
        self.aggregation = make_aggregation(
            config.aggregation,
            relations,
            config.width,
            bottleneck=config.narrow,
            heads=config.heads,
            activation=ACTIVATIONS[config.activation],
        )
        self.norm = nn.LayerNorm(config.width) if config.aggregation_norm else nn.Identity()

    def forward(self, x: Tensor, relations: Sequence[SparseOperator]) -> Tensor:
        """States [T, n, d], zero at deleted nodes, to states [T, n, d].

        Deleted nodes send nothing, being zero; what they hold afterwards is for the caller to clear.
        """
        return self.aggregate(
            [gin(x, neighbour_sums(op, x)) for gin, op in zip(self.gins, relations, strict=True)]
        )

    def aggregate(self, states: Sequence[Tensor]) -> Tensor:
        """One state per relation, R times [..., d] -> [..., d]."""
        out: Tensor = self.norm(self.aggregation(states))
        return out


def neighbour_sums(op: SparseOperator, x: Tensor) -> Tensor:
    """A x for every mutant: [..., n, d] -> [..., n, d], computed on the layout as it lies."""
    if x.ndim == 2:
        return op @ x
    return (op @ x.transpose(0, 1)).transpose(0, 1)


class AttentionalPooling(nn.Module):
    """Σ_i softmax_i(gate(x_i)) act(W x_i + c) over the nodes that are there; zero where none is."""

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        d = config.width
        self.gate_hidden = nn.Linear(d, config.narrow)
        self.gate_score = nn.Linear(config.narrow, 1)
        self.transform = nn.Linear(d, d)
        self.activation = ACTIVATIONS[config.activation]

    def gate(self, x: Tensor) -> Tensor:
        """Logit of every node: [..., d] -> [..., 1]."""
        logit: Tensor = self.gate_score(self.activation(self.gate_hidden(x)))
        return logit

    def value(self, x: Tensor) -> Tensor:
        """What every node adds: [..., d] -> [..., d]."""
        return self.activation(self.transform(x))

    def forward(self, x: Tensor, gone: Tensor | None = None) -> Tensor:
        """States [..., n, d], and deleted nodes bool [..., n] -> [..., d]."""
        logits = self.gate(x).squeeze(-1)
        if gone is None:
            weights = logits.softmax(-1)
        else:
            weights = logits.masked_fill(gone, torch.finfo(logits.dtype).min).softmax(-1)
            weights = weights.masked_fill(gone, 0.0)
        return (weights.unsqueeze(-2) @ self.value(x)).squeeze(-2)


def initialise(module: nn.Module) -> None:
    """Draw the weights of every Linear by Kaiming's normal rule (fan out, ReLU gain); biases are zero.

    Source: He, Zhang, Ren & Sun, "Delving deep into rectifiers", ICCV 2015.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
