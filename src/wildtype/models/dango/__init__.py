"""DANGO: gene networks embed the genes; attention within the perturbed set predicts the phenotype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wildtype.models.dango.config import DangoConfig, check
from wildtype.models.registry import MODELS, ModelDescription

if TYPE_CHECKING:
    from wildtype.models.dango.model import Dango
    from wildtype.models.interface import Model


def _model() -> type[Dango]:
    from wildtype.models.dango.model import Dango

    return Dango


def _reference_implementation(model: Dango) -> Model:
    from wildtype.models.dango.reference import DenseTargets

    return DenseTargets(model)


MODELS.register(
    "dango",
    ModelDescription(DangoConfig, _model, check, reference_implementation=_reference_implementation),
    __name__,
)
