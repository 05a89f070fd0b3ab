"""The training objective: how wrong the phenotypes are, plus every auxiliary loss at its weight, each
accounted for.

Legend: b mutants · p phenotypes.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wildtype.errors import DatasetError
from wildtype.models.interface import Prediction, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch


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
    mean: float = 0.0,
) -> Objective:
    """Return the loss of each row's own phenotype (scaled labels), and the weighted auxiliary losses.

    Parameters
    ----------
    prediction, wild_type, mutants
        What a model said of what, and what was measured.
    loss : {"squared", "log_cosh"}
        Of one row.
    mean : float
        Mean of ``evidence_weights`` over all training rows; 0: rows count alike.
    """
    own = prediction.mean.gather(1, mutants.phenotype[:, None]).squeeze(1).float()
    rows = LOSSES[loss](own - mutants.value)
    if mean:
        assert mutants.p is not None
        rows = rows * (evidence_weights(mutants.p) / mean)
    terms = {"data": rows.mean()}
    weighted = {"data": wild_type.weights.get("data", 1.0) * terms["data"]}
    for name, value in wild_type.losses.items():
        label = name if "/" in name else f"prior/{name}"  # a bare name is a relation's graph prior
        terms[label], weighted[label] = value, wild_type.weights[name] * value
    return Objective(torch.stack(list(weighted.values())).sum(), terms, weighted)


def log_cosh(error: Tensor) -> Tensor:
    """Return log cosh of every entry, without overflow: about x²/2 for small ones, |x| - log 2 for large."""
    size = error.abs()
    return size + nn.functional.softplus(-2 * size) - math.log(2)


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {"squared": torch.square, "log_cosh": log_cosh}
"""Loss of one row by its name in ``TrainingConfig.loss``."""
SMALLEST_P = 1e-10


def evidence_weights(p: Tensor) -> Tensor:
    """Return -log10 p [b] with p at least 1e-10; a row without a p-value counts as one of p = 0.1.

    Source: the training protocol of DANGO (Zhang, Ma & Ma), which weighs triples so.
    """
    return torch.where(p.isnan(), 1.0, -p.clamp(min=SMALLEST_P).log10())


def mean_weight(table: MutantTable) -> float:
    """Return the mean of ``evidence_weights`` over a table.

    Raises
    ------
    DatasetError
        If no row has a p-value, or all weights are zero.
    """
    p = None if table.p is None else torch.from_numpy(table.p)
    if p is None or bool(p.isnan().all()):
        raise DatasetError("training.weighting=p needs p-values, and no training row has one: take none")
    mean = float(evidence_weights(p).mean())
    if not mean > 0:
        raise DatasetError(
            "every training row has p = 1, so that training.weighting=p weighs none: take none"
        )
    return mean


def learning_rate(step: int, ends: Sequence[int], peak: float, warmup: float) -> float:
    """Return the learning rate at a step: linear warm-up, then cosine decay to zero (Loshchilov & Hutter
    2017).

    ``ends`` are the steps (ascending) before which cycles end; a single one is that of the run. Each further
    cycle starts again at ``peak`` (Huang et al. 2017, equation 2). Warm-up takes the share ``warmup`` of all
    steps, or half of the first of several cycles if that is less.
    """
    cycle = min(bisect.bisect_right(ends, step), len(ends) - 1)
    start, length = (ends[cycle - 1], ends[cycle] - ends[cycle - 1]) if cycle else (0, ends[0])
    rising = 0 if cycle else max(int(warmup * ends[-1]), 1)
    if len(ends) > 1:
        rising = min(rising, max(length // 2, 1))
    if step < rising:
        return peak * (step + 1) / rising
    progress = (step - start - rising) / max(length - rising, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
