"""The tables of an ablation from its run folders, finished or not: what is missing is a row that says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import CheckpointError, reason_of
from wildtype.evaluation.ablation import AblationRun, AblationTable, level_results
from wildtype.evaluation.compare import Comparison
from wildtype.experiments.ablation_state import Record, is_finished, outcomes
from wildtype.experiments.folder import MARK
from wildtype.experiments.settings.ablation import BASE, Ablation, PlannedRun
from wildtype.files import write_json, write_text
from wildtype.profiling.machine import machine
from wildtype.report.ablation import tables_to_markdown

TABLES = "table.json"
DOCUMENT = "ablation.md"


@dataclass(frozen=True)
class AblationReport:
    """What an ablation found so far.

    Attributes
    ----------
    folder : Path
        Holds the runs and the tables.
    tables : tuple of AblationTable
        One per split and phenotype.
    states : dict of str to str
        State of every planned run by its room.
    notes : tuple of str
        What a reader must know.
    """

    folder: Path
    tables: tuple[AblationTable, ...]
    states: dict[str, str]
    notes: tuple[str, ...]

    @property
    def failed(self) -> list[str]:
        """Rooms of the runs that failed."""
        return [room for room, state in self.states.items() if state == "failed"]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "tables": [table.to_json() for table in self.tables],
            "runs": self.states,
            "notes": list(self.notes),
        }


def tables_of(
    plan: Ablation, runs: Sequence[PlannedRun], folder: Path, record: Record, replicates: int
) -> AblationReport:
    """Return the tables of all runs of a plan that are finished, and what became of the others.

    A finished run that turns out to be damaged counts as failed, in ``record`` too.
    """
    found: dict[str, dict[str, AblationRun]] = {}
    compared: dict[tuple[str, str], Comparison] = {}
    versions: set[str] = set()
    for run in runs:
        state, room = record[run.room], folder / run.room
        if not is_finished(room):
            continue
        timed = state.state == "finished" and not state.resumed and state.seconds is not None
        try:
            comparisons, found[run.room] = outcomes(room, run.config.model.name, timed=timed)
            versions.add(_version(room))
        except CheckpointError as error:
            state.state, state.why = "failed", str(error)
            continue
        for phenotype, comparison in comparisons.items():
            compared.setdefault((run.split, phenotype), comparison)
    notes = []
    if len(versions) > 1:
        notes.append(f"runs of {len(versions)} versions of the program stand together: {', '.join(versions)}")
    planned = {run.room for run in runs}
    others = sorted(str(mark.parent.relative_to(folder)) for mark in folder.glob(f"**/{MARK}"))
    if others := [room for room in others if room not in planned]:
        notes.append(f"{len(others)} runs in the folder are not of this plan, as {others[0]}")
    states = {run.room: record[run.room].state for run in runs}
    for fate, words in _FATES.items():
        if count := list(states.values()).count(fate):
            notes.append(f"{count} of {len(states)} runs {words}")
    base = " ".join(plan.base) or "the defaults"
    seen = ", ".join(map(str, dict.fromkeys(run.seed for run in runs)))
    notes.append(f"ablation {plan.name}; base: {base}; seeds {seen}; machine: {_machine()}")
    tables = [
        _table(plan, runs, split, phenotype, comparison, found, record, replicates)
        for (split, phenotype), comparison in compared.items()
    ]
    tables += [
        _table(plan, runs, split, "", None, found, record, replicates)
        for split in plan.splits
        if split not in {key[0] for key in compared}
    ]
    return AblationReport(folder, tuple(tables), states, tuple(notes))


_FATES = {"failed": "failed", "skipped": "did not fit the budget", "planned": "are still to come"}


def _table(
    plan: Ablation,
    runs: Sequence[PlannedRun],
    split: str,
    phenotype: str,
    comparison: Comparison | None,
    found: dict[str, dict[str, AblationRun]],
    record: Record,
    replicates: int,
) -> AblationTable:
    """Return the table of one split and phenotype; of no phenotype where no run is finished."""
    levels: dict[tuple[str, str], dict[int, AblationRun]] = {key: {} for key in plan.levels}
    fates: dict[tuple[str, str], dict[str, list[int]]] = {key: {} for key in plan.levels}
    for run in runs:
        if run.split != split:
            continue
        key, state = (run.factor, run.level), record[run.room]
        if (outcome := found.get(run.room, {}).get(phenotype)) is not None:
            levels[key][run.seed] = outcome
            if state.resumed:
                fates[key].setdefault("resumed, so that its time is not known", []).append(run.seed)
        else:
            fate = {"failed": "failed", "skipped": "not run"}.get(state.state, "not run yet")
            fates[key].setdefault(f"{fate}{': ' if state.why else ''}{state.why}", []).append(run.seed)
    remarks = {
        key: [f"seed {', '.join(map(str, seeds))} {fate}" for fate, seeds in found_fates.items()]
        for key, found_fates in fates.items()
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


def _version(room: Path) -> str:
    """Return which program made a run."""
    try:
        record = json.loads((room / "record.json").read_text(encoding="utf-8"))
        return f"{record['packages']['wildtype']} ({record['git']})"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{str(room / 'record.json')!r} is damaged ({reason_of(error)}): remove the folder to run "
            f"it again"
        ) from error


def _machine() -> str:
    return ", ".join(f"{key} {value}" for key, value in machine().items() if value not in (None, "", []))


def write_tables(report: AblationReport) -> None:
    """Write the tables for people and for programs into the folder; raises ``OutputError``."""
    write_json(report.folder / TABLES, report.to_json())
    write_text(report.folder / DOCUMENT, tables_to_markdown(report.tables, report.notes))
