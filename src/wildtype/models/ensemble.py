"""`Ensemble`: the mean prediction of several models of one kind, and its standard deviation over them.

Members come from different seeds (deep ensembles: Lakshminarayanan et al. 2017) or from the ends of the
cycles of one training (snapshot ensembles: Huang et al. 2017).

Where members are experts, each was trained on mutants of one kind, and only those answer that were trained on
mutants like the one to predict (`Model.expert`).

Legend: b mutants · p phenotypes · m members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.models.interface import GeneProfile, Members, Model, OrganismTensors, Prediction, WildType
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
        asked = [type(members[0]).expert(self.config, i, len(members)) for i in range(len(members))]
        self.experts = [expert for expert in asked if expert is not None]

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> EnsembleWildType:
        """Encode the wild type once per member."""
        encoded = tuple(cast(Model, member).encode(organism, stream) for member in self.members)
        return EnsembleWildType(encoded[0].cls, encoded[0].genes, members=encoded)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return the members' mean prediction [b, p] and, of several, their standard deviation.

        With experts, the mean is over those that fit a mutant; the standard deviation is over all members.
        """
        assert isinstance(wild_type, EnsembleWildType)
        pairs = zip(self.members, wild_type.members, strict=True)
        found: list[Prediction] = [member(own, mutants) for member, own in pairs]
        profiles = {p: GeneProfile.mean([one.profiles[p] for one in found]) for p in found[0].profiles}
        # Logits of a class are averaged before the sigmoid, as scaled labels of other outputs are.
        means = torch.stack([one.mean for one in found])
        mean = means.mean(0)
        if self.experts:
            weights = class_of(self).expert_weights(self.experts, mutants, mean.shape[1])
            if weights is not None:
                # Weights of a mutant sum to 1, and are 0 for experts of other numbers of unseen genes.
                mean = torch.einsum("mb,mbp->bp", weights, means)
        # Over all members: a single expert has no spread.
        return Prediction(mean, profiles, means.std(0) if len(found) > 1 else None)

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> Callable[[Tensor], Tensor] | None:
        """Return the mean of the members' fast predictions for sets; None where one of them has none."""
        assert isinstance(wild_type, EnsembleWildType)
        pairs = zip(self.members, wild_type.members, strict=True)
        found = [cast(Model, model).combinations(own, members, evidence) for model, own in pairs]
        answers = [answer for answer in found if answer is not None]
        # All members or none: a mean over some would differ from `forward`.
        if len(answers) < len(found):
            return None
        return lambda sets: torch.stack([answer(sets) for answer in answers]).mean(0)


def members_of(model: Model) -> list[Model]:
    """Return the members of an ensemble, or the model itself."""
    return [cast(Model, member) for member in model.members] if isinstance(model, Ensemble) else [model]


def member_of(model: Model, number: int) -> Model:
    """Return one member, counted from 1, ready to predict; raises ``ConfigError`` if there is none."""
    members = members_of(model)
    if not 1 <= number <= len(members):
        raise ConfigError(f"member={number}: the run has {len(members)}, counted from 1")
    return members[number - 1].eval()


def class_of(model: Model) -> type[Model]:
    """Return the class of a model, or of an ensemble's members: the steps that their settings decide."""
    return type(members_of(model)[0])
