"""Draw what the encoder is worth as measurements grow, and print the table, from runs of `ablate encoder`.

    python -m tools.encoder_curve runs/encoder/50k runs/encoder/200k runs/encoder/800k

Every folder is a plan of ablation at one number of rows, which its name says; a level that was not run is a
dash. The picture goes to `docs/images/encoder.svg`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "encoder.svg"
LEVELS = {
    ("base", ""): "no encoder",
    ("epochs", "forty"): "no encoder, five times the epochs",
    ("encoder", "two"): "two layers",
    ("encoder", "two-prior"): "two layers, graph priors 0.1",
    ("encoder", "two-pretrained"): "two layers, graph priors 0.1, pre-trained",
}
"""Factors and levels of the plan, and what they are."""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the table of a plan by what the level is; levels without a run are left out."""
    (table,) = json.loads((folder / "table.json").read_text(encoding="utf-8"))["tables"]
    rows = {LEVELS[row["factor"], row["level"] or ""]: row for row in table["rows"]}
    return {name: row for name, row in rows.items() if row["test"]["mean"] is not None}


def markdown(plans: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the table of all plans by number of rows."""
    lines = [
        "| rows | network | seeds | validation Pearson | test Pearson | Δ to no encoder [95 %] | s/epoch |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, rows in plans.items():
        for name in LEVELS.values():
            if name not in rows:
                lines.append(f"| {size} | {name} | – | – | – | – | – |")
                continue
            row = rows[name]
            delta, value = row["test_difference"], row["test_difference"]["value"]
            difference = "–" if value is None else f"{value:+.3f} [{delta['low']:+.3f}, {delta['high']:+.3f}]"
            seeds, time = len(row["seeds"]), row["seconds_per_epoch"]
            figures = f"{row['validation']['mean']:.3f} | {row['test']['mean']:.3f} | {difference}"
            lines.append(f"| {size} | {name} | {seeds} | {figures} | {time:.0f} |".replace("-", "−"))
    return "\n".join(lines)


def draw(plans: dict[str, dict[str, dict[str, Any]]], target: Path) -> None:
    """Draw test Pearson by number of rows, a line per level."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "encoder"  # the same picture from the same figures
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    for name, mark in zip(LEVELS.values(), ("o-", "o--", "s-", "^-", "v-"), strict=True):
        points = [(i, rows[name]["test"]["mean"]) for i, rows in enumerate(plans.values()) if name in rows]
        axes.plot(*zip(*points, strict=True) if points else ([], []), mark, label=name)
    axes.set_xticks(range(len(plans)), list(plans))
    axes.set_xlabel("training rows")
    axes.set_ylabel("test Pearson, hidden crosses")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(target, metadata={"Date": None})


def main(folders: list[str]) -> None:
    """Print the table and draw the picture."""
    plans = {Path(folder).name: read(Path(folder)) for folder in folders}
    print(markdown(plans))
    draw(plans, PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
