"""The simple predictors that stand in every table, by name."""

from __future__ import annotations

from collections.abc import Mapping

from wildtype.errors import ConfigError
from wildtype.models.baselines.base import Baseline
from wildtype.models.baselines.boosting import Boosting, BoostingPropagation
from wildtype.models.baselines.feature_ridge import FeatureRidge
from wildtype.models.baselines.linear import AdditiveRidge, MeanBaseline, PairRidge
from wildtype.models.baselines.networks import EmbeddingMLP, LowRankBilinear

BASELINES: dict[str, type[Baseline]] = {
    baseline.name: baseline
    for baseline in (
        MeanBaseline,
        AdditiveRidge,
        PairRidge,
        FeatureRidge,
        EmbeddingMLP,
        LowRankBilinear,
        Boosting,
        BoostingPropagation,
    )
}
"""Every baseline by its registry name, from the simplest to the strongest."""


def make_baseline(name: str, fixed: Mapping[str, float] | None = None) -> Baseline:
    """Return an unfitted baseline; ``fixed`` settings are not chosen on validation rows.

    Raises
    ------
    ConfigError
        If there is no baseline of that name; the message names those there are.
    """
    if name not in BASELINES:
        raise ConfigError(f"there is no baseline {name!r}; known baselines: {', '.join(BASELINES)}")
    return BASELINES[name](fixed)


__all__ = ["BASELINES", "Baseline", "make_baseline"]
