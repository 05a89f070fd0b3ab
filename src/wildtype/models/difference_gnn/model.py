"""`DifferenceGNN`: y ≈ h(F(G) − F(G∖S)), F a masked GNN over all gene graphs and a pooling.

Legend: b mutants · n genes · R relations · d width · p phenotypes · T mutants of a tile.

Deleting genes removes rows and columns of every adjacency, so all mutants share the wild type's. The first
layer is computed where it differs (`first_layer`), later layers in full for every mutant, states [T, n, d]
of a tile at a time. Deleted genes hold zero after every layer: they send nothing, biases cannot revive them,
and pooling leaves them out. That the systems this model comes from let a deleted gene keep a state of its own
makes no difference, because it reaches no kept gene.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import get_ident

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wildtype.errors import ConfigError, ShapeError
from wildtype.models.difference_gnn.config import (
    DifferenceGNNConfig,
    check,
    chosen_relations,
    removed_kinds,
)
from wildtype.models.difference_gnn.first_layer import (
    ChangedRows,
    FirstLayer,
    changed_rows,
    encode_first_layer,
)
from wildtype.models.difference_gnn.fused import Buffers
from wildtype.models.difference_gnn.gradients import scalars
from wildtype.models.difference_gnn.heads import Gate, GlobalHead, LocalHead
from wildtype.models.difference_gnn.layers import (
    AttentionalPooling,
    Preprocessor,
    RelationLayer,
    initialise,
)
from wildtype.models.difference_gnn.threads import each
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.ragged import segment_ids, take_rows
from wildtype.nn.sparse import SparseOperator

NODES = 8192
"""Nodes of the mutants that pass together, unless the settings say how many mutants."""
SLAB = 64
"""Mutants whose first layer is computed together."""


@dataclass(slots=True, kw_only=True)
class DifferenceWildType(WildType):
    """The encoded wild type: `cls` is its pooled state, `genes` are its states after the last layer.

    Attributes
    ----------
    first : FirstLayer
        What the first layer leaves for the mutants.
    relations : R times SparseOperator [n, n]
        The shared adjacencies.
    """

    first: FirstLayer
    relations: tuple[SparseOperator, ...]


class DifferenceGNN(Model):
    """The difference GNN over n genes.

    Every gene has a learned embedding; gene features are not used.

    Parameters
    ----------
    config : DifferenceGNNConfig
        Settings.
    genes, features : int
        Number of genes n, and of features, which are ignored.
    phenotypes, conditions : int
        Number of outputs p and of conditions; with more than one, a learned embedding of the condition is
        added to the difference and to the members of the perturbed set.
    relations : sequence of str
        Relations of the organism that have edges, in order.

    Raises
    ------
    ConfigError
        If settings do not fit each other or the relations.
    """

    needs = ("relations",)
    removes: Tensor
    gate: Gate | None

    def __init__(
        self,
        config: DifferenceGNNConfig,
        *,
        genes: int,
        features: int,
        phenotypes: int,
        conditions: int = 1,
        relations: Sequence[str] = (),
    ) -> None:
        super().__init__()
        check(config)
        self.config = config
        self.relations = chosen_relations(config, tuple(relations))
        self.encode_per_epoch = config.wild_type == "epoch"
        self.genes = genes
        self.phenotypes = phenotypes
        self.table = nn.Parameter(torch.empty(genes, config.width))
        self.preprocess = Preprocessor(config)
        self.layers = nn.ModuleList(RelationLayer(config, len(self.relations)) for _ in range(config.layers))
        overall, local = config.combination != "local", config.combination != "global"
        self.pool = AttentionalPooling(config) if overall else None
        self.global_head = GlobalHead(config, phenotypes) if overall else None
        self.local_head = LocalHead(config, phenotypes) if local else None
        self.gate = Gate(config) if config.combination == "gating" else None
        self.condition = nn.Embedding(conditions, config.width) if conditions > 1 else None
        removes = torch.zeros(256, dtype=torch.bool)
        removes[removed_kinds(config)] = True
        self.register_buffer("removes", removes, persistent=False)
        initialise(self)
        nn.init.normal_(self.table, std=0.02)

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> DifferenceWildType:
        """Encode the wild type; nothing is drawn from ``stream``.

        Raises
        ------
        ShapeError
            If the organism has another number of genes than the model was made for.
        ConfigError
            If it lacks one of the model's relations.
        """
        if organism.genes != self.genes:
            raise ShapeError(f"the organism has {organism.genes} genes, expected {self.genes}")
        if missing := [name for name in self.relations if name not in organism.relations]:
            raise ConfigError(
                f"the organism's tensors lack the relations {', '.join(missing)}: build them with "
                f"organism_tensors"
            )
        relations = tuple(organism.relations[name] for name in self.relations)
        first = encode_first_layer(self._first, self.preprocess(self.table), relations)
        x = self._upper_layers(first.output, relations)
        pooled = self.pool(x) if self.pool is not None else x.mean(0)
        return DifferenceWildType(cls=pooled, genes=x, first=first, relations=relations)

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """Return the wild type's states [n, d] by name: ``table``, ``preprocess``, ``layer 1`` and so on."""
        relations = [organism.relations[name] for name in self.relations]
        x = self.preprocess(self.table)
        states = {"table": self.table.detach(), "preprocess": x}
        for i, layer in enumerate(self.layers):
            x = states[f"layer {i + 1}"] = layer(x, relations)
        return states

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of mutants, in units of the scaled labels."""
        assert isinstance(wild_type, DifferenceWildType)
        context = self.condition(mutants.condition) if self.condition is not None else None
        overall = self._overall(wild_type, mutants, context) if self.global_head is not None else None
        local = self._local(wild_type, mutants, context) if self.local_head is not None else None
        if overall is None or local is None:
            only = local if overall is None else overall
            assert only is not None
            return Prediction(only)
        if self.gate is not None:
            return Prediction(self.gate(overall, local))
        return Prediction(0.5 * overall + 0.5 * local)

    @property
    def _first(self) -> RelationLayer:
        layer = self.layers[0]
        assert isinstance(layer, RelationLayer)
        return layer

    def _local(self, wild_type: WildType, mutants: MutantBatch, context: Tensor | None) -> Tensor:
        members = take_rows(wild_type.genes, mutants.gene)
        if context is not None:
            members = members + take_rows(context, segment_ids(mutants.offsets))
        assert self.local_head is not None
        scores: Tensor = self.local_head(members, mutants.offsets)
        return scores

    def _overall(self, wild_type: DifferenceWildType, mutants: MutantBatch, context: Tensor | None) -> Tensor:
        """Scores [b, p] of the pooled differences, a slab of mutants at a time."""
        tile = self.config.tile or max(1, NODES // max(self.genes, 1))
        slab = max(SLAB, tile)
        if context is None:
            context = wild_type.cls.new_zeros(len(mutants), self.config.width)
        parts = [
            self._slab(wild_type, mutants.slice(at, at + slab), context[at : at + slab], tile)
            for at in range(0, len(mutants), slab)
        ]
        return torch.cat([context.new_zeros(0, self.phenotypes), *parts])

    def _slab(
        self, wild_type: DifferenceWildType, mutants: MutantBatch, context: Tensor, tile: int
    ) -> Tensor:
        count, n = len(mutants), self.genes
        removed = self.removes[mutants.kind.long()]
        gene, owner = mutants.gene[removed], segment_ids(mutants.offsets)[removed]
        gone = torch.zeros(count, n, dtype=torch.bool, device=gene.device)
        gone[owner, gene] = True
        changed = changed_rows(self._first, wild_type.first, gene, owner, gone)
        cuts = [*range(0, count, tile), count]
        edges = torch.tensor(cuts, device=gene.device) * n
        bounds = torch.searchsorted(changed.keys, edges).tolist()

        def run(t: int, shared: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
            start, stop = cuts[t], cuts[t + 1]
            keys = changed.keys[bounds[t] : bounds[t + 1]] - start * n
            x = self._mutant_states(
                shared[0], ChangedRows(keys, own[0]), gone[start:stop], wild_type.relations
            )
            assert self.pool is not None
            assert self.global_head is not None
            scores: Tensor = self.global_head(shared[1] - self.pool(x, gone[start:stop]) + own[1])
            return scores

        shared, own = [wild_type.first.output, wild_type.cls], [changed.states, context]
        device = context.device.type
        together = (
            device == "cpu"
            and not (self.training and self.config.dropout)
            and not torch.is_autocast_enabled(device)
        )
        if torch.is_grad_enabled() and tile == 1 and self.phenotypes == 1:
            parameters = [p for layer in self.layers[1:] for p in layer.parameters()]
            for module in (self.pool, self.global_head):
                assert module is not None
                parameters += module.parameters()
            buffers: dict[int, Buffers] = defaultdict(Buffers)

            def one(t: int, shared: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
                with buffers[get_ident()]:
                    return run(t, shared, own).reshape(())

            return scalars(one, shared, parameters, own, [bounds, cuts], together=together).unsqueeze(1)
        parts: list[Tensor] = [context] * (len(cuts) - 1)

        def part(t: int) -> None:
            of_tile = [changed.states[bounds[t] : bounds[t + 1]], context[cuts[t] : cuts[t + 1]]]
            # The backward pass begins with the last tile: its states can stay.
            if torch.is_grad_enabled() and t < len(cuts) - 2:
                parts[t] = checkpoint(run, t, shared, of_tile, use_reentrant=False)
            else:
                parts[t] = run(t, shared, of_tile)

        each(len(parts), part, together=together and not torch.is_grad_enabled())
        return torch.cat(parts)

    def _mutant_states(
        self, output: Tensor, changed: ChangedRows, gone: Tensor, relations: Sequence[SparseOperator]
    ) -> Tensor:
        """States after the last layer [T, n, d] of the mutants of a tile, zero at deleted genes."""
        x = output.expand(len(gone), *output.shape).reshape(gone.numel(), -1)
        x = x.index_copy(0, changed.keys, changed.states).view(*gone.shape, -1)
        return self._upper_layers(x.masked_fill(gone.unsqueeze(-1), 0.0), relations, gone)

    def _upper_layers(
        self, x: Tensor, relations: Sequence[SparseOperator], gone: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers[1:]:
            x = layer(x, relations)
            if gone is not None:
                x = x.masked_fill(gone.unsqueeze(-1), 0.0)
        return x
