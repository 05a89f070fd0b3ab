"""`DifferenceGNN`: y ≈ h(F(G) − F(G∖S)), F a masked GNN over all gene graphs and a pooling.

Legend: b mutants · n genes · R relations · d width · p phenotypes · T mutants of a tile.

Deleting genes removes rows and columns of every adjacency, so all mutants share the wild type's. The first
layer is computed where it differs (`changed_rows`), later layers in full for every mutant, states [T, n, d]
of a tile at a time. With `metabolism`, reactions and metabolites pass layers of their own beside the genes'.
Deleted genes hold zero after every layer: they send nothing, biases cannot revive them, and pooling leaves
them out. That the systems this model comes from let a deleted gene keep a state of its own makes no
difference, because it reaches no kept gene.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from typing import Self

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wildtype.errors import ConfigError, ShapeError
from wildtype.models.difference_gnn.config import DifferenceGNNConfig, chosen_relations, removed_kinds
from wildtype.models.difference_gnn.fused import Buffers
from wildtype.models.difference_gnn.gradients import scalars
from wildtype.models.difference_gnn.layers import (
    AttentionalPooling,
    FirstLayer,
    Gate,
    GlobalHead,
    LocalHead,
    Preprocessor,
    RelationLayer,
    changed_rows,
    encode_first_layer,
    initialise,
)
from wildtype.models.difference_gnn.metabolism import MetabolicNetwork, MetabolicPass, Wiring
from wildtype.models.interface import Model, ModelInputs, OrganismTensors, Prediction, WildType
from wildtype.models.registry import check
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.ragged import segment_ids, take_rows
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import each
from wildtype.phases import phase

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
    metabolism : Wiring or None
        The shared metabolism.
    metabolic : [2 d]
        Its pooled state; empty without.
    """

    first: FirstLayer
    relations: tuple[SparseOperator, ...]
    metabolism: Wiring | None
    metabolic: Tensor


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

    needs: tuple[str, ...] = ("relations",)
    graph_per_mutant = True
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
        self.needs = self.needed(config)
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
        if config.metabolism and not (config.reactions and config.metabolites):
            raise ConfigError(
                "model.metabolism=true needs reactions and metabolites, and the organism has none"
            )
        self.metabolic = MetabolicNetwork(config) if config.metabolism else None
        self.condition = nn.Embedding(conditions, config.width) if conditions > 1 else None
        # One entry per uint8: a batch looks up its kinds by indexing.
        removes = torch.zeros(256, dtype=torch.bool)
        removes[removed_kinds(config)] = True
        self.register_buffer("removes", removes, persistent=False)
        initialise(self)
        nn.init.normal_(self.table, std=0.02)

    def unused_parameters(self) -> Iterator[nn.Parameter]:
        """Yield what encodes the wild type alone, if that is done once per epoch, without gradients."""
        yield from super().unused_parameters()
        if self.encode_per_epoch:
            yield self.table
            yield from self.preprocess.parameters()
            if self.global_head is None:  # the local head reads the wild type and passes no mutant
                yield from self.layers.parameters()

    @classmethod
    def needed(cls, config: DifferenceGNNConfig) -> tuple[str, ...]:
        """Return what a model of these settings needs of the organism."""
        return ("relations", "metabolism") if config.metabolism else ("relations",)

    @classmethod
    def named_relations(cls, config: DifferenceGNNConfig) -> list[str]:
        """Return the relations that these settings name."""
        return config.relations

    @classmethod
    def build(cls, config: DifferenceGNNConfig, inputs: ModelInputs) -> Self:
        """Return a model with initial weights drawn from torch's stream, its metabolism counted."""
        if config.metabolism:
            config = replace(
                config,
                reactions=config.reactions or inputs.reactions,
                metabolites=config.metabolites or inputs.metabolites,
            )
        return super().build(config, inputs)

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> DifferenceWildType:
        """Encode the wild type; nothing is drawn from ``stream``.

        Raises
        ------
        ShapeError
            If the organism has another number of genes than the model was made for.
        ConfigError
            If it lacks one of the model's relations, or the metabolism that the model was made for.
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
        wiring = self._wiring(organism)
        # The wild type is a mutant without deleted genes: it passes the very same layers.
        nobody = torch.zeros(1, self.genes, dtype=torch.bool, device=self.table.device)
        x, metabolic = self._layers(first.inputs[None], first.output[None], relations, wiring, nobody)
        pooled = self.pool(x[0]) if self.pool is not None else x[0].mean(0)
        return DifferenceWildType(
            cls=pooled,
            genes=x[0],
            first=first,
            relations=relations,
            metabolism=wiring,
            metabolic=metabolic[0],
        )

    def _wiring(self, organism: OrganismTensors) -> Wiring | None:
        if self.metabolic is None:
            return None
        if organism.metabolism is None:
            raise ConfigError("the organism's tensors lack the metabolism: build them with organism_tensors")
        metabolites, reactions = organism.metabolism.stoichiometry.shape
        if (reactions, metabolites) != (self.config.reactions, self.config.metabolites):
            raise ConfigError(
                f"model.reactions={self.config.reactions} and model.metabolites={self.config.metabolites}, "
                f"but the organism has {reactions} and {metabolites}: set these"
            )
        return Wiring.of(organism.metabolism)

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
        # The empty first part gives an empty batch its shape [0, p].
        return torch.cat([context.new_zeros(0, self.phenotypes), *parts])

    def _slab(
        self, wild_type: DifferenceWildType, mutants: MutantBatch, context: Tensor, tile: int
    ) -> Tensor:
        count, n = len(mutants), self.genes
        with phase("representation"):
            removed = self.removes[mutants.kind.long()]
            gene, owner = mutants.gene[removed], segment_ids(mutants.offsets)[removed]
            gone = torch.zeros(count, n, dtype=torch.bool, device=gene.device)
            gone[owner, gene] = True
            # Owners rise, so the first place of each is where its removed genes begin.
            offsets = torch.searchsorted(owner, torch.arange(count + 1, device=gene.device))
        changed = changed_rows(self._first, wild_type.first, wild_type.relations, gene, offsets)
        cuts = [*range(0, count, tile), count]
        # Keys are mutant · n + gene and rise: every tile's changed rows are one slice.
        edges = torch.tensor(cuts, device=gene.device) * n
        bounds = torch.searchsorted(changed.keys, edges).tolist()

        def run(t: int, shared: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
            start, stop = cuts[t], cuts[t + 1]
            keys = changed.keys[bounds[t] : bounds[t + 1]] - start * n
            lacks = gone[start:stop]
            # For a single mutant this is a view of the wild type's states: hence index_copy, not index_copy_.
            x = shared[0].expand(stop - start, -1, -1).reshape((stop - start) * n, -1)
            x = x.index_copy(0, keys, own[0]).view(stop - start, n, -1).masked_fill(lacks[..., None], 0.0)
            x, metabolic = self._layers(shared[3][None], x, wild_type.relations, wild_type.metabolism, lacks)
            assert self.pool is not None
            assert self.global_head is not None
            # F(G) − F(G∖S), pooled over all genes and over those that are left.
            lost = shared[1] - self.pool(x, lacks)
            if self.metabolic is not None:
                lost = lost + self.metabolic.merge(shared[2] - metabolic)
            scores: Tensor = self.global_head(lost + own[1])
            return scores

        first = wild_type.first
        inputs = first.inputs if self.metabolic is not None else first.inputs[:0]  # of use there alone
        shared = [first.output, wild_type.cls, wild_type.metabolic, inputs]
        own = [changed.states, context]
        device = context.device.type
        # Dropout draws in the order of mutants, and threads do not inherit autocast: either runs in sequence.
        together = (
            device == "cpu"
            and not (self.training and self.config.dropout)
            and not torch.is_autocast_enabled(device)
        )
        if torch.is_grad_enabled() and tile == 1 and self.phenotypes == 1:
            # One output per mutant: its gradient is taken right away, which neither keeps states nor repeats
            # the forward pass as checkpoints do (`gradients.py`).
            parameters = [p for layer in self.layers[1:] for p in layer.parameters()]
            for module in (self.pool, self.global_head, self.metabolic):
                parameters += [] if module is None else module.parameters()
            # Per thread, keyed by its number: a mutant may overwrite the states of the one before, whose
            # gradient is taken.
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

    def _layers(
        self,
        inputs: Tensor,
        x: Tensor,
        relations: Sequence[SparseOperator],
        wiring: Wiring | None,
        gone: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Pass the upper layers, and all layers of the metabolism, with the genes ``gone`` bool [T, n].

        ``inputs`` [1, n, d] enter the first layer, ``x`` [T, n, d] left it, zero where gone. Returns states
        [T, n, d] and the pooled metabolism [T, 2 d], or [T, 0].
        """
        lacks = gone.unsqueeze(-1)
        metabolic = None
        if self.metabolic is not None and wiring is not None:
            metabolic = MetabolicPass(self.metabolic, wiring, gone)
            metabolic.step(inputs.masked_fill(lacks, 0.0))
        for layer in self.layers[1:]:
            if metabolic is not None:
                metabolic.step(x)
            # D A D with D = diag(keep): biases and LayerNorm revive deleted genes, so the mask follows every
            # layer.
            x = layer(x, relations).masked_fill(lacks, 0.0)
        return x, x.new_zeros(len(gone), 0) if metabolic is None else metabolic.pooled()
