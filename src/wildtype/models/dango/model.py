"""`Dango`: networks embed the genes once per step, then every set of genes is scored by attention within it.

Legend: n genes · d width · b mutants · p phenotypes · r networks.

Source: Zhang, Ma & Ma, "DANGO: predicting higher-order genetic interactions", bioRxiv 2020.11.26.400739.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from wildtype.errors import ConfigError, ShapeError
from wildtype.models.dango.config import DangoConfig, chosen_relations, reconstruction_share
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.models.registry import check
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.graph_sage import GraphSage
from wildtype.nn.hyper_sagnn import HyperSagnn
from wildtype.nn.ragged import segment_ids, take_rows
from wildtype.nn.reconstruction import reconstruction_loss
from wildtype.nn.sparse import SparseOperator
from wildtype.phases import phase


class GeneNetwork(nn.Module):
    """One network: two layers of message passing, and a linear layer that reconstructs the adjacency.

    Parameters
    ----------
    genes, width : int
        n and d.
    zeros : float
        Weight of pairs without an edge in the reconstruction.
    """

    def __init__(self, genes: int, width: int, zeros: float) -> None:
        super().__init__()
        self.zeros = zeros
        self.first, self.second = GraphSage(width), GraphSage(width)
        self.reconstruct = nn.Linear(width, genes)

    def forward(self, x: Tensor, op: SparseOperator) -> Tensor:
        """States [n, d] of the genes in this network, from their embeddings x [n, d]."""
        return self.layers(x, op)[-1]

    def layers(self, x: Tensor, op: SparseOperator) -> tuple[Tensor, Tensor]:
        """States [n, d] after each of the two layers."""
        first = self.first(x, op).relu()
        return first, self.second(first, op).relu()

    def loss(self, states: Tensor, op: SparseOperator) -> Tensor:
        """Mean squared error of the reconstructed adjacency over all n² pairs, zeros at their weight."""
        layer = self.reconstruct
        return reconstruction_loss(states, layer.weight, layer.bias, op, zeros=self.zeros)


class MetaEmbedding(nn.Module):
    """Weighted mean of a gene's states in all networks; a small MLP computes the weight of each state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 1))

    def forward(self, states: Tensor) -> Tensor:
        """States [r, n, d] -> [n, d]."""
        # Over networks, gene by gene: a gene may rely on one network and its neighbour on another.
        shares = self.score(states).softmax(0)
        return torch.sum(shares * states, 0)


