"""Reference implementation of the difference GNN: one torch_geometric graph per mutant.

A batch is B copies of every relation's edges, their ends moved by the mutant's number times n, and as many
keep masks joined end to end and multiplied into the messages; states are [B n, d] in every layer; all
options of the pairwise aggregation are written down; the local head loops over mutants. Deleted genes keep a
state of their own. Slow and plain; the tests hold `DifferenceGNN` to it. Needs the extra ``pyg``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, HeteroData
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import AttentionalAggregation

from wildtype.models.difference_gnn.layers import AttentionalPooling, RelationGIN
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import ModelWrapper, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.relation_aggregation import (
    AttentionAggregation,
    PairwiseAggregation,
    SumAggregation,
    attention_reference,
    pairwise_reference,
)
from wildtype.nn.sparse import SparseOperator
from wildtype.phases import phase


class MaskedGINConv(MessagePassing):  # type: ignore[misc]
    """A GIN convolution whose messages are multiplied by the keep mask of their edge."""

    def __init__(self, gin: RelationGIN) -> None:
        super().__init__(aggr="add")
        self.gin = gin

    def forward(self, x: Tensor, edge_index: Tensor, keep: Tensor) -> Tensor:
        """States [B n, d], edges int64 [2, B e], keep masks bool [B e] -> [B n, d]."""
        out: Tensor = self.gin(x, self.propagate(edge_index, x=x, keep=keep))
        return out

    def message(self, x_j: Tensor, keep: Tensor) -> Tensor:
        """State of the source, or zero."""
        return x_j * keep.unsqueeze(-1).to(x_j.dtype)


class ReferenceDifferenceGNN(nn.Module):
    """The plain formulation with a model's own weights; build with `from_model`."""

    def __init__(self, model: DifferenceGNN) -> None:
        super().__init__()
        self.model: Any = model
        stacks: list[Any] = [layer.gins for layer in self.model.layers]
        self.convs: Any = nn.ModuleList(nn.ModuleList(map(MaskedGINConv, gins)) for gins in stacks)
        self.pool = _pyg_pooling(model.pool) if model.pool is not None else None

    @classmethod
    def from_model(cls, model: DifferenceGNN) -> ReferenceDifferenceGNN:
        """Return the reference of a model; it shares the weights."""
        return cls(model)

    def forward(self, edges: Mapping[str, Tensor], mutants: MutantBatch) -> Tensor:
        """Predict the phenotypes [b, p]; ``edges`` int64 [2, e] of every relation, source above target."""
        model = self.model
        wild = self.states(Batch.from_data_list([self.sample(edges, mutants.gene[:0])]))
        context = wild.new_zeros(len(mutants), wild.shape[1])
        if model.condition is not None:
            context = model.condition(mutants.condition)
        scores: dict[str, Tensor] = {}
        if self.pool is not None:
            with phase("representation"):
                samples = [self.sample(edges, genes) for genes in self.removed(mutants)]
            with phase("collate"):
                batch = Batch.from_data_list(samples)
            x, keep, index = self.states(batch), batch["gene"].keep, batch["gene"].batch
            pooled = self.pool(x[keep], index[keep], dim_size=len(mutants))
            whole = self.pool(wild, torch.zeros(len(wild), dtype=torch.int64))
            scores["global"] = model.global_head(whole - pooled + context)
        if model.local_head is not None:
            scores["local"] = torch.stack(
                [self._local(wild[genes] + c) for genes, c in zip(_sets(mutants), context, strict=True)]
            )
        if model.gate is not None:
            return torch.stack([self._gated(both) for both in torch.stack(list(scores.values()), -1)])
        return torch.stack(list(scores.values())).mean(0)

    def removed(self, mutants: MutantBatch) -> list[Tensor]:
        """Genes that each mutant lacks."""
        at, gone = mutants.offsets.tolist(), self.model.removes[mutants.kind.long()]
        return [mutants.gene[a:b][gone[a:b]] for a, b in pairwise(at)]

    def sample(self, edges: Mapping[str, Tensor], removed: Tensor) -> HeteroData:
        """One mutant as a graph: all edges of every relation, and what is kept of genes and edges."""
        keep = torch.ones(self.model.genes, dtype=torch.bool)
        keep[removed] = False
        data = HeteroData()
        data["gene"].num_nodes = self.model.genes
        data["gene"].keep = keep
        for name in self.model.relations:
            source, target = edges[name]
            store = data["gene", name, "gene"]
            store.edge_index = edges[name]
            # Both ends: an edge of the induced subgraph needs both genes.
            store.keep = keep[source] & keep[target]
        return data

    def states(self, batch: Any) -> Tensor:
        """States after the last layer [B n, d], those of deleted genes among them."""
        copies = batch["gene"].num_nodes // self.model.genes
        x: Tensor = self.model.preprocess(self.model.table.repeat(copies, 1))
        for layer, convs in zip(self.model.layers, self.convs, strict=True):
            of_relation = []
            for name, conv in zip(self.model.relations, convs, strict=True):
                store = batch["gene", name, "gene"]
                of_relation.append(conv(x, store.edge_index, store.keep))
            x = layer.norm(_aggregate(layer.aggregation, of_relation))
        return x

    def _gated(self, both: Tensor) -> Tensor:
        """Weigh the two scores [p, 2] of one mutant, phenotype after phenotype -> [p]."""
        gate = self.model.gate
        weights = [gate.score(gate.activation(gate.hidden(pair))).softmax(0) for pair in both]
        return torch.stack([w @ pair for w, pair in zip(weights, both, strict=True)])

    def _local(self, x: Tensor) -> Tensor:
        """Score [p] of one set, head after head and member after member."""
        head = self.model.local_head
        assert head is not None
        if not len(x):
            return x.new_zeros(self.model.phenotypes)
        dynamic = x
        for layer in head.attention:
            q, k, v = (
                linear(dynamic).view(len(x), layer.heads, -1)
                for linear in (layer.query, layer.key, layer.value)
            )
            rows = []
            for i in range(len(x)):
                others = [j for j in range(len(x)) if j != i]
                if not others:
                    rows.append(dynamic[i])
                    continue
                mixed = []
                for h in range(layer.heads):
                    weights = (k[others, h] @ q[i, h] / k.shape[-1] ** 0.5).softmax(0)
                    mixed.append(weights @ v[others, h])
                rows.append(dynamic[i] + layer.beta * layer.output(torch.cat(mixed)))
            dynamic = torch.stack(rows)
        scores: Tensor = head.score((dynamic - head.activation(head.static(x))) ** 2)
        return scores.mean(0)


