"""`CellTransformer`: encode the wild type once, then ask it about every mutant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from wildtype.errors import ConfigError, ShapeError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.models.cell_transformer.combinations import SetTables
from wildtype.models.cell_transformer.config import CellTransformerConfig, PriorHead, assign_heads, check
from wildtype.models.cell_transformer.encoder import Encoder
from wildtype.models.cell_transformer.equivalents import Equivalents
from wildtype.models.cell_transformer.head import PerturbationHead
from wildtype.models.cell_transformer.trees import EvidenceTrees
from wildtype.models.interface import (
    Members,
    Model,
    OrganismTensors,
    Output,
    Prediction,
    WildType,
    prior_operator,
)
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneGraphs


class CellTransformer(Model):
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

    needs: tuple[str, ...] = ("features", "priors")
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
        self.head = PerturbationHead(config, outputs, conditions, channels, traits, len(self.prior_heads))
        evidence = channels > 0 and config.evidence.tokens > 0
        if evidence and config.evidence.equivalents:
            self.needs = (*self.needs, "equivalents")
        self.equivalents = None
        if evidence and config.evidence.equivalents:
            self.equivalents = Equivalents(outputs, config.head.smallest)
        self.trees = None
        if evidence and config.trees.bags:
            also, smallest = len(config.evidence.also), config.head.smallest
            self.trees = EvidenceTrees(outputs, also, conditions, smallest)

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> SetTables | None:
        """Return what predicts sets of members, for a head that reads no evidence."""
        if not SetTables.applies(self.head, len(members.gene), len(wild_type.genes)):
            return None
        return SetTables(self.head, wild_type, members, evidence)

    def priors(self, graphs: GeneGraphs) -> dict[str, SparseOperator]:
        """Return the operator over tokens of every relation that a head follows."""
        reverse = set(self.config.prior.reverse)
        return {name: prior_operator(graphs, name, reverse=name in reverse) for name in self.prior_heads}

    def without_doses(self) -> None:
        """Take note that no mutant has a dose: what reads doses is not trained."""
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
        expected = (self.genes if self.config.table else organism.genes, self.features)
        if tuple(organism.features.shape) != expected:
            raise ShapeError(f"features has shape {tuple(organism.features.shape)}, expected {expected}")
        if organism.priors and organism.priors.keys() != self.prior_heads.keys():
            raise ConfigError(
                f"the organism has operators for {sorted(organism.priors)}, the model's priors are "
                f"{sorted(self.prior_heads)}: build them with CellTransformer.priors"
            )
        cls, genes, losses, regularised = self.encoder(organism, stream)
        weights = {name: self.prior_heads[name].weight for name in losses}
        return WildType(cls, genes, losses, weights, regularised, self._traits(organism))

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

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of mutants, in units of the scaled labels.

        Trees and equivalents are no part of training: they are fitted when the network is done.
        """
        given = mutants.evidence
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
