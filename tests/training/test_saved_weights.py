from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.test_fit import CONFIG, Killed, fit, kill_after
from wildtype.errors import CheckpointError, ConfigError
from wildtype.training.config import TrainingConfig
from wildtype.training.saved_weights import read_snapshots
from wildtype.training.schedules import cosine

TWO = replace(CONFIG, epochs=3, snapshots=2, cycles=3, patience=1)


def test_cycles_are_whole_epochs_and_the_last_ends_are_members() -> None:
    five = replace(TWO, epochs=5)
    assert five.cycle_ends == [2, 3, 5]
    assert five.snapshot_epochs == [3, 5]
    assert TrainingConfig(epochs=30, snapshots=5).snapshot_epochs == [6, 12, 18, 24, 30]
    assert (CONFIG.cycle_ends, CONFIG.snapshot_epochs) == ([4], [])


def test_rate_falls_to_zero_in_every_cycle() -> None:
    rates = [cosine(step, [20, 40, 60], 0.5, 0.1) for step in range(60)]
    assert rates[:6] == pytest.approx([0.5 * (i + 1) / 6 for i in range(6)])
    for start in (20, 40):
        expected = [0.25 * (math.cos(math.pi * t / 20) + 1) for t in range(20)]
        assert rates[start : start + 20] == pytest.approx(expected)
    assert all(rates[end] < 0.01 for end in (19, 39, 59))


def test_long_warm_up_leaves_half_of_the_first_cycle() -> None:
    rates = [cosine(step, [10, 100], 1.0, 0.5) for step in range(100)]
    assert rates[4] == max(rates[:10]) == 1.0
    assert rates[9] < 0.1


def test_snapshots_are_the_weights_at_the_ends_and_survive_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, report = fit(tmp_path / "whole", TWO)
    assert report.snapshots == (2, 3)
    second, third = read_snapshots(tmp_path / "whole", TWO)
    state = load_file(tmp_path / "whole" / "resume" / "state.safetensors")
    for name in third:
        assert torch.equal(state[f"model/{name}"], third[name]), name
    assert any(not torch.equal(second[name], third[name]) for name in third)
    with monkeypatch.context() as patched:
        kill_after(patched, 2)
        with pytest.raises(Killed):
            fit(tmp_path / "killed", TWO)
    fit(tmp_path / "killed", TWO, resume=True)
    for one, other in zip((second, third), read_snapshots(tmp_path / "killed", TWO), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_patience_does_not_cut_cycles(tmp_path: Path) -> None:
    assert fit(tmp_path, replace(TWO, learning_rate=1e-12))[1].epochs == 3


def test_missing_snapshot_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="epoch-2.safetensors' is missing"):
        read_snapshots(tmp_path, TWO)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"snapshots": -1}, "snapshots=-1"),
        ({"snapshots": 3, "cycles": 2}, "cycles=2"),
        ({"snapshots": 9, "epochs": 5}, "9 cycles"),
        ({"snapshots": 2, "steps": 10}, "cut cycles short"),
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**settings).check()  # type: ignore[arg-type]
