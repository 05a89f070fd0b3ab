"""Draw what the encoder is worth as measurements grow, and print the table, from runs of `ablate encoder`.

    python -m tools.encoder_curve runs/encoder/50k runs/encoder/200k runs/encoder/800k
    python -m tools.encoder_curve runs/simulated/9k runs/simulated/37k --picture encoder-simulated.svg

Every folder is a plan of ablation at one number of rows, which its name says. A level that was not run is a
dash in the table and a cross at the foot of the picture, and so is a folder that is not there. A page with
tables that were printed so takes the place of folders, which draws the picture of its first one anew:

    python -m tools.encoder_curve docs/results/parts.md
    python -m tools.encoder_curve docs/results/parts.md --table 2 --picture docs/images/encoder-simulated.svg
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "encoder.svg"
LEVELS = {
    ("base", ""): "no encoder",
    ("epochs", "fivefold"): "no encoder, five times the epochs",
    ("encoder", "two"): "two layers",
    ("encoder", "two-prior"): "two layers, graph priors 0.1",
    ("encoder", "two-pretrained"): "two layers, graph priors 0.1, pre-trained",
}
"""Factors and levels of the plan, and what they are."""
MARKS = ("o-", "o--", "s-", "^-", "v-")
"""Of the levels, in the picture."""
FOOT = 0.01
"""Where the crosses of levels that were not run stand."""
APART = 0.06
"""Between the marks of two levels at one number of rows."""

COLUMNS = (
    "rows", "network", "seeds", "validation Pearson", "test Pearson", "Δ to no encoder [95 %]", "s/epoch",
    "peak MiB",
)  # fmt: skip

Plan = Mapping[str, Mapping[str, Any]]
"""The rows of the table of a plan, by what the level is."""


def read(folder: Path) -> Plan:
    """Return the rows of the table of a plan; levels without a run are left out."""
    path = folder / "table.json"
    if not path.is_file():
        return {}
    (table,) = json.loads(path.read_text(encoding="utf-8"))["tables"]
    # A plan of before a level came has no row of it.
    rows = {LEVELS[row["factor"], row["level"] or ""]: row for row in table["rows"]}
    return {name: row for name, row in rows.items() if row["test"]["mean"] is not None}


def markdown(plans: Mapping[str, Plan]) -> str:
    """Return the table of all plans by number of rows."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for size, rows in plans.items():
        for name in LEVELS.values():
            row = rows.get(name)
            cells = ["–"] * 6 if row is None else _cells(row)
            lines.append(f"| {size} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def printed(page: Path) -> list[dict[str, dict[str, Any]]]:
    """Return the plans of every table of a page that `markdown` printed."""
    found: list[dict[str, dict[str, Any]]] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if tuple(cells) == COLUMNS:
            found.append({})
        elif found and len(cells) == len(COLUMNS) and cells[1] in LEVELS.values():
            plan = found[-1].setdefault(cells[0], {})
            if cells[2] != "–":
                plan[cells[1]] = _row(cells)
    return found


def _row(cells: Sequence[str]) -> dict[str, Any]:
    """Return the row of a plan that `_cells` printed."""
    seeds, *scores, difference = cells[2:6]
    validation, test = ([float(x) for x in score.replace("−", "-").split(" ± ")] for score in scores)
    delta: list[float | None] = [float(x) for x in re.findall(r"[-+][\d.]+", difference.replace("−", "-"))]
    return {
        "seeds": list(range(int(seeds))),
        "validation": {"mean": validation[0], "sd": validation[1] if validation[1:] else None},
        "test": {"mean": test[0], "sd": test[1] if test[1:] else None},
        "test_difference": dict(zip(("value", "low", "high"), delta or [None] * 3, strict=True)),
        "seconds_per_epoch": float(cells[6]),
        "peak_mib": float(cells[7].replace(",", "")),
    }


def _cells(row: Mapping[str, Any]) -> list[str]:
    delta = row["test_difference"]
    difference = (
        "–"
        if delta["value"] is None
        else f"{delta['value']:+.3f} [{delta['low']:+.3f}, {delta['high']:+.3f}]".replace("-", "−")
    )
    scores = [_mean(row[part]) for part in ("validation", "test")]
    return [
        str(len(row["seeds"])),
        *scores,
        difference,
        f"{row['seconds_per_epoch']:.0f}",
        f"{row['peak_mib']:,.0f}",
    ]


def _mean(score: Mapping[str, Any]) -> str:
    """Return a mean over seeds, with its standard deviation where there are several."""
    spread = "" if score["sd"] is None else f" ± {score['sd']:.3f}"
    return f"{score['mean']:.3f}{spread}".replace("-", "−")


def draw(plans: Mapping[str, Plan], target: Path) -> None:
    """Draw test Pearson by number of rows, and its difference to no encoder with intervals; a line per level.

    A number of rows without a run is left out; a level without one has a cross at the foot.
    """
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "encoder"  # the same picture from the same figures
    from matplotlib import pyplot

    plans = {size: rows for size, rows in plans.items() if rows}
    figure, (scores, differences) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for number, (name, mark) in enumerate(zip(LEVELS.values(), MARKS, strict=True)):
        found = [(i, rows[name]) for i, rows in enumerate(plans.values()) if name in rows]
        # Marks of levels stand beside each other: their figures are nearly the same.
        beside = APART * (number - len(LEVELS) // 2)
        missing = [i + beside for i, rows in enumerate(plans.values()) if name not in rows]
        scores.plot(missing, [FOOT] * len(missing), "x", color=f"C{number}", markersize=4, clip_on=False)
        if not found:
            continue
        at = [i + beside for i, _ in found]
        scores.errorbar(
            at,
            [row["test"]["mean"] for _, row in found],
            [row["test"]["sd"] or 0 for _, row in found],
            fmt=mark,
            capsize=2,
            label=name,
            color=f"C{number}",
        )
        known = [(x, row["test_difference"]) for x, (_, row) in zip(at, found, strict=True)]
        known = [(x, delta) for x, delta in known if delta["value"] is not None]
        if known:
            value = [delta["value"] for _, delta in known]
            below = [delta["value"] - delta["low"] for _, delta in known]
            above = [delta["high"] - delta["value"] for _, delta in known]
            differences.errorbar(
                [x for x, _ in known], value, [below, above], fmt=mark, capsize=2, color=f"C{number}"
            )
    differences.axhline(0, color="0.6", linewidth=0.8)
    for axes, label in (
        (scores, "test Pearson (± SD over seeds)"),
        (differences, "its difference to no encoder [95 %]"),
    ):
        axes.set_xticks(range(len(plans)), list(plans))
        axes.set_xlim(-0.5, len(plans) - 0.5)
        axes.set_xlabel("training rows")
        axes.set_ylabel(label, fontsize=8)
    scores.set_ylim(bottom=0)
    if any(name not in rows for rows in plans.values() for name in LEVELS.values()):
        scores.plot([], [], "x", color="0.5", markersize=4, label="not run")
    scores.legend(frameon=False, fontsize=7)
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--table", type=int, default=1, help="which table of a page, from 1")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    asked = parser.parse_args()
    (first, *more) = asked.folders
    if first.is_file() and not more:
        plans: Mapping[str, Plan] = printed(first)[asked.table - 1]
    else:
        plans = {folder.name: read(folder) for folder in asked.folders}
    print(markdown(plans))
    draw(plans, asked.picture)


if __name__ == "__main__":
    main()
