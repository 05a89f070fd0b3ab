"""How much of the training objective is reconstruction, epoch by epoch.

α is the weight of the reconstruction of the networks, 1 − α that of the phenotypes.
"""

from __future__ import annotations

from collections.abc import Callable

SCHEDULES: dict[str, Callable[[float], float]] = {
    "pre_then_post": lambda progress: 1.0 if progress < 1 else 0.0,
    "linear_until_uniform": lambda progress: 1 - progress / 2,
    "linear_until_flipped": lambda progress: 1 - progress,
}
"""α by the share of the transition that is over, 0 to 1: reconstruction first and phenotypes afterwards, or
a straight line from reconstruction alone to both alike, or to phenotypes alone.
"""


def reconstruction_share(schedule: str, epoch: int, transition: int) -> float:
    """Return α in an epoch (from 0), for a transition of so many epochs; 0 epochs: it is over at once."""
    return SCHEDULES[schedule](min(epoch / transition, 1.0) if transition else 1.0)