class Dango(Model):
    """DANGO over n genes.

    It sees which genes are perturbed, not how: kinds and doses make no difference. Genes have a learned
    embedding; gene features are not used. Two extensions: p phenotypes are p outputs of the last linear
    layer, and where there is more than one condition, a condition has a learned embedding, zero at the start,
    that is added to the state of every perturbed gene.

    Parameters
    ----------
    config : DangoConfig
        Settings.
    genes, features : int
        Number of genes n and of features per gene; the features are ignored.
    phenotypes, conditions : int
        Number of outputs p and of conditions.
    relations : sequence of str
        Relations of the organism that have edges, in order.

    Raises
    ------
    ConfigError
        If settings do not fit each other or the relations.
    """

    needs = ("relations",)
    # The head compares a gene among its partners with the gene alone: one gene has no partner.
    least_perturbed = 2

    def __init__(
        self,
        config: DangoConfig,
        *,
        genes: int,
        features: int,
        phenotypes: int,
        conditions: int = 1,
        relations: Sequence[str] = (),
    ) -> None:
        super().__init__()
        check(config)
        chosen = chosen_relations(config, relations)
        self.config = config
        self.genes = genes
        self.relations = tuple(chosen)
        self.table = nn.Embedding(genes, config.width)
        nn.init.normal_(self.table.weight, std=0.1)
        self.networks = nn.ModuleList(GeneNetwork(genes, config.width, zeros) for zeros in chosen.values())
        self.meta = MetaEmbedding(config.width)
        self.condition = nn.Embedding(conditions, config.width) if conditions > 1 else None
        if self.condition is not None:
            nn.init.zeros_(self.condition.weight)
        self.head = HyperSagnn(
            config.width, config.heads, layers=config.layers_head, outputs=phenotypes, dropout=config.dropout
        )
        # α must exist before the first epoch, also in a model that only predicts.
        self.set_epoch(0)

    @classmethod
    def named_relations(cls, config: DangoConfig) -> list[str]:
        """Return the relations that these settings name, each once."""
        return list(dict.fromkeys([*config.relations, *config.zeros]))

    def set_epoch(self, epoch: int) -> None:
        """Set the weights of the losses for an epoch (from 0), by the schedule."""
        self.reconstruction_share = reconstruction_share(self.config.schedule, epoch, self.config.transition)

    def unused_parameters(self) -> Iterator[nn.Parameter]:
        """Yield what reconstructs the networks, once the schedule gives that no weight."""
        yield from super().unused_parameters()
        if self.reconstruction_share == 0:
            for network in self.networks:
                assert isinstance(network, GeneNetwork)
                yield from network.reconstruct.parameters()

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Embed the genes: once per step, whatever the number of mutants. ``cls`` is the mean of all genes.

        Weights of losses are there in training mode only, and reconstruction losses only where, beyond that,
        the schedule gives them weight.

        Raises
        ------
        ShapeError
            If the organism has another number of genes than the model was made for.
        ConfigError
            If it lacks one of the model's relations.
        """
        if organism.genes != self.genes:
            raise ShapeError(f"the organism has {organism.genes} genes, expected {self.genes}")
        missing = [name for name in self.relations if name not in organism.relations]
        if missing:
            known = ", ".join(organism.relations) or "none"
            raise ConfigError(
                f"the organism has no operator for relation {missing[0]!r} of this model; it has: {known}"
            )
        share = self.reconstruction_share
        states, losses = [], {}
        for name, network in zip(self.relations, self.networks, strict=True):
            assert isinstance(network, GeneNetwork)
            op = organism.relations[name]
            states.append(network(self.table.weight, op))
            # n² L = λ Σ (ĤᵀĤ ∘ ŴᵀŴ) + Σ_edges [(R − A)² − λ R²], in O(n d² + e d) (docs/mathematics.md);
            # skipped once its weight is 0.
            if self.training and share > 0:
                with phase("graph prior"):
                    losses[f"reconstruction/{name}"] = network.loss(states[-1], op)
        genes = self.meta(torch.stack(states))
        # (1 − α) L_data + α mean_r L_r: α is shared equally by the networks, whatever their number.
        weights = {"data": 1 - share} | dict.fromkeys(losses, share / len(states)) if self.training else {}
        return WildType(genes.mean(0), genes, losses, weights)

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """Return the states of the genes [n, d]: embedded, in every network after each layer, and merged."""
        found, last = {"table": self.table.weight.detach()}, []
        for name, network in zip(self.relations, self.networks, strict=True):
            assert isinstance(network, GeneNetwork)
            layers = network.layers(self.table.weight, organism.relations[name])
            last.append(layers[-1])
            found |= {f"{name} layer {i}": x.detach() for i, x in enumerate(layers, 1)}
        return found | {"meta": self.meta(torch.stack(last)).detach()}

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of mutants, in units of the scaled labels.

        The prediction is 0 for a mutant without perturbed genes.
        """
        return Prediction(self.head(self._members(wild_type, mutants), mutants.offsets))

    def latents(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return z_S [b, d], what the last linear map reads of a set, and the mean of all genes as h_CLS."""
        z = self.head.latent(self._members(wild_type, mutants), mutants.offsets)
        return {"z_S": z, "h_CLS": wild_type.cls.expand(len(mutants), -1)}

    def _members(self, wild_type: WildType, mutants: MutantBatch) -> Tensor:
        """States [Σk, d] of the perturbed genes."""
        members = take_rows(wild_type.genes, mutants.gene)
        if self.condition is not None:
            members = members + self.condition(mutants.condition[segment_ids(mutants.offsets)])
        return members
