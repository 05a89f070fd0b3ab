"""Contribution of each perturbed gene to a prediction, from the predictions of all subsets of the mutant.

For models whose head cannot be taken apart. With f(T) the prediction of the genes T ⊆ S alone, the Shapley
value of gene i is

    φ_i = Σ_T |T|! (k − |T| − 1)! / k! · (f(T ∪ i) − f(T)),   T ⊆ S without i,

the mean effect of perturbing i over all orders in which the genes of S can be perturbed. The values sum to
f(S) − f(∅) exactly (Shapley 1953; for predictions: Lundberg & Lee 2017, NeurIPS).

Legend: k perturbed genes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.errors import GeneSetError
from wildtype.inference.explaining.contributions import batch_of
from wildtype.inference.explaining.members import EnsembleMember
from wildtype.mutants import MutantTable

Floats = NDArray[np.float64]
MOST = 12
"""Perturbed genes of a mutant whose subsets are all predicted: 4,096."""


@dataclass(frozen=True, eq=False)
class SubsetContributions:
    """Contributions to one prediction of one model, in the phenotype's unit (binary: the logit).

    Attributes
    ----------
    predicted, baseline : float
        Of the mutant, and of the empty set.
    values : float64 [k]
        Shapley value of every perturbed gene.
    subsets : int
        Predictions that it took.
    """

    predicted: float
    baseline: float
    values: Floats
    subsets: int


@torch.no_grad()
def by_subsets(member: EnsembleMember, table: MutantTable, phenotype: int) -> SubsetContributions:
    """Return the contributions to the prediction of a table of one row, for an output by position.

    Raises
    ------
    GeneSetError
        If the mutant has more than ``MOST`` perturbed genes.
    """
    k = len(table.gene)
    if k > MOST:
        raise GeneSetError(
            f"a mutant of {k} genes has too many subsets to explain: give at most {MOST} genes"
        )
    batch = batch_of(member, subsets_of(table))
    output = member.model(member.wild_type, batch).mean[:, phenotype].double().numpy()
    checkpoint = member.checkpoint
    found = float(checkpoint.mean[phenotype]) + float(checkpoint.sd[phenotype]) * output
    return SubsetContributions(float(found[-1]), float(found[0]), shapley(found, k), len(found))


def subsets_of(table: MutantTable) -> MutantTable:
    """Return the 2^k subsets of the mutant of one row; gene i is in subset s if bit i of s is set."""
    k = len(table.gene)
    inside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 > 0
    gene = np.nonzero(inside)[1]
    return MutantTable.build(
        table.gene[gene],
        np.concatenate([[0], np.cumsum(inside.sum(1))]),
        kind=table.kind[gene],
        dose=None if table.dose is None else table.dose[gene],
        condition=np.repeat(table.condition, 2**k),
    )


def shapley(values: Floats, k: int) -> Floats:
    """Return the Shapley values [k] of a function of all subsets [2^k], numbered as in `subsets_of`."""
    number = np.arange(2**k)
    size = ((number[:, None] >> np.arange(k)) & 1).sum(1)
    weight = np.array([factorial(s) * factorial(k - s - 1) / factorial(k) for s in range(k)])
    out = np.zeros(k)
    for i in range(k):
        without = number[(number >> i) & 1 == 0]
        out[i] = weight[size[without]] @ (values[without | (1 << i)] - values[without])
    return out
