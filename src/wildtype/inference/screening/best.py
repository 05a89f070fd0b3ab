"""`Best`: the highest or lowest numbers of a stream, and where in it they were."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError

DIRECTIONS = ("low", "high")


class Best:
    """Keeps the first ``count`` values in one direction; of equal ones, those of smaller numbers.

    What is kept does not depend on how a stream was cut into pieces, nor on their order.

    Raises
    ------
    ConfigError
        If ``count`` is not positive, or the direction is not one of ``DIRECTIONS``.
    """

    def __init__(self, count: int, direction: str) -> None:
        if count < 1:
            raise ConfigError(f"top={count}: ask for at least one mutant")
        if direction not in DIRECTIONS:
            raise ConfigError(f"direction={direction!r} is not known; known: {', '.join(DIRECTIONS)}, both")
        self.count, self.direction = count, direction
        self.value = np.zeros(0, np.float64)
        self.number = np.zeros(0, np.int64)

    def add(self, value: NDArray[np.float64], number: NDArray[np.int64]) -> None:
        """Take further values [m] with their numbers [m] into account; NaN is never kept."""
        sign = 1.0 if self.direction == "low" else -1.0
        there = np.isfinite(value)
        if len(self.value) == self.count:
            there &= sign * value <= sign * self.value[-1]
        if not there.any():
            return
        value = np.concatenate([self.value, value[there]])
        number = np.concatenate([self.number, number[there]])
        if len(value) > 4 * self.count:  # sorting is for the few that may stay
            limit = np.partition(sign * value, self.count - 1)[self.count - 1]
            stays = sign * value <= limit
            value, number = value[stays], number[stays]
        order = np.lexsort((number, sign * value))[: self.count]
        self.value, self.number = value[order], number[order]
