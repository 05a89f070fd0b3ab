"""The layers of the difference GNN: preprocessor, masked GINs, first layer, masked pooling, and heads.

Legend: n nodes · R relations · d width · T mutants of a tile · b mutants · M changed rows of all mutants · Σk
perturbed genes of all · k of the largest set · p phenotypes.

States are mutant-major, [..., n, d]: those of one mutant lie together and fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.fused import compiled, gelu, gin
from wildtype.nn.dropout import Dropout
from wildtype.nn.graph_sage import GraphSage
from wildtype.nn.hyper_sagnn import PartnerAttention, mean_of_members
from wildtype.nn.message_passing import first_layer_rows
from wildtype.nn.ragged import pad_ragged, take_rows
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
        self.dropout = Dropout(config.dropout)

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
        self.dropout = Dropout(config.dropout)

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
            # The fused form draws no dropout mask and computes in float32 throughout.
            self.activation is gelu
            and not (self.training and self.dropout.p)
            and not torch.is_autocast_enabled(x.device.type)
            and compiled(x)
            and compiled(message)
            and compiled(self.epsilon)
        )


class RelationSage(nn.Module):
    """What a node becomes under one relation: act(LN(GraphSAGE(x, mean of the neighbours)))."""

    def __init__(self, config: DifferenceGNNConfig) -> None:
        super().__init__()
        self.sage = GraphSage(config.width)
        self.norm = nn.LayerNorm(config.width)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, message: Tensor) -> Tensor:
        """States and means of the neighbours' states, [..., d] each -> [..., d]."""
        return self.finish(self.sage.update(x, message))

    def finish(self, x: Tensor) -> Tensor:
        """Normalise and activate what the convolution returned, [..., d] -> [..., d]."""
        out: Tensor = self.dropout(self.activation(self.norm(x)))
        return out


class RelationLayer(nn.Module):
    """One layer: a convolution per relation, then an aggregation over relations and a LayerNorm."""

    def __init__(self, config: DifferenceGNNConfig, relations: int) -> None:
        super().__init__()
        self.means = config.convolution == "sage"
        convolution = RelationSage if self.means else RelationGIN
        # Checkpoints know the convolutions by this name, whichever they are.
        self.gins = nn.ModuleList(convolution(config) for _ in range(relations))
        self.aggregation = make_aggregation(
            config.aggregation,
            relations,
            config.width,
            bottleneck=config.narrow,
            heads=config.heads,
            activation=ACTIVATIONS[config.activation],
        )
        self.norm = nn.LayerNorm(config.width) if config.aggregation_norm else nn.Identity()

    def forward(self, x: Tensor, relations: Sequence[SparseOperator], gone: Tensor | None = None) -> Tensor:
        """States [..., n, d], zero at deleted nodes ``gone`` bool [..., n], to states [..., n, d].

        Deleted nodes send nothing, being zero; what they hold afterwards is for the caller to clear.
        """
        sent = self.sent(x, gone)
        return self.aggregate(
            [
                gin(x, self.received(neighbour_sums(self.operator(op), sent)))
                for gin, op in zip(self.gins, relations, strict=True)
            ]
        )

    # GIN sums the states of the neighbours. GraphSAGE takes their mean in the mutant's own graph: nodes send
    # [x ‖ 1], deleted ones zeros, so that one product gives the sums and the degrees that divide them.

    def sent(self, x: Tensor, gone: Tensor | None = None) -> Tensor:
        """Return what nodes send to their neighbours: [..., n, d], or [..., n, d + 1] for means."""
        if not self.means:
            return x
        ones = x.new_ones(x.shape[:-1]) if gone is None else (~gone).to(x.dtype)
        return torch.cat([x, ones.unsqueeze(-1)], -1)

    def received(self, sums: Tensor) -> Tensor:
        """Return the messages [..., d] that the sums over neighbours of what is `sent` make."""
        return sums[..., :-1] / sums[..., -1:].clamp(min=1) if self.means else sums

    def operator(self, op: SparseOperator) -> SparseOperator:
        """Return the operator that messages pass along: weights of edges count in sums, not in means."""
        return op.pattern() if self.means else op

    def aggregate(self, states: Sequence[Tensor]) -> Tensor:
        """One state per relation, R times [..., d] -> [..., d]."""
        out: Tensor = self.norm(self.aggregation(states))
        return out


