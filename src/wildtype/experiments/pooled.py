"""`summaries_of`: several run directories, question by question, from their stored rows where possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from wildtype.errors import ConfigError
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.pooled import pool
from wildtype.evaluation.summary import Summary, joined, summarise
from wildtype.experiments.external import row_groups
from wildtype.experiments.stored import Run

if TYPE_CHECKING:
    import pandas as pd

ROWS = ["genes", "kinds", "condition", "value"]
"""Columns by which the rows of two runs of one seed and fold are the same."""


@dataclass(frozen=True, eq=False)
class TestedRows:
    """The stored rows of one question of one run, or of several runs of one seed and fold.

    Attributes
    ----------
    fold : int or None
        Which fold of the split was tested; None where the split has none.
    comparison : Comparison
        The table of these rows.
    frame : pandas.DataFrame
        ``ROWS``, a column per model, and those that group rows.
    """

    __test__ = False  # pytest takes classes called Test… for tests

    fold: int | None
    comparison: Comparison
    frame: pd.DataFrame

    def with_models_of(self, other: TestedRows) -> TestedRows:
        """Return these rows with the models of another run; raises ``ConfigError`` for other rows."""
        comparison = joined(self.comparison, other.comparison)
        one, two = (part.frame[ROWS].reset_index(drop=True) for part in (self, other))
        if not one.equals(two):
            raise ConfigError(
                f"two runs on {comparison.dataset}, {comparison.phenotype}, split {comparison.split}, seed "
                f"{comparison.seed} were tested on different rows: summarise them separately"
            )
        theirs = [s.model for s in other.comparison.scores if s.model in other.frame]
        new = [model for model in theirs if model not in self.frame]
        return replace(
            self,
            comparison=comparison,
            frame=self.frame.assign(**{model: other.frame[model].to_numpy() for model in new}),
        )


def summaries_of(runs: Sequence[Run], *, each: bool = False) -> list[Summary]:
    """Return a summary per question: dataset, phenotype or external test, group of its pairs, and split.

    Pairs are grouped by the number of their genes that no training row has (`external.row_groups`). Folds
    of one seed are pooled, and seeds averaged, with paired intervals over all rows (`evaluation.pooled`).
    Tables without stored rows (means over phenotypes, groups of phenotypes, profiles,
    runs of earlier versions) are summarised from the tables themselves, each fold by itself.

    Parameters
    ----------
    runs : sequence of Run
    each : bool
        Whether to summarise every phenotype instead of their mean.

    Raises
    ------
    ConfigError
        If two runs of one seed and fold have the same model, or different rows.
    CheckpointError
        If a directory holds no finished run, or is damaged.
    """
    questions: dict[tuple[str, str, str], list[TestedRows | Comparison]] = {}
    for run in runs:
        fold = _fold_of(run)
        tables = run.comparisons if each else run.tables()
        for name, table in tables.items():
            frame = _rows_of(run, name, table)
            found: TestedRows | Comparison
            if frame is None:
                found = table if fold is None else replace(table, split=f"{table.split}, fold {fold}")
            elif len(frame):
                found = TestedRows(fold, table, frame)
            else:
                continue
            questions.setdefault((table.dataset, table.phenotype, table.split), []).append(found)
    summaries: list[Summary] = []
    for parts in questions.values():
        rows = [part for part in parts if isinstance(part, TestedRows)]
        if len(rows) == len(parts):
            summaries += _pooled(rows)
        else:
            summaries += summarise(p.comparison if isinstance(p, TestedRows) else p for p in parts)
    return summaries


def _fold_of(run: Run) -> int | None:
    # A copied table may have no settings beside it.
    there = (run.path / "settings.json").is_file()
    fold: int | None = (run.settings.get("split") or {}).get("fold") if there else None
    return fold


def _rows_of(run: Run, name: str, table: Comparison) -> pd.DataFrame | None:
    """Return the stored rows of a table; empty for a group of an external test; None where there are none."""
    external = run.external
    if external is not None and table.dataset in set(external["dataset"]):
        # Groups are formed anew of the pooled rows: a fold may have too few of one.
        phenotype = name.removesuffix(f" on {table.dataset}")
        return external[(external["dataset"] == table.dataset) & (external["phenotype"] == phenotype)]
    frame = run.predictions
    if frame is None or run.phenotypes.get(name, {}).get("form") not in ("scalar", "class"):
        return None
    found = frame[frame["phenotype"] == name]
    return found if len(found) == table.rows else None


def _pooled(parts: Sequence[TestedRows]) -> list[Summary]:
    import pandas as pd

    found: dict[tuple[int, int | None], TestedRows] = {}  # by seed and fold
    for part in parts:
        key = (part.comparison.seed, part.fold)
        found[key] = found[key].with_models_of(part) if key in found else part
    like = next(iter(found.values())).comparison
    frames: dict[int, list[pd.DataFrame]] = {}
    for (seed, _), rows in found.items():
        frames.setdefault(seed, []).append(rows.frame)
    everywhere = [
        score.model for score in like.scores if all(score.model in rows.frame for rows in found.values())
    ]
    others = dict.fromkeys(s.model for rows in found.values() for s in rows.comparison.scores)
    absent = [model for model in others if model not in everywhere]
    folds = sorted({fold for _, fold in found if fold is not None})
    notes = [f"folds {', '.join(map(str, folds))} of a seed are pooled"] if folds else []
    if absent:
        notes.append(f"left out, since not every run has them: {', '.join(absent)}")
    pooled = {seed: pd.concat(parts, ignore_index=True) for seed, parts in frames.items()}
    groups = {"": pooled}
    if all("unseen" in frame for frame in pooled.values()):
        groups = _groups(pooled)
    timed = {
        model: [s.seconds for r in found.values() for s in r.comparison.scores if s.model == model]
        for model in everywhere
    }
    seconds = {
        model: float(np.mean([x for x in values if x is not None])) if any(values) else float("nan")
        for model, values in timed.items()
    }
    return [
        replace(pool(rows, replace(like, phenotype=f"{like.phenotype}{group}"), notes), seconds=seconds)
        for group, rows in groups.items()
    ]


def _groups(pooled: dict[int, pd.DataFrame]) -> dict[str, dict[int, pd.DataFrame]]:
    """Return by group of rows those of every seed; groups that all seeds have."""
    found: dict[int, dict[str, pd.DataFrame]] = {}
    for seed, frame in pooled.items():
        screen = frame["screen"].to_numpy(np.str_) if "screen" in frame else None
        groups = row_groups(frame["order"].to_numpy(), frame["unseen"].to_numpy(), screen)
        found[seed] = {group: frame.iloc[at] for group, at in groups.items()}
    shared = [group for group in next(iter(found.values())) if all(group in of for of in found.values())]
    return {group: {seed: of[group] for seed, of in found.items()} for group in shared}
