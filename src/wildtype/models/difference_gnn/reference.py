"""Reference implementation of the difference GNN: one torch_geometric graph per mutant.

A batch is B copies of every relation's edges, their ends moved by the mutant's number times n, and as many
keep masks joined end to end and multiplied into the messages; states are [B n, d] in every layer; all
options of the pairwise aggregation are written down; the local head loops over mutants. Deleted genes keep a
state of their own. Reactions and metabolites are nodes of the same graphs, and gene rules are read complex by
complex. Masks of edges are made mutant by mutant, or given (`EdgeMasks`, `PrecomputedMasks`). Slow and plain;
the tests hold `DifferenceGNN` to it. Needs the extra ``pyg``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, HeteroData
from torch_geometric.nn import MessagePassing, SAGEConv
from torch_geometric.nn.aggr import AttentionalAggregation
from torch_geometric.utils import k_hop_subgraph

from wildtype.errors import ConfigError
from wildtype.models.difference_gnn.layers import AttentionalPooling, RelationGIN, RelationSage
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import MetabolismTensors, OrganismTensors, Prediction, WildType
from wildtype.models.wrapper import ModelWrapper
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.wiring import GPR, STOICHIOMETRY
from wildtype.nn.relation_aggregation import (
    AttentionAggregation,
    PairwiseAggregation,
    SumAggregation,
    attention_reference,
    pairwise_reference,
)
from wildtype.nn.sparse import SparseOperator
from wildtype.phases import phase

NODES = {GPR: ("gene", "reaction"), STOICHIOMETRY: ("reaction", "metabolite")}
"""Where the edges of metabolism lead from and to; relations lead from genes to genes."""
Masks = Mapping[str, Tensor]


class MaskedGINConv(MessagePassing):  # type: ignore[misc]
    """A GIN convolution whose messages are multiplied by the weight of their edge, 0 where it is not kept."""

    def __init__(self, gin: RelationGIN) -> None:
        super().__init__(aggr="add")
        self.gin = gin

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edge_index: Tensor, weight: Tensor) -> Tensor:
        """States [B n, d] (or of sources and targets), edges int64 [2, B e], weights [B e] -> [B n, d]."""
        source, target = x if isinstance(x, tuple) else (x, x)
        sums = self.propagate(edge_index, x=(source, target), weight=weight, size=(len(source), len(target)))
        out: Tensor = self.gin(target, sums)
        return out

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """State of the source, or zero."""
        return x_j * weight.unsqueeze(-1).to(x_j.dtype)


class FilteredSAGEConv(nn.Module):
    """torch_geometric's GraphSAGE, its mean over the edges that are kept."""

    def __init__(self, part: RelationSage) -> None:
        super().__init__()
        width = part.sage.own.in_features
        self.part, self.conv = part, SAGEConv(width, width)
        self.conv.lin_l.weight, self.conv.lin_l.bias = part.sage.neighbours.weight, part.sage.neighbours.bias
        self.conv.lin_r.weight = part.sage.own.weight

    def forward(self, x: Tensor, edge_index: Tensor, keep: Tensor) -> Tensor:
        """States [B n, d], edges int64 [2, B e], keep masks bool [B e] -> [B n, d]."""
        return self.part.finish(self.conv(x, edge_index[:, keep]))


