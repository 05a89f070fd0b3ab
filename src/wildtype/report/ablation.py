"""Tables of an ablation: one row per level, the base first, for a terminal or for a document."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from wildtype.evaluation.ablation import AblationTable, LevelResult
from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.compare import HEADLINES
from wildtype.evaluation.summary import Spread
from wildtype.report.summary import spread_text
from wildtype.report.table import NONE, plain_table, plain_text

LEGEND = (
    "Mean ± SD over seeds; Δ is the difference to the base on the same seeds. Choose by validation: the test "
    "columns are for reporting, with the 95 % interval of a bootstrap over {clusters} on the same test rows."
)


def print_ablation(tables: Sequence[AblationTable], notes: Sequence[str], console: Console) -> None:
    """Print all tables, and what a reader must know."""
    for ablation in tables:
        header = ["", *_header(ablation)[2:-1]]
        table = plain_table(console, header, numeric=range(2, len(header)), title=_title(ablation))
        remarks = []
        for row in ablation.rows:
            factor, level, *figures, remark = _cells(row)
            name = factor if level == NONE else f"{factor}: {level}"
            table.add_row(*(plain_text(cell, console) for cell in (name, *figures)))
            remarks += [f"{name}: {remark}"] if remark else []
        console.print(table)
        for remark in remarks:  # long ones would leave no room for figures
            console.print(plain_text(remark, console))
        console.print()
    if tables:
        console.print(plain_text(_legend(tables), console))
    for note in notes:
        console.print(plain_text(f"· {note}", console))


def tables_to_markdown(tables: Sequence[AblationTable], notes: Sequence[str]) -> str:
    """Return all tables as Markdown, each under its title, and what a reader must know."""
    parts = []
    for table in tables:
        lines = [_line(_header(table)), "|---" * len(_header(table)) + "|"]
        lines += [_line(_cells(row)) for row in table.rows]
        parts.append(f"**{_title(table)}**\n\n" + "\n".join(lines))
    if tables:
        parts.append(_legend(tables))
    parts.append("\n".join(f"* {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _legend(tables: Sequence[AblationTable]) -> str:
    return LEGEND.format(clusters=" or ".join(dict.fromkeys(table.clusters for table in tables)))


def _title(table: AblationTable) -> str:
    what = ", ".join(part for part in (table.dataset, table.phenotype, f"split {table.split}") if part)
    return f"{what}: one factor at a time"


def _header(table: AblationTable) -> list[str]:
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


def _cells(row: LevelResult) -> list[str]:
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
    return _signed(value.mean) if math.isnan(value.sd) else f"{_signed(value.mean)} ± {value.sd:.3f}"


def _with_interval(value: IntervalEstimate) -> str:
    if math.isnan(value.value) or math.isnan(value.low):
        return NONE if math.isnan(value.value) else _signed(value.value)
    return f"{_signed(value.value)} [{_signed(value.low)}, {_signed(value.high)}]"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _figure(value: float, digits: int) -> str:
    return NONE if math.isnan(value) else f"{value:,.{digits}f}"
