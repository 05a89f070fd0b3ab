"""Reference implementation of DANGO, on the parameters of the fast model that must equal it.

Legend: n genes · d width · b mutants · Σk perturbed genes in all · h heads · p phenotypes.

Every network's adjacency is a dense [n, n] target, its reconstruction a dense [n, n] output; message passing
is torch_geometric's; and attention within sets is one masked [Σk, Σk] map over all genes of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wildtype.models.dango.model import Dango, GeneNetwork
from wildtype.models.interface import OrganismTensors, Prediction, WildType
from wildtype.models.wrapper import ModelWrapper
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.graph_sage import GraphSage
from wildtype.nn.hyper_sagnn import PartnerAttention
from wildtype.nn.ragged import segment_ids, segment_mean
from wildtype.nn.sparse import SparseOperator
from wildtype.phases import phase


@dataclass(slots=True)
class Outputs:
    """What one pass returns.

    Attributes
    ----------
    prediction : Prediction
        Of the batch.
    genes : [n, d]
        Embeddings of the genes.
    reconstructions : dict of str to [n, n]
        The adjacency that each relation's states predict.
    """

    prediction: Prediction
    genes: Tensor
    reconstructions: dict[str, Tensor]


class ReferenceDango(nn.Module):
    """The definition of `Dango`; needs torch_geometric.

    Its layers hold the very parameters of the model it is made from, so gradients of either are found on
    that model's parameters.

    Parameters
    ----------
    model : Dango
        Whose parameters to share.
    relations : mapping of str to SparseOperator [n, n]
        The model's relations; row i receives from its columns.
    keep_targets : bool
        Keep the dense targets once they are made, instead of making them again for every loss.
    """

    def __init__(
        self, model: Dango, relations: Mapping[str, SparseOperator], *, keep_targets: bool = False
    ) -> None:
        super().__init__()
        from torch_geometric.nn import SAGEConv

        def convolution(layer: GraphSage) -> SAGEConv:
            made = SAGEConv(model.config.width, model.config.width)
            made.lin_l.weight, made.lin_l.bias = layer.neighbours.weight, layer.neighbours.bias
            made.lin_r.weight = layer.own.weight
            return made

        networks = [network for network in model.networks if isinstance(network, GeneNetwork)]
        self.model = model
        self.convolutions = nn.ModuleList(
            nn.ModuleList([convolution(network.first), convolution(network.second)]) for network in networks
        )
        self.sparse = {
            name: torch.sparse_coo_tensor(
                torch.stack(op.edges()), op.values, op.shape, is_coalesced=True, check_invariants=False
            )
            for name, op in relations.items()
            if name in model.relations
        }
        # torch_geometric lists source above target; rows of the operator receive, so the two are swapped.
        self.edge_index = {name: made.indices().flip(0) for name, made in self.sparse.items()}
        self.zeros = {name: network.zeros for name, network in zip(model.relations, networks, strict=True)}
        self.targets = {name: made.to_dense() for name, made in self.sparse.items()} if keep_targets else {}

    @classmethod
    def from_model(
        cls, model: Dango, relations: Mapping[str, SparseOperator], *, keep_targets: bool = False
    ) -> ReferenceDango:
        """Return the definition of a model on its own parameters, over the relations it was made for."""
        return cls(model, relations, keep_targets=keep_targets)

    def forward(self, mutants: MutantBatch) -> Outputs:
        """Embed the genes, reconstruct every network, and predict the phenotypes of a batch [b, p]."""
        model, states, reconstructions = self.model, [], {}
        for name, layers, network in zip(model.relations, self.convolutions, model.networks, strict=True):
            assert isinstance(layers, nn.ModuleList)
            assert isinstance(network, GeneNetwork)
            first, second = layers
            x = first(model.table.weight, self.edge_index[name]).relu()
            x = second(x, self.edge_index[name]).relu()
            states.append(x)
            reconstructions[name] = network.reconstruct(x)
        stacked = torch.stack(states, dim=1)
        shares = model.meta.score(stacked).softmax(dim=1)
        genes = (shares * stacked).sum(dim=1)
        return Outputs(Prediction(self._head(genes, mutants)), genes, reconstructions)

    def losses(self, outputs: Outputs) -> dict[str, Tensor]:
        """Reconstruction losses by the names that `Dango` gives them."""
        found = {}
        for name, reconstruction in outputs.reconstructions.items():
            target = self.targets[name] if self.targets else self.sparse[name].to_dense()
            errors = (reconstruction - target.to(reconstruction.dtype)) ** 2
            # Σ_ij ω_ij (R_ij − A_ij)² / n² with ω = λ off the edges and 1 on them.
            weights = torch.where(target == 0, self.zeros[name], 1.0).to(errors.dtype)
            found[f"reconstruction/{name}"] = (weights * errors).mean()
        return found

    def wild_type(self, outputs: Outputs, *, losses: bool = True) -> WildType:
        """Return what `Dango.encode` returns in training, with the losses computed here."""
        share = self.model.reconstruction_share
        found = self.losses(outputs) if losses and share > 0 else {}
        weights = {"data": 1 - share} | dict.fromkeys(found, share / len(self.zeros))
        return WildType(outputs.genes.mean(0), outputs.genes, found, weights)

    def _head(self, genes: Tensor, mutants: MutantBatch) -> Tensor:
        model, member = self.model, segment_ids(mutants.offsets)
        x = genes[mutants.gene]
        if model.condition is not None:
            x = x + model.condition(mutants.condition[member])
        partner = (member[:, None] == member[None, :]) & ~torch.eye(len(x), dtype=torch.bool, device=x.device)
        dynamic = x
        for layer in model.head.attention:
            assert isinstance(layer, PartnerAttention)
            dynamic = dynamic + layer.beta * self._attention(layer, dynamic, partner)
        scores = model.head.score((dynamic - F.relu(model.head.static(x))) ** 2)
        return segment_mean(scores, mutants.offsets)

    @staticmethod
    def _attention(layer: PartnerAttention, x: Tensor, partner: Tensor) -> Tensor:
        q, k, v = (
            made(x).view(len(x), layer.heads, -1).transpose(0, 1)
            for made in (layer.query, layer.key, layer.value)
        )
        logits = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        # Finite: a gene without partners would give NaN under −inf; its row is cleared below.
        attention = logits.masked_fill(~partner, -1e9).softmax(-1)
        change = layer.output((attention @ v).transpose(0, 1).reshape(x.shape))
        return torch.where(partner.any(1, keepdim=True), change, 0.0)


class DenseTargets(ModelWrapper):
    """DANGO with n × n targets of every relation made in every step, and every step run forward twice."""

    def __init__(self, inner: Dango) -> None:
        super().__init__(inner)
        # Lists hide modules from torch: these are no parts of this model, whose weights are the inner one's.
        self._model, self._made = [inner], list[ReferenceDango]()

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return a placeholder: genes are encoded again with every batch."""
        if not self._made:
            self._made = [ReferenceDango.from_model(self._model[0], organism.relations)]
        return WildType(torch.zeros(0), torch.zeros(0))

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model; fills ``wild_type`` with the losses."""
        (made,) = self._made
        # A discarded first pass: the implementation that this one times ran forward twice in every step.
        made(mutants)
        outputs: Outputs = made(mutants)
        with phase("graph prior"):
            found = made.wild_type(outputs, losses=self.training)
        wild_type.cls, wild_type.genes = found.cls, found.genes
        wild_type.losses, wild_type.weights = found.losses, found.weights
        return outputs.prediction
