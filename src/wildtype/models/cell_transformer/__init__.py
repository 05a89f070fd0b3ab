"""The cell transformer: a graph-regularised encoder of the wild type, and a head that scores mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wildtype.models.cell_transformer.config import CellTransformerConfig, check, stored_settings
from wildtype.models.registry import MODELS, ModelDescription

if TYPE_CHECKING:
    from wildtype.models.cell_transformer.model import CellTransformer


def _model() -> type[CellTransformer]:
    from wildtype.models.cell_transformer.model import CellTransformer

    return CellTransformer


MODELS.register(
    "cell_transformer",
    ModelDescription(CellTransformerConfig, _model, check, stored=stored_settings),
    __name__,
)
