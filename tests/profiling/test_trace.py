"""A window of steps under torch's profiler, and the ranges of phases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiling.test_operators import Training
from wildtype.errors import ConfigError, OutputError
from wildtype.phases import listening, phase
from wildtype.profiling.trace import Window, nvtx_listener, trace

# The window


@pytest.mark.parametrize(
    ("window", "available", "message"),
    [
        (Window(wait=-1), None, "wait=-1"),
        (Window(warm_up=-2), None, "warm_up=-2"),
        (Window(active=-1), None, "active=-1"),
        (Window(active=0), None, "active=0 in the trace window records nothing"),
        (Window(), 8, "takes 9 steps .wait=2, warm_up=2, active=5., but there are 8"),
        (Window(0, 0, 1), 1, "takes 2 steps"),
    ],
)
def test_windows_that_record_nothing_or_do_not_fit_are_refused(
    window: Window, available: int | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        window.check(available)
    step = Training()
    with pytest.raises(ConfigError, match=message):
        trace(step, window, target=tmp_path / "t.json", steps_available=available)
    assert step.steps == 0


def test_windows_that_fit_are_taken() -> None:
    Window().check(9)
    Window().check(None)
    Window(0, 1, 1).check(2)


# Tracing


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Training, Path, Any]:
    step = Training()
    target = tmp_path_factory.mktemp("trace") / "deep" / "t.json"
    return step, target, trace(step, Window(1, 1, 3), target=target, name="a small model", cuda=False)


def test_a_trace_sees_the_active_steps(traced: tuple[Training, Path, Any]) -> None:
    step, target, report = traced
    assert step.steps == 5
    assert (report.steps, report.cuda, report.launches) == (3, False, 0)
    names = [event["name"] for event in json.loads(target.read_text())["traceEvents"]]
    assert sum(name.startswith("ProfilerStep#") for name in names) == 3
    assert names.count("phase: head") == names.count("phase: optimizer") == 3
    calls = {row["name"]: row["calls"] for row in report.operators}
    counted = report.counters
    assert calls["aten::mm"] == 2  # forward and backward, as the other instrument says
    assert counted["head"]["operators"] == 1
    assert report.autograd_nodes == 5  # matmul, index, square, sum, and the weight's
    assert report.trace_events > 20
    assert report.allocated_mib > 0
    assert 0 < report.idle["share"] < 1
    assert report.idle["seconds"] < report.seconds_per_step
    assert sum(row["self_seconds"] for row in report.operators) < report.seconds_per_step


def test_a_trace_names_reads_and_prints(traced: tuple[Training, Path, Any]) -> None:
    _, target, report = traced
    assert {(row["what"], row["phase"], row["effect"]) for row in report.reads} == {
        ("aten::index with a boolean mask", "loss", "would synchronise on a GPU"),
        ("aten::index_put with a boolean mask", "backward", "would synchronise on a GPU"),
    }
    assert json.loads(json.dumps(report.to_json(), allow_nan=False))["steps"] == 3
    text = report.to_text()
    assert text.startswith("Trace of a small model: 3 steps of ")
    assert str(target) in text
    assert "would synchronise on a GPU  aten::index with a boolean mask" in text
    assert "Kernels, by time per step: none" in text


def test_a_window_of_active_steps_only_is_followed_by_the_counted_one(tmp_path: Path) -> None:
    step, target = Training(), tmp_path / "t.json.gz"
    report = trace(step, Window(0, 0, 1), target=target, steps_available=2)
    assert step.steps == 2
    assert report.counters["head"]["operators"] == 1
    assert json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]


def test_a_phase_around_the_trace_ends_with_each_step(tmp_path: Path) -> None:
    target = tmp_path / "t.json"
    with phase("callbacks"):
        trace(Training(), Window(0, 1, 2), target=target)
    events = [e for e in json.loads(target.read_text())["traceEvents"] if e["ph"] == "X"]
    steps, around = (
        [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith(mark)]
        for mark in ("ProfilerStep#", "phase: callbacks")
    )
    assert len(around) == 2 * 4  # after each of the four phases
    assert all(any(a <= start and end <= b for a, b in steps) for start, end in around)


def test_steps_that_run_out_are_an_error_and_leave_no_file(tmp_path: Path) -> None:
    batches: Iterator[int] = iter(range(3))
    with pytest.raises(ConfigError, match="ran out after 3 of the 9"):
        trace(lambda: next(batches), Window(), target=tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        trace(Training(), Window(0, 1, 1), target=tmp_path / "file" / "t.json")


def test_a_gpu_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no CUDA device"):
        trace(Training(), Window(), target=tmp_path / "t.json", cuda=True)


# NVTX


class Nvtx:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def range_push(self, msg: str) -> None:
        self.calls.append(msg)

    def range_pop(self) -> None:
        self.calls.append("pop")


def test_phases_become_nvtx_ranges_of_which_one_is_open() -> None:
    nvtx = Nvtx()
    listener = nvtx_listener(nvtx)
    assert listener
    with listening(listener):
        with phase("head"), phase("graph prior"):
            pass
        with phase("loss"):
            pass
    assert nvtx.calls == ["head", "pop", "graph prior", "pop", "head", "pop", "loss", "pop"]


def test_nvtx_ranges_need_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert nvtx_listener() is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "nvtx", Nvtx())
    listener = nvtx_listener()
    assert listener
    assert isinstance(listener.ranges, Nvtx)
