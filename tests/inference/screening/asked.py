"""Screens as tests ask for them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from wildtype.inference.predictor import Predictor


def changed(predictor: Predictor, **known: object) -> Predictor:
    checkpoint = replace(predictor.checkpoint, known=replace(predictor.checkpoint.known, **known))  # type: ignore[arg-type]
    return Predictor(checkpoint)


def screened(predictor: Predictor, *words: object, **options: object) -> pd.DataFrame:
    """Screen with linked genes, which most genes of the tiny organism are."""
    options.setdefault("include", [] if "min_linkage_kb" in options else ["linked"])
    return predictor.screen(*words, **options)  # type: ignore[arg-type]
