from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from wildtype.errors import ConfigError, OutputError
from wildtype.phases import listening, phase
from wildtype.profiling.trace import (
    BACKWARD,
    OperatorCounter,
    Window,
    count_operators,
    nvtx_listener,
    trace,
)
from wildtype.profiling.trace_analysis import OperatorCounts, Read, analyse

X = torch.arange(12.0).reshape(4, 3) - 5


class Double(torch.autograd.Function):
    """Twice its input; its backward reads a value."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        gradient.sum().item()
        return gradient * 2


class Training:
    """A small model whose step says its phases."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.randn(3, 3, generator=generator).requires_grad_()
        self.optimizer = torch.optim.AdamW([self.weight])
        self.steps = 0
        self.losses: list[torch.Tensor] = []

    def __call__(self) -> None:
        self.steps += 1
        self.optimizer.zero_grad()
        with phase("head"):
            y = X @ self.weight
        with phase("loss"):
            loss = y[y.detach() > 0].square().sum()
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            self.optimizer.step()
        self.losses.append(loss.detach())


def reads(step: Callable[[], object]) -> list[tuple[str, str, float]]:
    """What reads, in which function, how often."""
    return [
        (row["what"], row["where"].rpartition(" in ")[2], row["calls"])
        for row in count_operators(step).reads_json()
    ]


# Counting


def test_operators_of_forward_backward_and_optimiser_stand_in_their_phases() -> None:
    step = Training()
    step()
    counters = count_operators(step).counters(top=100)
    calls = {name: {row["name"]: row["calls"] for row in part["top"]} for name, part in counters.items()}
    assert calls["head"] == {"aten::mm": 1}
    assert calls["backward"]["aten::mm"] == 1
    assert calls["loss"]["aten::index"] == 1
    assert calls["optimizer"]["aten::addcdiv_"] == 1
    assert calls["unattributed"] == {"aten::detach": 1}
    assert counters["head"]["operators"] == 1
    assert all(part["operators"] == sum(calls[name].values()) for name, part in counters.items())
    assert all(row["seconds"] > 0 for row in counters["head"]["top"])


def test_counting_changes_no_result() -> None:
    plain, watched = Training(), Training()
    for _ in range(3):
        plain()
        count_operators(watched)
    assert torch.equal(torch.stack(plain.losses), torch.stack(watched.losses))
    assert torch.equal(plain.weight, watched.weight)


def test_counts_of_several_steps_are_means() -> None:
    counter, step = OperatorCounter(), Training()
    for _ in range(4):
        with counter:
            step()
        step()  # not watched
    counts = counter.counts(4)
    assert counts.operators["head"]["aten::mm"].calls == 1
    assert counts.operators["head"]["aten::mm"].allocated_mib == pytest.approx(48 / 2**20)
    assert sum(counts.reads.values()) == 2


def test_the_record_gets_counters_and_reads() -> None:
    def step() -> None:
        for x in X.flatten():
            x.item()

    record = json.loads(json.dumps(count_operators(step, lambda: "collate").to_json(top=1)))
    assert set(record) == {"counters", "reads"}
    assert set(record["counters"]) == {"collate"}
    counters = record["counters"]["collate"]
    assert set(counters) == {"operators", "scalar_reads", "allocated_mib", "top"}
    assert counters["scalar_reads"] == 12
    (top,) = counters["top"]
    assert set(top) == {"name", "calls", "seconds"}
    assert top["calls"] == 12
    line = step.__code__.co_firstlineno + 2
    assert record["reads"] == [
        {"where": f"test_trace.py:{line} in step", "what": "aten::item", "calls": 12.0}
    ]


def by_item() -> None:
    X.sum().item()


def by_float() -> None:
    float(X[0, 0])


def by_truth() -> None:
    if X[0, 0] > 0:
        raise AssertionError


def by_cpu() -> None:
    X.cpu()


def by_numpy() -> None:
    X.numpy()


def by_list() -> None:
    X.tolist()


def by_mask() -> None:
    X[X > 0]


def by_put() -> None:
    X.clone()[X > 4] = torch.ones(2)


def by_nonzero() -> None:
    X.nonzero()


def by_where() -> None:
    torch.where(X > 0)


def by_select() -> None:
    X.masked_select(X > 0)


def by_unique() -> None:
    X.unique()


