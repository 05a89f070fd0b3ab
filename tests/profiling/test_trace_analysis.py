"""What a report says about the events of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from wildtype.profiling.trace_analysis import OperatorCounts, Read, analyse

# Times of events are in microseconds.


def span(name: str, start: float, end: float, category: str = "cpu_op", thread: int = 1) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": start,
        "dur": end - start,
    }


def memory(at: float, size: int, device: int, thread: int = 1) -> dict[str, Any]:
    args = {"Bytes": size, "Device Type": device}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": thread,
        "ts": at,
        "args": args,
    }


STEPS = [
    span("ProfilerStep#4", 1000, 2000, "user_annotation"),
    span("ProfilerStep#5", 2000, 3000, "user_annotation"),
]
NOTHING = OperatorCounts({}, {})


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


def test_time_and_memory_belong_to_the_innermost_operator() -> None:
    events = [
        *STEPS,
        span("aten::linear", 1100, 1500),
        span("aten::addmm", 1150, 1450),
        memory(1200, 2**20, 0),
        memory(1460, 2**21, 0),
        memory(1490, -(2**21), 0),
        memory(1600, 2**20, 0),  # in no operator
        span("autograd::engine::evaluate_function: AddmmBackward0", 2100, 2300),
        span("aten::mm", 2200, 2300),
        span("aten::mm", 2200, 2300, thread=2),
        span("aten::mm", 900, 950),  # warming up
    ]
    report = analyse(events, NOTHING)
    rows = by_name(report.operators)
    assert rows["aten::linear"]["self_seconds"] == pytest.approx(50e-6)
    assert rows["aten::addmm"]["self_seconds"] == pytest.approx(150e-6)
    assert rows["aten::mm"]["calls"] == 1
    assert rows["aten::mm"]["self_seconds"] == pytest.approx(100e-6)
    assert {row["name"]: row["allocated_mib"] for row in report.allocations} == {
        "aten::linear": 1.0,
        "aten::addmm": 0.5,
    }
    assert report.allocated_mib == 2.0
    assert report.autograd_nodes == 0.5
    assert report.trace_events == 2.5
    assert report.seconds_per_step == pytest.approx(1e-3)


def test_gaps_between_operators_are_named_by_phase_and_neighbours() -> None:
    events = [
        *STEPS,
        span("phase: collate", 1000, 1400, "user_annotation"),
        span("phase: head", 1400, 2000, "user_annotation"),
        span("aten::mm", 1500, 2000),
        span("aten::mm", 2000, 2990),
        span("aten::t", 2010, 2020),
    ]
    idle = analyse(events, NOTHING).idle
    assert idle["where"] == "thread"
    assert idle["seconds"] == pytest.approx(510e-6 / 2)
    assert idle["share"] == pytest.approx(0.255)
    assert list(idle["phases"].items()) == [
        ("collate", pytest.approx(200e-6)),
        ("head", pytest.approx(50e-6)),
    ]
    first, last = idle["gaps"]
    assert first == {
        "seconds": pytest.approx(500e-6),
        "phase": "collate",
        "after": "the step's beginning",
        "before": "aten::mm",
    }
    assert (last["phase"], last["after"], last["before"]) == ("no phase", "aten::mm", "the step's end")


def test_a_gpu_has_kernels_launches_waits_and_gaps_of_its_own() -> None:
    events = [
        *STEPS,
        span("aten::mm", 1000, 1100),
        memory(1010, 2**20, 1),
        memory(1020, 2**22, 0),  # the host's
        span("cudaLaunchKernel", 1020, 1040, "cuda_runtime"),
        span("cuLaunchKernelEx", 2010, 2020, "cuda_driver"),
        span("cudaMemcpyAsync", 2100, 2110, "cuda_runtime"),
        span("cudaStreamSynchronize", 2200, 2800, "cuda_runtime"),
        span("gemm", 1100, 1900, "kernel", thread=7),
        span("other stream", 1800, 2000, "kernel", thread=8),
        span("gemm", 2100, 3500, "kernel", thread=7),  # runs on after the last step
        span("Memcpy DtoH", 3500, 4000, "gpu_memcpy", thread=7),
        span("ProfilerStep#4", 1000, 2000, "gpu_user_annotation", thread=7),
    ]
    reads = {Read("head.py:3 in forward", "aten::item", "head", True): 2.0}
    report = analyse(events, OperatorCounts({}, reads), name="x", trace="t.json")
    assert report.cuda
    assert (report.steps, report.launches) == (2, 1)
    assert report.kernels[0] == {"name": "gemm", "seconds": pytest.approx(1.1e-3), "calls": 1.0}
    assert set(by_name(report.kernels)) == {"gemm", "other stream", "Memcpy DtoH"}
    assert report.waits == [{"name": "cudaStreamSynchronize", "seconds": pytest.approx(300e-6), "calls": 0.5}]
    assert report.allocated_mib == 0.5
    assert report.idle["where"] == "device"
    assert report.idle["seconds"] == pytest.approx(100e-6)
    assert report.idle["share"] == pytest.approx(200 / 3000)
    assert [(gap["after"], gap["before"]) for gap in report.idle["gaps"]] == [
        ("the step's beginning", "gemm"),
        ("other stream", "gemm"),
    ]
    text = report.to_text()
    assert "Idle: no kernel on the GPU: 100 µs per step, 7%" in text
    assert "2  synchronises  aten::item  head  head.py:3 in forward" in text
    assert "1.1 ms" in text
    assert "cudaStreamSynchronize" in text


def test_effect_of_a_read_depends_on_the_machine_and_the_phase() -> None:
    assert Read("a", "aten::item", "head", False).effect(cuda=False) == "would synchronise on a GPU"
    assert Read("a", "aten::item", "head", False).effect(cuda=True) == "stays on the host"
    assert Read("a", "aten::item", "collate", False).effect(cuda=False) == "stays on the host"
    assert Read("a", "aten::item", "head", True).effect(cuda=True) == "synchronises"
