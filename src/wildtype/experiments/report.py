"""`write_report`, `write_plot`: run directories as a page or as one figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.errors import ConfigError, WildtypeError, did_you_mean, reason_of
from wildtype.evaluation.summary import summarise
from wildtype.evaluation.training_record import count_sides
from wildtype.experiments.folder import REPORT
from wildtype.experiments.stored import Run
from wildtype.files import write_text
from wildtype.inference.screening.constraints import MEASURED
from wildtype.report.figures.calibration import calibration_panels
from wildtype.report.figures.comparison import comparison_panel, summary_panel
from wildtype.report.figures.error import error_panels
from wildtype.report.figures.learning import learning_panels
from wildtype.report.figures.panel import Panel, save_panels
from wildtype.report.figures.predicted import predicted_panels
from wildtype.report.figures.reliability import reliability_panels
from wildtype.report.figures.style import check_target
from wildtype.report.figures.time import time_panel
from wildtype.report.run_facts import RunFacts, UnmeasuredPredictions
from wildtype.report.run_page import run_page

if TYPE_CHECKING:
    from wildtype.inference.predictor import Predictor

SCREENED, AT_ONCE = 10_000, 2_000
"""Mutants predicted at most for each phenotype: by ``write_report``, and by the page after training."""
TOP = 10
MOST_PHENOTYPES = 4
"""Drawn on a page of one run; fewer where there are several runs."""


def write_report(runs: Sequence[Run], target: Path, *, screened: int = SCREENED) -> None:
    """Write the page of one or several finished runs.

    Parameters
    ----------
    runs : sequence of Run
    target : Path
        The page; an older one is replaced.
    screened : int
        Mutants to predict at most for the list of those not yet measured, for each phenotype; 0: no list.

    Raises
    ------
    CheckpointError
        If a directory holds no finished run, or is damaged.
    ConfigError
        If too many runs are named.
    OutputError
        If the page cannot be written.
    """
    if screened < 0:
        raise ConfigError(f"screen={screened}: ask about at least one mutant, or 0 for none")
    each = max(MOST_PHENOTYPES // max(len(runs), 1), 1)
    facts = [run_facts(run, phenotypes=each, screened=screened) for run in runs]
    summaries = summarise(next(iter(run.tables().values())) for run in runs) if len(runs) > 1 else []
    write_text(target, run_page(facts, summaries))


def report_after_training(run: Run, log: Callable[[str], None]) -> None:
    """Write the page of a run that has just finished; it asks about fewer mutants than `write_report`.

    A page that cannot be written is logged and is no error: the run is complete without it.
    """
    try:
        write_report([run], run.path / REPORT, screened=AT_ONCE)
        log(f"page: {run.path / REPORT}")
    except Exception as error:
        log(f"no page was written ({reason_of(error)}); wildtype report {run.path} tries again")


def run_facts(run: Run, *, phenotypes: int = MOST_PHENOTYPES, screened: int = 0) -> RunFacts:
    """Gather what a page shows of a run."""
    first, *more = run.tables().values()
    tested, unmeasured, sides, essential = run.tested[:phenotypes], [], None, frozenset[str]()
    coverage = run.coverage
    try:
        known = run.predictor.encoded.checkpoint.known
        sides = count_sides(known)
        essential = frozenset(run.genes.names[i] for i in np.flatnonzero(known.essential))
        if screened:
            unmeasured = [predict_unmeasured(run.predictor, rows.phenotype, screened) for rows in tested]
    except WildtypeError as error:
        run.missing["sides"] = str(error)
    if not screened:
        unmeasured = [
            UnmeasuredPredictions(f"No unmeasured mutant was predicted yet: run wildtype report {run.path}.")
        ]
    own = {first.phenotype, *(table.phenotype for table in more)}
    return RunFacts(
        name=run.path.resolve().name,
        model=run.model,
        tables=[first, *more],
        others=[table for table in run.comparisons.values() if table.phenotype not in own],
        ceilings={rows.phenotype: rows.noise().ceiling for rows in run.tested},
        tested=tested,
        undrawn=len(run.tested) - len(tested),
        coverage=coverage,
        learning=run.learning,
        profile=run.profile,
        genes=run.genes,
        essential=essential,
        unmeasured=unmeasured,
        explained=run.explained,
        sides=sides,
        settings=run.settings,
        record=run.record,
        card=run.card,
        split=run.split,
        fit=run.metrics,
        missing=run.missing,
        reliability=run.reliability,
    )


def predict_unmeasured(predictor: Predictor, phenotype: str, most: int) -> UnmeasuredPredictions:
    """Predict at most ``most`` mutants that were not measured: sets of the genes with most training rows, of
    the size that most training rows have.
    """
    trained = predictor.trained
    rows = trained.take(trained.phenotype == predictor.checkpoint.known.phenotypes.index(phenotype))
    rows = rows if len(rows) else trained  # labels that follow from a grid have no rows of their own
    order = int(np.argmax(np.bincount(rows.order)))
    counts = np.bincount(rows.gene, minlength=len(predictor.genes))
    ranked = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    size = next(n for n in range(len(ranked), order - 1, -1) if math.comb(n, order) <= most or n == order)
    among = [predictor.genes.names[i] for i in ranked[:size]]
    sets = f"all {math.comb(size, order):,} sets of {order} of the {size:,} genes with most training rows"
    interval = 0.9 if predictor.checkpoint.validation is not None else None
    try:
        frame = predictor.screen(
            order, among, top=TOP, phenotypes=[phenotype], unmeasured=True, interval=interval
        )
    except WildtypeError as error:
        return UnmeasuredPredictions(f"{phenotype}: {sets} could not be predicted: {error}")
    count = frame.attrs["asked"]
    left_out = [f"{n:,} {why}" for why, n in frame.attrs["left_out"].items() if why != MEASURED]
    others = f"; left out: {', '.join(left_out)}" if left_out else ""
    if not count:
        none = "no other one is predicted" if left_out else "every one of them was measured"
        return UnmeasuredPredictions(f"{phenotype}: {sets}; {none}{others}.", frame)
    return UnmeasuredPredictions(
        f"{phenotype}: {sets}, of which {count:,} were not measured{others}. A list of extremes is a "
        f"list of errors, too: the interval is that of a mutant drawn at random, not of one picked for its "
        f"prediction.",
        frame,
    )


# ------------------------------------------------------------------------------------------------------ plots


def _of_tested(run: Run, panels: Callable[[Any], list[Panel]]) -> list[Panel]:
    return [panel for rows in run.tested[:MOST_PHENOTYPES] for panel in panels(rows)]


def _comparison(runs: Sequence[Run]) -> list[Panel]:
    if len(runs) > 1:
        groups = summarise(table for run in runs for table in run.tables().values())
        return [summary_panel(group) for group in groups]
    ceilings = {rows.phenotype: rows.noise().ceiling for rows in runs[0].tested}
    return [
        comparison_panel(table, ceilings.get(table.phenotype, math.nan))
        for table in runs[0].tables().values()
    ]


def _calibration(runs: Sequence[Run]) -> list[Panel]:
    if len(runs) > 1:
        from wildtype.evaluation.calibration import mean_coverage

        return calibration_panels(mean_coverage([run.coverage for run in runs]))
    return calibration_panels(runs[0].coverage)


def _time(runs: Sequence[Run]) -> list[Panel]:
    panel = time_panel([{**run.profile, "name": run.path.resolve().name} for run in runs if run.profile])
    return [] if panel is None else [panel]


def _each(make: Callable[[Run], list[Panel]]) -> Callable[[Sequence[Run]], list[Panel]]:
    """Return the panels of every run, titled with the name of their run where there are several."""

    def panels(runs: Sequence[Run]) -> list[Panel]:
        if len(runs) == 1:
            return make(runs[0])
        found = []
        for run in runs:
            name = run.path.resolve().name
            found += [
                replace(panel, title=f"{name}: {panel.title}", short=f"{name}: {panel.short or panel.title}")
                for panel in make(run)
            ]
        return found

    return panels


PLOTS: dict[str, Callable[[Sequence[Run]], list[Panel]]] = {
    "comparison": _comparison,
    "predicted": _each(lambda run: _of_tested(run, predicted_panels)),
    "calibration": _calibration,
    "reliability": _each(lambda run: reliability_panels(run.reliability)),
    "error": _each(lambda run: _of_tested(run, error_panels)),
    "learning": _each(lambda run: learning_panels(run.learning) if run.learning else []),
    "time": _time,
}
"""Every kind of plot, with what makes its panels of runs."""


def write_plot(kind: str, folders: Sequence[Path], target: Path) -> None:
    """Write one figure of one or several finished runs, as .svg, .pdf or .png.

    Raises
    ------
    ConfigError
        If the kind or the ending is not known, or the runs hold no data for it.
    CheckpointError
        If a directory holds no finished run, or is damaged.
    OutputError
        If the figure cannot be written.
    """
    check_target(target)
    save_panels(panels_of_plot(kind, [Run(Path(folder)) for folder in folders]), target)


def panels_of_plot(kind: str, runs: Sequence[Run]) -> list[Panel]:
    """Return the panels of a kind of plot; errors as in `write_plot`."""
    if kind not in PLOTS:
        hint = did_you_mean(kind, PLOTS, f"known: {', '.join(PLOTS)}")
        raise ConfigError(f"{kind!r} is no kind of plot; {hint}")
    for run in runs:
        _ = run.comparisons  # a run that is not finished is refused for every kind of plot
    panels = PLOTS[kind](runs)
    if not panels:
        why = "; ".join(dict.fromkeys(reason for run in runs for reason in run.missing.values()))
        raise ConfigError(f"there is nothing to draw of {kind}: {why or 'the runs hold no such numbers'}")
    return panels