def by_repeat() -> None:
    X.repeat_interleave(torch.ones(4, dtype=torch.int64), 0)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (by_item, "aten::item"),
        (by_float, "aten::item"),
        (by_truth, "aten::item"),
        (by_cpu, "Tensor.cpu"),
        (by_numpy, "Tensor.numpy"),
        (by_list, "Tensor.tolist"),
        (by_mask, "aten::index with a boolean mask"),
        (by_put, "aten::index_put_ with a boolean mask"),
        (by_nonzero, "aten::nonzero"),
        (by_where, "aten::nonzero"),
        (by_select, "aten::masked_select"),
        (by_unique, "aten::_unique2"),
        (by_repeat, "aten::repeat_interleave"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_every_way_of_reading_is_found_at_its_line(step: Callable[[], None], what: str) -> None:
    assert reads(step) == [(what, step.__name__, 1.0)]
    (row,) = count_operators(step).reads_json()
    assert row["where"] == f"test_trace.py:{step.__code__.co_firstlineno + 1} in {step.__name__}"


@pytest.mark.parametrize(
    "step",
    [
        lambda: X @ X.T,
        lambda: X[[0, 2]],
        lambda: X[1:, 0],
        lambda: X.clone().masked_fill_(X > 0, 0.0),
        lambda: X.clone().__setitem__(X > 0, 0.0),
        lambda: X.repeat_interleave(2, 0),
        lambda: torch.repeat_interleave(X, torch.full((4,), 2), 0, output_size=8),
        lambda: X.to("cpu", torch.float64),
        lambda: X.clone().copy_(X, non_blocking=True),
    ],
)
def test_what_reads_no_value_is_no_read(step: Callable[[], object]) -> None:
    assert reads(step) == []


def test_copies_between_devices_are_reads() -> None:
    away = torch.empty(3, device="meta")
    (read,) = count_operators(lambda: X[0].to("meta")).reads
    assert (read.what, read.on_device) == ("aten::_to_copy between devices", True)
    assert reads(lambda: X[0].to("meta", non_blocking=True)) == []
    assert reads(lambda: away.copy_(X[0])) == [("aten::copy_ between devices", "<lambda>", 1.0)]
    counter = OperatorCounter()
    with pytest.raises(NotImplementedError), counter:
        away.cpu()
    assert "Tensor.cpu" not in {read.what for read in counter.reads}  # the operator counts, not the call


def test_reads_of_backward_are_named_where_there_is_a_line() -> None:
    x = X.clone().requires_grad_()

    def step() -> None:
        Double.apply(x)[X > 0].sum().backward()

    found = reads(step)
    assert ("aten::index with a boolean mask", "step", 1.0) in found
    assert ("aten::item", "backward", 1.0) in found
    assert [what.partition(" ")[2] for what, where, _ in found if where == BACKWARD] == [
        "with a boolean mask"
    ]


def test_optimisers_step_counters_are_no_reads_and_clipping_is() -> None:
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)
    optimizer = torch.optim.AdamW([weight])
    optimizer.step()
    counts = count_operators(optimizer.step, lambda: "optimizer")
    assert counts.operators["optimizer"]["aten::_local_scalar_dense"].calls == 1
    assert counts.reads == {}
    assert counts.counters()["optimizer"]["scalar_reads"] == 0

    def clip() -> None:
        torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)

    assert reads(clip) == [("aten::item", "clip", 1.0)]


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: torch.zeros(256, 256), 256 * 256 * 4),
        (lambda: X.view(-1)[3:].reshape(3, 3).T, 0),
        (lambda: X.add_(0.0), 0),
        (lambda: X.expand(5, 4, 3), 0),
        (lambda: (X + 1).view(-1), 48),
        (lambda: X.sort(), 48 + 96),
        (lambda: torch.tensor([1.0, 2.0]), 8),
    ],
)
def test_allocated_is_new_storage_only(make: Callable[[], object], size: int) -> None:
    assert count_operators(make, lambda: "head").counters()["head"]["allocated_mib"] * 2**20 == size


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_allocate_what_they_store(layout: torch.layout) -> None:
    counts = count_operators(lambda: torch.eye(1000).to_sparse(layout=layout), lambda: "head")
    dense = 4 * 1000**2
    stored = 1000 * (4 + 8 + 8)
    allocated = sum(total.allocated_mib for total in counts.operators["head"].values()) * 2**20
    assert stored <= allocated - dense < 0.1 * dense


def test_a_failing_step_leaves_nothing_watched() -> None:
    counter = OperatorCounter(lambda: "head")

    def fail() -> None:
        X.sum()
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"), counter:
        fail()
    X.sum()
    assert counter.counts().operators["head"]["aten::sum"].calls == 1


def test_effect_of_a_read_depends_on_the_machine_and_the_phase() -> None:
    assert Read("a", "aten::item", "head", False).effect(cuda=False) == "would synchronise on a GPU"
    assert Read("a", "aten::item", "head", False).effect(cuda=True) == "stays on the host"
    assert Read("a", "aten::item", "collate", False).effect(cuda=False) == "stays on the host"
    assert Read("a", "aten::item", "head", True).effect(cuda=True) == "synchronises"


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


# Analysis of events, in microseconds


def span(name: str, start: float, end: float, category: str = "cpu_op", thread: int = 1) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": end - start,
    }  # fmt: skip


def memory(at: float, size: int, device: int, thread: int = 1) -> dict[str, Any]:
    args = {"Bytes": size, "Device Type": device}
    return {
        "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": thread, "ts": at,
        "args": args,
    }  # fmt: skip


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
