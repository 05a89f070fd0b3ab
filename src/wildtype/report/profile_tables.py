"""What comparisons, parts, estimates and benches say, as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from wildtype.profiling.compare import Gap
from wildtype.profiling.estimate import RunEstimate
from wildtype.report.profile_text import Scale


def print_gap(gap: Gap, console: Console) -> None:
    """Print how one run differs from another: in a sentence, by phase, per epoch, and why."""
    console.print(gap.sentence(), highlight=False)
    for remark in gap.remarks:
        console.print(remark, highlight=False)
    scale = Scale.of([gap.step["base"], gap.step["other"]])
    table = Table("phase", gap.base, gap.other, f"difference, {scale.unit}", "ratio", "share of the gap")
    for row in [*gap.phases, {"phase": "unattributed", **gap.unexplained}]:
        table.add_row(str(row["phase"]), *_cells(row, scale), f"{row['share']:.1%}")
    table.add_section()
    table.add_row("a step", *_cells(gap.step, scale), "")
    table.add_row("steps per epoch", *_cells(gap.steps, Scale(1.0, "", 0)), "")
    table.add_row("an epoch", *_cells(gap.epoch, scale), "")
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    for cause in gap.causes:
        console.print(f"{cause.share:6.0%}  {cause.kind}: {cause.evidence}", highlight=False)


def _cells(row: Mapping[str, float], scale: Scale) -> list[str]:
    ratio = row["ratio"]
    shown = "only there" if ratio == float("inf") else f"{ratio:,.2f}"
    return [*(scale.show(row[name]) for name in ("base", "other", "difference")), shown]


def parts_table(report: Mapping[str, Any]) -> Table:
    """Return a table of a run in all modes: what each adds, and what its parts cost."""
    added, parts = report["added"], report["parts"]
    scale = Scale.of([row["seconds_per_step"] for row in added])
    table = Table("mode or part", f"{scale.unit} per step", "more than the mode before", "share")
    whole = added[-1]["seconds_per_step"]
    for row in added:
        more = scale.show(row["added"]) if "added" in row else ""
        table.add_row(row["mode"], scale.show(row["seconds_per_step"]), more, "")
    table.add_section()
    for name, part in parts.items():
        table.add_row(name, scale.show(part["seconds"]), "", f"{part['seconds'] / whole:.1%}")
    return table


def estimate_table(estimate: RunEstimate) -> Table:
    """Return a table of an estimate, and of what the machine has."""
    low, high = estimate.seconds_per_epoch_interval
    table = Table("what", "predicted", "there is")
    table.add_row("seconds per step", f"{estimate.seconds_per_step:.4g}", "")
    table.add_row("steps per epoch", f"{estimate.steps_per_epoch:,}", "")
    table.add_row("seconds per epoch", f"{estimate.seconds_per_epoch:.4g} ({low:.4g} to {high:.4g})", "")
    epochs = f"seconds, {estimate.epochs} epochs"
    table.add_row(epochs, f"{estimate.total_seconds:,.1f}", "")
    mib = 2**20
    rows = (
        ("memory, MiB", estimate.memory_mib, estimate.memory_available_mib),
        ("GPU memory, MiB", estimate.device_mib, estimate.device_available_mib),
        ("disk, MiB", estimate.disk_peak_bytes / mib, estimate.disk_free_bytes / mib),
    )
    for name, needed, there in rows:
        if needed is not None and there is not None:
            table.add_row(name, f"{needed:,.1f}", f"{there:,.0f}")
    return table


def rows_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
    """Return a table of rows that have the same names, or of some of their columns."""
    names = columns or list(rows[0] if rows else ())
    table = Table(*(name.replace("_", " ") for name in names))
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in names))
    return table


def pipeline_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the rows of the pipelines as two tables: how fast, and how large and why."""
    key = ["name", "path", "batch_size"]
    fast = ["iterations_per_second", "mutants_per_second", "ratio_to_perturbation"]
    large = ["nodes_per_mutant", "edges_per_mutant", "mib_per_batch", "largest_batch", "largest_batch_built"]
    return [
        rows_table(rows, [*key, *fast, "fetch_ms", "representation_ms", "collate_ms"]),
        rows_table(rows, [*key, *large]),
    ]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
