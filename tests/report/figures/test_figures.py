from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.command import assert_one_sentence, wildtype
from tests.evaluation.test_predicted_rows import frame, some_rows
from wildtype.errors import ConfigError
from wildtype.evaluation.predicted_rows import PredictedRows
from wildtype.evaluation.training_record import LearningCurves
from wildtype.experiments.report import PLOTS
from wildtype.report.figures.error import error_panels
from wildtype.report.figures.learning import learning_panels
from wildtype.report.figures.panel import Panel, panel_figure, save_panels
from wildtype.report.figures.predicted import levels, predicted_panels
from wildtype.report.figures.style import DARK, LIGHT, SERIES, plain
from wildtype.report.page import show

HOSTILE = "</text><script>alert(1)</script>$\\frac{1$ & \"'\x07 \u5165"
MAGIC = {".pdf": b"%PDF-", ".svg": b"<?xml", ".png": b"\x89PNG"}


@pytest.mark.parametrize("ending", MAGIC)
def test_every_format_is_written_and_the_same_again(ending: str, tmp_path: Path) -> None:
    panel = Panel("t", "a", lambda axes: axes.set(xlabel="ε of µ") and None)
    for name in ("a", "b"):
        save_panels([panel], tmp_path / f"{name}{ending}")
    first = (tmp_path / f"a{ending}").read_bytes()
    assert first.startswith(MAGIC[ending])
    assert first == (tmp_path / f"b{ending}").read_bytes()
    if ending == ".pdf":
        assert b"/CIDFontType2" in first  # TrueType, embedded
        assert b"/FontFile2" in first
        assert b"/Type3" not in first


def test_plot_refuses_in_one_sentence(tiny_run: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.pdf"
    assert_one_sentence(wildtype("plot", "pie", str(tiny_run), "-o", str(target)), "'pie' is no kind of plot")
    wrong = str(tmp_path / "x.gif")
    assert_one_sentence(wildtype("plot", "error", str(tiny_run), "-o", wrong), "end it in .svg, .pdf, .png")
    assert_one_sentence(wildtype("plot", "error", str(tmp_path), "-o", str(target)), "holds no finished run")
    panel = Panel("t", "a", lambda axes: None)
    with pytest.raises(ConfigError, match="25 panels are too many"):
        save_panels([panel] * 25, target)
    assert list(tmp_path.iterdir()) == []


def test_help_lists_the_kinds() -> None:
    said = wildtype("plot", "--help")
    assert all(f"{kind}:" in said.stdout for kind in PLOTS)


def test_steps_of_a_density_hold_every_count() -> None:
    for most in (0, 1, 2, 5, 40, 100_000):
        found = levels(most)
        assert found[0] == 1
        assert all(a < b for a, b in pairwise(found))
        assert len(found) <= 7
        assert found[-1] <= max(most, 1)


def test_drawn_squares_cover_the_rows() -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch

    rows = some_rows()
    axes = Figure().subplots()
    predicted_panels(rows)[0].draw(axes)
    shapes = [patch.get_path() for patch in axes.patches if isinstance(patch, PathPatch)]
    x, y = rows.measured, rows.predicted["model"]
    low, high = axes.get_xlim()
    inside = (x > low) & (x < high) & (y > low) & (y < high)
    squares = np.concatenate([shape.vertices.reshape(-1, 5, 2) for shape in shapes])  # type: ignore[union-attr]
    left, bottom = squares[:, 0].T
    right, top = squares[:, 2].T
    held = (x[:, None] >= left) & (x[:, None] <= right) & (y[:, None] >= bottom) & (y[:, None] <= top)
    assert held.any(1)[inside].all()


def test_names_in_a_drawing_are_text() -> None:
    data = frame(80).rename(columns={"model": HOSTILE})
    data["genes"] = data["genes"].str.replace("Q0", HOSTILE.replace(",", ""))
    rows = PredictedRows.of(data, "epsilon", [HOSTILE, "baseline"], unit=HOSTILE)
    text = "".join(
        show([panel_figure(panel, f"x{i}")])
        for i, panel in enumerate([*predicted_panels(rows), *error_panels(rows)])
    )
    assert "<script" not in text
    assert "\x07" not in re.sub("<details>.*?</details>", "", text)
    assert "&lt;script&gt;" in text
    ElementTree.fromstring(re.search(r"<svg.*?</svg>", text, re.DOTALL)[0])  # type: ignore[index]


def test_ids_of_panels_are_their_own_and_colours_follow_the_page() -> None:
    panel = predicted_panels(some_rows())[0]
    one, two = (show([panel_figure(panel, key)]) for key in ("one", "two"))
    for text, key in ((one, "one"), (two, "two")):
        ids = re.findall(r' id="([^"]+)"', text)
        assert ids
        assert all(name.startswith(f"{key}-") for name in ids)
        assert {found.split("-")[0] for found in re.findall(r'(?:url\(|href=")#([^")]+)', text)} == {key}
        assert "var(--d0)" in text
        assert not set(re.findall("#[0-9a-f]{6}", text)) & set(LIGHT.values())
        assert "http" not in text


def test_curves_that_were_not_logged_have_no_panel() -> None:
    nothing = np.full(2, np.nan)
    bare = LearningCurves(np.array([1.0, 2.0]), nothing, {}, {}, nothing, nothing)
    assert learning_panels(bare) == []
    data = LearningCurves(
        np.array([1.0]), np.ones(1), {"data": np.ones(1)}, {"data": np.ones(1)}, np.array([0.5]), np.ones(1)
    )
    # One term is all of the objective: its share is no figure.
    titles = [panel.title for panel in learning_panels(data)]
    assert titles == ["terms of the loss", "score on validation rows"]
    two = {name: np.full(1, 0.5) for name in ("data", "prior")}
    more = [panel.title for panel in learning_panels(replace(data, terms=two, shares=two))]
    assert more == ["terms of the loss", "shares of the objective", "score on validation rows"]
    for i, panel in enumerate(learning_panels(data)):
        show([panel_figure(panel, f"p{i}")])


def test_plain_names() -> None:
    assert plain("a\nb\x00c") == "a b c"
    assert plain("x" * 60, 10) == "x" * 9 + "…"


def luminance(colour: str) -> float:
    part = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, two: str) -> float:
    a, b = sorted((luminance(one), luminance(two)))
    return (b + 0.05) / (a + 0.05)


def test_colours_are_told_from_paper_and_density_rises() -> None:
    for colours, paper in ((LIGHT, "#ffffff"), (DARK, "#15181c")):
        assert all(contrast(colours[role], paper) > 3 for role in ("model", "baseline", "other"))
        steps = [luminance(colours[f"d{i}"]) for i in range(7)]
        assert steps == sorted(steps, reverse=paper == "#ffffff")
        assert contrast(colours["d0"], paper) > 1.3
    assert len(set(SERIES)) == len(SERIES)
