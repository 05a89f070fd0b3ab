from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wildtype.mutants import MutantTable
from wildtype.mutants.loader import MutantLoader
from wildtype.profiling.python_lines import PACKAGE, LineReport, time_lines

SOURCE = """\
def collate(samples):
    out = []
    for sample in samples:
        wait(2)
        out.append(mask(sample))
    return out

def mask(sample):
    wait(5)
    return sample

def batches(n):
    for i in range(n):
        wait(1)
        yield i

def fail():
    wait(3)
    raise KeyError("planted")

def caught():
    try:
        fail()
    except KeyError:
        wait(4)
"""


class Clock:
    """Time that passes only where code says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pipeline(tmp_path: Path, clock: Clock) -> ModuleType:
    path = tmp_path / "pipeline" / "stages.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    module = ModuleType("stages")
    module.__file__ = str(path)
    module.__dict__["wait"] = clock.wait
    exec(compile(SOURCE, str(path), "exec"), module.__dict__)
    return module


def folder(module: ModuleType) -> Path:
    return Path(str(module.__file__)).parent


def table(report: LineReport) -> dict[int, tuple[int, float]]:
    return {line.line: (line.calls, line.seconds) for line in report.lines if line.seconds}


def test_lines_own_the_time_of_what_is_not_watched(pipeline: ModuleType, clock: Clock) -> None:
    report = time_lines(lambda: pipeline.collate([1, 2, 3]), watch=[folder(pipeline)], clock=clock)
    assert table(report) == {4: (3, 6.0), 9: (3, 15.0)}
    assert report.seconds == 21.0
    top = report.lines[0]
    assert (top.file, top.function, top.source) == ("pipeline/stages.py", "mask", "wait(5)")
    assert {line.line: line.calls for line in report.lines}[5] == 3
    assert json.loads(json.dumps(report.to_json(top=1)))["lines"][0]["seconds"] == 15.0


def test_text_names_the_dearest_lines_first(pipeline: ModuleType, clock: Clock) -> None:
    text = time_lines(lambda: pipeline.collate([1]), watch=[folder(pipeline)], clock=clock).to_text(top=2)
    title, _, first, second = text.splitlines()
    assert title.startswith("7.000 s in 9 watched lines")
    assert "71.4%" in first
    assert first.endswith("pipeline/stages.py:9 in mask: wait(5)")
    assert second.endswith("stages.py:4 in collate: wait(2)")


def test_generators_pause_and_errors_unwind(pipeline: ModuleType, clock: Clock) -> None:
    def run() -> None:
        for _ in pipeline.batches(3):
            clock.wait(10)  # belongs to no watched line
        pipeline.caught()

    report = time_lines(run, watch=[folder(pipeline) / "stages.py"], clock=clock)
    assert table(report) == {14: (3, 3.0), 18: (1, 3.0), 25: (1, 4.0)}
    assert report.seconds == 40.0


def test_the_former_tracer_comes_back_even_after_an_error(pipeline: ModuleType) -> None:
    before = sys.gettrace()
    with pytest.raises(KeyError, match="planted"):
        time_lines(pipeline.fail, watch=[folder(pipeline)])
    assert sys.gettrace() is before


def test_only_watched_files_are_reported(pipeline: ModuleType, tmp_path: Path, clock: Clock) -> None:
    elsewhere = time_lines(lambda: pipeline.collate([1]), watch=[tmp_path / "pipe"], clock=clock)
    assert elsewhere.lines == []
    assert elsewhere.seconds == 7.0


def test_the_loader_of_this_package_is_watched_by_default() -> None:
    mutants = MutantTable.from_sets([[0, 1], [1, 2], [0, 2], [1]], value=[0.1, 0.2, 0.3, 0.4])
    report = time_lines(lambda: list(MutantLoader(mutants, 2, shuffle=True, seed=0)))
    files = {line.file for line in report.lines}
    assert "wildtype/mutants/loader.py" in files
    assert all((PACKAGE.parent / file).is_file() for file in files)
    assert 0 < sum(line.seconds for line in report.lines) <= report.seconds
