"""`reproduce`: a run repeated from its record, and how its results differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.experiments.data import load_for, prepare
from wildtype.experiments.folder import MARK, RECORD, recorded_threads
from wildtype.experiments.record import environment, of_data
from wildtype.experiments.run import train
from wildtype.experiments.settings.stored import read_settings
from wildtype.experiments.stored import Run
from wildtype.files import sha256_of_file

TOLERANCE = 0.01
WEIGHTS = "checkpoint/model.safetensors"


@dataclass(frozen=True)
class ReproducedScore:
    """One model on one phenotype, then and now.

    Attributes
    ----------
    model, phenotype : str
        Their names.
    then, now : float
        Its headline metric on the test rows.
    largest : float
        Largest difference of a prediction, in the phenotype's unit.
    """

    model: str
    phenotype: str
    then: float
    now: float
    largest: float

    @property
    def difference(self) -> float:
        """Absolute difference of the metric; two undefined values are equal."""
        both = math.isnan(self.then) and math.isnan(self.now)
        return 0.0 if both else abs(self.then - self.now)


@dataclass(frozen=True)
class Reproduction:
    """A repeated run beside the first one.

    Attributes
    ----------
    path : Path
        The new run.
    verdict : str
        ``identical``: every prediction to the bit; ``close``: every metric within the tolerance; else
        ``different``.
    models : tuple of ReproducedScore
        Every model and phenotype.
    same_weights : bool
        Whether the weights are equal to the bit.
    changed : dict
        Versions and properties of the machine that differ: then and now.
    promised : bool
        Whether the run is set to be deterministic and nothing has changed: only ``identical`` is a success
        then.
    """

    path: Path
    verdict: str
    models: tuple[ReproducedScore, ...]
    same_weights: bool
    changed: dict[str, tuple[str, str]]
    promised: bool

    @property
    def success(self) -> bool:
        """Whether the run was reproduced as closely as it promises."""
        return self.verdict == "identical" or (self.verdict == "close" and not self.promised)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "path": str(self.path), "success": self.success}


def reproduce(
    run: Path,
    folder: Path,
    *,
    tolerance: float = TOLERANCE,
    dataset: Dataset | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Train a finished run again from its settings, in another run directory, and compare the two.

    Parameters
    ----------
    run, folder : path
        Run directories of the finished run and of the new one.
    tolerance : float
        Largest difference of a headline metric that counts as close.
    dataset : Dataset, optional
        Used instead of the one that the settings name.
    log : callable
        As for ``train``.

    Raises
    ------
    CheckpointError
        If the run is not finished, is damaged, or has settings of another version.
    ConfigError
        If its data have changed since.
    """
    config, then = read_settings(run / MARK), Run(run)
    frames = [_predictions(then)]
    recorded = _record(run)
    # Sums are in another order with another number of threads.
    config.training = replace(config.training, threads=config.training.threads or recorded_threads(run))
    config.run = replace(config.run, folder=str(folder), overwrite=False, resume=False, estimate=False)
    dataset = load_for(config) if dataset is None else dataset
    _check_data(run, recorded, of_data(prepare(config, dataset)), then)
    now = train(config, dataset=dataset, log=log)
    frames.append(_predictions(now))
    models = []
    for phenotype, comparison in then.comparisons.items():
        for score in comparison.scores:
            values = [frame[frame["phenotype"] == phenotype] for frame in frames]
            columns = [v[score.model].to_numpy() if score.model in v else np.zeros(0) for v in values]
            largest = (
                float(np.abs(columns[0] - columns[1]).max(initial=0.0))
                if len(columns[0]) == len(columns[1])
                else math.inf
            )
            before, after = (
                getattr(c[score.model], c.headline).value for c in (comparison, now.comparisons[phenotype])
            )
            models.append(ReproducedScore(score.model, phenotype, before, after, largest))
    changed = _changed(_versions(recorded), _versions(environment()))
    same_weights = sha256_of_file(run / WEIGHTS) == sha256_of_file(now.path / WEIGHTS)
    if same_weights and all(m.largest == 0 and m.difference == 0 for m in models):
        verdict = "identical"
    else:
        verdict = "close" if all(m.difference <= tolerance for m in models) else "different"
    return Reproduction(
        now.path,
        verdict,
        tuple(models),
        same_weights,
        changed,
        promised=config.training.deterministic and not changed,
    )


def _predictions(run: Run) -> pd.DataFrame:
    path = run.path / "predictions.parquet"
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{str(path)!r} cannot be read ({reason_of(error)}): the run is not finished, or damaged"
        ) from error


def _record(run: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads((run / RECORD).read_text(encoding="utf-8"))
        _versions(record)
        return record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{str(run / RECORD)!r} is missing or damaged ({reason_of(error)}): what the run was "
            f"made with is not known"
        ) from error


def _check_data(run: Path, recorded: dict[str, Any], data: dict[str, Any], then: Run) -> None:
    """Refuse data that differ from those of the run; what an older record lacks is not compared."""
    tested = {comparison.dataset_sha256 for comparison in then.comparisons.values()}
    other = [what for what, found in data.items() if what in recorded and recorded[what] != found]
    if data["dataset"]["sha256"] not in tested:
        other.insert(0, "dataset")
    if other:
        what = other[0].removesuffix("_sha256")
        raise ConfigError(
            f"the {what} of {data['dataset']['name']!r} is not what it was when {str(run)!r} was made: build "
            f"the data as they were (its card.json says from what), and repeat"
        )


def _versions(record: dict[str, Any]) -> dict[str, Any]:
    return {"python": record["python"], "git": record["git"], **record["packages"], **record["machine"]}


def _changed(then: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[str, str]]:
    keys = dict.fromkeys((*then, *now))
    pairs = {key: (str(then.get(key, "not recorded")), str(now.get(key, "not recorded"))) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
