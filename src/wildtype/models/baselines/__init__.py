"""Simple baseline predictors, by name; every results table includes them."""

from __future__ import annotations

from collections.abc import Mapping

from wildtype.models.baselines.base import BASELINES, Baseline, register_baseline
from wildtype.models.baselines.boosting import Boosting, BoostingPropagation
from wildtype.models.baselines.feature_ridge import FeatureRidge
from wildtype.models.baselines.linear import AdditiveRidge, MeanBaseline, PairRidge
from wildtype.models.baselines.networks import EmbeddingMLP, LowRankBilinear
from wildtype.models.baselines.pair_matrices import (
    LowRank,
    PairwiseRidge,
    PooledCompletion,
    ProfileCompletion,
    ScreenAdditive,
    ScreenConstant,
    TwoStepRidge,
)

for _baseline in (
    MeanBaseline,
    AdditiveRidge,
    PairRidge,
    FeatureRidge,
    EmbeddingMLP,
    LowRankBilinear,
    Boosting,
    BoostingPropagation,
    ScreenConstant,
    ScreenAdditive,
    LowRank,
    TwoStepRidge,
    PairwiseRidge,
    ProfileCompletion,
    PooledCompletion,
):
    register_baseline(_baseline)


def make_baseline(name: str, fixed: Mapping[str, float] | None = None) -> Baseline:
    """Return an unfitted baseline; ``fixed`` settings are not chosen on validation rows.

    Raises
    ------
    ConfigError
        If there is no baseline of that name; the message names those there are.
    """
    return BASELINES.find(name)(fixed)


__all__ = ["BASELINES", "Baseline", "make_baseline", "register_baseline"]
