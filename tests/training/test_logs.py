"""What a training logs: numbers of every step, scores of every epoch, and the loggers that take them."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.training.test_fit import CONFIG, Killed, fit, kill_after, tables
from wildtype.datasets.scaling import LabelScaler
from wildtype.errors import ConfigError
from wildtype.models.interface import Output, Prediction
from wildtype.models.records import GeneProfile
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.training import progress, validation
from wildtype.training.config import TrainingConfig
from wildtype.training.epoch_table import EpochTable
from wildtype.training.loggers import TensorBoard, closing_logs, make_loggers
from wildtype.training.step_log import OF_MACHINE, StepLog
from wildtype.training.validation import PhenotypeScore, ScoredRows
from wildtype.training.world import World

PER_STEP = ["learning_rate", "gradient_norm", *OF_MACHINE]


def steps_of(folder: Path) -> pd.DataFrame:
    log = pd.read_csv(folder / "logs" / "metrics.csv")
    return log[log["loss"].notna()].reset_index(drop=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    fit(folder, scaler=LabelScaler(np.array([1.0]), np.array([0.5]), np.array([200])))
    return folder


def test_every_step_logs_its_rate_norm_speed_loading_and_memory(whole: Path) -> None:
    log = steps_of(whole)
    assert len(log) == 16
    assert np.isfinite(log[PER_STEP]).all().all()
    assert (log[["learning_rate", "gradient_norm", "mutants_per_second", "memory_mib"]] > 0).all().all()
    assert log["loading_share"].between(0, 1).all()


def test_speed_and_loading_are_those_of_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that ticks once whenever it is read: before and after a batch is fetched, and at the step's end.
    ticks = itertools.count()
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    fit(tmp_path, TrainingConfig(**{**vars(CONFIG), "epochs": 2}))
    log = steps_of(tmp_path)
    assert list(log["mutants_per_second"]) == pytest.approx([n / 3 for n in (64, 64, 64, 8)] * 2)
    assert list(log["loading_share"]) == pytest.approx([1 / 3] * 8)


def test_the_norm_is_that_of_the_gradient_before_it_is_clipped(tmp_path: Path, whole: Path) -> None:
    one, other = (
        TrainingConfig(**{**vars(CONFIG), "clip": 1e-3}),
        TrainingConfig(**{**vars(CONFIG), "clip": 0.0}),
    )
    fit(tmp_path / "clipped", one)
    fit(tmp_path / "not", other)
    first = [steps_of(folder)["gradient_norm"][0] for folder in (whole, tmp_path / "clipped")]
    assert first[0] == first[1] > 1e-3
    assert "gradient_norm" not in steps_of(tmp_path / "not")  # nothing computes it there


def test_a_gradient_norm_is_that_of_all_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wildtype.training.task import FitTask

    seen = []
    clip = FitTask.configure_gradient_clipping

    def watch(self: FitTask, *arguments: object, **named: object) -> None:
        squares = [(p.grad.double() ** 2).sum() for p in self.parameters() if p.grad is not None]
        seen.append(float(torch.stack(squares).sum().sqrt()))
        clip(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(FitTask, "configure_gradient_clipping", watch)
    fit(tmp_path, TrainingConfig(**{**vars(CONFIG), "epochs": 1}))
    np.testing.assert_allclose(steps_of(tmp_path)["gradient_norm"], seen, rtol=1e-5)


def test_scores_of_training_and_validation_rows_are_logged_each_epoch_in_units(whole: Path) -> None:
    table = pd.read_csv(whole / "logs" / "epochs.csv")
    assert list(table["epoch"]) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert list(table["rows"]) == ["train", "validation"] * 4
    assert list(table["count"]) == [200, 76] * 4
    log = pd.read_csv(whole / "logs" / "metrics.csv")
    epochs = log[log["validation/pearson"].notna()]
    for name in ("train", "validation"):
        own = table[table["rows"] == name]
        np.testing.assert_allclose(own["pearson"], epochs[f"{name}/pearson"], rtol=1e-5)
        # Labels were scaled by 0.5: errors in their unit are half of those of scaled labels.
        np.testing.assert_allclose(own["rmse"], 0.5 * epochs[f"{name}/error"] ** 0.5, rtol=1e-5)
        assert (own["mae"] < own["rmse"]).all()


def test_training_scores_are_of_the_predictions_that_the_steps_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    keep = ScoredRows.keep

    def watch(self: ScoredRows, prediction: Prediction, batch: MutantBatch) -> None:
        seen.append((prediction.mean.detach()[:, 0].clone(), batch.value.clone()))
        keep(self, prediction, batch)

    monkeypatch.setattr(ScoredRows, "keep", watch)
    fit(tmp_path, TrainingConfig(**{**vars(CONFIG), "epochs": 1, "gradient_accumulation_steps": 2}))
    said, truth = (torch.cat(part).double().numpy() for part in zip(*seen, strict=True))
    (row,) = pd.read_csv(tmp_path / "logs" / "epochs.csv").query("rows == 'train'").to_dict("records")
    assert row["count"] == len(said) == 200
    assert row["pearson"] == pytest.approx(np.corrcoef(said, truth)[0, 1], rel=1e-5)
    assert row["mae"] == pytest.approx(np.abs(said - truth).mean(), rel=1e-5)


def test_the_first_batches_of_a_long_epoch_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MOST_KEPT", 25)
    rows = ScoredRows()
    table = MutantTable.from_sets([[i] for i in range(50)], value=np.arange(50.0))
    for start in range(0, 50, 10):
        batch = MutantBatch.from_table(table.take(np.arange(start, start + 10)))
        rows.keep(Prediction(batch.value[:, None].clone().requires_grad_()), batch)
    assert all(not len(batch.gene) and batch.evidence is None for _, batch, _ in rows._kept)
    rows.add_kept()
    (found,) = rows.by_phenotype()
    assert found.count == 20
    assert rows.in_units()[0][1].tolist() == [float(i) for i in range(30, 50)]
    rows.add_kept()
    assert rows.by_phenotype()[0].count == 20


def test_metrics_are_their_definitions_in_units() -> None:
    draw = np.random.default_rng(0)
    truth, said = draw.normal(size=(2, 40))
    calls, logits = (draw.random(40) < 0.4).astype(float), draw.normal(size=40)
    outputs = [Output("growth"), Output("call", "class"), Output("expression", "gene")]
    scaler = LabelScaler(np.array([2.0, 0.0, 1.0]), np.array([-3.0, 1.0, 0.1]), np.array([40, 40, 40]))
    rows = ScoredRows(outputs)
    for p, (a, b) in enumerate([(said, truth), (logits, calls)]):
        rows.add_rows(torch.tensor(a), torch.tensor(b), torch.full((40,), p))
    a, b = draw.normal(size=(2, 6, 5))
    b[0, 0] = np.nan
    rows.add_profiles(2, torch.tensor(a), torch.tensor(b))
    growth, call, expression = rows.by_phenotype(scaler)
    assert (growth.phenotype, growth.count) == ("growth", 40)
    assert growth.metrics == pytest.approx(
        {
            "pearson": np.corrcoef(said, truth)[0, 1],
            "rmse": 3 * np.sqrt(np.mean((said - truth) ** 2)),
            "mae": 3 * np.mean(np.abs(said - truth)),
        }
    )
    q = 1 / (1 + np.exp(-logits))
    assert call.metrics["log_loss"] == pytest.approx(
        -np.mean(calls * np.log(q) + (1 - calls) * np.log(1 - q))
    )
    assert expression.count == 29
    there = ~np.isnan(b)
    assert expression.metrics["rmse"] == pytest.approx(0.1 * np.sqrt(np.mean((a - b)[there] ** 2)))
    original = rows.in_units(scaler)
    np.testing.assert_allclose(original[0], (2 - 3 * said, 2 - 3 * truth))
    # The same from probabilities, as a finished model gives them.
    finished = ScoredRows(outputs, probabilities=True)
    finished.add_rows(torch.tensor(q), torch.tensor(calls), torch.full((40,), 1))
    assert finished.by_phenotype()[0].metrics == pytest.approx(call.metrics)


def test_kept_profiles_hold_no_graph() -> None:
    factors = [torch.randn(3, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True)]
    profile = GeneProfile(*factors, torch.zeros(3, requires_grad=True), torch.arange(3), torch.arange(4))
    rows = ScoredRows([Output("expression", "gene")])
    rows.keep(
        Prediction(torch.zeros(3, 1), {0: profile}), MutantBatch.from_table(tables()[0].take(np.arange(3)))
    )
    kept = rows._kept[0][0]
    assert not any(
        x.requires_grad for x in (kept.profiles[0].mutants, kept.profiles[0].genes, kept.profiles[0].own)
    )


def test_a_resumed_run_has_the_logs_of_one_that_was_never_stopped(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaler = LabelScaler(np.array([1.0]), np.array([0.5]), np.array([200]))
    with monkeypatch.context() as patched:
        kill_after(patched, 2)
        with pytest.raises(Killed):
            fit(tmp_path, scaler=scaler)
    # The rows of an epoch that was not finished are not kept.
    EpochTable(tmp_path / "logs").add(3, "train", [PhenotypeScore("0", 1, {"rmse": 9.0})])
    fit(tmp_path, scaler=scaler, resume=True)
    assert (tmp_path / "logs" / "epochs.csv").read_text() == (whole / "logs" / "epochs.csv").read_text()
    a, b = (
        pd.read_csv(folder / "logs" / "metrics.csv").drop(columns=[*OF_MACHINE])
        for folder in (whole, tmp_path)
    )
    pd.testing.assert_frame_equal(a, b[a.columns])


def test_tensorboard_has_every_number_of_a_step(tmp_path: Path) -> None:
    logger = TensorBoard(tmp_path, name="logs", version="")
    with closing_logs([logger]):
        log = StepLog([logger])
        for step in range(3):
            sums = World().total_later(torch.tensor(0.5 * step))
            log.begin(step, 0, sums, lambda total: {"loss": total}, learning_rate=1e-3)
            log.add(gradient_norm=torch.tensor(2.0))
        log.flush()
    events = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"loss", "learning_rate", "gradient_norm", "epoch"}
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_wandb_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    with pytest.raises(ConfigError, match="wildtype\\[wandb\\]"):
        make_loggers(tmp_path, TrainingConfig(wandb=True))


def test_nan_is_no_row_of_a_score() -> None:
    rows = ScoredRows()
    assert rows.by_phenotype() == []
    assert rows.result() == (0.0, 0.0)
    rows.add_rows(torch.ones(1), torch.ones(1), torch.zeros(1, dtype=torch.int64))
    (found,) = rows.by_phenotype()
    assert math.isnan(found.metrics["pearson"])
    assert found.metrics["rmse"] == 0.0
