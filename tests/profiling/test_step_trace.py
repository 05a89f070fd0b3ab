"""A step of a training under torch's profiler, where the training runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_fit import CONFIG, fit
from wildtype.errors import ConfigError
from wildtype.phases import current
from wildtype.profiling.step_trace import StepTrace
from wildtype.profiling.trace_analysis import SCALAR_READ
from wildtype.profiling.trace_files import analyse_file, read_events
from wildtype.training.config import TrainingConfig

STEPS = 4
"""Of an epoch of `fit`."""


def named(path: Path, mark: str) -> list[dict[str, Any]]:
    return [dict(e) for e in read_events(path) if str(e.get("name", "")).startswith(mark) and e["ph"] == "X"]


def test_one_step_is_recorded_whole(tmp_path: Path) -> None:
    """The first of all, one with a step before it, and one after a validation."""
    plain, other = fit(tmp_path / "plain")
    products = []
    for step in (1, 2, STEPS + 1):
        model, report = fit(
            tmp_path / str(step), callbacks=[StepTrace(step, tmp_path / str(step) / "traces")]
        )
        (file,) = (tmp_path / str(step) / "traces").iterdir()
        assert file.name == f"step-{step}.json.gz"
        assert len(named(file, "ProfilerStep#")) == 1
        phases = {e["name"].removeprefix("phase: ") for e in named(file, "phase: ")}
        assert {"wait for loader", "encode wild type", "head", "loss", "backward", "optimizer"} <= phases
        found = analyse_file(file, top=None)
        assert (found.steps, found.marked) == (1, True)
        assert sum(found.phases.values()) <= found.seconds_per_step
        calls = {row["name"]: row["calls"] for row in found.operators}
        assert "aten::_fused_adamw_" in calls
        products.append({name: count for name, count in calls.items() if name.endswith("mm")})
        # Watching changes nothing.
        assert current() is None
        assert report.scores == other.scores
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))
    # A step like the others: a validation inside it would multiply more.
    assert products[0]
    assert products[0] == products[1] == products[2]


def test_shapes_and_stacks_are_recorded_if_asked(tmp_path: Path) -> None:
    config = TrainingConfig(**{**vars(CONFIG), "epochs": 1})
    fit(tmp_path, config, callbacks=[StepTrace(2, tmp_path / "with", ["shapes", "stacks"])])
    fit(tmp_path / "other", config, callbacks=[StepTrace(2, tmp_path / "without")])
    rich, plain = (analyse_file(tmp_path / name / "step-2.json.gz", top=None) for name in ("with", "without"))
    assert plain.shapes == []
    products = [row["shapes"] for row in rich.shapes if row["name"] in ("aten::mm", "aten::addmm")]
    assert any("16" in shapes for shapes in products)  # the width of the model
    assert {row["where"] for row in plain.reads} <= {"no call stack"}
    reads = [row["where"] for row in rich.reads if row["what"] == SCALAR_READ]
    assert all(".py:" in where for where in reads)


def test_a_step_that_never_comes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="training.trace_step=17: the run has 16 steps"):
        fit(tmp_path, callbacks=[StepTrace(17, tmp_path / "traces")])
    assert not (tmp_path / "traces").exists()


def test_training_that_ends_before_the_step_says_so(tmp_path: Path) -> None:
    config = TrainingConfig(
        epochs=50, batch_size=64, patience=1, learning_rate=1e-12, device="cpu", deterministic=True
    )
    with pytest.warns(UserWarning, match="before training.trace_step=200: there is no trace"):
        fit(tmp_path, config, callbacks=[StepTrace(200, tmp_path / "traces")])


def test_an_error_leaves_no_profiler_running(tmp_path: Path) -> None:
    class Broken(StepTrace):
        def on_train_batch_end(self, *arguments: Any) -> None:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        fit(tmp_path, callbacks=[Broken(1, tmp_path / "traces")])
    assert current() is None
    fit(
        tmp_path / "again",
        TrainingConfig(**{**vars(CONFIG), "epochs": 1}),
        callbacks=[StepTrace(1, tmp_path / "traces")],
    )
    assert (tmp_path / "traces" / "step-1.json.gz").is_file()
