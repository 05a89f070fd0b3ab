"""Predictions of baselines and closed forms for the test rows of a run, and for those of external tests.

Legend: M test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.closed_forms import CLOSED_FORMS, applies, closed_form, parts_of
from wildtype.datasets.dataset_record import Phenotype
from wildtype.errors import ConfigError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.experiments.data import RunData
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.models.baselines.groundwork import BaselineFeatures
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import VisibleCrosses


def predict_baseline(
    name: str, data: RunData, seed: int, further: Sequence[MutantTable] = ()
) -> list[NDArray[np.float64]]:
    """Fit a baseline once on every phenotype that has rows to predict, and predict these.

    Returns
    -------
    list of float64 [M]
        Of the test rows, then of the rows of each table of ``further``, whose phenotypes are those of the
        run; NaN where the baseline does not apply.
    """
    # Baselines get the same training rows, validation rows and visible single fitness as the model. Test rows
    # reach only `predict`, which reads their genes and no labels.
    train, validation = (data.part(part) for part in ("train", "validation"))
    asked = [data.part("test"), *further]
    out = [np.full(len(table), np.nan) for table in asked]
    crosses = data.crosses()
    groundwork = BaselineFeatures(data.dataset.organism, train, data.single_fitness)
    for p, phenotype in enumerate(data.dataset.phenotypes):
        if phenotype.form == "gene":
            continue  # a baseline predicts one value per mutant; profiles are compared with a mean profile
        tables = [part.take(part.phenotype == p) for part in (train, validation)]
        applies = BASELINES.find(name).applies
        rows = [table.phenotype == p for table in asked]
        chosen = [i for i, mine in enumerate(rows) if mine.any() and applies(*tables, asked[i].take(mine))]
        if not chosen:
            continue  # left empty in the table of this phenotype
        baseline = make_baseline(name).fit(
            data.dataset.organism,
            *tables,
            single_fitness=data.single_fitness,
            seed=seed,
            groundwork=groundwork,
            crosses=_labelled(crosses, phenotype),
            screens=_turned(data.known().screens, phenotype),
        )
        for i in chosen:
            out[i][rows[i]] = baseline.predict(asked[i].take(rows[i]))
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


def _turned(screens: Sequence[OtherScreen], phenotype: Phenotype) -> list[OtherScreen]:
    """Return screens with values that rise with a phenotype: that a cross is negative, with lower effects."""
    if phenotype.of_cross != "negative":
        return list(screens)
    return [replace(x, matrix=replace(x.matrix, values=-x.matrix.values)) for x in screens]


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
    if unsuited and BASELINES.find(unsuited[0]).reads_screens and not data.others:
        raise ConfigError(
            f"baseline {unsuited[0]!r} reads other screens, and the run looks at none: name some with "
            f"data.screens=[…], or leave it out of baselines"
        )
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
    """Return whether a baseline is for a run: for the rows of any phenotype (one value per mutant), and for
    other screens only where the run looks at some.
    """
    if BASELINES.find(name).reads_screens and not data.others:
        return False
    parts = [data.part(part) for part in ("train", "validation", "test")]
    for p, phenotype in enumerate(data.dataset.phenotypes):
        tables = [part.take(part.phenotype == p) for part in parts]
        if phenotype.form != "gene" and len(tables[-1]) and BASELINES.find(name).applies(*tables):
            return True
    return False


def triples(data: RunData, table: MutantTable | None = None) -> list[int]:
    """Return the phenotypes for whose rows, of the test or of a table, closed forms give predictions."""
    rows = data.part("test") if table is None else table
    return [
        p
        for p, phenotype in enumerate(data.dataset.phenotypes)
        if applies(phenotype.name, rows.take(rows.phenotype == p))
    ]


def predict_closed_form(
    name: str, data: RunData, log: Callable[[str], None], further: Sequence[MutantTable] = ()
) -> list[NDArray[np.float64]]:
    """Predict triple mutants from measured pairs and singles; NaN where it does not apply.

    Returns predictions of the test rows and of the tables of ``further``, as `predict_baseline` does.
    """
    measured = data.measured_fitness()
    return [_closed_form(name, data, table, measured, log) for table in (data.part("test"), *further)]


def _closed_form(
    name: str, data: RunData, table: MutantTable, measured: MutantTable, log: Callable[[str], None]
) -> NDArray[np.float64]:
    out = np.full(len(table), np.nan)
    for p in triples(data, table):
        rows = table.phenotype == p
        parts = parts_of(table.take(rows), measured, data.single_fitness)
        out[rows] = closed_form(name, data.dataset.phenotypes[p].name, parts)
        log(
            f"{name} of {data.dataset.phenotypes[p].name}: {parts.missing_pairs:,} of {parts.pairs.size:,} "
            f"pairs have no visible measurement (product of the singles instead), "
            f"{parts.missing_singles:,} singles (1 instead)"
        )
    return out
