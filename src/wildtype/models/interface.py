"""`Model`: the steps that every neural model has, those that it may replace, and what it is built from.

Legend: n genes · f features per gene · b mutants · p phenotypes · m members of an ensemble.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.pair_index import PairIndex
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.organism_tensors import (
    CLS,
    MetabolismTensors,
    OrganismTensors,
    message_operator,
    prior_operator,
)
from wildtype.models.records import GeneProfile, Members, Output, Prediction, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.grid import CrossSides, ScreenGrid, VisibleCrosses
from wildtype.mutants.loader import Batches
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.valid_pairs import ValidPairs
from wildtype.organism import GeneGraphs, Organism
from wildtype.organism.features import BlockScaling

__all__ = [
    "CLS",
    "NEEDS",
    "GeneProfile",
    "Members",
    "MetabolismTensors",
    "Model",
    "ModelInputs",
    "OrganismTensors",
    "Output",
    "Prediction",
    "RunRows",
    "WildType",
    "check_needs",
    "message_operator",
    "organism_tensors",
    "prior_operator",
]

NEEDS = {
    "features": "the features of genes, standardised [n, f]",
    "priors": "operators over tokens, which attention heads follow (`Model.priors`)",
    "relations": "operators over genes, to pass messages over (`Model.relations`)",
    "metabolism": "reactions, metabolites and gene rules; an organism without them is refused",
    "equivalents": "the same, where the organism has them",
    "similarity": "how alike genes are, to look up evidence by",
}
"""What a model may need of an organism."""


def check_needs(name: str, needs: Sequence[str]) -> None:
    """Refuse something that a model needs and that there is not; raises ``ConfigError``."""
    for need in needs:
        if need not in NEEDS:
            raise ConfigError(f"model {name!r} needs {need!r}, which is not known; known: {', '.join(NEEDS)}")


@dataclass(frozen=True)
class ModelInputs:
    """What the organism and the rows of a run offer, in numbers and names: what a model is built from.

    Attributes
    ----------
    genes, features : int
        Number of genes n and of features per gene f; f is 0 for a model that does not need features.
    outputs : tuple of Output
        The p outputs.
    conditions : int
        Number of conditions.
    relations : tuple of str
        Relations of the organism that have edges, in order.
    channels, traits : int
        Channels of the genes' similarity and traits of each gene; 0 without need of ``similarity``.
    reactions, metabolites : int
        Of the organism's metabolism; 0 where it has none.
    """

    genes: int
    features: int
    outputs: tuple[Output, ...]
    conditions: int = 1
    relations: tuple[str, ...] = ()
    channels: int = 0
    traits: int = 0
    reactions: int = 0
    metabolites: int = 0


@dataclass(frozen=True, eq=False)
class RunRows:
    """The rows of a run, for a model whose batches hold more than their mutants.

    Attributes
    ----------
    train, validation : MutantTable
        Labels as measured.
    known : ReferenceMeasurements
        What was measured, and which part of the split every row is in.
    outputs : tuple of str
        Names of the p outputs.
    mean, sd : float64 [p]
        Of the training labels.
    organism : OrganismTensors
        What the model sees of the organism.
    seed : int
        Of what is drawn.
    grid : ScreenGrid or None
        All crosses that a screen measured, where the run is on such a dataset; hidden ones are unknown.
    sides : CrossSides or None
        The side of the split of every cross; only those of ``TRAIN`` may be learnt from.
    listed : MutantTable or None
        The listed training crosses, as measured; `crosses` holds all three.
    """

    train: MutantTable
    validation: MutantTable
    known: ReferenceMeasurements
    outputs: tuple[str, ...]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    organism: OrganismTensors
    seed: int
    grid: ScreenGrid | None = None
    sides: CrossSides | None = None
    listed: MutantTable | None = None

    @property
    def crosses(self) -> VisibleCrosses | None:
        """What may be known of the crosses of the grid; None without one."""
        if self.grid is None or self.sides is None or self.listed is None:
            return None
        return VisibleCrosses(self.grid, self.sides, self.listed)


class Model(nn.Module, ABC):
    """A neural model: ``encode`` once per step, then call for any number of mutants.

    Only ``encode`` and ``forward`` must be written. The other steps have defaults; a model replaces those
    that are special about it, and nothing outside its folder asks which model it is. Steps that take
    ``config`` are asked before there is a model.

    Attributes
    ----------
    config : dataclass
        Its settings; ``config.name`` is its name in the registry.
    needs : tuple of str
        What it must see of the organism, of `NEEDS`. All but priors go into its checkpoints.
    forms : tuple of str
        Forms of outputs that it has.
    least_perturbed : int
        Fewest perturbed genes of a mutant that it can score.
    most_perturbed : int or None
        Most perturbed genes of a mutant that it can score; None: any number. With a number, a run refuses
        rows that are not scored (`scored`), and so does a screen; tables of predictions hold NaN and a note.
    gradients : bool
        Whether it is trained by gradients; else all there is to fit is fitted by ``post_fit``.
    relations : tuple of str
        Names of the relations that it passes messages over.
    encode_per_epoch : bool
        Whether training uses one wild type, without its gradient, for a whole epoch: an approximation.
    graph_per_mutant : bool
        Whether a step works on a graph of all genes for every mutant, and not once for all of them.
    by_gene, by_feature : tuple of str
        Names of the parameters with one row per gene, and of those with one column per gene feature: weights
        of another organism's model take their place by name.
    """

    config: Any
    needs: tuple[str, ...] = ()
    forms: tuple[str, ...] = ("scalar", "class")
    least_perturbed: int = 1
    most_perturbed: int | None = None
    gradients: bool = True
    relations: tuple[str, ...] = ()
    encode_per_epoch: bool = False
    graph_per_mutant: bool = False
    by_gene: tuple[str, ...] = ()
    by_feature: tuple[str, ...] = ()

    # ---- the two steps of every model

    @abstractmethod
    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Encode the wild type: ``cls`` [d] and ``genes`` [n, d]; ``stream`` draws samples and negatives."""

    @abstractmethod
    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes [b, p] of a batch of b mutants, scaled as the labels of training are."""

    # ---- how it is built

    @classmethod
    def needed(cls, config: Any) -> tuple[str, ...]:
        """Return what a model of these settings needs of the organism, of `NEEDS`."""
        return cls.needs

    @classmethod
    def reads_screens(cls, config: Any) -> bool:
        """Return whether a model with these settings looks at other screens (``data.screens``)."""
        return False

    @classmethod
    def reads_signs(cls, config: Any) -> bool:
        """Return whether it asks, with these settings, which labels are smaller: ``data.flip`` is refused."""
        return False

    @classmethod
    def left_out(cls, config: Any) -> list[str]:
        """Return the feature blocks that these settings leave out."""
        return []

    @classmethod
    def named_relations(cls, config: Any) -> list[str]:
        """Return the relations that these settings name, each once."""
        return []

    @classmethod
    def build(cls, config: Any, inputs: ModelInputs) -> Self:
        """Return a model with initial weights drawn from torch's stream."""
        return cls(
            config,
            genes=inputs.genes,
            features=inputs.features,
            phenotypes=len(inputs.outputs),
            conditions=inputs.conditions,
            relations=inputs.relations,
        )

    def priors(self, graphs: GeneGraphs) -> dict[str, SparseOperator]:
        """Return the operator over tokens of every relation that an attention head follows."""
        return {}

    def regularised(self, organism: Organism) -> tuple[dict[str, SparseOperator], dict[str, ValidPairs]]:
        """Return the operators of ``priors``, and which pairs were tested where these are not all."""
        return self.priors(organism.graphs), {}

    def transposed(self, relation: str) -> bool:
        """Whether the prior of a relation leads from targets to sources."""
        return False

    # ---- how it is trained

    @classmethod
    def check_run(cls, config: Any, phenotypes: Sequence[str], members: int) -> None:
        """Refuse settings that do not fit a run, before anything is written.

        Parameters
        ----------
        config : dataclass
            Settings that passed their own check.
        phenotypes : sequence of str
            All phenotypes of the dataset.
        members : int
            Members of the ensemble.

        Raises
        ------
        ConfigError
            Naming the setting and the remedy.
        """

    @classmethod
    def scored(cls, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which mutants it scores, by their number of perturbed genes [m].

        Without ``most_perturbed`` all of them: other numbers are extrapolations, and tables say so.
        """
        if cls.most_perturbed is None:
            return np.ones(order.shape, bool)
        return (cls.least_perturbed <= order) & (order <= cls.most_perturbed)

    @classmethod
    def scored_orders(cls) -> str:
        """Return the numbers of perturbed genes that it scores, for messages, as in "2 genes"."""
        least, most = cls.least_perturbed, cls.most_perturbed
        if most is None:
            return f"{least} or more genes"
        return f"{least} genes" if least == most else f"{least} to {most} genes"

    @classmethod
    def started_from(cls, config: Any, source: Model, relations: Sequence[str]) -> Any:
        """Return the settings of a model whose training starts from the weights of ``source``."""
        return config

    @classmethod
    def of_member(cls, config: Any, number: int, members: int) -> Any:
        """Return the settings by which one of so many members, from 0, is trained."""
        return config

    @classmethod
    def batches(
        cls, config: Any, train: Batches, validation: Batches, rows: RunRows, *, post_fit: bool = False
    ) -> tuple[Batches, Batches]:
        """Return the training and validation batches with what they hold besides their mutants.

        With ``post_fit``, they are those that `post_fit` is fitted to.
        """
        return train, validation

    @property
    def has_pretraining(self) -> bool:
        """Whether `pretrain` learns anything."""
        return False

    def pretrain(
        self,
        organism: OrganismTensors,
        graphs: GeneGraphs,
        blocks: Sequence[BlockScaling],
        seed: int,
        log: Callable[[str], None],
    ) -> None:
        """Learn from the wild type alone, and log what was learned; by default nothing is.

        Asked where `has_pretraining`. It comes first, where training starts from drawn weights, and is not
        asked of one that is resumed, or that starts from another run. Organism and model are on the device
        of training, and ``blocks`` are the columns of the features.
        """
        return

    def pre_fit(self, train: Batches, validation: Batches, rows: RunRows) -> tuple[Batches, Batches]:
        """Fit what training by gradients starts from, and return its batches with what is read besides.

        ``train`` and ``validation`` are those of `batches`.
        """
        return train, validation

    def without_doses(self) -> None:
        """Exclude from training the parameters that read doses, where no mutant has one."""
        return

    def set_epoch(self, epoch: int) -> None:
        """Announce an epoch (from 0), for schedules that change during training."""
        return

    def unused_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that no loss depends on, with these settings and in the epoch announced last.

        They are those that its modules declare by a method of this name; a model adds its own. Under several
        processes every other parameter must have a gradient in every step.
        """
        for module in self.modules():
            declared = getattr(module, "unused_parameters", None)
            if module is not self and declared is not None:
                yield from declared()

    def layer_states(self, organism: OrganismTensors) -> dict[str, Tensor]:
        """Return the wild type's gene states [n, d] by name of the layer, in order, to watch them.

        Empty for a model whose genes pass no layers.
        """
        return {}

    @property
    def has_post_fit(self) -> bool:
        """Whether ``post_fit`` is to be called once training is over."""
        return False

    def post_fit(self, train: Batches, validation: Batches, rows: RunRows) -> str:
        """Fit what is fitted once training is over, where ``has_post_fit``; return what was found."""
        raise NotImplementedError

    # ---- how it answers

    def latents(self, wild_type: WildType, mutants: MutantBatch) -> dict[str, Tensor]:
        """Return vectors [b, ·] that the model reads a mutant's phenotypes off, by name.

        First the one that tells mutants apart: ``z_S``, what a mutant makes of the whole cell, where there is
        one. ``h_CLS``, the encoded wild type, is the same for every mutant. Empty: it has none.
        """
        return {}

    @classmethod
    def evidence_index(
        cls,
        config: Any,
        organism: OrganismTensors,
        known: ReferenceMeasurements,
        outputs: Sequence[str],
        mean: NDArray[np.float64],
        sd: NDArray[np.float64],
    ) -> EvidenceIndex | None:
        """Return where a trained model looks up measurements; None for a model that reads none.

        ``outputs``, ``mean`` and ``sd`` [p] are the names and the scaling of its outputs.
        """
        return None

    def pair_index(
        self, organism: OrganismTensors, known: ReferenceMeasurements, outputs: Sequence[str]
    ) -> PairIndex | None:
        """Return where a trained model has pairs described; None for a model that reads no such columns.

        ``outputs`` are the names of its outputs.
        """
        return None

    @classmethod
    def looked_up(cls, config: Any, outputs: Sequence[str]) -> tuple[str, ...]:
        """Return the phenotypes whose measurements it looks up, beginning with its outputs; none: empty."""
        return ()

    @classmethod
    def evidence_line(cls, config: Any) -> str:
        """Return the model card's line about evidence."""
        return "none is looked up."

    @classmethod
    def check_new_genes(cls, config: Any, what: str, genes: int, *, appended: bool) -> None:
        """Refuse genes that the model was not trained on, where its weights depend on them.

        Parameters
        ----------
        config : dataclass
            Settings.
        what : str
            The new genes, for messages.
        genes : int
            Number of genes that it was trained on.
        appended : bool
            Whether the new ones come behind those; else they take their place.

        Raises
        ------
        ConfigError
            Naming the remedy.
        """
        raise ConfigError(
            f"this {config.name} has a learned embedding for each of its {genes:,} genes, and none for "
            f"{what}: choose a model that knows genes by their features"
        )

    @classmethod
    def other_genes(cls, config: Any) -> str:
        """Return what a model knows genes by that are in the organism and no tokens of its encoder.

        Raises
        ------
        ConfigError
            If it knows genes only by parameters of their own, so that it cannot predict mutants of others.
        """
        raise ConfigError(f"this {config.name} has a learned embedding for each gene that it was trained on")

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> Callable[[Tensor], Tensor] | None:
        """Return a function from sets [m, k] of members to outputs [m, p], or None where there is none.

        It equals ``forward`` and is faster. ``evidence`` holds the similarity of genes.
        """
        return None

    @classmethod
    def expert(cls, config: Any, number: int, members: int) -> str | None:
        """Return what one of so many members, from 0, is an expert of; None where members are alike."""
        return None

    @classmethod
    def expert_weights(cls, experts: Sequence[str], mutants: MutantBatch, phenotypes: int) -> Tensor | None:
        """Return how much each expert counts for each mutant [m, b]; None where all count alike."""
        return None


def organism_tensors(
    model: Model,
    organism: Organism,
    features: Tensor,
    similarity: GeneSimilarity | None = None,
    *,
    priors: bool = True,
) -> OrganismTensors:
    """Return what ``model`` needs of an organism, with its gene features [n, f] and their similarity.

    Without ``priors``, for prediction, the organism may lack relations that attention heads followed in
    training: they need none to attend.

    Raises
    ------
    ConfigError
        If the model needs a metabolism and the organism has none.
    """
    graphs, needs, appended = organism.graphs, model.needs, organism.appended
    check_needs(type(model).__name__, needs)
    # Priors are losses of training: attention itself reads no graph.
    followed, tested = model.regularised(organism) if priors and "priors" in needs else ({}, {})
    relations = model.relations if "relations" in needs else ()
    # `metabolism` is required, `equivalents` are optional: only the first refuses an organism without it.
    wanted = "metabolism" in needs or ("equivalents" in needs and organism.metabolism is not None)
    whole = CellGraph.of(organism, (), metabolism=True) if wanted else None
    return OrganismTensors(
        features,
        priors=followed,
        outside=torch.from_numpy(appended.genes.copy()),
        valid={
            # A reversed view has a negative stride, which torch refuses: hence the copy. Token 0 is CLS.
            name: torch.from_numpy(pairs[::-1].copy() if model.transposed(name) else pairs.copy()) + 1
            for name, pairs in appended.valid.items()
            if name in followed
        },
        relations={name: message_operator(graphs, name) for name in relations},
        metabolism=None if whole is None else MetabolismTensors.of(whole),
        similarity=similarity,
        native=_native(organism),
        tested=tested,
    )


def _native(organism: Organism) -> int | None:
    """Return the number of genes before the foreign ones; None without these, or where they are not last."""
    if organism.foreign is None or not organism.foreign.any():
        return None
    first = int(np.flatnonzero(organism.foreign)[0])
    return first if first and organism.foreign[first:].all() else None
