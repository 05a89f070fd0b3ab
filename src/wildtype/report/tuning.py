"""The trials of a search: one row each, in the order of their validation scores."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wildtype.evaluation.summary import Trial
from wildtype.report.table import NONE, plain_table, plain_text

ORDER = ("finished", "cut short", "failed")


def print_trials(trials: Sequence[Trial], best: Trial | None, base: Trial | None, console: Console) -> None:
    """Print the trials, and what a reader must know."""
    header, rows = _table(trials, best, base)
    table = plain_table(console, header, numeric=range(2, 5), title=_title(trials))
    for row in rows:
        table.add_row(*(plain_text(cell, console) for cell in row))
    console.print(table)
    for note in _notes(trials, best, base):
        console.print(plain_text(f"· {note}", console))


def trials_to_markdown(trials: Sequence[Trial], best: Trial | None, base: Trial | None) -> str:
    """Return the trials as Markdown, and what a reader must know."""
    header, rows = _table(trials, best, base)
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)]
    lines.insert(1, "|---" * len(header) + "|")
    notes = "\n".join(f"* {note}" for note in _notes(trials, best, base))
    return f"**{_title(trials)}**\n\n" + "\n".join(lines) + f"\n\n{notes}\n"


def _title(trials: Sequence[Trial]) -> str:
    counts = [(state, sum(trial.state == state for trial in trials)) for state in ORDER]
    return f"{len(trials)} trials: " + ", ".join(f"{count} {state}" for state, count in counts if count)


def _table(
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


def _notes(trials: Sequence[Trial], best: Trial | None, base: Trial | None) -> list[str]:
    notes = [
        "scores are of validation rows and one seed, and the best of many is too good by chance: what was "
        "gained, the test says"
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
