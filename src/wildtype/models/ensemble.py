"""`Ensemble`: several models of one kind that predict their mean, and how far they lie apart.

Members come from different seeds (deep ensembles: Lakshminarayanan et al. 2017) or from the ends of the
cycles of one training (snapshot ensembles: Huang et al. 2017).

Legend: b mutants · p phenotypes · m members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from wildtype.models.interface import GeneProfile, Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch


@dataclass(slots=True)
class EnsembleWildType(WildType):
    """The wild type as each of the m members encodes it; the other fields are those of the first."""

    members: tuple[WildType, ...] = ()


class Ensemble(Model):
    """The mean of m trained models.

    Parameters
    ----------
    members : sequence of Model
        At least one; all with the same settings, genes and phenotypes.
    """

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.config = members[0].config
        self.needs, self.relations = members[0].needs, members[0].relations

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> EnsembleWildType:
        """Encode the wild type once per member."""
        encoded = tuple(cast(Model, member).encode(organism, stream) for member in self.members)
        return EnsembleWildType(encoded[0].cls, encoded[0].genes, members=encoded)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return the members' mean prediction [b, p], and the standard deviation of several."""
        assert isinstance(wild_type, EnsembleWildType)
        pairs = zip(self.members, wild_type.members, strict=True)
        found: list[Prediction] = [member(own, mutants) for member, own in pairs]
        profiles = {p: GeneProfile.mean([one.profiles[p] for one in found]) for p in found[0].profiles}
        means = torch.stack([one.mean for one in found])
        return Prediction(means.mean(0), profiles, means.std(0) if len(found) > 1 else None)
