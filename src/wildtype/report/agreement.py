"""How far runs agree, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wildtype.evaluation.agreement import Agreement
from wildtype.report.table import NONE, decimals, plain_table, plain_text

LEGEND = (
    "between: Pearson between the predictions; differ: mean absolute difference; alone: Pearson of each run "
    "with the labels; mean: that of their mean prediction; all on the shared test rows"
)


def print_agreement(found: Sequence[Agreement], console: Console) -> None:
    """Print the agreement of pairs of runs, and of all together; runs have numbers."""
    runs = list(dict.fromkeys(run for one in found for run in one.runs))
    columns = ["phenotype", "runs", "rows", "between", "differ", "alone", "mean"]
    table = plain_table(console, columns, range(2, len(columns)), "Agreement between runs")
    for one in found:
        cells = [
            one.phenotype,
            " ".join(str(runs.index(run) + 1) for run in one.runs),
            f"{one.rows:,}",
            decimals(one.between, 3),
            f"{one.difference:.3g}" if one.rows else NONE,
            " ".join(decimals(value, 3) for value in one.alone),
            decimals(one.together, 3),
        ]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print(table)
    for i, run in enumerate(runs, 1):
        console.print(plain_text(f"{i}: {run}", console, "dim"))
    console.print(plain_text(LEGEND, console, "dim"))
