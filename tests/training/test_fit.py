from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.training.config import TrainingConfig
from wildtype.training.fit import FitReport, fit_model
from wildtype.training.schedules import cosine

CONFIG = TrainingConfig(epochs=4, batch_size=64, patience=0, deterministic=True, device="cpu")


def tables() -> tuple[MutantTable, MutantTable]:
    dataset = tiny_dataset().select(["epsilon"])
    value = dataset.table.value
    value[:] = (value - value.mean()) / value.std()
    return dataset.table.take(np.arange(200)), dataset.table.take(np.arange(200, 276))


def fit(
    folder: Path, config: TrainingConfig = CONFIG, **arguments: object
) -> tuple[CellTransformer, FitReport]:
    organism = tiny_dataset().organism
    torch.manual_seed(0)
    model = CellTransformer(
        CellTransformerConfig(width=16, layers=1, heads=4),
        genes=24,
        features=0,
        phenotypes=1,
        relations=list(organism.graphs),
    )
    tensors = OrganismTensors(torch.zeros(24, 0), model.priors(organism.graphs))
    report = fit_model(model, tensors, *tables(), config, folder=folder, show=False, **arguments)  # type: ignore[arg-type]
    return model, report


class Killed(Exception):
    """Stands for a process that dies."""


def kill_after(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    from wildtype.training import saved_weights

    save = saved_weights.BestCheckpoint._save

    def save_and_die(self: saved_weights.BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        if self.epoch == epochs:
            raise Killed

    monkeypatch.setattr(saved_weights.BestCheckpoint, "_save", save_and_die)


def test_resumed_run_is_bit_identical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, report = fit(tmp_path / "whole")
    with monkeypatch.context() as patched:
        kill_after(patched, 2)
        with pytest.raises(Killed):
            fit(tmp_path / "killed")
    resumed, again = fit(tmp_path / "killed", resume=True)
    assert again.scores == report.scores
    assert (again.best_epoch, again.steps) == (report.best_epoch, report.steps)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_resuming_a_finished_run_trains_no_further(tmp_path: Path) -> None:
    _, report = fit(tmp_path)
    _, again = fit(tmp_path, resume=True)
    assert (again.steps, again.epochs, again.scores) == (report.steps, report.epochs, report.scores)


def test_every_term_and_its_share_is_logged_each_step(tmp_path: Path) -> None:
    _, report = fit(tmp_path)
    with open(tmp_path / "logs" / "metrics.csv") as handle:
        rows = [row for row in csv.DictReader(handle) if row["loss"]]
    assert len(rows) == report.steps == 16
    for row in rows:
        shares = [float(row[f"share/{name}"]) for name in ("data", "prior/physical", "prior/regulatory")]
        assert sum(shares) == pytest.approx(1.0, abs=1e-5)
        priors = float(row["loss/prior/physical"]) + float(row["loss/prior/regulatory"])
        assert float(row["loss/data"]) + 0.1 * priors == pytest.approx(float(row["loss"]), rel=1e-5)


def test_best_weights_are_kept(tmp_path: Path) -> None:
    model, report = fit(tmp_path, TrainingConfig(epochs=6, batch_size=64, patience=0, device="cpu"))
    assert report.best_score == max(report.scores)
    assert report.scores[report.best_epoch - 1] == report.best_score
    from wildtype.mutants.batch import MutantBatch

    validation = tables()[1]
    predicted = model(
        model.encode(OrganismTensors(torch.zeros(24, 0))), MutantBatch.from_table(validation)
    ).mean
    r = np.corrcoef(predicted.detach().numpy()[:, 0], validation.value)[0, 1]
    assert r == pytest.approx(report.best_score, abs=1e-4)


def test_patience_stops_early(tmp_path: Path) -> None:
    config = TrainingConfig(epochs=50, batch_size=64, patience=2, learning_rate=1e-12, device="cpu")
    _, report = fit(tmp_path, config)
    assert report.epochs < 50
    assert report.epochs - report.best_epoch == 2


@pytest.mark.parametrize("damage", ["fingerprint", "flip", "missing", "json"])
def test_unfit_state_is_refused(tmp_path: Path, damage: str) -> None:
    fit(tmp_path, fingerprint="a")
    weights, record = tmp_path / "resume" / "state.safetensors", tmp_path / "resume" / "state.json"
    if damage == "flip":
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
    elif damage == "missing":
        weights.unlink()
    elif damage == "json":
        record.write_text(record.read_text()[:40])
    with pytest.raises(CheckpointError, match="train again"):
        fit(tmp_path, fingerprint="b" if damage == "fingerprint" else "a", resume=True)


def test_state_is_plain_json_and_safetensors(tmp_path: Path) -> None:
    fit(tmp_path)
    assert sorted(path.name for path in (tmp_path / "resume").iterdir()) == [
        "state.json",
        "state.safetensors",
    ]
    assert json.loads((tmp_path / "resume" / "state.json").read_text())["epoch"] == 4


def test_learning_rate_rises_then_falls_to_zero() -> None:
    rates = [cosine(step, [100], 1.0, 0.1) for step in range(100)]
    assert rates[9] == max(rates) == 1.0
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.01


@pytest.mark.parametrize(
    "settings", [{"epochs": 0}, {"precision": "fp8"}, {"device": "tpu"}, {"warmup": 1.0}]
)
def test_senseless_settings_are_refused(tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="training"):
        fit(tmp_path, TrainingConfig(**settings))  # type: ignore[arg-type]


def test_overfits_32_mutants(tmp_path: Path) -> None:
    train = tables()[0].take(np.arange(32))
    torch.manual_seed(0)
    model = CellTransformer(
        CellTransformerConfig(width=32, layers=1, heads=4, dropout=0.0), genes=24, features=0, phenotypes=1
    )
    config = TrainingConfig(
        epochs=10, batch_size=32, patience=0, weight_decay=0.0, learning_rate=3e-3, device="cpu"
    )
    often = train.take(np.tile(np.arange(32), 25))  # few epochs: each is validated and kept on disk
    report = fit_model(
        model, OrganismTensors(torch.zeros(24, 0)), often, train, config, folder=tmp_path, show=False
    )
    assert report.steps == 250
    assert report.best_score > 0.99