def edge_index(op: SparseOperator) -> Tensor:
    """Edges int64 [2, e] of an operator, source above target: rows receive from columns."""
    rows, cols = op.edges()
    return torch.stack([cols, rows])


def _aggregate(aggregation: nn.Module, states: Sequence[Tensor]) -> Tensor:
    if isinstance(aggregation, PairwiseAggregation):
        return pairwise_reference(aggregation, states)
    if isinstance(aggregation, AttentionAggregation):
        return attention_reference(aggregation, states)
    assert isinstance(aggregation, SumAggregation)
    total = torch.stack(list(states))
    return total.mean(0) if aggregation.mean else total.sum(0)


class _Value(nn.Module):
    def __init__(self, pool: AttentionalPooling) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.pool.value(x)


class _Gate(_Value):
    def forward(self, x: Tensor) -> Tensor:
        return self.pool.gate(x)


def _pyg_pooling(pool: AttentionalPooling) -> Any:
    return AttentionalAggregation(_Gate(pool), _Value(pool))


def _sets(mutants: MutantBatch) -> list[Tensor]:
    return [mutants.gene[a:b] for a, b in pairwise(mutants.offsets.tolist())]


class ReplicatedEdges(ModelWrapper):
    """`ReferenceDifferenceGNN` behind the interface of a model."""

    def __init__(self, inner: DifferenceGNN) -> None:
        super().__init__(inner)
        self.reference = ReferenceDifferenceGNN.from_model(inner)
        self._edges: dict[str, torch.Tensor] = {}

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return a placeholder: the wild type is encoded with every batch."""
        if not self._edges:
            self._edges = {name: edge_index(op) for name, op in organism.relations.items()}
        genes = self.reference.model.table.detach()
        return WildType(genes.mean(0), genes)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        return Prediction(self.reference(self._edges, mutants))
