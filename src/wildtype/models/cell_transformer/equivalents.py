"""`Equivalents`: moves predictions towards measurements of mutants that lose the same reactions.

Legend: b mutants · p phenotypes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wildtype.models.cell_transformer.head import smallest_part
from wildtype.models.interface import Output
from wildtype.mutants.evidence_tokens import EvidenceTokens


class Equivalents(nn.Module):
    """Moves outputs towards the measurements of mutants that lose the same reactions, or fewer.

    Parameters
    ----------
    outputs : sequence of Output
        The p outputs; scalars alone are moved.
    smallest : bool
        Whether outputs start from the smallest value of a mutant that loses fewer reactions.

    Attributes
    ----------
    mixing_weight : float32 [p]
        Mixing weight of equivalent mutants, from 0 to 1; 0 until fitted to validation rows.
    prediction_weight : float32 [p]
        Mixing weight of network and trees beside that smallest value; 1 until fitted to validation rows.
    shift : float32 [p]
        From the scale of evidence, whose 0 may be no effect, to that of the outputs.
    """

    mixing_weight: Tensor
    prediction_weight: Tensor
    shift: Tensor

    def __init__(self, outputs: Sequence[Output], smallest: bool = False) -> None:
        super().__init__()
        self.smallest = smallest
        self.scalars = tuple(i for i, output in enumerate(outputs) if output.form == "scalar")
        # Buffers, not parameters: they are fitted in closed form after training, and stored with the weights.
        self.register_buffer("mixing_weight", torch.zeros(len(outputs)))
        self.register_buffer("prediction_weight", torch.ones(len(outputs)))
        self.register_buffer("shift", torch.zeros(len(outputs)))

    def measured(self, tokens: EvidenceTokens) -> Tensor:
        """Return the mean of equivalent mutants [b, p], on the scale of the outputs; NaN: there is none."""
        p = len(self.mixing_weight)
        known = tokens.equivalents.known[:, :p]
        # NaN marks what is missing, for 0 is a possible measurement.
        return torch.where(known, tokens.equivalents.value[:, :p] + self.shift, torch.nan)

    def start(self, tokens: EvidenceTokens) -> Tensor:
        """Return what outputs start from [b, p]: the smallest known upper bound, 0 without one."""
        start = smallest_part(tokens, len(self.mixing_weight))
        out = torch.zeros_like(start)
        if self.smallest:
            out[:, list(self.scalars)] = start[:, list(self.scalars)]
        return out

    def forward(self, mean: Tensor, tokens: EvidenceTokens) -> Tensor:
        """Return outputs [b, p] moved towards the mean of equivalent mutants."""
        if self.smallest:
            start = self.start(tokens).to(mean)
            # start + weight · (mean − start): where the network is unreliable, the bound alone is the
            # prediction.
            mean = torch.lerp(start, mean, self.prediction_weight.to(mean))
        measured = self.measured(tokens).to(mean)
        # NaN is replaced before the product: 0 · NaN is NaN, also in the gradient of the branch that is not
        # taken.
        moved = torch.lerp(mean, torch.nan_to_num(measured), self.mixing_weight.to(mean))
        return torch.where(measured.isnan(), mean, moved)
