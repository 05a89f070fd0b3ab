from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.files import write_text
from wildtype.phases import PHASES
from wildtype.report.profile_drawing import COLOURS
from wildtype.report.profile_page import profile_page

FAST = dict(
    zip(PHASES[:-2], (0.4, 0.6, 0.5, 0.9, 0.05, 6.1, 2.2, 4.8, 0.7, 13.9, 0.2, 2.1, 0.3, 0.1), strict=True)
)
HOSTILE = '<script>document.title="x"</script><img src=x onerror=alert(1)> & "\'[red]'
LONG = HOSTILE + "_and_on" * 40
VOID = {"meta", "br"}


def profile(
    name: str = "fast", milliseconds: dict[str, float] | None = None, **fields: Any
) -> dict[str, Any]:
    """A record whose phases take so many milliseconds, and 0.4 ms in no phase."""
    taken = FAST if milliseconds is None else milliseconds
    step = (sum(taken.values()) + 0.4) / 1e3
    pieces, at = [], 0.0
    for phase, value in taken.items():
        pieces.append({"phase": phase, "start": at, "end": at + value / 1e3})
        at += value / 1e3
    record: dict[str, Any] = {
        "format": 1,
        "name": name,
        "complete": True,
        "execution": "training",
        "machine": {"processor": "a processor", "threads": 1, "memory_gib": 7.8, "accelerator": "none"},
        "workload": {"model": "cell_transformer", "dataset": "toy", "batch_size": 256, "steps_per_epoch": 12},
        "steps": 50,
        "seconds_per_step": {"mean": step, "median": step * 0.98, "p95": step * 1.2},
        "phases": {
            phase: {"mean": v / 1e3, "median": v / 1e3, "p95": v / 800, "cpu": v / 1e3, "peak_mib": 512.0}
            for phase, v in taken.items()
        },
        "unattributed": {"mean": 0.4e-3, "share": 0.4e-3 / step},
        "outside": {"validation": 1.25},
        "overhead_share": 0.001,
        "counters": {
            "head": {"operators": 120.0, "scalar_reads": 2.0, "allocated_mib": 3.25,
                     "top": [{"name": "aten::mm", "calls": 12.0, "seconds": 0.003}]}
        },
        "reads": [{"where": "batch.py:12 in collate", "what": "aten::item", "calls": 256.0}],
        "timeline": [pieces, pieces],
    }  # fmt: skip
    return record | fields


def slow() -> dict[str, Any]:
    return profile("slow", FAST | {"collate": 420.0, "representation": 160.0}, counters=None, reads=None)


def killed() -> dict[str, Any]:
    nan = float("nan")
    return profile(
        "killed",
        {},
        complete=False,
        steps=0,
        seconds_per_step={"mean": 0.0, "median": nan},
        unattributed={"mean": 0.0, "share": nan},
        overhead_share=nan,
        outside={},
        counters=None,
        reads=None,
        timeline=[],
        workload={"model": "dango"},
        machine={},
    )


