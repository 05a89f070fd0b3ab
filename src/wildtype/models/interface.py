"""What every neural model shares: its view of the organism, the encoded wild type, and a prediction.

Legend: n genes · f features per gene · d width · b mutants · p phenotypes · t = n + 1 tokens (CLS first).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from wildtype.mutants.batch import MutantBatch
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneGraphs

CLS = 0  # position of the CLS token; gene i is token i + 1


@dataclass(slots=True)
class OrganismTensors:
    """The organism as an encoder sees it.

    Attributes
    ----------
    features : float32 [n, f]
        Standardised gene features; f may be 0.
    priors : dict of str to SparseOperator [t, t]
        Relation of every regularised head, over tokens; the CLS row and column are empty. Leave it empty
        where the auxiliary losses are not wanted: for validation and prediction.
    """

    features: Tensor
    priors: dict[str, SparseOperator] = field(default_factory=dict)

    @property
    def genes(self) -> int:
        """Number of genes n."""
        return len(self.features)

    def to(self, device: torch.device | str) -> OrganismTensors:
        """Return the same on another device."""
        return OrganismTensors(
            self.features.to(device), {name: op.to(device) for name, op in self.priors.items()}
        )


def prior_operator(graphs: GeneGraphs, relation: str, *, reverse: bool = False) -> SparseOperator:
    """Return one relation over tokens [t, t]: rows are sources (targets when ``reverse``), CLS has no
    edges.
    """
    chosen = graphs[relation].reversed() if reverse else graphs[relation]
    rows, cols, weights = (torch.from_numpy(x) for x in chosen.endpoints())
    values = weights if chosen.weighted else None
    return SparseOperator.from_edges(rows + 1, cols + 1, chosen.n + 1, values, name=relation)


@dataclass(slots=True)
class WildType:
    """The encoded wild type, shared by every mutant of a step.

    Attributes
    ----------
    cls : [d]
        The whole cell.
    genes : [n, d]
        One row per gene.
    losses : dict of str to scalar tensor
        Auxiliary losses by name, unweighted: mean KL per regularised row in nats, one per graph prior.
    weights : dict of str to float
        Weight of each auxiliary loss in the training objective.
    """

    cls: Tensor
    genes: Tensor
    losses: dict[str, Tensor] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Prediction:
    """Predicted phenotypes ``mean`` [b, p], in units of the scaled labels."""

    mean: Tensor


class Model(Protocol):
    """A neural model: ``encode`` once per step, then call for any number of mutants."""

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Encode the wild type; ``stream`` draws sampled rows and negatives."""

    def __call__(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the phenotypes of a batch of mutants."""
