"""Gaussian process over mutants: the model for tables of a few hundred rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wildtype.models.gaussian_process.config import GaussianProcessConfig
from wildtype.models.registry import MODELS, ModelDescription

if TYPE_CHECKING:
    from wildtype.models.gaussian_process.model import GaussianProcess


def _model() -> type[GaussianProcess]:
    from wildtype.models.gaussian_process.model import GaussianProcess

    return GaussianProcess


MODELS.register(
    "gaussian_process",
    ModelDescription(GaussianProcessConfig, _model, gradients=False, default_up_to=2_000),
    __name__,
)
