"""`Ensemble`: several models of one kind that predict their mean, and how far they lie apart.

Members come from different seeds (deep ensembles: Lakshminarayanan et al. 2017) or from the ends of the
cycles of one training (snapshot ensembles: Huang et al. 2017).

Where members are experts (``model.evidence.experts``), each learnt from mutants with so many unseen genes,
and only those answer that learnt from mutants like the one asked about.

Legend: b mutants · p phenotypes · m members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from wildtype.evidence.lookup import EvidenceIndex
from wildtype.models.interface import GeneProfile, Members, Model, OrganismTensors, Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.nn.ragged import segment_sum


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
        evidence = getattr(self.config, "evidence", None)
        asked = [evidence.expert(i, len(members)) for i in range(len(members))] if evidence else []
        self.experts = [expert for expert in asked if expert is not None]

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> EnsembleWildType:
        """Encode the wild type once per member."""
        encoded = tuple(cast(Model, member).encode(organism, stream) for member in self.members)
        return EnsembleWildType(encoded[0].cls, encoded[0].genes, members=encoded)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Return the members' mean prediction [b, p], that of the experts alone where there are any, and the
        standard deviation of several, which is that of all members.
        """
        assert isinstance(wild_type, EnsembleWildType)
        pairs = zip(self.members, wild_type.members, strict=True)
        found: list[Prediction] = [member(own, mutants) for member, own in pairs]
        profiles = {p: GeneProfile.mean([one.profiles[p] for one in found]) for p in found[0].profiles}
        means = torch.stack([one.mean for one in found])
        mean = means.mean(0)
        if self.experts and mutants.evidence is not None:
            weights = self._weights(mutants, mutants.evidence, mean.shape[1])
            mean = torch.einsum("mb,mbp->bp", weights, means)
        return Prediction(mean, profiles, means.std(0) if len(found) > 1 else None)

    def combinations(
        self, wild_type: WildType, members: Members, evidence: EvidenceIndex | None
    ) -> Callable[[Tensor], Tensor] | None:
        """Return the mean of what the members say of sets; None where one of them knows no such way."""
        assert isinstance(wild_type, EnsembleWildType)
        pairs = zip(self.members, wild_type.members, strict=True)
        found = [cast(Model, model).combinations(own, members, evidence) for model, own in pairs]
        answers = [answer for answer in found if answer is not None]
        if len(answers) < len(found):
            return None
        return lambda sets: torch.stack([answer(sets) for answer in answers]).mean(0)

    def _weights(self, mutants: MutantBatch, evidence: EvidenceTokens, phenotypes: int) -> Tensor:
        """Return how much each member counts for each mutant [m, b]: alike, of those that are asked."""
        everything = evidence.genes.statistics.shape[1] // 3
        count = evidence.genes.statistics[
            :, everything : everything + phenotypes
        ]  # further phenotypes come behind
        unseen = segment_sum((count == 0).all(1).float()[:, None], mutants.offsets)[:, 0]
        whole = (mutants.offsets[1:] - mutants.offsets[:-1]).to(unseen)
        asked = {"seen": unseen == 0, "none": (unseen == whole) & (whole > 0)}
        asked["one"] = ~(asked["seen"] | asked["none"])
        weights = torch.stack([asked[name] for name in self.experts]).to(unseen)
        weights = torch.where(weights.sum(0) > 0, weights, 1.0)
        return weights / weights.sum(0)
