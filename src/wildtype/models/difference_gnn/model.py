"""`DifferenceGNN`: y ≈ h(F(G) − F(G_S)), F a masked GNN over all gene graphs and a pooling.

Legend: b mutants · n genes · R relations · d width · p phenotypes · T mutants of a tile.

G is the wild type's graph and G_S the mutant's, by `representation`: G without the removed genes, what of
that lies within some hops of the perturbed ones, or G itself, of which the pooling leaves out the removed
genes. Leaving out genes removes rows and columns of every adjacency, so all mutants share the wild type's.
The first layer is computed where it differs (`changed_rows`), unless G_S is a neighbourhood, which differs
nearly everywhere; later layers in full for every mutant, states [T, n, d] of a tile at a time. A graph that
is the wild type's passes no layer again. With `metabolism`, reactions and metabolites pass layers of their
own beside the genes'. Deleted genes hold zero after every layer: they send nothing, biases cannot revive
them, and pooling leaves them out. That the systems this model comes from let a deleted gene keep a state of
its own makes no difference, because it reaches no kept gene.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
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
    ChangedRows,
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
from wildtype.models.difference_gnn.metabolism import MetabolicNetwork, MetabolicPass, MetabolicStates, Wiring
from wildtype.models.difference_gnn.neighbourhood import Neighbourhoods
from wildtype.models.interface import Model, ModelInputs, OrganismTensors, Prediction, WildType
from wildtype.models.registry import check
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.ragged import segment_ids, take_rows
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import each
from wildtype.phases import phase

NODES = {"cpu": 1 << 13, "cuda": 1 << 20}
"""Nodes of the mutants that pass together on a device, unless the settings say how many mutants: the states
of a tile stay in the caches of a CPU, and keep a GPU busy.
"""
SLAB = 64
"""Mutants whose first layer is computed together."""
Read = Callable[[Tensor, Tensor], Tensor]
"""Reads something [b, ·] off what mutants lost [b, d] and the embeddings of their conditions [b, d]."""


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
    nodes : MetabolicStates or None
        Its states [1, ·, d] after the last layer.
    """

    first: FirstLayer
    relations: tuple[SparseOperator, ...]
    metabolism: Wiring | None
    metabolic: Tensor
    nodes: MetabolicStates | None


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
        self._near: Neighbourhoods | None = None
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
        x, metabolic = self._layers(first.inputs[None], first.output[None], relations, wiring, nobody, nobody)
        pooled = self.pool(x[0]) if self.pool is not None else x[0].mean(0)
        return DifferenceWildType(
            cls=pooled,
            genes=x[0],
            first=first,
            relations=relations,
            metabolism=wiring,
            metabolic=pooled.new_zeros(0) if metabolic is None else metabolic.pooled()[0],
            nodes=None if metabolic is None else metabolic.states,
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
        return {name: state.detach() for name, state in states.items()}

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of mutants, in units of the scaled labels."""
        assert isinstance(wild_type, DifferenceWildType)
        context = self.condition(mutants.condition) if self.condition is not None else None
        overall = None
        if self.global_head is not None:
            overall = self._overall(wild_type, mutants, context, self._score)
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

    def latents(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return z_S [b, d], the pooled difference F(G) − F(G_S), and h_CLS, the pooled wild type.

        Without a global head, z_S is what the last linear map of the local one reads.
        """
        assert isinstance(wild_type, DifferenceWildType)
        if self.local_head is not None and self.global_head is None:
            z = self.local_head.latent(self._members(wild_type, mutants, None), mutants.offsets)
        else:
            z = self._overall(wild_type, mutants, None, lambda lost, context: lost)
        return {"z_S": z, "h_CLS": wild_type.cls.expand(len(mutants), -1)}

    def _members(self, wild_type: WildType, mutants: MutantBatch, context: Tensor | None) -> Tensor:
        """States [Σk, d] of the perturbed genes."""
        members = take_rows(wild_type.genes, mutants.gene)
        if context is not None:
            members = members + take_rows(context, segment_ids(mutants.offsets))
        return members

    def _local(self, wild_type: WildType, mutants: MutantBatch, context: Tensor | None) -> Tensor:
        assert self.local_head is not None
        scores: Tensor = self.local_head(self._members(wild_type, mutants, context), mutants.offsets)
        return scores

    def _overall(
        self, wild_type: DifferenceWildType, mutants: MutantBatch, context: Tensor | None, read: Read
    ) -> Tensor:
        """What is read off the pooled differences [b, ·], a slab of mutants at a time."""
        nodes = NODES.get(wild_type.cls.device.type, NODES["cpu"])
        tile = self.config.tile or max(1, nodes // max(self.genes, 1))
        slab = max(SLAB, tile)
        if context is None:
            context = wild_type.cls.new_zeros(len(mutants), self.config.width)
        parts = [
            self._slab(wild_type, mutants.slice(at, at + slab), context[at : at + slab], tile, read)
            for at in range(0, len(mutants), slab)
        ]
        # An empty batch has the shape [0, ·] of what would be read.
        return torch.cat(parts) if parts else read(context, context)

    def _slab(
        self, wild_type: DifferenceWildType, mutants: MutantBatch, context: Tensor, tile: int, read: Read
    ) -> Tensor:
        count, n, hops = len(mutants), self.genes, self.config.hops
        with phase("representation"):
            removes = self.removes[mutants.kind.long()]
            gene, owner = mutants.gene[removes], segment_ids(mutants.offsets)[removes]
            removed = torch.zeros(count, n, dtype=torch.bool, device=gene.device)
            removed[owner, gene] = True
            # Owners rise, so the first place of each is where its removed genes begin.
            offsets = torch.searchsorted(owner, torch.arange(count + 1, device=gene.device))
            gone = removed | self._outside(wild_type, mutants) if hops else removed
        if self.config.representation == "perturbation":
            return read(self._left_out(wild_type, removed), context)
        if hops:
            changed = ChangedRows(gene[:0], wild_type.first.output[:0])
        else:
            changed = changed_rows(self._first, wild_type.first, wild_type.relations, gene, offsets)
        cuts = [*range(0, count, tile), count]
        # Keys are mutant · n + gene and rise: every tile's changed rows are one slice.
        edges = torch.tensor(cuts, device=gene.device) * n
        bounds = torch.searchsorted(changed.keys, edges).tolist()

        def run(t: int, shared: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
            start, stop = cuts[t], cuts[t + 1]
            lacks, inputs = gone[start:stop], shared[3][None]
            x = None
            if not hops:
                keys = changed.keys[bounds[t] : bounds[t + 1]] - start * n
                # For a single mutant this is a view of the wild type's states: hence index_copy, not
                # index_copy_.
                x = shared[0].expand(stop - start, -1, -1).reshape((stop - start) * n, -1)
                x = x.index_copy(0, keys, own[0]).view(stop - start, n, -1).masked_fill(lacks[..., None], 0.0)
            x, metabolic = self._layers(
                inputs, x, wild_type.relations, wild_type.metabolism, lacks, removed[start:stop]
            )
            assert self.pool is not None
            pooled = None if metabolic is None else metabolic.pooled()
            # F(G) − F(G_S), pooled over all genes and over those that are left.
            return read(self._lost(shared[1] - self.pool(x, lacks), shared[2], pooled), own[1])

        first = wild_type.first
        # Read by the metabolism and by neighbourhoods only.
        inputs = first.inputs if self.metabolic is not None or hops else first.inputs[:0]
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
            passed = self.layers if hops else self.layers[1:]
            parameters = [p for layer in passed for p in layer.parameters()]
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

    def _outside(self, wild_type: DifferenceWildType, mutants: MutantBatch) -> Tensor:
        """Genes outside every mutant's neighbourhood, bool [b, n]."""
        if self._near is None or not self._near.fits(wild_type.relations):
            self._near = Neighbourhoods(wild_type.relations)
        return self._near.outside(mutants, self.config.hops)

    def _left_out(self, wild_type: DifferenceWildType, removed: Tensor) -> Tensor:
        """What mutants lost [b, d] where their states are the wild type's, less some genes when pooling."""
        assert self.pool is not None
        pooled = None
        if self.metabolic is not None and wild_type.metabolism is not None and wild_type.nodes is not None:
            states = MetabolicStates(*(x[0] for x in wild_type.nodes))
            pooled = self.metabolic.pooled(states, wild_type.metabolism.dead(removed))
        # The pooling reads one [n, d] under all masks [b, n]: no state is copied for a mutant.
        lost = wild_type.cls - self.pool(wild_type.genes, removed)
        return self._lost(lost, wild_type.metabolic, pooled)

    def _lost(self, lost: Tensor, whole: Tensor, pooled: Tensor | None) -> Tensor:
        """What the pooled genes lost [T, d], with what the metabolism [T, 2 d] did of ``whole`` [2 d]."""
        if self.metabolic is not None and pooled is not None:
            lost = lost + self.metabolic.merge(whole - pooled)
        return lost

    def _score(self, lost: Tensor, context: Tensor) -> Tensor:
        """Scores [b, p] of what mutants lost [b, d], in their conditions [b, d]."""
        assert self.global_head is not None
        scores: Tensor = self.global_head(lost + context)
        return scores

    def _layers(
        self,
        inputs: Tensor,
        x: Tensor | None,
        relations: Sequence[SparseOperator],
        wiring: Wiring | None,
        gone: Tensor,
        removed: Tensor,
    ) -> tuple[Tensor, MetabolicPass | None]:
        """Pass the upper layers, and all layers of the metabolism, of graphs without genes ``gone`` [T, n].

        ``inputs`` [1, n, d] enter the first layer, ``x`` [T, n, d] left it, zero where gone; without ``x``
        the first layer is passed, too. Reactions die by the genes ``removed`` [T, n] alone: what a
        neighbourhood leaves out is still there. Returns states [T, n, d] and the metabolism's.
        """
        lacks = gone.unsqueeze(-1)
        kept = inputs.masked_fill(lacks, 0.0) if x is None or self.metabolic is not None else inputs
        metabolic = None
        if self.metabolic is not None and wiring is not None:
            metabolic = MetabolicPass(self.metabolic, wiring, removed)
            metabolic.step(kept)
        if x is None:
            x = self._first(kept, relations, gone).masked_fill(lacks, 0.0)
        for layer in self.layers[1:]:
            if metabolic is not None:
                metabolic.step(x)
            # D A D with D = diag(keep): biases and LayerNorm revive deleted genes, so the mask follows every
            # layer.
            x = layer(x, relations, gone).masked_fill(lacks, 0.0)
        return x, metabolic
