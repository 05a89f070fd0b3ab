"""The tables of an ablation from its run directories; a run that is missing has a remark that tells why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import CheckpointError, ConfigError, reason_of
from wildtype.evaluation.ablation import IDENTITY, PREDICTED, AblationOutcome, AblationTable, level_results
from wildtype.evaluation.comparison import Comparison
from wildtype.experiments.folder import MARK
from wildtype.experiments.many import RunStates, is_finished
from wildtype.experiments.settings.ablation import BASE, Ablation, AblationRun
from wildtype.experiments.stored import Run
from wildtype.files import write_json, write_text
from wildtype.profiling.machine import machine
from wildtype.report.search_tables import ablation_to_markdown

TABLES = "table.json"
DOCUMENT = "ablation.md"
NOTES = {"failed": "failed", "skipped": "did not fit the budget", "planned": "are still to come"}
"""What a reader is told of runs by their state."""


@dataclass(frozen=True)
class AblationReport:
    """What an ablation found so far.

    Attributes
    ----------
    folder : Path
        Directory of the runs and the tables.
    tables : tuple of AblationTable
        One per split and phenotype.
    states : dict of str to str
        State of every planned run by its name.
    notes : tuple of str
        What a reader must know.
    """

    folder: Path
    tables: tuple[AblationTable, ...]
    states: dict[str, str]
    notes: tuple[str, ...]

    @property
    def failed(self) -> list[str]:
        """Names of the runs that failed."""
        return [name for name, state in self.states.items() if state == "failed"]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "tables": [table.to_json() for table in self.tables],
            "runs": self.states,
            "notes": list(self.notes),
        }


def tables_of(
    plan: Ablation, runs: Sequence[AblationRun], folder: Path, states: RunStates, replicates: int
) -> AblationReport:
    """Return the tables of all finished runs of a plan, and the states of the others.

    A finished run that turns out to be damaged counts as failed, in ``states`` too.
    """
    found: dict[str, dict[str, AblationOutcome]] = {}
    compared: dict[tuple[str, str], Comparison] = {}
    versions: set[str] = set()
    for run in runs:
        state = states[run.name]
        if not is_finished(run.directory):
            continue
        timed = state.state == "finished" and not state.resumed and state.seconds is not None
        try:
            comparisons, found[run.name] = _outcomes(run, timed=timed)
            versions.add(_version(run.directory))
        except CheckpointError as error:
            state.state, state.why = "failed", str(error)
            continue
        for phenotype, comparison in comparisons.items():
            compared.setdefault((run.split, phenotype), comparison)
    notes = []
    if len(versions) > 1:
        notes.append(f"the runs were made by {len(versions)} versions of the program: {', '.join(versions)}")
    planned = {run.name for run in runs}
    present = sorted(str(mark.parent.relative_to(folder)) for mark in folder.glob(f"**/{MARK}"))
    if others := [name for name in present if name not in planned]:
        notes.append(f"{len(others)} runs in the directory are not of this plan, as {others[0]}")
    reached = {run.name: states[run.name].state for run in runs}
    for state_name, text in NOTES.items():
        if count := list(reached.values()).count(state_name):
            notes.append(f"{count} of {len(reached)} runs {text}")
    base = " ".join(plan.base) or "the defaults"
    seen = ", ".join(map(str, dict.fromkeys(run.config.seed for run in runs)))
    notes.append(f"ablation {plan.name}; base: {base}; seeds {seen}; machine: {_machine()}")
    tables = [
        _table(plan, runs, split, phenotype, comparison, found, states, replicates)
        for (split, phenotype), comparison in compared.items()
    ]
    tables += [
        _table(plan, runs, split, "", None, found, states, replicates)
        for split in plan.splits
        if split not in {key[0] for key in compared}
    ]
    return AblationReport(folder, tuple(tables), reached, tuple(notes))


def _table(
    plan: Ablation,
    runs: Sequence[AblationRun],
    split: str,
    phenotype: str,
    comparison: Comparison | None,
    found: dict[str, dict[str, AblationOutcome]],
    states: RunStates,
    replicates: int,
) -> AblationTable:
    """Return the table of one split and phenotype; of no phenotype where no run is finished."""
    levels: dict[tuple[str, str], dict[int, AblationOutcome]] = {key: {} for key in plan.levels}
    missing: dict[tuple[str, str], dict[str, list[int]]] = {key: {} for key in plan.levels}
    for run in runs:
        if run.split != split:
            continue
        key, state, seed = (run.factor, run.level), states[run.name], run.config.seed
        if (outcome := found.get(run.name, {}).get(phenotype)) is not None:
            levels[key][seed] = outcome
            if state.resumed:
                missing[key].setdefault("resumed, so that its time is not known", []).append(seed)
        else:
            text = {"failed": "failed", "skipped": "not run"}.get(state.state, "not run yet")
            missing[key].setdefault(f"{text}{': ' if state.why else ''}{state.why}", []).append(seed)
    remarks = {
        key: [f"seed {', '.join(map(str, seeds))} {text}" for text, seeds in of_level.items()]
        for key, of_level in missing.items()
    }
    base = levels[BASE, ""]
    for factor, level in plan.levels:
        if plan.is_base(factor, level, split):
            levels[factor, level] = dict(base)
            remarks[factor, level].append("this is the base")
    config = plan.configs[BASE, "", split]
    headline = "pearson" if comparison is None else comparison.headline
    clusters = "genes" if comparison is None else comparison.clusters
    return AblationTable(
        dataset=config.data.name,
        phenotype=phenotype,
        split=split,
        headline=headline,
        clusters=clusters,
        replicates=replicates,
        rows=tuple(
            level_results(
                base, levels, headline=headline, clusters=clusters, replicates=replicates, remarks=remarks
            )
        ),
    )


def _outcomes(
    run: AblationRun, *, timed: bool
) -> tuple[Mapping[str, Comparison], dict[str, AblationOutcome]]:
    """Return the tables of a finished run, and what it reached, by phenotype.

    Its times are those of all epochs only if it was ``timed`` without an interruption. Raises
    ``CheckpointError`` if the run directory is damaged.
    """
    import pandas as pd

    directory, model = run.directory, run.config.model.name
    every = Run(directory).comparisons
    try:
        metrics = json.loads((directory / "checkpoint" / "metrics.json").read_text(encoding="utf-8"))
        fits = [metrics["fit"], *metrics["members"]]
        epochs = sum(fit["epochs"] for fit in fits)
        # Without gradients there are no epochs: the finished model is all there is to score.
        scores = [fit["best_score"] for fit in fits] if epochs else [float(metrics["validation_score"])]
        validation = sum(scores) / len(scores)
        seconds = sum(fit["seconds"] for fit in fits) / epochs if timed and epochs else float("nan")
        frame = pd.read_parquet(directory / "predictions.parquet")
        columns = [name for name in IDENTITY if name in frame]
        test = frame.assign(**{PREDICTED: frame[model]})
        # Groups and what follows from another phenotype are not phenotypes of rows.
        comparisons = {name: every[name] for name in every if (test["phenotype"] == name).any()}
        if not comparisons:
            raise ConfigError(
                f"the run in {str(directory)!r} has tables of groups only ({', '.join(every)}): ablate "
                f"phenotypes outside of groups, with data.phenotypes=[…]"
            )
        return comparisons, {
            name: AblationOutcome(
                validation=validation,
                test=test.loc[test["phenotype"] == name, [*columns, PREDICTED]].reset_index(drop=True),
                seconds_per_epoch=seconds,
                peak_mib=comparison[model].peak_mib or float("nan"),
            )
            for name, comparison in comparisons.items()
        }
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CheckpointError(
            f"the run in {str(directory)!r} is damaged ({reason_of(error)}): remove it to repeat the run"
        ) from error


def _version(directory: Path) -> str:
    """Return which program made a run."""
    try:
        record = json.loads((directory / "record.json").read_text(encoding="utf-8"))
        return f"{record['packages']['wildtype']} ({record['git']})"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{str(directory / 'record.json')!r} is damaged ({reason_of(error)}): remove the directory to "
            f"repeat the run"
        ) from error


def _machine() -> str:
    return ", ".join(f"{key} {value}" for key, value in machine().items() if value not in (None, "", []))


def write_tables(report: AblationReport) -> None:
    """Write the tables for people and for programs; raises ``OutputError``."""
    write_json(report.folder / TABLES, report.to_json())
    write_text(report.folder / DOCUMENT, ablation_to_markdown(report.tables, report.notes))
