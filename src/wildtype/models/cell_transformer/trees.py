"""`EvidenceTrees`: boosted trees over the same evidence as the network, averaged with its predictions.

Trees and networks err differently on the same evidence: trees cut it into steps, networks weigh it. Their
mean is better than either (docs/evidence.md has the figures). Trees are fitted after the network, to the
out-of-fold evidence of training mutants; their mixing weight follows from validation rows.

Legend: b mutants · p phenotypes · f features · n genes · i traits per gene.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wildtype.evidence.tree_features import EvidenceFeatures
from wildtype.models.cell_transformer.head import smallest_part
from wildtype.models.interface import Output, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.forest import Forest

FEW = 4
"""Largest number of phenotypes at which the trees of one read the measurements of all."""
CERTAIN = 1e-3
"""Smallest distance of a predicted probability from 0 and 1."""


class EvidenceTrees(nn.Module):
    """A forest per output that has one number per mutant.

    Parameters
    ----------
    outputs : sequence of Output
        The p outputs.
    also : int
        Further phenotypes in the evidence.
    conditions : int
        Number of conditions.
    smallest : bool
        Whether trees start from the smallest value of a mutant less one gene, as the head then does.

    Attributes
    ----------
    asked : tuple of int
        Outputs that have trees.
    mixing_weight : float32 [p]
        Weight w of the trees of each output, (1 - w) network + w trees; 0 without trees.
    """

    mixing_weight: Tensor

    def __init__(self, outputs: Sequence[Output], also: int, conditions: int, smallest: bool = False) -> None:
        super().__init__()
        self.conditions, self.smallest = conditions, smallest
        self.asked = tuple(i for i, output in enumerate(outputs) if output.form in ("scalar", "class"))
        self.calls = tuple(i for i in self.asked if outputs[i].form == "class")
        every = len(outputs) + also
        # Each of few phenotypes reads all others. Of many, it reads only those that are no outputs, or the
        # columns of all trees would grow with p².
        self.reads = {
            i: [i, *(j for j in range(every) if j != i and (every <= FEW or j >= len(outputs)))]
            for i in self.asked
        }
        self.forests = nn.ModuleDict({str(i): Forest() for i in self.asked})
        # 0 until fitted: a forest without trees must not change the network.
        self.register_buffer("mixing_weight", torch.zeros(len(outputs)))

    @torch.no_grad()
    def features(self, wild_type: WildType, mutants: MutantBatch, wanted: Sequence[int]) -> list[Tensor]:
        """Return the features [b, f] of some outputs."""
        assert wild_type.traits is not None
        found = EvidenceFeatures(mutants, wild_type.traits, self.conditions)
        labels = {j: found.labels(j) for j in sorted({j for i in wanted for j in self.reads[i]})}
        return [torch.cat([found.shared, *(labels[j] for j in self.reads[i])], dim=1) for i in wanted]

    def base(self, mutants: MutantBatch, output: int) -> Tensor:
        """Return the value [b] to which the trees of an output add."""
        assert mutants.evidence is not None
        if not self.smallest or output in self.calls:
            return torch.zeros(len(mutants))
        return smallest_part(mutants.evidence, len(self.mixing_weight))[:, output]

    @torch.no_grad()
    def forward(self, wild_type: WildType, mutants: MutantBatch, mean: Tensor) -> Tensor:
        """Return the network's output [b, p] averaged with that of the trees."""
        wanted = [i for i in self.asked if self.mixing_weight[i] > 0]
        if not wanted or not len(mutants):
            return mean
        out = mean.clone()
        for i, x in zip(wanted, self.features(wild_type, mutants, wanted), strict=True):
            said = self.forests[str(i)](x).to(mean) + self.base(mutants, i).to(mean)
            if i in self.calls:
                # Probabilities are averaged, not logits: trees were fitted to labels 0 and 1 by squared
                # error, so they predict probabilities, which may leave [0, 1].
                both = torch.lerp(
                    mean[:, i].sigmoid(), said.clamp(CERTAIN, 1 - CERTAIN), self.mixing_weight[i].to(mean)
                )
                out[:, i] = both.logit(CERTAIN**2)
            else:
                out[:, i] = torch.lerp(mean[:, i], said, self.mixing_weight[i].to(mean))
        return out


ALIKE = 10.0
"""Rows that count as one independent observation, since rows that share a gene are correlated."""
SPREAD = 0.15
"""Standard deviation of mixing weights about one half, before any row is seen."""


def least_squares_weight(network: Tensor, other: Tensor, label: Tensor) -> float:
    """Return the mixing weight of the other, from 0 to 1, that minimises the squared error on labels [m].

    Least squares: w = Σ d (y - a) / Σ d² with d = b - a, for a network's a and the other's b.
    """
    # float64: the sums are over many small differences of nearly equal predictions.
    apart = (other - network).double()
    below = apart.square().sum()
    return float(((apart * (label - network)).sum() / below).clamp(0, 1)) if below > 0 else 0.0


def posterior_weight(network: Tensor, trees: Tensor, label: Tensor, count: Tensor | None = None) -> float:
    """Return the mixing weight of trees, from 0 to 1, given labels [m].

    The posterior mean of w in y = a + w d + e, d = b - a, with e ~ N(0, σ²) and the prior w ~ N(1/2,
    ``SPREAD``²): w = (Σ d (y - a) / k + σ² / 2 s²) / (Σ d² / k + σ² / s²), k = ``ALIKE``, s = ``SPREAD``.
    The prior is needed since the network was chosen by the same rows, which favours it, and k since rows are
    not independent. Rows that stand for ``count`` [m] mutants count by their share, m rows in all.
    """
    if not len(label):
        return 0.5
    share = (
        torch.ones(len(label), dtype=torch.float64)
        if count is None
        else count.double() / count.double().mean()
    )
    apart, left = (trees - network).double(), (label - network).double()
    # σ² / s², with the residual variance at the prior's mean.
    noise = (share * (left - apart / 2).square()).mean() / SPREAD**2
    top = (share * apart * left).sum() / ALIKE + noise / 2
    below = (share * apart.square()).sum() / ALIKE + noise
    return float((top / below).clamp(0, 1)) if below > 0 else 0.5
