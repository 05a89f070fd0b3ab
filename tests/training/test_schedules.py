"""The learning rate of every step, by one setting."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.test_fit import Killed, fit, kill_after
from wildtype.errors import ConfigError
from wildtype.training.config import TrainingConfig
from wildtype.training.schedules import Schedule, cosine, plateaus


def rates(schedule: str, steps: int, scores: list[float] = [], **more: object) -> list[float]:  # noqa: B006
    config = TrainingConfig(epochs=1, learning_rate=2.0, warmup=0.1, schedule=schedule, **more)  # type: ignore[arg-type]
    return [Schedule(config, steps).rate(step, scores) for step in range(steps)]


def test_all_schedules_warm_up_alike_and_then_differ() -> None:
    found = {name: rates(name, 100) for name in ("cosine", "plateau", "constant")}
    rising = pytest.approx([0.2 * (i + 1) for i in range(10)])
    assert all(of[:10] == rising for of in found.values())
    assert found["cosine"] == [cosine(step, [100], 2.0, 0.1) for step in range(100)]
    assert found["constant"][10:] == found["plateau"][10:] == [2.0] * 90


def test_the_cosine_is_the_default() -> None:
    assert TrainingConfig().schedule == "cosine"


@settings(max_examples=200)
@given(st.lists(st.integers(0, 6).map(float), max_size=40), st.integers(1, 5))
def test_plateaus_are_those_of_torch(scores: list[float], patience: int) -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    # Torch lets `patience` epochs pass, and acts at the next.
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", factor=0.5, patience=patience - 1, threshold=0, eps=0
    )
    for seen, score in enumerate(scores, 1):
        theirs.step(score)
        assert optimizer.param_groups[0]["lr"] == 0.5 ** plateaus(scores[:seen], patience)


def test_a_plateau_multiplies_the_rate() -> None:
    more = {"plateau_patience": 2, "plateau_factor": 0.25}
    assert rates("plateau", 20, [0.1, 0.3], **more)[-1] == 2.0
    assert rates("plateau", 20, [0.1, 0.3, 0.2, 0.3], **more)[-1] == 0.5
    assert rates("plateau", 20, [0.1, 0.3, 0.2, 0.3, 0.1, 0.1], **more)[-1] == 0.125


def logged(folder: Path) -> list[float]:
    with open(folder / "logs" / "metrics.csv") as handle:
        return [float(row["learning_rate"]) for row in csv.DictReader(handle) if row["loss"]]


def test_a_resumed_run_has_the_plateaus_of_one_that_was_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The peak is so high that scores go up and down, and falls at every epoch that is not better.
    config = TrainingConfig(
        epochs=6, batch_size=64, patience=0, deterministic=True, device="cpu", learning_rate=0.3,
        schedule="plateau", plateau_patience=1, plateau_factor=0.5,
    )  # fmt: skip
    _, report = fit(tmp_path / "whole", config)
    with monkeypatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            fit(tmp_path / "killed", config)
    _, again = fit(tmp_path / "killed", config, resume=True)
    assert again.scores == report.scores
    assert len(logged(tmp_path / "whole")) == report.steps
    assert logged(tmp_path / "killed") == logged(tmp_path / "whole")
    falls = plateaus(report.scores[:-1], 1)
    assert falls > 0
    assert logged(tmp_path / "whole")[-1] == pytest.approx(0.3 * 0.5**falls)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"schedule": "linear"}, "training.schedule=.*linear.*: choose cosine, plateau, constant"),
        ({"schedule": "plateau", "snapshots": 2}, "plateau has no cycles, and training.snapshots=2"),
        (
            {"schedule": "constant", "cycles": 3},
            "training.cycles=3 needs them: take training.schedule=cosine",
        ),
        ({"plateau_factor": 1.0}, "training.plateau_factor=1"),
        ({"plateau_patience": 0}, "training.plateau_patience=0"),
        ({"trace_with": ["shapes"]}, "records nothing: give training.trace_step"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**config).check()  # type: ignore[arg-type]
