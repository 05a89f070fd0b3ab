"""`Equivalents`: takes a mutant for what was measured of those that lose the same reactions.

Legend: b mutants · p phenotypes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wildtype.models.interface import Output
from wildtype.mutants.evidence.tokens import EvidenceTokens


class Equivalents(nn.Module):
    """Moves outputs towards the measurements of equivalent mutants.

    Parameters
    ----------
    outputs : sequence of Output
        The p outputs; scalars alone are moved.

    Attributes
    ----------
    share : float32 [p]
        How far, from 0 to 1; 0 until it was found on validation rows.
    shift : float32 [p]
        From the scale of evidence, whose 0 may be no effect, to that of the outputs.
    """

    share: Tensor
    shift: Tensor

    def __init__(self, outputs: Sequence[Output]) -> None:
        super().__init__()
        self.scalars = tuple(i for i, output in enumerate(outputs) if output.form == "scalar")
        self.register_buffer("share", torch.zeros(len(outputs)))
        self.register_buffer("shift", torch.zeros(len(outputs)))

    def measured(self, tokens: EvidenceTokens) -> Tensor:
        """Return the mean of equivalent mutants [b, p], on the scale of the outputs; NaN: there is none."""
        p = len(self.share)
        known = tokens.equal_known[:, :p]
        return torch.where(known, tokens.equal[:, :p] + self.shift, torch.nan)

    def forward(self, mean: Tensor, tokens: EvidenceTokens) -> Tensor:
        """Return outputs [b, p] moved towards what equivalent mutants say."""
        measured = self.measured(tokens).to(mean)
        return torch.where(
            measured.isnan(), mean, torch.lerp(mean, torch.nan_to_num(measured), self.share.to(mean))
        )
