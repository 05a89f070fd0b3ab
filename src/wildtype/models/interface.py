"""What every neural model shares: its view of the organism, the encoded wild type, and a prediction.

Legend: n genes · f features per gene · d width · b mutants · p phenotypes · t = n + 1 tokens (CLS first).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from wildtype.errors import ConfigError
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
    outside : int64 [a]
        Genes that were appended to the organism: attended to, but no part of any prior's normaliser unless a
        pair of theirs is listed in ``valid``. Mostly empty.
    valid : dict of str to int64 [2, M]
        Per relation, pairs of tokens, one of them an appended gene, of which it is known whether they are
        related.

    Raises
    ------
    ConfigError
        If a prior has an edge at an appended gene that ``valid`` does not list.
    """

    features: Tensor
    priors: dict[str, SparseOperator] = field(default_factory=dict)
    outside: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    valid: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.outside):
            return
        t = self.genes + 1
        for name, op in self.priors.items():
            rows, cols = op.edges()
            touching = torch.isin(rows, self.outside_tokens) | torch.isin(cols, self.outside_tokens)
            listed = self.valid.get(name, rows.new_zeros(2, 0))
            unlisted = ~torch.isin((rows * t + cols)[touching], listed[0] * t + listed[1])
            if bool(unlisted.any()):
                raise ConfigError(
                    f"relation {name!r} has {int(unlisted.sum())} edges at appended genes that are not "
                    f"listed as valid pairs: list them, or leave them out"
                )

    @property
    def genes(self) -> int:
        """Number of genes n."""
        return len(self.features)

    def to(self, device: torch.device | str) -> OrganismTensors:
        """Return the same on another device."""
        return OrganismTensors(
            self.features.to(device),
            {name: op.to(device) for name, op in self.priors.items()},
            self.outside.to(device),
            {name: pairs.to(device) for name, pairs in self.valid.items()},
        )

    @property
    def outside_tokens(self) -> Tensor:
        """Tokens left out of every normaliser: CLS and the appended genes."""
        return torch.cat([self.outside.new_tensor([CLS]), self.outside + CLS + 1])


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
