"""An estimate adds up, says what does not fit, and is right about what a real run leaves on disk."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.inference.predictor import load
from wildtype.models.dango.config import DangoConfig
from wildtype.profiling.estimate import (
    Probe,
    RunEstimate,
    data_bytes,
    estimate_errors,
    folder_bytes,
    log_bytes_per_step,
    mean_with_interval,
    state_bytes,
)
from wildtype.profiling.synthetic_problem import ProblemSizes, synthetic_step
from wildtype.training.saved_weights import BestCheckpoint

MIB = 2**20
PROBE = Probe(
    step_seconds=[9.0, 5.0, 3.0, 1.0, 2.0, 3.0],
    steps_per_epoch=10,
    memory_mib=500.0,
    held_mib=300.0,
    checkpoint_bytes=8 * MIB,
    resume_bytes=32 * MIB,
    scalars=("loss", "loss/data"),
    validation_step_seconds=(0.5, 1.5),
    validation_steps=4,
    epoch_seconds=6.0,
    data_bytes=MIB,
)
MACHINE = {"memory_available_mib": 1000.0, "disk_free_bytes": 1000 * MIB, "threads": 2}
ESTIMATE = RunEstimate.from_probe(PROBE, epochs=3, **MACHINE)


def test_seconds_add_up_without_the_first_steps() -> None:
    assert ESTIMATE.seconds_per_step == 2.0
    assert ESTIMATE.validation_seconds == 4.0
    assert ESTIMATE.seconds_per_epoch == 10 * 2.0 + 4.0 + 6.0
    assert ESTIMATE.total_seconds == 3 * 30.0
    low, high = ESTIMATE.seconds_per_step_interval
    assert low == 0.0
    assert high == pytest.approx(2 + 4.302653 / 3**0.5)
    assert ESTIMATE.seconds_per_epoch_interval == pytest.approx((10 * low + 10, 10 * high + 10))
    assert RunEstimate.from_probe(PROBE, epochs=3, members=2, **MACHINE).total_seconds == 180.0
    assert RunEstimate.from_probe(PROBE, epochs=3, warm_up=0, **MACHINE).seconds_per_step == 23 / 6


def test_the_interval_is_students() -> None:
    values = [2.0, 2.5, 1.5, 2.2, 1.9]
    mean, interval = mean_with_interval(values)
    right = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert mean == pytest.approx(np.mean(values))
    assert interval == pytest.approx(right)
    assert mean_with_interval([1.0, 9.0])[1][0] == 0.0  # no step takes less than nothing


def test_memory_is_that_of_a_step_or_of_saving_the_state() -> None:
    assert ESTIMATE.memory_mib == 500 + 8
    heavy = replace(PROBE, held_mib=490.0)
    assert RunEstimate.from_probe(heavy, epochs=1, **MACHINE).memory_mib == 490 + 8 + 32
    assert RunEstimate.from_probe(PROBE, epochs=1, members=3, **MACHINE).memory_mib == 500 + 3 * 8


def test_disk_adds_up() -> None:
    logs = math.ceil(3 * 10 * log_bytes_per_step(PROBE.scalars))
    assert ESTIMATE.disk_bytes == 8 * MIB + 32 * MIB + MIB + logs
    assert ESTIMATE.disk_peak_bytes == 2 * 32 * MIB + logs  # before there is a checkpoint
    small = replace(PROBE, resume_bytes=MIB)
    assert RunEstimate.from_probe(small, epochs=3, **MACHINE).disk_peak_bytes == 10 * MIB + logs
    two = RunEstimate.from_probe(PROBE, epochs=3, members=2, **MACHINE)
    assert two.disk_bytes == pytest.approx(2 * ESTIMATE.disk_bytes - MIB, abs=1)


def test_a_probe_that_tells_too_little_is_refused() -> None:
    with pytest.raises(ConfigError, match="a probe of 4 steps, of which the first 3 .* at least 5 steps"):
        RunEstimate.from_probe(replace(PROBE, step_seconds=[1.0] * 4), epochs=1, **MACHINE)
    with pytest.raises(ConfigError, match="validates on 4 batches per epoch and the probe timed none"):
        RunEstimate.from_probe(replace(PROBE, validation_step_seconds=()), epochs=1, **MACHINE)
    without = replace(PROBE, validation_step_seconds=(), validation_steps=0)
    assert RunEstimate.from_probe(without, epochs=1, **MACHINE).validation_seconds == 0.0


def test_what_does_not_fit_is_said() -> None:
    assert ESTIMATE.problems() == []
    (memory,) = replace(ESTIMATE, memory_available_mib=507.0).problems()
    assert "508.0 MiB of memory and may have 507.0 MiB: lower training.batch_size" in memory
    (disk,) = replace(ESTIMATE, disk_free_bytes=50 * MIB).problems()
    assert "64.0 MiB of disk and may have 50.0 MiB: free some space, or choose another run.folder" in disk
    device = replace(ESTIMATE, device_mib=90.0, device_available_mib=80.0)
    assert len(device.problems()) == 1
    assert "90.0 MiB of GPU memory" in device.problems()[0]
    assert replace(device, device_available_mib=None).problems() == []
    record = json.loads(json.dumps(finite(device.to_json())))
    assert record["problems"] == device.problems()
    assert record["seconds_per_epoch"] == 30.0
    assert record["total_seconds"] == 90.0


def test_errors_are_relative_to_what_was_measured() -> None:
    measured = {"seconds_per_epoch": 20.0, "memory_mib": 1016.0, "disk_bytes": None, "device_mib": 4.0}
    assert estimate_errors(ESTIMATE, measured) == {"seconds_per_epoch": 0.5, "memory_mib": -0.5}
    with pytest.raises(ConfigError, match="says nothing about 'seconds'; it knows: seconds_per_epoch"):
        estimate_errors(ESTIMATE, {"seconds": 1.0})


def test_the_disk_of_a_real_run_is_foreseen(tiny_run: Path) -> None:
    checkpoint = load(tiny_run).checkpoint
    weights, resume = state_bytes(checkpoint.model)
    assert weights == pytest.approx((tiny_run / "checkpoint/model.safetensors").stat().st_size, rel=0.03)
    assert resume == pytest.approx((tiny_run / "resume/state.safetensors").stat().st_size, rel=0.03)
    stored = [tiny_run / "checkpoint" / name for name in ("organism.safetensors", "known.npz")]
    overhead = 300 * 18  # of the entries of an npz file
    data = data_bytes(checkpoint.organism, checkpoint.known)
    assert 0 <= sum(path.stat().st_size for path in stored) - data < overhead
    with open(tiny_run / "logs/metrics.csv", newline="") as handle:
        columns = next(csv.reader(handle))
    per_epoch = ("epoch", "step", "train/", "validation/")
    scalars = [name for name in columns if not name.startswith(per_epoch)]
    assert {"loss", "learning_rate", "gradient_norm", "memory_mib"} < set(scalars)
    steps = json.loads((tiny_run / "resume/state.json").read_text())["step"]
    assert log_bytes_per_step(scalars) * steps == pytest.approx(folder_bytes(tiny_run / "logs"), rel=0.25)


def test_the_resume_state_of_another_model_is_foreseen(tmp_path: Path) -> None:
    made = synthetic_step(DangoConfig(width=16), ProblemSizes(genes=60, relations=2, edges=200, batch_size=3))
    made.step()
    keeper = BestCheckpoint(tmp_path / "resume", 0, "")
    keeper.best = made.model.state_dict()
    task = SimpleNamespace(model=made.model, step=1)
    keeper._save(task, keeper._state(task, made.optimizer))
    assert state_bytes(made.model)[1] == pytest.approx(
        (tmp_path / "resume/state.safetensors").stat().st_size, rel=0.05
    )
