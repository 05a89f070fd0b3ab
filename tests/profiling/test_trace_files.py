"""Stored traces: read, analysed and compared, whoever wrote them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import assert_one_sentence, wildtype
from tests.profiling.test_trace_analysis import STEPS, span
from wildtype.errors import ConfigError
from wildtype.profiling.trace_files import analyse_file, compare_traces, read_events


def phase(name: str, start: float, end: float) -> dict[str, Any]:
    return span(f"phase: {name}", start, end, "user_annotation")


def frame(name: str, start: float, end: float) -> dict[str, Any]:
    return span(name, start, end, "python_function")


FAST = [
    *STEPS,
    phase("head", 1000, 1800),
    phase("backward", 2000, 2400),
    span("aten::mm", 1100, 1500),
    span("aten::mm", 2100, 2300),
    frame("train.py(3): step", 1000, 1990),
    frame("/lib/torch/tensor.py(9): item", 1600, 1700),
    frame("<built-in method item of Tensor object>", 1601, 1699),
    span("aten::item", 1610, 1690),
    span("aten::_local_scalar_dense", 1620, 1680),
]
SLOW = [
    span("ProfilerStep#4", 1000, 3000, "user_annotation"),
    phase("head", 1000, 2800),
    span("aten::mm", 1100, 1500) | {"args": {"Input Dims": [[8, 4], [4, 2]]}},
    span("aten::sort", 1500, 2500) | {"args": {"Input Dims": [[8]]}},
    span("aten::item", 2600, 2700),
    span("aten::item", 2710, 2720),
]


def stored(folder: Path, name: str, events: Any) -> Path:
    path = folder / name
    content = json.dumps(events).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_a_stored_trace_has_phases_operators_and_reads_with_their_lines(tmp_path: Path) -> None:
    found = analyse_file(stored(tmp_path, "a.json.gz", {"traceEvents": FAST}))
    assert (found.steps, found.name) == (2, "a.json.gz")
    assert found.seconds_per_step == pytest.approx(1e-3)
    assert found.phases == pytest.approx({"head": 400e-6, "backward": 200e-6})
    (mm,) = (row for row in found.operators if row["name"] == "aten::mm")
    assert (mm["self_seconds"], mm["calls"]) == (pytest.approx(300e-6), 1)
    # The innermost frame outside torch.
    assert found.reads == [
        {"where": "train.py:3 in step", "what": "aten::item", "phase": "head", "calls": 0.5,
         "effect": "would synchronise on a GPU"}
    ]  # fmt: skip


def test_shapes_are_listed_where_they_were_recorded(tmp_path: Path) -> None:
    found = analyse_file(stored(tmp_path, "b.json", SLOW))  # a bare list is a trace, too
    assert [(row["name"], row["shapes"]) for row in found.shapes] == [
        ("aten::sort", "[[8]]"),
        ("aten::mm", "[[8, 4], [4, 2]]"),
    ]
    assert "[[8, 4], [4, 2]]" in found.to_text()
    assert {row["where"] for row in found.reads} == {"no call stack"}


def test_a_read_in_which_the_processor_waits_synchronises(tmp_path: Path) -> None:
    events = [
        *STEPS,
        span("aten::item", 1100, 1200),
        span("cudaStreamSynchronize", 1150, 1190, "cuda_runtime"),
        span("a_kernel", 1120, 1140, "kernel", thread=7),
        span("aten::item", 1300, 1400),
    ]
    found = analyse_file(stored(tmp_path, "c.json", events))
    assert {(row["effect"], row["calls"]) for row in found.reads} == {
        ("synchronises", 0.5),
        ("stays on the host", 0.5),
    }


def test_a_recording_without_steps_counts_as_one(tmp_path: Path) -> None:
    found = analyse_file(stored(tmp_path, "d.json", [span("aten::mm", 500, 700), span("aten::mm", 800, 900)]))
    assert (found.steps, found.marked) == (1, False)
    assert found.seconds_per_step == pytest.approx(400e-6)
    assert found.operators[0]["calls"] == 2
    assert "no step is marked, one of 400 µs" in found.to_text()


def test_a_comparison_names_what_was_added_first(tmp_path: Path) -> None:
    traces = [analyse_file(stored(tmp_path, f"{i}.json", x), top=None) for i, x in enumerate((FAST, SLOW))]
    gap = compare_traces(*traces)
    assert gap.added == pytest.approx(1e-3)
    first = gap.operators[0]
    assert (first["name"], first["added"], first["calls"]) == ("aten::sort", pytest.approx(1e-3), [0.0, 1.0])
    assert gap.phases[0]["name"] == "head"
    assert gap.phases[0]["added"] == pytest.approx(1.4e-3)
    assert {
        "name": "backward",
        "first": pytest.approx(200e-6),
        "second": 0.0,
        "added": pytest.approx(-200e-6),
    } in gap.phases
    assert [(row["name"], row["where"], row["added"]) for row in gap.reads] == [
        ("aten::item", "no call stack", 2.0),
        ("aten::item", "train.py:3 in step", -0.5),
    ]
    text = gap.to_text()
    assert "a step takes 2 ms instead of 1 ms, 2.00 ×" in text
    assert text.index("aten::sort") < text.index("aten::mm")
    assert json.loads(json.dumps(gap.to_json(), allow_nan=False))["added"] == pytest.approx(1e-3)


def test_equal_traces_differ_in_nothing(tmp_path: Path) -> None:
    found = analyse_file(stored(tmp_path, "e.json", FAST), top=None)
    gap = compare_traces(found, found)
    assert gap.added == 0
    assert all(row["added"] == 0 for row in [*gap.phases, *gap.operators, *gap.reads])
    assert "Operators" not in gap.to_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no trace"),
        (b"not json", "is no Chrome trace"),
        (b"\x1f\x8bbroken", "is no Chrome trace"),
        (b"{}", "is no Chrome trace"),
        (b"3", "is no Chrome trace"),
        (b"[]", "holds no operators of torch's profiler"),
        (b'[{"ph": "X", "name": "a page loads", "ts": 1, "dur": 2}]', "holds no operators"),
    ],
)
def test_what_is_no_trace_is_one_sentence(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_events(path)


def test_the_command_reads_one_trace_and_compares_several(tmp_path: Path) -> None:
    one = str(stored(tmp_path, "one.json", FAST))
    other = str(stored(tmp_path, "lr=3.json.gz", SLOW))  # an equals sign makes no setting of a file
    assert "aten::mm" in wildtype("profile", "trace", one).stdout
    assert json.loads(wildtype("profile", "trace", one, "--json").stdout)["steps"] == 2
    (gap,) = json.loads(wildtype("profile", "trace", one, other, "--json").stdout)
    assert gap["operators"][0]["name"] == "aten::sort"
    assert "aten::sort" in wildtype("profile", "trace", one, other).stdout
    both = wildtype("profile", "trace", one, "model.layers=1")
    assert_one_sentence(both, "one.json is a stored trace", "a setting of a run to trace")
    assert_one_sentence(wildtype("profile", "trace", str(tmp_path / "none.json")), "there is no trace")
