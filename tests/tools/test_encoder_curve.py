"""The table and picture of what the encoder is worth, on figures made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.encoder_curve import LEVELS, PICTURE, draw, markdown, printed, read
from wildtype.experiments.settings.ablation import read_ablation


def a_plan(folder: Path, figures: dict[tuple[str, str], float | None]) -> Path:
    nothing = {"value": None, "low": None, "high": None}
    rows = [
        {
            "factor": factor,
            "level": level,
            "seeds": [] if value is None else [0, 1],
            "validation": {"mean": value, "sd": 0.01},
            "test": {"mean": value, "sd": None},
            "test_difference": nothing if factor == "base" else {"value": -0.01, "low": -0.02, "high": 0.005},
            "seconds_per_epoch": 61.6,
            "peak_mib": 1903.9,
        }
        for (factor, level), value in figures.items()
    ]
    folder.mkdir()
    (folder / "table.json").write_text(json.dumps({"tables": [{"rows": rows}]}))
    return folder


@pytest.mark.parametrize("plan", ["encoder", "encoder-simulated"])
def test_levels_are_those_of_the_plan(plan: str) -> None:
    assert {(factor, level or "") for factor, level in read_ablation(plan).levels} == LEVELS.keys()


def test_a_level_without_a_run_is_printed_as_missing(tmp_path: Path) -> None:
    figures = dict.fromkeys(LEVELS, 0.25) | {("encoder", "two"): None}
    plans = {"50k": read(a_plan(tmp_path / "50k", figures)), "800k": read(tmp_path / "800k")}
    lines = markdown(plans).splitlines()
    assert lines[2] == "| 50k | no encoder | 2 | 0.250 ± 0.010 | 0.250 | – | 62 | 1,904 |"
    assert lines[4] == "| 50k | two layers | – | – | – | – | – | – |"
    assert lines[5].endswith("| 0.250 ± 0.010 | 0.250 | −0.010 [−0.020, +0.005] | 62 | 1,904 |")
    assert lines[7:] == [f"| 800k | {name} | – | – | – | – | – | – |" for name in LEVELS.values()]
    draw(plans, tmp_path / "a.svg")
    draw(plans, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<path" in (tmp_path / "a.svg").read_text()


def test_a_printed_table_is_read_back(tmp_path: Path) -> None:
    figures = dict.fromkeys(LEVELS, 0.25) | {("encoder", "two"): None}
    plans = {"50k": read(a_plan(tmp_path / "50k", figures)), "800k": {}}
    page = tmp_path / "page.md"
    page.write_text(f"Words.\n\n{markdown(plans)}\n\n| rows | network |\n|---|---|\n\n{markdown({})}\n")
    first, second = printed(page)
    assert markdown(first) == markdown(plans)
    assert not second


@pytest.mark.parametrize(
    ("number", "picture"), [(0, PICTURE), (1, PICTURE.with_name("encoder-simulated.svg"))]
)
def test_the_pictures_are_those_of_the_tables(number: int, picture: Path, tmp_path: Path) -> None:
    """A figure that was measured again stands in the table and in the picture."""
    page = PICTURE.parents[1] / "results" / "parts.md"
    draw(printed(page)[number], tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == picture.read_text()
