"""Agreement of runs that differ in their seeds, and whether their mean predicts better than each of them.

Runs of one dataset and phenotype are compared on the mutants that are test rows of all of them, so that no
run was trained on any. Seeds draw different splits, so two runs share about (fraction of test rows)² of a
dataset; with a pinned split (`split.pinned`) they share all test rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.evaluation.metrics import pearson

if TYPE_CHECKING:
    import pandas as pd

KEYS = ["phenotype", "genes", "kinds", "condition"]
"""Columns of stored predictions that identify what was predicted."""


@dataclass(frozen=True, eq=False)
class TestPredictions:
    """Predictions of one run for its test rows.

    Attributes
    ----------
    run : str
        Its directory.
    model : str
        Name of its model.
    dataset, dataset_sha256 : str
        Dataset that it was trained on.
    frame : pandas.DataFrame
        ``value`` (measured) and ``predicted`` by ``KEYS``; means over repeated measurements of a mutant.
    """

    __test__ = False  # pytest takes classes called Test… for tests

    run: str
    model: str
    dataset: str
    dataset_sha256: str
    frame: pd.DataFrame


def read_predictions(folder: str | Path) -> TestPredictions:
    """Read the predictions of a finished run.

    Raises
    ------
    CheckpointError
        If the folder holds no finished run or its files are damaged.
    """
    import pandas as pd

    folder = Path(folder)
    try:
        model = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["settings"]["model"][
            "name"
        ]
        comparisons = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
        first = next(iter(comparisons.values()))
        dataset, sha = first["dataset"], first["dataset_sha256"]
        frame = pd.read_parquet(folder / "predictions.parquet", columns=[*KEYS, "value", model])
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{str(folder)!r} holds no finished run ({Path(error.filename or '').name} is missing): resume it"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError, StopIteration) as error:
        raise CheckpointError(
            f"the predictions in {str(folder)!r} are damaged ({reason_of(error)}): train again"
        ) from error
    frame = frame.rename(columns={model: "predicted"}).groupby(KEYS, dropna=False).mean()
    return TestPredictions(str(folder), model, dataset, sha, frame)


@dataclass(frozen=True)
class Agreement:
    """Two or more runs on the test rows that they share; Pearson correlations are NaN where undefined.

    Attributes
    ----------
    dataset, phenotype : str
        What was predicted.
    runs : tuple of str
        Directories of the runs.
    rows : int
        Shared test rows.
    between : float
        Pearson between the predictions, mean over pairs of runs.
    difference : float
        Mean absolute difference between them in the phenotype's unit, mean over pairs of runs.
    alone : tuple of float
        Pearson of each run's predictions with the labels.
    together : float
        Pearson of the runs' mean prediction with the labels.
    """

    dataset: str
    phenotype: str
    runs: tuple[str, ...]
    rows: int
    between: float
    difference: float
    alone: tuple[float, ...]
    together: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def agreement(runs: Sequence[TestPredictions]) -> list[Agreement]:
    """Return the agreement of every pair of runs, and of all of them where there are three or more.

    Raises
    ------
    ConfigError
        If there are fewer than two runs, or they are of different datasets.
    """
    if len(runs) < 2:
        raise ConfigError(f"agreement needs at least two runs, and there is {len(runs)}: name more")
    first = runs[0]
    for other in runs[1:]:
        if other.dataset_sha256 != first.dataset_sha256:
            raise ConfigError(
                f"{other.run} is of {other.dataset} and {first.run} of {first.dataset}, or of another "
                "version of it: compare runs of one dataset"
            )
    groups = list(combinations(runs, 2))
    found = [one for group in groups for one in _agree(group)]
    return found + (_agree(runs) if len(runs) > 2 else [])


def _agree(runs: Sequence[TestPredictions]) -> list[Agreement]:
    """Return the agreement of some runs on the rows that all share, phenotype by phenotype."""
    names = sorted({name for run in runs for name in run.frame.index.unique("phenotype")})
    # Labels of the first run serve for all: runs of one dataset have equal labels.
    joined = runs[0].frame[["value"]]
    for i, run in enumerate(runs):
        joined = joined.join(run.frame["predicted"].rename(str(i)), how="inner")
    out = []
    for name in names:
        own = joined[joined.index.get_level_values("phenotype") == name]
        truth = own["value"].to_numpy(np.float64)
        predicted = own[[str(i) for i in range(len(runs))]].to_numpy(np.float64).T
        pairs = list(combinations(predicted, 2))
        out.append(
            Agreement(
                dataset=runs[0].dataset,
                phenotype=name,
                runs=tuple(run.run for run in runs),
                rows=len(own),
                between=float(np.mean([pearson(a, b) for a, b in pairs])),
                difference=float(np.mean([np.abs(a - b).mean() for a, b in pairs])) if len(own) else math.nan,
                alone=tuple(pearson(truth, one) for one in predicted),
                together=pearson(truth, predicted.mean(0)),
            )
        )
    return out
