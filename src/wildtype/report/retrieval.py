"""Who finds the strong interactions, as a table: average precision and the top of the list, per model."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from wildtype.evaluation.bootstrap import UNDEFINED
from wildtype.evaluation.compare import Comparison
from wildtype.evaluation.retrieval import LISTS, TOP
from wildtype.report.table import decimals, plain_table, plain_text, with_interval

COLUMNS = ("average_precision", *(f"precision@{k}" for k in (*TOP, "hits")), "enrichment@hits")
LEGEND = (
    "AP: average precision; P@k: share of hits among the first k, k as many as there are hits in P@hits; "
    "times: P@hits over the share of hits among all rows. strong: labels far from 0, ranked by absolute "
    "prediction; negative, positive: those of one sign, ranked by signed prediction"
)


def print_retrieved(comparison: Comparison, console: Console) -> None:
    """Print the retrieval metrics of every model; 95 % intervals stand in the JSON."""
    heads = ["list", "model", "AP [95 %]", *(f"P@{k}" for k in TOP), "P@hits [95 %]", "times"]
    title = f"{comparison.dataset}, {comparison.phenotype}, split {comparison.split}: strong interactions"
    table = plain_table(console, heads, range(2, len(heads)), title)
    for name in LISTS:
        scores = [score for score in comparison.scores if f"{name}/average_precision" in score.retrieval]
        for score in sorted(scores, key=lambda s: -s.retrieval[f"{name}/average_precision"].value):
            found = [score.retrieval.get(f"{name}/{metric}", UNDEFINED) for metric in COLUMNS]
            cells = [
                name,
                score.model,
                with_interval(found[0]),
                *(decimals(one.value) for one in found[1:-2]),
                with_interval(found[-2]),
                decimals(found[-1].value, 1),
            ]
            table.add_row(*(plain_text(cell, console) for cell in cells))
    if not table.row_count:
        why = "it has no strong interactions among these rows, or the run was made by an earlier version"
        console.print(plain_text(f"no list of {comparison.phenotype} is stored: {why}", console))
        return
    console.print(table)
    console.print(plain_text(LEGEND, console, "dim"))


def retrieval_json(comparison: Comparison) -> dict[str, Any]:
    """Return the retrieval metrics of every model, by model and ``list/metric``."""
    return {score["model"]: score["retrieval"] for score in comparison.to_json()["scores"]}
