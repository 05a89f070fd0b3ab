"""`TargetWeights`: how much every target counts in the loss, learned from training rows alone.

Legend: m rows · p phenotypes · t targets of a batch.

By ``weighting``, a target counts

    none   1
    p      -log10 p, as in DANGO's published protocol, divided by the mean over all training rows
    sd     1 / (sd² + floor), divided by the mean over the training rows of its phenotype

The floor of a phenotype is the median of its known sd²: it keeps a row that claims to be exact from counting
more than twice as much as the median row. A row of unknown sd counts as one of the median sd; a phenotype
without any sd, or with no noise at all, is not weighed.

By ``balance``, all targets count alike (``rows``), or every phenotype as much as another (``phenotypes``), or
every head (``heads``: a vector of 281 traits is one head). The mean weight over training targets is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.errors import DatasetError
from wildtype.models.interface import Output
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

Floats = NDArray[np.float64]

SMALLEST_P = 1e-10
TINY = 1e-15
"""A typical sd under this is none: float32 cannot square it."""


@dataclass(frozen=True, eq=False)
class TargetWeights:
    """What the loss must know of the phenotypes.

    Attributes
    ----------
    classes : bool [p]
        Phenotypes whose output is a logit.
    weighting : str
        ``none``, ``p`` or ``sd``.
    noise : float32 [p]
        Root of the floor, in the phenotype's unit; 0 where rows are not weighed.
    factor : float32 [p]
        What the weight of a target is multiplied by: normalisation and balance.
    mean : float
        Mean of ``evidence_weights`` over the training rows, where they are used.
    any_class : bool
        Whether there is any class: known without asking the device.
    """

    classes: Tensor
    weighting: str
    noise: Tensor
    factor: Tensor
    mean: float = 1.0
    any_class: bool = False

    def to(self, device: torch.device | str) -> TargetWeights:
        """Return the same on another device."""
        return replace(
            self, classes=self.classes.to(device), noise=self.noise.to(device), factor=self.factor.to(device)
        )

    def of(self, mutants: MutantBatch) -> Tensor:
        """Return the weight [t] of every target."""
        factor = self.factor.index_select(0, mutants.phenotype)
        if self.weighting == "p":
            assert mutants.p is not None
            return evidence_weights(mutants.p) / self.mean * factor
        if self.weighting == "sd":
            return precision_weights(mutants.sd, self.noise.index_select(0, mutants.phenotype)) * factor
        return factor

    @classmethod
    def fit(
        cls, table: MutantTable, outputs: Sequence[Output], *, weighting: str = "none", balance: str = "rows"
    ) -> TargetWeights:
        """Learn floors and normalisation from training rows.

        Raises
        ------
        DatasetError
            If rows are to be weighed by p-values or sd, and none is known, or all weights are zero.
        """
        p = len(outputs)
        # A row that stands for several counts as them: None leaves the exact counts.
        counts = np.bincount(table.phenotype, weights=table.weights, minlength=p).astype(np.float64)
        if table.profile is not None and table.profiles is not None:
            own = table.profile >= 0
            known = np.isfinite(table.profiles).sum(1)[table.profile[own]]
            # A profile is one row above, and as many targets as it has known entries.
            counts += np.bincount(table.phenotype[own], weights=known - 1.0, minlength=p)
        noise, factor = np.zeros(p), np.ones(p)
        mean = mean_weight(table) if weighting == "p" else 1.0
        if weighting == "sd":
            noise, factor = _precision(table, p)
        if balance != "rows":
            heads = [output.head if balance == "heads" else ("alone", output.name) for output in outputs]
            there = np.flatnonzero(counts > 0)
            members = Counter(heads[i] for i in there)
            for i in there:
                # Σ_i counts_i · factor_i is the number of targets: the loss keeps its scale, whatever the
                # balance.
                factor[i] *= counts.sum() / (len(members) * members[heads[i]] * counts[i])
        return cls(
            torch.tensor([output.form == "class" for output in outputs], dtype=torch.bool),
            weighting,
            torch.tensor(noise, dtype=torch.float32),
            torch.tensor(factor, dtype=torch.float32),
            mean,
            any(output.form == "class" for output in outputs),
        )


def precision_weights(sd: Tensor, noise: Tensor) -> Tensor:
    """Return noise² / (sd² + noise²) [t], which is 1/2 where sd is not known, and 1 where noise is 0."""
    # noise² / (sd² + noise²) as 1 / (1 + (sd / noise)²): squares of small sd would underflow in float32.
    relative = torch.where(sd.isnan(), 1.0, sd / torch.where(noise > 0, noise, 1.0))
    return torch.where(noise > 0, 1 / (1 + relative.square()), 1.0)


def _precision(table: MutantTable, count: int) -> tuple[Floats, Floats]:
    """Return the noise [p] and one over the mean weight [p] of every phenotype."""
    noise, factor = np.zeros(count), np.ones(count)
    if np.isnan(table.sd).all():
        raise DatasetError("training.weighting=sd needs sd, and no training row has one: take none")
    for p in np.unique(table.phenotype):
        sd = torch.from_numpy(table.sd[table.phenotype == p])
        known = sd[~sd.isnan()].numpy()
        if not known.size or (typical := float(np.sqrt(np.median(known.astype(np.float64) ** 2)))) < TINY:
            continue
        noise[p] = typical
        found = precision_weights(sd, torch.tensor(typical))
        if table.weight is None:
            factor[p] = 1 / float(found.mean(dtype=torch.float64))
        else:
            factor[p] = 1 / float(np.average(found.numpy(), weights=table.weight[table.phenotype == p]))
    return noise, factor


def check_weighting(table: MutantTable, weighting: str) -> None:
    """Refuse a weighting that training rows lack the numbers for, before a run begins.

    Raises
    ------
    DatasetError
        Naming what they lack.
    """
    if weighting == "p":
        mean_weight(table)
    elif weighting == "sd":
        _precision(table, 1 + int(table.phenotype.max(initial=0)))


def evidence_weights(p: Tensor) -> Tensor:
    """Return -log10 p [b] with p at least 1e-10; a row without a p-value counts as one of p = 0.1.

    Source: the training protocol of DANGO (Zhang, Ma & Ma), which weighs triples so.
    """
    return torch.where(p.isnan(), 1.0, -p.clamp(min=SMALLEST_P).log10())


def mean_weight(table: MutantTable) -> float:
    """Return the mean of ``evidence_weights`` over the mutants that the rows of a table stand for.

    Raises
    ------
    DatasetError
        If no row has a p-value, or all weights are zero.
    """
    p = None if table.p is None else torch.from_numpy(table.p)
    if p is None or bool(p.isnan().all()):
        raise DatasetError("training.weighting=p needs p-values, and no training row has one: take none")
    weights = evidence_weights(p)
    mean = float(weights.mean() if table.weight is None else np.average(weights, weights=table.weight))
    if not mean > 0:
        raise DatasetError(
            "every training row has p = 1, so that training.weighting=p weighs none: take none"
        )
    return mean
