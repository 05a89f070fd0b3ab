"""Summaries over several runs, as a table for a terminal or for a document."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wildtype.evaluation.compare import HEADLINES
from wildtype.evaluation.summary import Spread, Summary

COLUMNS = {
    "spearman": "Spearman",
    "mse": "MSE",
    "auroc_sign": "AUROC of sign",
    "auroc_strong": "AUROC of strong",
    "pearson_negatives": "Pearson in negatives",
}


def print_summary(summary: Summary, console: Console) -> None:
    """Print one summary."""
    header, rows = summary_cells(summary)
    table = Table(
        *header, box=box.SIMPLE_HEAD, title=Text(_title(summary), style="bold"), title_justify="left"
    )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def summary_to_markdown(summary: Summary) -> str:
    """Return one summary as a Markdown table under its title."""
    header, rows = summary_cells(summary)
    lines = [f"**{_title(summary)}**", "", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _title(summary: Summary) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    return (
        f"{summary.dataset}, {summary.phenotype}, split {summary.split}: mean ± SD over "
        f"{len(summary.seeds)} runs (seeds {seeds}); {summary.rows:,} test rows in the first"
    )


def summary_cells(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row per model, as text."""
    header = ["model", HEADLINES[summary.headline], *COLUMNS.values(), "best in", "seconds"]
    rows = []
    for name, metrics in summary.models.items():
        cells = [name, spread_text(metrics[summary.headline])]
        cells += [spread_text(metrics[metric]) for metric in COLUMNS]
        seconds = summary.seconds[name]
        cells += [
            f"{summary.wins[name]} of {len(summary.seeds)}",
            "–" if math.isnan(seconds) else f"{seconds:,.1f}",
        ]
        rows.append(cells)
    return header, rows


def spread_text(value: Spread) -> str:
    """Return mean ± SD; a dash where there is no mean."""
    if math.isnan(value.mean):
        return "–"
    digits = 3 if abs(value.mean) >= 0.05 or value.mean == 0 else 4
    text = f"{value.mean:.{digits}f}"
    return text if math.isnan(value.sd) else f"{text} ± {value.sd:.{digits}f}"
