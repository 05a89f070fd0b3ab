"""Settings of the Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wildtype.settings import setting


@dataclass
class GaussianProcessConfig:
    """A Gaussian process whose covariance of mutants follows from how alike their genes are."""

    name: Literal["gaussian_process"] = setting("gaussian_process", "The model.")
    steps: int = setting(
        60, "Steps of Adam that choose weights of the covariance; 0: equal weights.", minimum=0
    )
    rows: int = setting(
        1000, "Most training rows that choose these weights; predictions follow from all rows.", minimum=2
    )
    most_rows: int = setting(
        5000, "Most training rows of a phenotype: memory grows with their square.", minimum=1
    )
    leave_out: list[str] = setting([], "Feature blocks not to use.")
