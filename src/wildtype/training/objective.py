"""The training objective: how wrong the phenotypes are, plus every auxiliary loss at its weight, each
accounted for.

Legend: b mutants · p phenotypes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wildtype.models.interface import Prediction, WildType
from wildtype.mutants.batch import MutantBatch


@dataclass(slots=True)
class Objective:
    """The total loss, and its terms.

    Attributes
    ----------
    total : scalar tensor
        What is minimised.
    terms : dict of str to scalar tensor
        ``data`` and ``prior/<relation>``, unweighted: squared error in units of the label's variance, and
        nats.
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


def objective(prediction: Prediction, wild_type: WildType, mutants: MutantBatch) -> Objective:
    """Return mean squared error of each row's own phenotype (scaled labels) plus the weighted auxiliary
    losses.
    """
    own = prediction.mean.gather(1, mutants.phenotype[:, None]).squeeze(1)
    data = torch.mean((own.float() - mutants.value) ** 2)
    terms = {"data": data}
    weighted = {"data": data}
    for name, loss in wild_type.losses.items():
        terms[f"prior/{name}"] = loss
        weighted[f"prior/{name}"] = wild_type.weights[name] * loss
    return Objective(torch.stack(list(weighted.values())).sum(), terms, weighted)


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Return the learning rate at a step: linear warm-up, then cosine decay to zero (Loshchilov & Hutter
    2017).
    """
    rising = max(int(warmup * steps), 1)
    if step < rising:
        return peak * (step + 1) / rising
    progress = (step - rising) / max(steps - rising, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
