"""Predictions of baselines and closed forms for the test rows of a run.

Legend: M test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.closed_forms import CLOSED_FORMS, applies, closed_form, parts_of
from wildtype.datasets.dataset_record import Phenotype
from wildtype.errors import ConfigError
from wildtype.experiments.data import RunData
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.models.baselines.groundwork import BaselineFeatures
from wildtype.mutants.grid import VisibleCrosses


def predict_baseline(name: str, data: RunData, seed: int) -> NDArray[np.float64]:
    """Fit a baseline on every phenotype that has test rows, and predict these."""
    # Baselines get the same training rows, validation rows and visible single fitness as the model. Test rows
    # reach only `predict`, which reads their genes and no labels.
    train, validation, test = (data.part(part) for part in ("train", "validation", "test"))
    out = np.full(len(test), np.nan)
    crosses = data.crosses()
    groundwork = BaselineFeatures(data.dataset.organism, train, data.single_fitness)
    for p, phenotype in enumerate(data.dataset.phenotypes):
        rows = test.phenotype == p
        if phenotype.form == "gene" or not rows.any():
            continue  # a baseline predicts one value per mutant; profiles are compared with a mean profile
        tables = [part.take(part.phenotype == p) for part in (train, validation)]
        if not BASELINES.find(name).applies(*tables, test.take(rows)):
            continue  # left empty in the table of this phenotype
        baseline = make_baseline(name).fit(
            data.dataset.organism,
            *tables,
            single_fitness=data.single_fitness,
            seed=seed,
            groundwork=groundwork,
            crosses=_labelled(crosses, phenotype),
        )
        out[rows] = baseline.predict(test.take(rows))
    return out


def _labelled(crosses: VisibleCrosses | None, phenotype: Phenotype) -> VisibleCrosses | None:
    """Return the visible crosses whose listed ones have the label of a phenotype; None without a grid.

    Unlisted crosses are 0 of the effect and of both signs. They say nothing of other phenotypes, which get
    no grid.
    """
    if crosses is None or phenotype.of_cross not in ("effect", "negative", "positive"):
        return None
    if phenotype.of_cross == "effect":
        return crosses
    label = phenotype.listed(crosses.listed).astype(np.float32)
    return replace(crosses, listed=replace(crosses.listed, value=label))


def baselines_of_run(names: list[str], data: RunData, *, every: bool) -> list[str]:
    """Return the baselines and closed forms of a run, in the order of its table.

    Parameters
    ----------
    names : list of str
        Registered baselines, and closed forms.
    data : RunData
    every : bool
        Whether all baselines are meant: those that do not apply are left out, and closed forms that do are
        added.

    Raises
    ------
    ConfigError
        If a named baseline does not apply to any phenotype of the run.
    """
    unsuited = [name for name in names if name not in CLOSED_FORMS and not applies_to(name, data)]
    if every:
        kept = [name for name in names if name not in unsuited]
        return [*kept, *CLOSED_FORMS] if triples(data) else kept
    if unsuited:
        raise ConfigError(
            f"baseline {unsuited[0]!r} is for rows of {BASELINES.find(unsuited[0]).order} genes, and no "
            f"phenotype of the run has only such rows: leave it out of baselines, or choose other phenotypes"
        )
    if (asked := [name for name in names if name in CLOSED_FORMS]) and not triples(data):
        raise ConfigError(
            f"baseline {asked[0]!r} is for triple mutants: it needs test rows of fitness or tau that all "
            f"perturb three genes; leave it out, or test triples (split.name=order)"
        )
    return names


def applies_to(name: str, data: RunData) -> bool:
    """Return whether a baseline is for the rows of any phenotype of a run (one value per mutant)."""
    parts = [data.part(part) for part in ("train", "validation", "test")]
    for p, phenotype in enumerate(data.dataset.phenotypes):
        tables = [part.take(part.phenotype == p) for part in parts]
        if phenotype.form != "gene" and len(tables[-1]) and BASELINES.find(name).applies(*tables):
            return True
    return False


def triples(data: RunData) -> list[int]:
    """Return the phenotypes for which closed forms give predictions."""
    test = data.part("test")
    return [
        p
        for p, phenotype in enumerate(data.dataset.phenotypes)
        if applies(phenotype.name, test.take(test.phenotype == p))
    ]


def predict_closed_form(name: str, data: RunData, log: Callable[[str], None]) -> NDArray[np.float64]:
    """Predict test rows of triple mutants from measured pairs and singles; NaN where it does not apply."""
    test, measured = data.part("test"), data.measured_fitness()
    out = np.full(len(test), np.nan)
    for p in triples(data):
        rows = test.phenotype == p
        parts = parts_of(test.take(rows), measured, data.single_fitness)
        out[rows] = closed_form(name, data.dataset.phenotypes[p].name, parts)
        log(
            f"{name} of {data.dataset.phenotypes[p].name}: {parts.missing_pairs:,} of {parts.pairs.size:,} "
            f"pairs have no visible measurement (product of the singles instead), "
            f"{parts.missing_singles:,} singles (1 instead)"
        )
    return out
