"""Profiles on a terminal: one record, comparisons, the parts of a run, estimates, rows of benches."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.table import Table

from tests.report.test_profile_page import FAST, killed, profile
from wildtype.profiling.compare import compare_profiles
from wildtype.profiling.estimate import RunEstimate
from wildtype.report.profile_tables import estimate_table, parts_table, print_gap, rows_table
from wildtype.report.profile_text import Scale, number, print_record
from wildtype.terminal import PlainConsole

MS = 1e-3


def printed(record: dict[str, Any], width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    print_record(record, PlainConsole(file=stream, width=width, color_system=None))
    return raw.getvalue().decode(encoding)


def test_figures_line_up() -> None:
    assert Scale.of([0.0332, 0.6]).show(0.0332) == "33.20"
    assert Scale.of([0.6]).show(1e-6) == "<0.01"
    assert Scale.of([12.0]).show(12.0) == "12.00"
    assert Scale.of([12.0]).unit == "s"
    assert Scale.of([]).show(None) == "–"
    assert [number(v) for v in (None, 0.0, 3.0, 1234.5, 0.01234, 47.81)] == [
        "–",
        "0",
        "3",
        "1,234",
        "0.0123",
        "47.8",
    ]


def test_record_fits_a_terminal() -> None:
    text = printed(profile("odd [red]name"), width=100)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "odd [red]name: cell_transformer on toy"
    assert lines[1] == "training, 50 timed steps, batches of 256"
    names = [line.split("  ")[0] for line in lines]
    start = names.index("wait for loader")
    assert names[start : start + len(FAST) + 1] == [*FAST, "unattributed"]
    row = next(line for line in lines if line.startswith("backward "))
    for cell in ("13.90", "17.38", "41.8 %", "━━━━━", "512"):
        assert cell in row
    assert "outside of steps, in all: validation 1.25 s" in text
    assert "measuring itself takes 0.1 % of a step" in text
    assert next(line for line in lines if "aten::mm (12)" in line).split()[:4] == ["head", "120", "2", "3.25"]
    assert next(line for line in lines if line.startswith("batch.py:12")).split()[-2:] == [
        "aten::item",
        "256",
    ]


def test_record_of_a_killed_run() -> None:
    text = printed(killed())
    assert "stopped early, 0 timed steps" in text
    assert "outside of steps, in all: nothing" in text
    assert "machine not known" in text
    assert "by phase" not in text
    assert "nan" not in text
    assert "None" not in text


def test_record_in_ascii() -> None:
    text = printed(profile("naïve"), encoding="ascii")
    assert text.startswith("na?ve: cell_transformer")
    assert "a step" in text


# ----------------------------------------------------------------------------------------------------- tables


def small(name: str, milliseconds: dict[str, float], rest: float, steps: int = 10) -> dict[str, Any]:
    """A record with what a comparison needs."""
    return {
        "name": name,
        "steps": 50,
        "workload": {"batch_size": 64 * 10 // steps, "steps_per_epoch": steps},
        "seconds_per_step": {"mean": (sum(milliseconds.values()) + rest) * MS},
        "phases": {phase: {"mean": v * MS, "cpu": v * MS} for phase, v in milliseconds.items()},
        "unattributed": {"mean": rest * MS},
        "counters": None,
        "reads": None,
    }


FEW = small("few", {"fetch": 1.0, "head": 2.0}, 1.0)
MANY = small("many", {"fetch": 1.0, "head": 8.0, "logging": 1.0}, 2.0, steps=20)


def shown(show: Callable[[PlainConsole], None]) -> str:
    stream = io.StringIO()
    show(PlainConsole(file=stream, width=160, color_system=None))
    return stream.getvalue()


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of every row of a table, under the first of them, and the headings under ``""``."""
    lines = [line.replace("┃", "│").split("│")[1:-1] for line in text.splitlines()]
    tables = [[cell.strip() for cell in cells] for cells in lines if cells]
    return {"": tables[0]} | {cells[0]: cells[1:] for cells in tables[1:]}


def table_rows(table: Table) -> dict[str, list[str]]:
    return rows_of(shown(lambda console: console.print(table)))


