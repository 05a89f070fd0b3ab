"""`CellTransformer`: encodes the wild type once per step, then scores any number of mutants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.errors import ConfigError, ShapeError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.pair_index import PairIndex
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.models.cell_transformer.combinations import SetTables
from wildtype.models.cell_transformer.config import CellTransformerConfig, PriorHead, assign_heads
from wildtype.models.cell_transformer.encoder import Encoder
from wildtype.models.cell_transformer.equivalents import Equivalents
from wildtype.models.cell_transformer.head import STATE, PerturbationHead
from wildtype.models.cell_transformer.post_fit import fit_beyond_start, fit_equivalents, fit_trees
from wildtype.models.cell_transformer.pretraining import pretrain
from wildtype.models.cell_transformer.rows import (
    check_rows,
    evidence_index,
    expert_settings,
    expert_weights,
    with_evidence,
)
from wildtype.models.cell_transformer.tested import tested_pairs
from wildtype.models.cell_transformer.trees import EvidenceTrees
from wildtype.models.explainable import ExplainableModel
from wildtype.models.interface import (
    Members,
    Model,
    ModelInputs,
    OrganismTensors,
    Output,
    Prediction,
    RunRows,
    WildType,
    message_operator,
    prior_operator,
)
from wildtype.models.registry import check
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.valid_pairs import ValidPairs
from wildtype.organism import GeneGraphs, Organism
from wildtype.organism.features import BlockScaling


class CellTransformer(ExplainableModel):
    """The cell transformer over n genes.

    Parameters
    ----------
    config : CellTransformerConfig
        Settings.
    genes, features : int
        Number of genes n and of features per gene f.
    phenotypes : int or sequence of Output
        The p outputs; a number stands for so many scalars.
    conditions : int
        Number of conditions.
    relations : sequence of str
        Relations of the organism that have edges, in order; the config's rule gives heads to them.
    channels, traits : int
        Channels of similarity of genes, and traits of each; without channels, neither evidence nor relations
        within S are read.

    Raises
    ------
    ConfigError
        If settings do not fit each other or the relations.
    """

    forms = ("scalar", "class", "gene")
    head: PerturbationHead
    by_gene = ("encoder.table",)
    by_feature = ("encoder.project.1.weight",)

    def __init__(
        self,
        config: CellTransformerConfig,
        *,
        genes: int,
        features: int,
        phenotypes: int | Sequence[Output],
        conditions: int = 1,
        relations: Sequence[str] = (),
        channels: int = 0,
        traits: int = 0,
    ) -> None:
        super().__init__()
        check(config)
        self.config = config
        self.prior_heads: dict[str, PriorHead] = assign_heads(config, relations)
        self.genes = genes
        self.features = features
        self.encoder = Encoder(config, genes, features, self.prior_heads)
        outputs = Output.of(phenotypes)
        followers = sum(len(prior.places) for prior in self.prior_heads.values())
        self.head = PerturbationHead(config, outputs, conditions, channels, traits, followers)
        evidence = channels > 0 and config.evidence.tokens > 0
        self.needs = self.needed(config)
        self.equivalents = None
        if evidence and config.evidence.equivalents:
            self.equivalents = Equivalents(outputs, config.head.smallest)
        self.trees = None
        if evidence and config.trees.bags:
            also, smallest = len(config.evidence.also), config.head.smallest
            self.trees = EvidenceTrees(outputs, also, conditions, smallest)

    # ---- how it is built

    @classmethod
    def needed(cls, config: CellTransformerConfig) -> tuple[str, ...]:
        """Return what a model of these settings needs of the organism."""
        wanted = {
            "features": config.features,
            "priors": True,
            "similarity": config.needs_similarity,
            "equivalents": config.evidence.tokens > 0 and config.evidence.equivalents,
        }
        return tuple(name for name, there in wanted.items() if there)

    @classmethod
    def left_out(cls, config: CellTransformerConfig) -> list[str]:
        """Return the feature blocks that these settings leave out."""
        return config.leave_out

    @classmethod
    def named_relations(cls, config: CellTransformerConfig) -> list[str]:
        """Return the relations that these settings name, each once."""
        prior = config.prior
        return list(
            dict.fromkeys([*prior.relations, *prior.heads, *prior.reverse, *prior.tested, *prior.untested])
        )

    @classmethod
    def build(cls, config: CellTransformerConfig, inputs: ModelInputs) -> Self:
        """Return a model with initial weights drawn from torch's stream."""
        return cls(
            config,
            genes=inputs.genes,
            features=inputs.features,
            phenotypes=inputs.outputs,
            conditions=inputs.conditions,
            relations=inputs.relations,
            channels=inputs.channels,
            traits=inputs.traits,
        )

    @classmethod
    def reads_signs(cls, config: CellTransformerConfig) -> bool:
        """Return whether outputs start from the smallest value that was measured for a part of a mutant."""
        return config.head.smallest

    # ---- how it is trained

    @classmethod
    def check_run(cls, config: CellTransformerConfig, phenotypes: Sequence[str], members: int) -> None:
        """Refuse evidence and experts that do not fit a run."""
        check_rows(config, phenotypes, members)

    @classmethod
    def started_from(
        cls, config: CellTransformerConfig, source: Model, relations: Sequence[str]
    ) -> CellTransformerConfig:
        """Return settings that give every relation the head that followed it in ``source``.

        Settings that place heads themselves, or choose relations, stay as they are.
        """
        followed = source.prior_heads if isinstance(source, CellTransformer) else {}
        places = {name: place for name, place in followed.items() if name in relations}
        if not places or config.prior.heads or config.prior.relations or config.prior.weight == 0:
            return config
        # A head that learned to follow a relation keeps it: with another order of relations, the rule would
        # give its weights to another relation.
        heads = {name: replace(place, weight=config.prior.weight) for name, place in places.items()}
        return replace(config, prior=replace(config.prior, heads=heads))

    @classmethod
    def of_member(cls, config: CellTransformerConfig, number: int, members: int) -> CellTransformerConfig:
        """Return the settings by which one of so many members is trained: of an expert, its own."""
        return expert_settings(config, number, members)

    @classmethod
    def batches(
        cls,
        config: CellTransformerConfig,
        train: Batches,
        validation: Batches,
        rows: RunRows,
        *,
        post_fit: bool = False,
    ) -> tuple[Batches, Batches]:
        """Return the batches with evidence, out of fold for training mutants."""
        return with_evidence(config, train, validation, rows, trees=post_fit)

    @property
    def has_pretraining(self) -> bool:
        """Whether the settings ask for steps of it."""
        return bool(self.config.pretraining.steps)

    def pretrain(
        self,
        organism: OrganismTensors,
        graphs: GeneGraphs,
        blocks: Sequence[BlockScaling],
        seed: int,
        log: Callable[[str], None],
    ) -> None:
        """Let the encoder tell hidden features and edges of genes, for ``model.pretraining.steps``."""
        edges = {name: message_operator(graphs, name) for name in graphs if graphs[name].nnz}
        settings, heads = self.config.pretraining, self.prior_heads
        pretrain(self.encoder, settings, organism, blocks, edges, heads, seed, log)

    def pre_fit(self, train: Batches, validation: Batches, rows: RunRows) -> tuple[Batches, Batches]:
        """Fit what outputs start from, where the head reads a screen, and add its columns to the batches."""
        screen = self.head.screen
        if screen is None:
            return train, validation
        return screen.fit(train, validation, rows)

    @property
    def has_post_fit(self) -> bool:
        """Whether anything is fitted once the network is trained: trees, equivalents, how much it counts."""
        return self.trees is not None or self.equivalents is not None or self.head.screen is not None

    def post_fit(self, train: Batches, validation: Batches, rows: RunRows) -> str:
        """Fit how far outputs leave their start, then trees, then equivalents; return how much they count."""
        found = []
        if (screen := self.head.screen) is not None:
            validation = screen.held_out(validation, rows)
            found.append(
                fit_beyond_start(self, screen.outputs, self.head.beyond_start, rows.organism, validation)
            )
        if self.trees is not None:
            trees, settings, equal = self.trees, self.config.trees, self.equivalents
            found.append(fit_trees(self, trees, settings, equal, rows.organism, train, validation, rows.seed))
        if self.equivalents is not None:
            # After the trees: the weight of equivalents is relative to the average of network and trees.
            scale = rows.mean, rows.sd
            found.append(fit_equivalents(self, self.equivalents, rows.organism, validation, *scale))
        return "; ".join(found)

    # ---- how it answers

    @classmethod
    def evidence_index(
        cls,
        config: CellTransformerConfig,
        organism: OrganismTensors,
        known: ReferenceMeasurements,
        outputs: Sequence[str],
        mean: NDArray[np.float64],
        sd: NDArray[np.float64],
    ) -> EvidenceIndex | None:
        """Return where measurements are looked up, with those that trees read."""
        return evidence_index(config, organism, known, outputs, mean, sd)

    def pair_index(
        self, organism: OrganismTensors, known: ReferenceMeasurements, outputs: Sequence[str]
    ) -> PairIndex | None:
        """Return where pairs are described, if the head reads a screen: among its visible crosses."""
        if self.head.screen is None:
            return None
        assert organism.similarity is not None  # `needs` names it
        return self.head.screen.index(organism.similarity, known, outputs)

    @classmethod
    def reads_screens(cls, config: CellTransformerConfig) -> bool:
        """Return whether the head reads a screen: the values of others are columns, too."""
        return config.head.screen

    @classmethod
    def looked_up(cls, config: CellTransformerConfig, outputs: Sequence[str]) -> tuple[str, ...]:
        """Return the phenotypes whose measurements are evidence, or describe pairs."""
        if config.evidence.tokens:
            return (*outputs, *config.evidence.also)
        return (outputs[0],) if config.head.screen else ()

    @classmethod
    def evidence_line(cls, config: CellTransformerConfig) -> str:
        """Return the model card's line about evidence."""
        evidence = config.evidence
        screen = (
            " Pairs are described by every visible cross of the screen, but never their own."
            if config.head.screen
            else ""
        )
        if not evidence.tokens:
            added = ", and an additive model of training rows is added" if config.adds_effects else ""
            return f"none is looked up{added}.{screen}"
        also = f", and rows of {', '.join(evidence.also)}" if evidence.also else ""
        return (
            f"up to {evidence.tokens} measurements of similar mutants are looked up, among training rows"
            f"{also}; where there are none, predictions are worse.{screen}"
        )

    @classmethod
    def check_new_genes(cls, config: CellTransformerConfig, what: str, genes: int, *, appended: bool) -> None:
        """Refuse new genes where genes have learned embeddings, or trees a column for each."""
        if config.table:
            raise ConfigError(
                f"this {config.name} has a learned embedding for each of its {genes:,} genes, "
                f"and none for {what}: train with model.table=false"
            )
        if not appended and config.trees.bags and config.trees.genes:
            raise ConfigError(
                f"the trees of this model have a column for each of its genes, and none for {what}: train "
                f"with model.trees.genes=false"
            )

    @classmethod
    def other_genes(cls, config: CellTransformerConfig) -> str:
        """Return how it knows genes that are no tokens: by features; raises ``ConfigError`` without."""
        if not config.features:
            raise ConfigError(
                "genes of this cell_transformer are their learned embeddings (model.features=false)"
            )
        return "features, relations and evidence" + (
            ", with the mean learned embedding" if config.table else ""
        )

    @classmethod
    def expert(cls, config: CellTransformerConfig, number: int, members: int) -> str | None:
        """Return what a member is an expert of: mutants with 0, 1, or only unseen genes."""
        return config.evidence.expert(number, members)

    @classmethod
    def expert_weights(cls, experts: Sequence[str], mutants: MutantBatch, phenotypes: int) -> Tensor | None:
        """Return how much each expert counts for each mutant [m, b]."""
        if mutants.evidence is None:
            return None
        return expert_weights(experts, mutants, mutants.evidence, phenotypes)

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> SetTables | None:
        """Return what predicts sets of members, for a head that reads no evidence."""
        if not SetTables.applies(self.head, len(members.gene)):
            return None
        if wild_type.encoded is not None and self.head.heads and self.head.summary is None:
            return None  # what a gene reads depends on which other genes its mutant has
        return SetTables(self.head, wild_type, members, evidence)

    def priors(self, graphs: GeneGraphs) -> dict[str, SparseOperator]:
        """Return the operator over tokens of every relation that a head follows."""
        reverse, uniform = set(self.config.prior.reverse), self.config.prior.target == "uniform"
        return {
            name: prior_operator(graphs, name, reverse=name in reverse, uniform=uniform)
            for name in self.prior_heads
        }

    def regularised(self, organism: Organism) -> tuple[dict[str, SparseOperator], dict[str, ValidPairs]]:
        """Return the operators of ``priors``, less edges at untested pairs, and the pairs that were tested.

        Raises
        ------
        ConfigError
            If a file of tested pairs cannot be read or no edge is among them, or no head follows a relation
            that has one.
        """
        prior, operators = self.config.prior, self.priors(organism.graphs)
        for name in (*prior.tested, *prior.untested):
            if name not in operators:
                raise ConfigError(
                    f"model.prior.tested and model.prior.untested name {name!r}, which no head follows: "
                    f"leave it out, or give it a head"
                )
        found = {name: tested_pairs(prior, name, organism) for name in operators}
        tested = {name: pairs for name, pairs in found.items() if pairs is not None}
        for name, pairs in tested.items():
            # R ∘ Ã keeps the sums of all edges; without invalid keys the rest of a row is divided anew.
            op = operators[name].row_normalised(prior.epsilon) if prior.mask == "terms" else operators[name]
            operators[name] = pairs.edges_of(op)
            if not operators[name].nnz:
                raise ConfigError(
                    f"relation {name!r} has no edge at a tested pair: leave it out of the priors"
                )
        return operators, tested

    def without_doses(self) -> None:
        """Exclude the parameters that read doses from training."""
        self.head.dose.requires_grad_(False)

    def transposed(self, relation: str) -> bool:
        """Whether the prior of a relation leads from targets to sources."""
        return relation in self.config.prior.reverse

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Encode the wild type: once per step, whatever the number of mutants.

        Raises
        ------
        ShapeError
            If the organism has another number of genes or features than the model was made for.
        ConfigError
            If the organism has operators for some of the model's priors but not for all.
        """
        # Without a table no weight belongs to one gene, so an organism of any size fits.
        expected = (self.genes if self.config.table else organism.tokens, self.features)
        if (found := (organism.tokens, organism.features.shape[1])) != expected:
            raise ShapeError(f"features has shape {found}, expected {expected}")
        if organism.priors and organism.priors.keys() != self.prior_heads.keys():
            raise ConfigError(
                f"the organism has operators for {sorted(organism.priors)}, the model's priors are "
                f"{sorted(self.prior_heads)}: build them with CellTransformer.priors"
            )
        cls, genes, losses, regularised = self.encoder(organism, stream)
        weights = {name: self.prior_heads[name].weight for name in losses}
        shared, native = organism.encoded, None
        if self.config.head.foreign == "absent":
            native = organism.native
        elif organism.native is not None:
            # A foreign gene is absent from every mutant that does not name it: nothing is read off it.
            shared = organism.native
        return WildType(cls, genes, losses, weights, regularised, self._traits(organism), shared, native)

    def _traits(self, organism: OrganismTensors) -> Tensor | None:
        """Return what trees read of every gene [n, i]."""
        if self.trees is None or organism.similarity is None:
            return None
        parts = [torch.from_numpy(organism.similarity.traits).to(organism.features.device)]
        if self.config.trees.features:
            parts.append(organism.features)
        if self.config.trees.genes:  # appended genes come last, and have no column
            parts.append(torch.eye(organism.genes, self.genes, device=organism.features.device))
        return torch.cat(parts, dim=1)

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """Return the states of the genes [n, d] as tokens and after every layer; empty without layers."""
        return self.encoder.layer_states(organism)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of mutants, in units of the scaled labels.

        Trees and equivalents are no part of training: they are fitted when the network is done.
        """
        given = mutants.evidence
        # The network reads the first tokens of what the trees read: one lookup serves both.
        prediction: Prediction = self.head(wild_type, self.for_network(mutants))
        if self.trees is not None and not self.training:
            prediction.mean = self.trees(wild_type, mutants, prediction.mean)
        if self.equivalents is not None and given is not None and not self.training:
            prediction.mean = self.equivalents(prediction.mean, given)
        return prediction

    def for_network(self, mutants: MutantBatch) -> MutantBatch:
        """Return a batch with the evidence that the network reads, where trees read more."""
        given, settings = mutants.evidence, self.config.evidence
        if given is None or self.trees is None:
            return mutants
        return replace(mutants, evidence=given.first(settings.tokens, settings.two, settings.neighbours))

    # ---- how it is explained

    def latents(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return z_S [b, d], and h_CLS; a head without z_S has the direct summaries of S in its place."""
        head = self.head
        if head.heads:
            found = {"z_S": head.whole_cell(wild_type, mutants)}
        else:
            parts = head.perturbed(wild_type, mutants)
            names = [name for name, _ in head.direct_by_name()] or [STATE]
            found = {"summary": torch.cat([parts[name] for name in names], -1)}
        return found | {"h_CLS": wild_type.cls.expand(len(mutants), -1)}

    @property
    def attention_heads(self) -> list[tuple[int, int]]:
        """Layer and head of every attention head of the encoder."""
        config = self.config
        return [(layer, head) for layer in range(config.layers) for head in range(config.heads)]

    def queries_and_keys(self, organism: OrganismTensors) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield queries and keys [h, t, d / h] of layer after layer."""
        return self.encoder.queries_and_keys(organism)

    def beside_network(self, phenotype: int) -> dict[str, float]:
        """Return the mixing weights of trees and equivalents in an output."""
        return {
            text: float(part.mixing_weight[phenotype])
            for text, part in (
                ("boosted trees over the same evidence count {:.2f} in the prediction", self.trees),
                (
                    "measured mutants that lose the same reactions count {:.2f} where there are any",
                    self.equivalents,
                ),
            )
            if part is not None
        } | (
            {}
            if self.head.screen is None
            else {
                "the network beyond the weighted sum of the screen's columns counts {:.2f}": float(
                    self.head.beyond_start[phenotype]
                )
            }
        )
