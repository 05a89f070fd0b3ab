"""Schedules of the learning rate: warm-up, and what follows it.

All are functions of the step and of the validation scores so far, so that a resumed run has the learning
rates of one that was never stopped, without a state of their own.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from wildtype.training.config import TrainingConfig


class Schedule:
    """The learning rate of every step of a run.

    Parameters
    ----------
    config : TrainingConfig
        ``schedule`` and what belongs to it.
    steps : int
        Optimiser steps of the whole run.
    """

    def __init__(self, config: TrainingConfig, steps: int) -> None:
        self.config = config
        self.steps = steps
        self.cycle_ends = [steps * epoch // config.epochs for epoch in config.cycle_ends]

    def rate(self, step: int, scores: Sequence[float] = ()) -> float:
        """Return the learning rate at a step, from 0, after epochs with these validation scores."""
        config = self.config
        if config.schedule == "cosine":
            return cosine(step, self.cycle_ends, config.learning_rate, config.warmup)
        # As with the cosine, the first step is no step of size 0.
        rate = config.learning_rate * min((step + 1) / max(int(config.warmup * self.steps), 1), 1.0)
        if config.schedule == "plateau":
            rate *= config.plateau_factor ** plateaus(scores, config.plateau_patience)
        return rate


def plateaus(scores: Sequence[float], patience: int) -> int:
    """Return how often ``patience`` epochs in a row had no better score than all before them.

    As ``torch.optim.lr_scheduler.ReduceLROnPlateau``, which keeps a state and lets one epoch more pass.
    """
    best, waited, found = float("-inf"), 0, 0
    for score in scores:
        waited = 0 if score > best else waited + 1
        best = max(best, score)
        if waited >= patience:
            found, waited = found + 1, 0
    return found


def cosine(step: int, ends: Sequence[int], peak: float, warmup: float) -> float:
    """Return the learning rate at a step: linear warm-up, then cosine decay to zero (Loshchilov & Hutter
    2017).

    ``ends`` are the steps (ascending) before which cycles end; a single one is that of the run. Each further
    cycle starts again at ``peak`` (Huang et al. 2017, equation 2). Warm-up takes the share ``warmup`` of all
    steps, or half of the first of several cycles if that is less.
    """
    cycle = min(bisect.bisect_right(ends, step), len(ends) - 1)
    start, length = (ends[cycle - 1], ends[cycle] - ends[cycle - 1]) if cycle else (0, ends[0])
    # The first cycle alone warms up: later ones start from weights that a high rate is to leave.
    rising = 0 if cycle else max(int(warmup * ends[-1]), 1)
    if len(ends) > 1:
        rising = min(rising, max(length // 2, 1))
    if step < rising:
        return peak * (step + 1) / rising
    progress = (step - start - rising) / max(length - rising, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
