"""Records passed into and out of a model: the encoded wild type, outputs, and predictions.

Legend: n genes · d width · b mutants · p phenotypes · c members of a screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

Described = dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]]
"""Rows of genes [n, ·], and which of them are there [n], by the measurements and the precision."""


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
        Auxiliary losses by name, unweighted, one per graph prior: by default the mean KL per regularised row
        in nats, summed over the heads that follow the relation.
    weights : dict of str to float
        Weight of each auxiliary loss in the training objective; ``data`` is that of the phenotypes (1 where
        it is not given).
    regularised : (Tensor, Tensor) or None
        Queries and keys [n, r, d_h] of the r attention heads that follow a relation, scaled so that their
        inner products are logits; where a head reads them out.
    traits : [n, i] or None
        What trees read of every gene.
    encoded : int or None
        Number of first genes that every mutant attends to; None: all. Of later ones, which are no tokens of
        the encoder or foreign to the cell, a mutant attends to those that it names.
    native : int or None
        Number of first genes that the cell has; later ones are keys of every mutant, absent from those that
        do not add them. None: all, or foreign genes are no keys (``encoded``).
    described : Described
        What was measured around every gene, as the head reads it; filled while mutants are predicted.
    """

    cls: Tensor
    genes: Tensor
    losses: dict[str, Tensor] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    regularised: tuple[Tensor, Tensor] | None = None
    traits: Tensor | None = None
    encoded: int | None = None
    native: int | None = None
    described: Described = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Output:
    """One phenotype as a model's head sees it.

    Attributes
    ----------
    name : str
        Of the phenotype.
    form : str
        ``scalar``; ``class``, whose output is the logit of its probability; or ``gene``, a number per gene.
    group : str
        Vector that it is a member of; empty: it stands alone.
    of_cross : str
        What it says about a cross of a screen (`Phenotype.of_cross`); empty: nothing.
    """

    name: str
    form: str = "scalar"
    group: str = ""
    of_cross: str = ""

    @property
    def head(self) -> tuple[str, str]:
        """What reads it off: all members of a group share a head."""
        return ("group", self.group) if self.group else ("alone", self.name)

    @classmethod
    def of(cls, phenotypes: int | Sequence[Output | Mapping[str, Any]]) -> tuple[Output, ...]:
        """Return outputs from records of phenotypes, or so many scalars."""
        if isinstance(phenotypes, int):
            return tuple(cls(str(i)) for i in range(phenotypes))
        return tuple(
            p
            if isinstance(p, Output)
            else cls(p["name"], p.get("form", "scalar"), p.get("group", ""), p.get("of_cross", ""))
            for p in phenotypes
        )


@dataclass(frozen=True, slots=True)
class Members:
    """Perturbations from which a screen builds its mutants: each mutant is a set of them.

    Attributes
    ----------
    gene : int64 [c]
        The gene of every member.
    kind : uint8 [c]
        What is done to it.
    order : int
        Members per mutant.
    condition : int
        In which mutants are asked about.
    """

    gene: Tensor
    kind: Tensor
    order: int
    condition: int = 0

    def to(self, device: torch.device | str) -> Members:
        """Return the same on another device."""
        return replace(self, gene=self.gene.to(device), kind=self.kind.to(device))


@dataclass(slots=True)
class GeneProfile:
    """One number per mutant and gene, in two factors: [b, n] exists only where it is asked for.

    Entry (i, g) is ``mutants[i] · genes[g]``, plus ``own`` where mutant i perturbs gene g.

    Attributes
    ----------
    mutants : [b, r]
        Factor of each mutant.
    genes : [n, r]
        Factor of each gene.
    own : [Σk]
        What a perturbation adds to its own gene.
    gene, offsets : int64 [Σk], int64 [b+1]
        Of the batch.
    """

    mutants: Tensor
    genes: Tensor
    own: Tensor
    gene: Tensor
    offsets: Tensor

    def dense(self, rows: Tensor | None = None) -> Tensor:
        """Return the numbers of all mutants, or of those at ``rows`` (each once): [R, n]; O(R n r) time."""
        b, n = len(self.mutants), len(self.genes)
        if rows is None:
            rows = torch.arange(b, device=self.gene.device)
        place = torch.full((b,), -1, dtype=torch.int64, device=self.gene.device)
        place[rows] = torch.arange(len(rows), device=self.gene.device)
        # The known output size spares a device the wait for the sum of the counts.
        row = place.repeat_interleave(self.offsets.diff(), output_size=len(self.gene))
        asked = (row >= 0).nonzero()[:, 0]
        at = (row * n + self.gene).index_select(0, asked)
        out = self.mutants.index_select(0, rows) @ self.genes.T
        added = self.own.index_select(0, asked).to(out.dtype)
        return out.view(-1).index_add(0, at, added).view(len(rows), n)

    @staticmethod
    def mean(profiles: Sequence[GeneProfile]) -> GeneProfile:
        """Return the mean of several models' profiles of one batch: exactly, by joining their factors."""
        first = profiles[0]
        return GeneProfile(
            # (1/M) Σ_m A_m B_mᵀ = [A_1 ‖ … ‖ A_M] / M · [B_1 ‖ … ‖ B_M]ᵀ: no [b, n] is formed.
            torch.cat([p.mutants for p in profiles], 1) / len(profiles),
            torch.cat([p.genes for p in profiles], 1),
            torch.stack([p.own for p in profiles]).mean(0),
            first.gene,
            first.offsets,
        )


@dataclass(slots=True)
class Prediction:
    """Predictions of a model for a batch of mutants.

    Attributes
    ----------
    mean : [b, p]
        Phenotypes in units of the scaled labels; of a class, the logit; 0 where there is a number per gene.
    profiles : dict of int to GeneProfile
        By position of the phenotype, those of which there is a number per gene.
    sd : [b, p] or None
        Standard deviation over the members of an ensemble, or by a model that is a distribution over
        functions; None for a single network.
    """

    mean: Tensor
    profiles: dict[int, GeneProfile] = field(default_factory=dict)
    sd: Tensor | None = None