def test_a_gap_is_said_by_phase_per_epoch_and_why() -> None:
    (gap,) = compare_profiles(FEW, MANY)
    text = shown(lambda console: print_gap(gap, console))
    assert text.splitlines()[0] == (
        "many takes 6.00 times as long as few per epoch; 46% of it: head, 8.00 ms per step instead of "
        "2.00 ms: operators were not counted"
    )
    assert rows_of(text) == {
        "": ["phase", "few", "many", "difference, ms", "ratio", "share of the gap"],
        "head": ["2.000", "8.000", "6.000", "4.00", "75.0%"],
        "logging": ["0.000", "1.000", "1.000", "only there", "12.5%"],
        "fetch": ["1.000", "1.000", "0.000", "1.00", "0.0%"],
        "unattributed": ["1.000", "2.000", "1.000", "2.00", "12.5%"],
        "a step": ["4.000", "12.000", "8.000", "3.00", ""],
        "steps per epoch": ["10", "20", "10", "2.00", ""],
        "an epoch": ["40.000", "240.000", "200.000", "6.00", ""],
    }
    assert list(rows_of(text))[1:5] == ["head", "logging", "fetch", "unattributed"]
    assert text.splitlines()[-3:] == [
        "   46%  python: head, 8.00 ms per step instead of 2.00 ms: operators were not counted",
        "   39%  steps: 20 steps per epoch instead of 10, of 32 mutants instead of 64",
        "    8%  python: logging, 1.00 ms per step: operators were not counted",
    ]


def test_a_gap_to_a_faster_run_has_negative_differences() -> None:
    (gap,) = compare_profiles(MANY, FEW)
    rows = rows_of(shown(lambda console: print_gap(gap, console)))
    assert rows["head"] == ["8.000", "2.000", "-6.000", "0.25", "75.0%"]
    assert rows["logging"] == ["1.000", "0.000", "-1.000", "0.00", "12.5%"]
    assert rows["steps per epoch"] == ["20", "10", "-10", "0.50", ""]


def test_parts_of_a_run_in_all_modes() -> None:
    report = {
        "added": [
            {"mode": "data_only", "seconds_per_step": 2 * MS},
            {"mode": "forward", "seconds_per_step": 5 * MS, "added": 3 * MS},
            {"mode": "training", "seconds_per_step": 16 * MS, "added": 11 * MS},
        ],
        "parts": {
            "data": {"seconds": 4 * MS},
            "model": {"seconds": 11.5 * MS},
            "unattributed": {"seconds": 0.5 * MS},
        },
    }
    assert table_rows(parts_table(report)) == {
        "": ["mode or part", "ms per step", "more than the mode before", "share"],
        "data_only": ["2.000", "", ""],
        "forward": ["5.000", "3.000", ""],
        "training": ["16.000", "11.000", ""],
        "data": ["4.000", "", "25.0%"],
        "model": ["11.500", "", "71.9%"],
        "unattributed": ["0.500", "", "3.1%"],
    }


ESTIMATE = RunEstimate(
    seconds_per_step=2.0,
    seconds_per_step_interval=(1.875, 2.125),
    steps_per_epoch=1000,
    epochs=3,
    members=2,
    validation_seconds=400.0,
    epoch_seconds=100.0,
    memory_mib=1234.56,
    memory_available_mib=7000.4,
    disk_bytes=10 * 2**20,
    disk_peak_bytes=12 * 2**20 + 2**19,
    disk_free_bytes=2**40,
    threads=1,
)


def test_an_estimate_stands_beside_what_the_machine_has() -> None:
    assert table_rows(estimate_table(ESTIMATE)) == {
        "": ["what", "predicted", "there is"],
        "seconds per step": ["2", ""],
        "steps per epoch": ["1,000", ""],
        "seconds per epoch": ["2500 (2375 to 2625)", ""],
        "seconds, 3 epochs": ["15,000.0", ""],
        "memory, MiB": ["1,234.6", "7,000"],
        "disk, MiB": ["12.5", "1,048,576"],
    }


@pytest.mark.parametrize(
    ("needed", "there", "row"), [(512.25, 143360.0, ["512.2", "143,360"]), (512.25, None, None)]
)
def test_memory_of_a_gpu_where_there_is_one(
    needed: float, there: float | None, row: list[str] | None
) -> None:
    rows = table_rows(estimate_table(replace(ESTIMATE, device_mib=needed, device_available_mib=there)))
    assert rows.get("GPU memory, MiB") == row


def test_rows_of_any_values() -> None:
    rows = [
        {"model": "dango", "batch_size": 4096, "seconds_per_step": 0.0123456, "fits": True, "of_gap": None},
        {"model": "other", "batch_size": 8, "seconds_per_step": 1234.0, "fits": False, "of_gap": 0.5},
    ]
    assert table_rows(rows_table(rows)) == {
        "": ["model", "batch size", "seconds per step", "fits", "of gap"],
        "dango": ["4,096", "0.01235", "yes", ""],
        "other": ["8", "1,234", "no", "0.5"],
    }


def test_names_are_not_taken_for_markup_and_no_rows_make_an_empty_table() -> None:
    shown = table_rows(rows_table([{"name": "[red]x[/y]", "count": 3}]))
    assert "[red]x[/y]" in shown
    assert rows_table([]).row_count == 0