class ReferenceDifferenceGNN(nn.Module):
    """The plain formulation with a model's own weights; build with `from_model`."""

    def __init__(self, model: DifferenceGNN) -> None:
        super().__init__()
        self.model: Any = model
        stacks: list[Any] = [layer.gins for layer in self.model.layers]
        conv = FilteredSAGEConv if model.config.convolution == "sage" else MaskedGINConv
        self.convs: Any = nn.ModuleList(nn.ModuleList(map(conv, gins)) for gins in stacks)
        self.pool = _pyg_pooling(model.pool) if model.pool is not None else None
        self.metabolic: Any = None
        if model.metabolic is not None:
            network: Any = model.metabolic
            self.metabolic = nn.ModuleList(
                nn.ModuleList(map(MaskedGINConv, (at.from_genes, at.from_metabolites, at.from_reactions)))
                for at in network.layers
            )
            self.pool_reactions = _pyg_pooling(network.pool_reactions)
            self.pool_metabolites = _pyg_pooling(network.pool_metabolites)

    @classmethod
    def from_model(cls, model: DifferenceGNN) -> ReferenceDifferenceGNN:
        """Return the reference of a model; it shares the weights."""
        return cls(model)

    def forward(
        self,
        edges: Mapping[str, Tensor],
        mutants: MutantBatch,
        metabolism: MetabolismTensors | None = None,
        masks: Masks | None = None,
    ) -> Tensor:
        """Predict the phenotypes [b, p].

        Parameters
        ----------
        edges : dict of str to int64 [2, e]
            Edges of every relation, source above target.
        mutants : MutantBatch
            b mutants.
        metabolism : MetabolismTensors, optional
            Reactions and metabolites, for a model with ``metabolism``; ConfigError if they are missing.
        masks : dict of str to bool [b, e], optional
            Which edges every mutant keeps, in the order of ``edges`` (of ``gpr`` and ``stoichiometry``, in
            that of their operators); made mutant by mutant otherwise.
        """
        model = self.model
        if model.metabolic is not None and metabolism is None:
            raise ConfigError("model.metabolism=true: give the reference the organism's metabolism")
        nobody = mutants.gene[:0]
        wild = self.states(Batch.from_data_list([self.sample(edges, nobody, nobody, metabolism, wild=True)]))
        context = wild["gene"].new_zeros(len(mutants), model.config.width)
        if model.condition is not None:
            context = model.condition(mutants.condition)
        scores: dict[str, Tensor] = {}
        if self.pool is not None:
            with phase("representation"):
                samples = [
                    self.sample(edges, genes, lacks, metabolism, _row(masks, i))
                    for i, (genes, lacks) in enumerate(
                        zip(_sets(mutants), self.removed(mutants), strict=True)
                    )
                ]
            with phase("collate"):
                batch = Batch.from_data_list(samples)
            whole = self._pooled(
                wild, {name: torch.ones(len(x), dtype=torch.bool) for name, x in wild.items()}
            )
            keep = {name: batch[name].keep for name in wild}
            lost = [
                a - b
                for a, b in zip(whole, self._pooled(self.states(batch), keep, len(mutants)), strict=True)
            ]
            total = lost[0]
            if model.metabolic is not None:
                total = total + model.metabolic.merge(torch.cat(lost[1:], -1))
            scores["global"] = model.global_head(total + context)
        if model.local_head is not None:
            scores["local"] = torch.stack(
                [
                    self._local(wild["gene"][genes] + c)
                    for genes, c in zip(_sets(mutants), context, strict=True)
                ]
            )
        if model.gate is not None:
            return torch.stack([self._gated(both) for both in torch.stack(list(scores.values()), -1)])
        return torch.stack(list(scores.values())).mean(0)

    def removed(self, mutants: MutantBatch) -> list[Tensor]:
        """Genes that each mutant lacks."""
        at, gone = mutants.offsets.tolist(), self.model.removes[mutants.kind.long()]
        return [mutants.gene[a:b][gone[a:b]] for a, b in pairwise(at)]

    def sample(
        self,
        edges: Mapping[str, Tensor],
        genes: Tensor,
        removed: Tensor,
        metabolism: MetabolismTensors | None = None,
        masks: Masks | None = None,
        *,
        wild: bool = False,
    ) -> HeteroData:
        """One mutant as a graph: all edges of every relation, and what is kept of nodes and edges.

        ``genes`` are perturbed, ``removed`` are those of them that it lacks; ``wild``: it is the wild type.
        """
        config, n = self.model.config, self.model.genes
        there = {"gene": torch.ones(n, dtype=torch.bool)}
        if config.hops and not wild:
            union = torch.cat([pair for index in edges.values() for pair in (index, index.flip(0))], 1)
            near = k_hop_subgraph(genes, config.hops, union, num_nodes=n)[0]
            there["gene"] = torch.zeros(n, dtype=torch.bool).index_fill_(0, near, True)
        there["gene"][removed] = False
        index = {name: edges[name] for name in self.model.relations}
        data = HeteroData()
        if self.model.metabolic is not None and metabolism is not None:
            metabolites = metabolism.stoichiometry.shape[0]
            there["reaction"] = _alive(metabolism, set(removed.tolist()))
            there["metabolite"] = torch.ones(metabolites, dtype=torch.bool)
            index |= {GPR: edge_index(metabolism.gpr), STOICHIOMETRY: edge_index(metabolism.stoichiometry)}
        for name, keep in there.items():
            data[name].num_nodes, data[name].keep = len(keep), keep
        # A graph that is the wild type's keeps every edge: genes are left out of the pooling alone.
        whole = config.representation == "perturbation"
        for name, pairs in index.items():
            source, target = NODES.get(name, ("gene", "gene"))
            store = data[source, name, target]
            store.edge_index = pairs
            if masks is not None and not whole:
                store.keep = masks[name]
            else:
                # Both ends: an edge of the induced subgraph needs both nodes.
                store.keep = (there[source][pairs[0]] & there[target][pairs[1]]) | whole
        if STOICHIOMETRY in index and metabolism is not None:
            data["reaction", STOICHIOMETRY, "metabolite"].coefficient = metabolism.stoichiometry.values
        return data

    def states(self, batch: Any) -> dict[str, Tensor]:
        """States after the last layer by kind of node, [B n, d] of genes, deleted ones among them."""
        copies = batch["gene"].num_nodes // self.model.genes
        x: Tensor = self.model.preprocess(self.model.table.repeat(copies, 1))
        network = self.model.metabolic
        if network is not None:
            reactions, metabolites = (t.repeat(copies, 1) for t in (network.reactions, network.metabolites))
        for i, (layer, convs) in enumerate(zip(self.model.layers, self.convs, strict=True)):
            of_relation = []
            for name, conv in zip(self.model.relations, convs, strict=True):
                store = batch["gene", name, "gene"]
                of_relation.append(conv(x, store.edge_index, store.keep))
            if network is not None:
                reactions, metabolites = self._metabolic_layer(batch, i, x, reactions, metabolites)
            x = layer.norm(_aggregate(layer.aggregation, of_relation))
        if network is None:
            return {"gene": x}
        return {"gene": x, "reaction": reactions, "metabolite": metabolites}

    def _metabolic_layer(
        self, batch: Any, layer: int, genes: Tensor, reactions: Tensor, metabolites: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pass a layer of the metabolism, beside the one that ``genes`` enter; both kinds at once."""
        rules, network = batch["gene", GPR, "reaction"], batch["reaction", STOICHIOMETRY, "metabolite"]
        from_genes, from_metabolites, from_reactions = self.metabolic[layer]
        scale = self.model.metabolic.layers[layer].scale
        weight = torch.tanh(network.coefficient.to(scale.dtype) * scale) * network.keep
        back = network.edge_index.flip(0)
        return (
            from_genes((genes, reactions), rules.edge_index, rules.keep)
            + from_metabolites((metabolites, reactions), back, weight),
            from_reactions((reactions, metabolites), network.edge_index, weight),
        )

    def _pooled(self, states: Mapping[str, Tensor], keep: Masks, mutants: int = 1) -> list[Tensor]:
        """Pooled states [b, d] of every kind of node, over those that are kept."""
        pools = {"gene": self.pool}
        if self.metabolic is not None:
            pools |= {"reaction": self.pool_reactions, "metabolite": self.pool_metabolites}
        out = []
        for name, pool in pools.items():
            owner = torch.arange(mutants).repeat_interleave(len(states[name]) // mutants)
            assert pool is not None
            out.append(pool(states[name][keep[name]], owner[keep[name]], dim_size=mutants))
        return out

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


def _row(masks: Masks | None, mutant: int) -> dict[str, Tensor] | None:
    return None if masks is None else {name: mask[mutant] for name, mask in masks.items()}


def _alive(metabolism: MetabolismTensors, removed: set[int]) -> Tensor:
    """Reactions bool [r] without a rule, or with a complex that lacks none of its genes."""
    broken = {c for c, gene in _pairs(metabolism.complexes) if gene in removed}
    rules: dict[int, list[int]] = {}
    for reaction, c in _pairs(metabolism.isozymes):
        rules.setdefault(reaction, []).append(c)
    return torch.tensor(
        [
            not (complexes := rules.get(reaction, [])) or any(c not in broken for c in complexes)
            for reaction in range(metabolism.isozymes.shape[0])
        ]
    )


def _pairs(op: SparseOperator) -> Iterator[tuple[int, int]]:
    rows, cols = op.edges()
    return zip(rows.tolist(), cols.tolist(), strict=True)


class ReplicatedEdges(ModelWrapper):
    """`ReferenceDifferenceGNN` behind the interface of a model."""

    def __init__(self, inner: DifferenceGNN) -> None:
        super().__init__(inner)
        self.reference = ReferenceDifferenceGNN.from_model(inner)
        self._edges: dict[str, torch.Tensor] = {}
        self._metabolism: MetabolismTensors | None = None
        self._masks: Masks | None = None

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return a placeholder: the wild type is encoded with every batch."""
        if not self._edges:
            self._edges = {name: edge_index(op) for name, op in organism.relations.items()}
        self._metabolism = organism.metabolism
        genes = self.reference.model.table.detach()
        return WildType(genes.mean(0), genes)

    @contextmanager
    def given(self, edges: Mapping[str, Tensor], masks: Masks) -> Iterator[None]:
        """Within the block, batches have these edges, and these masks instead of some made for them."""
        before = self._edges, self._masks
        self._edges, self._masks = dict(edges), masks
        try:
            yield
        finally:
            self._edges, self._masks = before

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        return Prediction(self.reference(self._edges, mutants, self._metabolism, self._masks))
