"""The training objective: the loss of the phenotypes plus every auxiliary loss at its weight.

Legend: b mutants · t targets · p phenotypes · n genes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wildtype.models.interface import Prediction, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.training.micro_batches import number_of
from wildtype.training.weights import TargetWeights


@dataclass(slots=True)
class Objective:
    """The total loss, and its terms.

    Attributes
    ----------
    total : scalar tensor
        What is minimised.
    terms : dict of str to scalar tensor
        ``data`` and the model's auxiliary losses, unweighted: error in units of the label's variance, and
        for graph priors nats.
    weighted : dict of str to scalar tensor
        The same times their weights; they sum to ``total``.
    """

    total: Tensor
    terms: dict[str, Tensor]
    weighted: dict[str, Tensor]

    def log_record(self) -> dict[str, Tensor]:
        """Return the loss, every term, and every weighted term's share of the total, for the log of one
        step.
        """
        total = self.total.detach()
        record = {"loss": total}
        record |= {f"loss/{name}": term.detach() for name, term in self.terms.items()}
        record |= {f"share/{name}": term.detach() / total for name, term in self.weighted.items()}
        return record


def objective(
    prediction: Prediction,
    wild_type: WildType,
    mutants: MutantBatch,
    *,
    loss: str = "squared",
    weights: TargetWeights | None = None,
    processes: int = 1,
) -> Objective:
    """Return the mean loss of all targets of a batch (scaled labels), and the weighted auxiliary losses.

    Targets that are not a number are left out, single ones and entries of profiles. A class counts by its
    cross-entropy. Where targets stand for several mutants, the mean is Σ w ℓ / Σ w with those numbers w. The
    loss of a micro-batch is its contribution to the mean of the whole step.

    Parameters
    ----------
    prediction, wild_type, mutants
        The model's predictions, its encoded wild type, and the measured mutants.
    loss : {"squared", "log_cosh"}
        Of one target that is no class.
    weights : TargetWeights, optional
        Weight of every target; equal weights, and regression only, without.
    processes : int
        Number of processes whose gradients are averaged.
    """
    known = ~mutants.value.isnan()
    # Unknown targets get the error 0 before the loss, not after: the gradient of 0 · nan is nan.
    own = wide(targets_of(prediction, mutants))
    rows = LOSSES[loss](torch.where(known, own - mutants.value, 0.0))
    count = number_of(known, mutants)
    if weights is not None and weights.any_class:
        # From logits, which never takes the log of a rounded 0; 0.5 stands in where nothing was measured.
        logistic = nn.functional.binary_cross_entropy_with_logits(
            own, torch.where(known, mutants.value, 0.5), reduction="none"
        )
        rows = torch.where(weights.classes.index_select(0, mutants.phenotype), logistic, rows)
        rows = torch.where(known, rows, 0.0)
    if weights is not None:
        rows = rows * weights.of(mutants)
    if mutants.weight is not None:
        rows = rows * mutants.weight
    total = rows.sum()
    for p, profile in prediction.profiles.items():
        measured = profile_targets(mutants, p)
        if measured is None:
            # Gradients of 0, not none: one process's share of a step may be without a profile.
            total = total + profile.dense(mutants.phenotype[:0]).sum()
            continue
        rows_of, truth = measured
        there = ~truth.isnan()
        entries = LOSSES[loss](torch.where(there, wide(profile.dense(rows_of)) - truth, 0.0))
        total = total + entries.sum() * (1.0 if weights is None else weights.factor[p])
        count = count + there.sum()
    # A micro-batch is divided by the known targets of its whole step, so that micro-batches add up to the
    # mean over all targets; with its own count, targets in a micro-batch with few of them would weigh more.
    count = count if mutants.step_targets is None else mutants.step_targets
    terms = {"data": total / count.clamp(min=1)}
    # DDP averages gradients over processes, and the data loss is a sum over them: times their number. Losses
    # of the wild type are the same in all processes, so that their average is what counts once.
    weighted = {"data": processes * wild_type.weights.get("data", 1.0) * terms["data"]}
    for name, value in wild_type.losses.items():
        label = name if "/" in name else f"prior/{name}"  # a bare name is a relation's graph prior
        terms[label], weighted[label] = value, wild_type.weights[name] * value
    return Objective(torch.stack(list(weighted.values())).sum(), terms, weighted)


def targets_of(prediction: Prediction, mutants: MutantBatch) -> Tensor:
    """Return what was predicted [t] of every target that is one number."""
    if mutants.mutant is None:
        return prediction.mean.gather(1, mutants.phenotype[:, None]).squeeze(1)
    at = mutants.mutant * prediction.mean.shape[1] + mutants.phenotype
    return prediction.mean.reshape(-1).index_select(0, at)  # its backward is the same from run to run


def wide(x: Tensor) -> Tensor:
    """Return a tensor in float32 at least: losses are not computed in half precision."""
    return x if x.dtype == torch.float64 else x.float()


def profile_targets(mutants: MutantBatch, phenotype: int) -> tuple[Tensor, Tensor] | None:
    """Return which mutants [R] have a profile of a phenotype, and the profiles [R, n]; None if none has."""
    if mutants.profile is None or mutants.profiles is None:
        return None
    at = ((mutants.profile >= 0) & (mutants.phenotype == phenotype)).nonzero()[:, 0]
    if not len(at):
        return None
    of = at if mutants.mutant is None else mutants.mutant.index_select(0, at)
    return of, mutants.profiles.index_select(0, mutants.profile.index_select(0, at))


def log_cosh(error: Tensor) -> Tensor:
    """Return log cosh of every entry, without overflow: about x²/2 for small ones, |x| - log 2 for large."""
    # log cosh x = |x| + log(1 + e^(−2|x|)) − log 2, and softplus(−2|x|) is that logarithm; cosh overflows.
    size = error.abs()
    return size + nn.functional.softplus(-2 * size) - math.log(2)


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {"squared": torch.square, "log_cosh": log_cosh}
"""Loss of one row by its name in ``TrainingConfig.loss``."""
