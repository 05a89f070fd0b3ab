"""Results of ablations and searches as tables for a terminal or a document."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from wildtype.evaluation.ablation import AblationTable, LevelResult
from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.comparison import HEADLINES
from wildtype.evaluation.summary import Spread, Trial
from wildtype.report.comparison_tables import spread_text
from wildtype.report.text_table import NONE, markdown_table, print_line, print_table, signed_decimals

# -------------------------------------------------------------------------------- one factor at a time

LEGEND = (
    "Mean ± SD over seeds; Δ is the difference to the base on the same seeds. Choose by validation: the test "
    "columns are for reporting, with the 95 % interval of a bootstrap over {clusters} on the same test rows."
)


def print_ablation(tables: Sequence[AblationTable], notes: Sequence[str], console: Console) -> None:
    """Print all tables, the base of each first, and what a reader must know."""
    for ablation in tables:
        header = ["", *_ablation_header(ablation)[2:-1]]
        rows, remarks = [], []
        for row in ablation.rows:
            factor, level, *figures, remark = _ablation_cells(row)
            name = factor if level == NONE else f"{factor}: {level}"
            rows.append([name, *figures])
            remarks += [f"{name}: {remark}"] if remark else []
        print_table(console, header, rows, numeric=range(2, len(header)), title=_ablation_title(ablation))
        for remark in remarks:  # long ones would leave no room for figures in the table
            print_line(remark, console)
        console.print()
    if tables:
        print_line(_ablation_legend(tables), console)
    for note in notes:
        print_line(f"· {note}", console)


def ablation_to_markdown(tables: Sequence[AblationTable], notes: Sequence[str]) -> str:
    """Return all tables as Markdown, each under its title, and what a reader must know."""
    parts = [
        f"**{_ablation_title(table)}**\n\n"
        + markdown_table(_ablation_header(table), [_ablation_cells(row) for row in table.rows])
        for table in tables
    ]
    if tables:
        parts.append(_ablation_legend(tables))
    parts.append("\n".join(f"* {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _ablation_legend(tables: Sequence[AblationTable]) -> str:
    return LEGEND.format(clusters=" or ".join(dict.fromkeys(table.clusters for table in tables)))


def _ablation_title(table: AblationTable) -> str:
    what = ", ".join(part for part in (table.dataset, table.phenotype, f"split {table.split}") if part)
    return f"{what}: one factor at a time"


def _ablation_header(table: AblationTable) -> list[str]:
    name = HEADLINES[table.headline]
    return [
        "factor",
        "level",
        "seeds",
        "validation Pearson",
        "Δ validation",
        f"test {name}",
        "Δ test [95 %]",
        "s/epoch",
        "peak MiB",
        "remarks",
    ]


def _ablation_cells(row: LevelResult) -> list[str]:
    return [
        row.factor,
        row.level or NONE,
        ",".join(map(str, row.seeds)) or NONE,
        spread_text(row.validation),
        _difference(row.validation_difference),
        spread_text(row.test),
        _with_interval(row.test_difference),
        _figure(row.seconds_per_epoch, 2),
        _figure(row.peak_mib, 0),
        "; ".join(row.remarks),
    ]


def _difference(value: Spread) -> str:
    if math.isnan(value.mean):
        return NONE
    mean = signed_decimals(value.mean)
    return mean if math.isnan(value.sd) else f"{mean} ± {value.sd:.3f}"


def _with_interval(value: IntervalEstimate) -> str:
    if math.isnan(value.value) or math.isnan(value.low):
        return signed_decimals(value.value)
    return f"{signed_decimals(value.value)} [{signed_decimals(value.low)}, {signed_decimals(value.high)}]"


def _figure(value: float, digits: int) -> str:
    return NONE if math.isnan(value) else f"{value:,.{digits}f}"


# ------------------------------------------------------------------------------------- a search of many

ORDER = ("finished", "cut short", "failed")


def print_trials(trials: Sequence[Trial], best: Trial | None, base: Trial | None, console: Console) -> None:
    """Print the trials in the order of their validation scores, and what a reader must know."""
    print_table(console, *_trial_cells(trials, best, base), numeric=range(2, 5), title=_trials_title(trials))
    for note in _trial_notes(trials, best, base):
        print_line(f"· {note}", console)


def trials_to_markdown(trials: Sequence[Trial], best: Trial | None, base: Trial | None) -> str:
    """Return the trials as Markdown, and what a reader must know."""
    table = markdown_table(*_trial_cells(trials, best, base))
    notes = "\n".join(f"* {note}" for note in _trial_notes(trials, best, base))
    return f"**{_trials_title(trials)}**\n\n{table}\n\n{notes}\n"


def _trials_title(trials: Sequence[Trial]) -> str:
    counts = [(state, sum(trial.state == state for trial in trials)) for state in ORDER]
    return f"{len(trials)} trials: " + ", ".join(f"{count} {state}" for state, count in counts if count)


def _trial_cells(
    trials: Sequence[Trial], best: Trial | None, base: Trial | None
) -> tuple[list[str], list[list[str]]]:
    keys = list(dict.fromkeys(key for trial in trials for key in trial.params))
    rows = []
    for trial in sorted(trials, key=lambda t: (ORDER.index(t.state), -(t.score or 0.0), t.number)):
        marks = [name for name, one in (("best", best), ("base", base)) if one is trial]
        params = [trial.params.get(key, NONE) for key in keys]
        rows.append(
            [
                f"{trial.number}{''.join(f' ({mark})' for mark in marks)}",
                trial.state,
                NONE if trial.score is None else f"{trial.score:.4f}",
                str(trial.epochs),
                NONE if trial.seconds is None else f"{trial.seconds:.0f}",
                *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in params),
                trial.why,
            ]
        )
    return ["trial", "state", "validation score", "epochs", "seconds", *keys, ""], rows


def _trial_notes(trials: Sequence[Trial], best: Trial | None, base: Trial | None) -> list[str]:
    notes = [
        "scores are of validation rows and one seed, and the best of many is too good by chance: judge the "
        "gain by the test rows"
    ]
    if any(trial.state == "cut short" for trial in trials):
        notes.append("a trial that was cut short has the score of its best epoch")
    if best is not None and best is base:
        notes.append("nothing was better than the base")
    if base is None:
        notes.append(
            "the base is no trial: one of its values lies outside of what is searched, or it has not run"
        )
    return notes
