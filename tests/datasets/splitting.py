"""What tests of splits share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wildtype.datasets import Dataset, Split

Factory = Callable[..., Dataset]
NAMES = ["random", "one-unseen", "unseen", "any-unseen", "query-pair", "screen", "order"]


def parts(split: Split) -> dict[str, np.ndarray]:
    return {"train": split.train, "validation": split.validation, "test": split.test}


def shares(name: str) -> dict[str, float]:
    return {"validation": 0.2} if name == "order" else {"validation": 0.2, "test": 0.2}


def swap(split: Split, take: int, give: int) -> dict[str, Any]:
    """Move the ``take``-th test row into training and the ``give``-th training row into test."""
    train = np.sort(np.append(np.delete(split.train, give), split.test[take]))
    test = np.sort(np.append(np.delete(split.test, take), split.train[give]))
    return {"train": train, "test": test}