class Page(HTMLParser):
    """Everything of a page, with a check that its elements close where they should."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} stands twice"
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.cells.append([])
        if tag in {"td", "th"}:
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def row(self, start: str) -> list[str]:
        """Return the first row of a table whose heading begins (after its number) with ``start``."""
        rows = [[cell.strip() for cell in row] for row in self.cells]
        return next(row for row in rows if re.sub(r"^\d+ ", "", row[0]).startswith(start))

    def bars(self) -> list[dict[str, float]]:
        """Return the seconds per class of phase in every stacked bar."""
        bars: list[dict[str, float]] = []
        for tag, attrs in self.tags:
            if tag == "svg" and attrs.get("class") == "bar":
                bars.append({})
            if "data-seconds" in attrs:
                bars[-1][str(attrs["class"])] = float(str(attrs["data-seconds"]))
        return bars


# ------------------------------------------------------------------------------------------------------- page


def test_page_is_whole_in_itself() -> None:
    text = profile_page([profile(), slow(), killed()])
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert '<meta charset="utf-8">' in text[:200]
    assert not re.search(r"https?:|url\((?!#)|@import|javascript:", text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not {
        name for _, attrs in page.tags for name in attrs if name.startswith("on") or name in {"src", "href"}
    }
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        assert attrs.get("aria-labelledby") in {None, *ids}
        assert attrs.get("role") not in {"img", "region"} or attrs.get("aria-label")


def test_every_phase_stands_in_bars_tables_and_timeline() -> None:
    page = Page(profile_page([profile()]))
    (bar,) = page.bars()
    assert list(bar) == [*(f"p{i + 1}" for i in range(len(FAST))), "p0"]
    assert list(bar.values()) == pytest.approx([*(v / 1e3 for v in FAST.values()), 0.4e-3])
    for phase, milliseconds in FAST.items():
        row = page.row(phase)
        assert float(row[1]) == pytest.approx(milliseconds, abs=0.006)
        assert row[-1] == "512"
        assert page.text.count(f"step 2, {phase}:") == 1
    assert page.row("unattributed")[1:] == ["0.40", "–", "–", "–", "1.2 %", "–"]
    assert page.row("a step")[1:] == ["33.25", "32.58", "39.90", "–", "100.0 %", ""]
    assert page.row("validation, s")[1] == "1.25"
    assert page.row("measuring itself")[1] == "0.1 %"
    assert page.row("memory, GiB")[1] == "7.8"
    assert page.row("batch.py:12 in collate")[1:] == ["256", "aten::item"]
    assert "120" in page.text
    assert "aten::mm 12 calls, 3.00 ms" in page.text
    assert "stopped early" not in page.text
    assert "Differences" not in page.text


def test_differences_name_what_explains_the_gap() -> None:
    other = slow()
    other["workload"] = other["workload"] | {"steps_per_epoch": 96}
    page = Page(profile_page([profile(), other]))
    assert "A step of B takes 18.4 × as long as one of A : 611.85 against 33.25 ms." in page.text
    assert "The largest difference is in collate : +419.10 ms." in page.text
    assert page.row("collate") == ["4 collate", "0.90", "420.00", "+419.10", "", "72.4 %", "467"]
    assert page.row("head")[1:] == ["4.80", "4.80", "0.00", "", "0.0 %", "1.00"]
    assert page.row("a step")[1:] == ["33.25", "611.85", "+578.60", "", "", "18.4"]
    assert page.row("an epoch’s steps")[1:3] == ["12 steps: 0.399", "96 steps: 58.7"]
    assert page.row("steps per epoch ≠")[1:] == ["12", "96"]
    assert page.row("batch size")[0] == "batch size"
    first, second, *shares = page.bars()
    assert shares == [first, second]  # drawn twice: on one scale, and as shares
    assert list(first) == list(second)  # a phase has one colour


def test_differences_with_equal_steps_and_missing_phases() -> None:
    moved = {phase: v for phase, v in FAST.items() if phase != "loss"} | {"head": 5.51}
    page = Page(profile_page([profile(), profile("moved", moved)]))
    assert page.row("loss") == ["9 loss", "0.70", "–", "−0.70", "", "–", "0.00"]
    back = Page(profile_page([profile("moved", moved), profile()]))
    assert back.row("loss") == ["9 loss", "–", "0.70", "+0.70", "", "–", "–"]


def test_stopped_early_is_said_and_an_empty_run_is_not_compared() -> None:
    page = Page(profile_page([killed(), profile(), profile("cut", complete=False, steps=13)]))
    assert page.text.count("no step was timed") == 1
    assert "stopped early, 13 timed steps" in page.text
    assert "Differences to B" in page.text
    assert "A step of C takes 1.00 ×" in page.text
    assert "The largest difference" not in page.text
    assert len(page.bars()) == 4
    alone = Page(profile_page([killed()]))
    assert "stopped early, 0 timed steps" in alone.text
    assert alone.bars() == []
    assert alone.row("unattributed")[1] == "–"
    bare = profile_page([killed() | {"seconds_per_step": None, "unattributed": None, "overhead_share": None}])
    assert Page(bare).text == alone.text


def test_no_record_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no profile to show"):
        profile_page([])


@settings(max_examples=20)
@given(st.text(st.characters(exclude_characters="\x00\r"), max_size=40) | st.just(HOSTILE))
def test_names_are_text(name: str) -> None:
    record = profile(name, {"head": 1.0}, execution=name)
    record["workload"] = {"model": name, name: name}
    record["machine"] = {"processor": name, name: name}
    record["reads"] = [{"where": name, "what": name, "calls": 1.0}]
    record["counters"] = {name: {"top": [{"name": name, "calls": 1.0, "seconds": 1.0}]}}
    record["phases"][name] = {"mean": 1e-3}
    record["timeline"] = [[{"phase": name, "start": 0.0, "end": 1e-3}]]
    text = profile_page([record])
    plain = Page(profile_page([record | {"name": "plain"}]))
    shown = name.encode("utf-8", "replace").decode()
    page = Page(text)
    assert f"Profile: {shown}" in page.words
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in Page(profile_page([profile()])).tags}


def test_pieces_too_close_to_see_are_drawn_as_one() -> None:
    pieces = [{"phase": "fetch", "start": i * 1e-3, "end": (i + 1) * 1e-3} for i in range(500)]
    pieces.append({"phase": "head", "start": 0.5, "end": 0.9})
    pieces.append({"phase": "fetch", "start": 0.9, "end": 1.0})
    page = Page(profile_page([profile(timeline=[pieces])]))
    assert "step 1, fetch: 500.00 ms, from 0.00, 500 pieces" in page.text
    assert "step 1, fetch: 100.00 ms, from 900.00" in page.text
    assert page.text.count("step 1, fetch") == 2


def test_colours_differ_for_colour_blind_eyes() -> None:
    # Machado, Oliveira, Fernandes 2009 (severity 1) on linear RGB; distances in Oklab (Ottosson 2020)
    seen = {
        "common": np.eye(3),
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    lms = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
    lab = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS.values()])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for eyes, matrix in seen.items():
        point = np.cbrt(np.clip(linear @ np.transpose(matrix), 0, 1) @ lms.T) @ lab.T
        distance = np.linalg.norm(point[:, None] - point[None], axis=-1)
        assert distance[~np.eye(len(point), dtype=bool)].min() > 0.07, eyes
        assert np.diagonal(distance, 1).min() > 0.15, f"neighbours, {eyes}"


# ---------------------------------------------------------------------------------------------------- browser

MEASURE = """<!DOCTYPE html><title>harness</title><body style="margin:0">
<iframe src="page.html" width="1200" height="900"></iframe>
<iframe src="page.html" width="360" height="900"></iframe>
<pre id="measured"></pre>
<script>
const box = (x) => { const r = x.getBoundingClientRect(); return [r.left, r.right]; };
addEventListener("load", () => {
  const measured = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, view = frame.contentWindow;
    const all = (selector, root = page) => [...root.querySelectorAll(selector)];
    return {
      mode: page.compatMode, title: page.title, width: page.documentElement.clientWidth,
      scrollWidth: page.documentElement.scrollWidth,
      outside: all("body *").filter((x) => !x.closest(".scroll, .defs") && box(x)[1] > view.innerWidth + 0.5)
        .map((x) => x.outerHTML.slice(0, 80)),
      active: all("script, img, [onerror]").length,
      bars: all("svg.bar").map((bar) => ({ box: box(bar), pieces: all("rect", bar).map((x) => ({
        seconds: +x.dataset.seconds, box: box(x), fill: view.getComputedStyle(x).fill,
        labels: all("text", x.parentNode).filter((t) => view.getComputedStyle(t).display != "none")
          .map((t) => ({ text: t.textContent, box: box(t) })) })) })),
      gantt: all(".gantt").map((g) => ({ names: all("li", g).map((x) => x.getBoundingClientRect().top),
        lanes: [...new Set(all("rect[class^=p]", g).map((x) => x.getBoundingClientRect().top))] })),
    };
  });
  document.getElementById("measured").textContent = JSON.stringify(measured);
});
</script>"""


@pytest.fixture
def chromium() -> str:
    path = shutil.which("chromium")
    if path is None:
        reason = (
            "no chromium on the PATH: install it (apt-get install chromium) to see what a browser renders"
        )
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.mark.slow
def test_a_browser_renders_it(chromium: str, tmp_path: Path) -> None:
    write_text(tmp_path / "page.html", profile_page([profile(), slow() | {"name": LONG}]))
    write_text(tmp_path / "harness.html", MEASURE)
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--allow-file-access-from-files",
            "--window-size=1600,1900",
            f"--user-data-dir={tmp_path / 'user'}",
            "--dump-dom",
            (tmp_path / "harness.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="measured">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, f"chromium measured nothing: {done.stderr[-2000:]}"
    measured = json.loads(html.unescape(found[1]))
    assert [page["width"] > 1100 for page in measured] == [True, False]
    for page in measured:
        assert page["mode"] == "CSS1Compat"
        assert page["title"] == f"Profile: fast, {LONG}"
        assert page["active"] == 0
        assert page["scrollWidth"] <= page["width"]
        assert page["outside"] == []
        check_bars(page["bars"])
        for gantt in page["gantt"]:
            assert len(gantt["names"]) == len(gantt["lanes"]) == len(FAST)
            assert np.ptp(np.sort(gantt["lanes"]) - gantt["names"]) < 1.0  # names stand beside their lanes
    wide, narrow = ([len(p["labels"]) for bar in page["bars"] for p in bar["pieces"]] for page in measured)
    assert sum(wide) > sum(narrow) > 0


def check_bars(bars: list[dict[str, Any]]) -> None:
    assert len(bars) == 4
    widths = [bar["box"][1] - bar["box"][0] for bar in bars]
    sums = [sum(piece["seconds"] for piece in bar["pieces"]) for bar in bars]
    assert sums == pytest.approx([0.03325, 0.61185] * 2)
    fills: dict[int, set[str]] = {}
    for bar, width, longest in zip(bars, widths, [max(sums), max(sums), *sums[2:]], strict=True):
        at = bar["box"][0]
        for i, piece in enumerate(bar["pieces"]):
            left, right = piece["box"]
            assert right - left == pytest.approx(width * piece["seconds"] / longest, rel=0.01, abs=0.02)
            assert left == pytest.approx(at, abs=0.1)
            at = right
            fills.setdefault(i, set()).add(piece["fill"])
            assert len(piece["labels"]) <= 1
            for label in piece["labels"]:
                assert left <= label["box"][0] < label["box"][1] <= right, label
    assert all(len(fill) == 1 for fill in fills.values())
    assert len({next(iter(fill)) for fill in fills.values()}) == len(FAST) + 1
