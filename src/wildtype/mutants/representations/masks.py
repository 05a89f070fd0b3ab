"""`NodeMasks`: which nodes of the shared wiring each mutant of a batch keeps.

Legend: n genes · r reactions · B mutants. One polarity everywhere: True = present.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class NodeMasks:
    """The nodes that B mutants keep; metabolites always stay. An edge is kept iff both its ends are.

    Attributes
    ----------
    gene : bool [n, B]
        True = present.
    reaction : bool [r, B] or None
        True = alive; None without metabolism.
    """

    gene: Tensor
    reaction: Tensor | None = None

    def __len__(self) -> int:
        return int(self.gene.shape[1])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> NodeMasks:
        """Return the masks on another device."""
        reaction = self.reaction
        return NodeMasks(
            self.gene.to(device, non_blocking=non_blocking),
            None if reaction is None else reaction.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> NodeMasks:
        """Return the masks in page-locked memory, for asynchronous copies to a GPU."""
        return NodeMasks(
            self.gene.pin_memory(), None if self.reaction is None else self.reaction.pin_memory()
        )
