"""Pair screen: boosted trees over closed forms of a whole screen of gene pairs, listed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wildtype.models.pair_screen.config import PairScreenConfig
from wildtype.models.registry import MODELS, ModelDescription

if TYPE_CHECKING:
    from wildtype.models.pair_screen.model import PairScreen


def _model() -> type[PairScreen]:
    from wildtype.models.pair_screen.model import PairScreen

    return PairScreen


MODELS.register("pair_screen", ModelDescription(PairScreenConfig, _model, gradients=False), __name__)