def neighbour_sums(op: SparseOperator, x: Tensor) -> Tensor:
    """A x for every mutant: [..., n, d] -> [..., n, d], computed on the layout as it lies."""
    if x.ndim == 2:
        return op @ x
    # messages of mutant b = A (keep_b ∘ X_b): one adjacency serves all mutants, and deleted senders are zero.
    return (op @ x.transpose(0, 1)).transpose(0, 1)


# The first layer of a mutant. All mutants enter it with the same states x, and removing S changes the message
# of a gene only where it has a neighbour in S: A (keep ∘ x) = A x − A[:, S] x[S]. That is one gene in fifty
# per relation, on real and random graphs of yeast's size. Only those rows pass the relation's GIN again, only
# rows changed under any relation are aggregated again, and all others are the wild type's.


@dataclass(slots=True)
class FirstLayer:
    """What the wild type's first layer leaves for the mutants.

    Attributes
    ----------
    inputs : [n, d]
        States that enter the layer.
    sums, states : R times [n, d]
        Per relation, sums over neighbours of what they send (a column more for means), and the states made
        of them.
    output : [n, d]
        The layer's result.
    """

    inputs: Tensor
    sums: tuple[Tensor, ...]
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
    n, sent = len(first.inputs), layer.sent(first.inputs)
    found = []
    for part, op, sums in zip(layer.gins, relations, first.sums, strict=True):
        rows = first_layer_rows(layer.operator(op), sent, gene, offsets, shared=sums)
        states = part(take_rows(first.inputs, rows.node), layer.received(rows.own))
        found.append(ChangedRows(rows.changed, states))
    # A gene changed under one relation is aggregated again over all of them. unique() sorts, as the searches
    # for rows below and by the caller require.
    keys = torch.unique(torch.cat([rows.keys for rows in found]))
    genes = keys % n
    states = [
        # The wild type's states of these genes, overwritten where this relation changed them.
        take_rows(whole, genes).index_copy(0, torch.searchsorted(keys, rows.keys), rows.states)
        for whole, rows in zip(first.states, found, strict=True)
    ]
    return ChangedRows(keys, layer.aggregate(states))


def encode_first_layer(layer: RelationLayer, x: Tensor, relations: Sequence[SparseOperator]) -> FirstLayer:
    """Pass the wild type [n, d] through the first layer, and keep what mutants share."""
    sent = layer.sent(x)
    sums = tuple(layer.operator(op) @ sent for op in relations)
    states = tuple(gin(x, layer.received(total)) for gin, total in zip(layer.gins, sums, strict=True))
    return FirstLayer(x, sums, states, layer.aggregate(states))


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
            # The lowest finite number, not −inf: with every gene deleted, softmax of −inf would be NaN. The
            # second mask then makes all weights zero.
            weights = logits.masked_fill(gone, torch.finfo(logits.dtype).min).softmax(-1)
            weights = weights.masked_fill(gone, 0.0)
        return (weights.unsqueeze(-2) @ self.value(x)).squeeze(-2)


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
        gaps, mask = self._gaps(members, offsets)
        # Padding is cleared after the score, whose bias would otherwise count once per padded member.
        return mean_of_members(self.score(gaps), mask)

    def latent(self, members: Tensor, offsets: Tensor) -> Tensor:
        """Mean over members of (dynamic − static)² [b, d]: the scores are one linear map of it."""
        return mean_of_members(*self._gaps(members, offsets))

    def _gaps(self, members: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        x, mask = pad_ragged(members, offsets)
        dynamic = x
        for layer in self.attention:
            dynamic = layer(dynamic, mask)
        return (dynamic - self.activation(self.static(x))) ** 2, mask


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


def initialise(module: nn.Module) -> None:
    """Draw the weights of every Linear by Kaiming's normal rule (fan out, ReLU gain); biases are zero.

    Source: He, Zhang, Ren & Sun, "Delving deep into rectifiers", ICCV 2015.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
