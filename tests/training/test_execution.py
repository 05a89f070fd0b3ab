"""Execution modes and phases of a real training loop."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from tests.tiny import tiny_dataset
from tests.training.test_fit import CONFIG, fit, tables
from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.training.config import TrainingConfig
from wildtype.training.fit import fit_model
from wildtype.training.phase_recorder import NONE, PhaseRecorder

LOADING = {"wait for loader", "fetch", "collate", "host to device", "logging", "callbacks", NONE}
FORWARD = LOADING | {"encode wild type", "graph prior", "head", "loss"}
EXPECTED = {
    "data_only": LOADING | {"loss", "backward", "optimizer"},
    "forward": FORWARD | {"optimizer"},
    "forward_backward": FORWARD | {"backward", "optimizer"},
    "training": FORWARD | {"backward", "optimizer"},
}


@pytest.mark.parametrize("execution", EXPECTED)
def test_every_mode_reports_its_phases_and_does_no_more_than_it_says(tmp_path: Path, execution: str) -> None:
    recorder = PhaseRecorder(warm_up=0)
    before, _ = fit(tmp_path / "before", TrainingConfig(epochs=1, device="cpu"), execution="data_only")
    model, report = fit(tmp_path, CONFIG, execution=execution, recorder=recorder)
    assert set(recorder.totals()) == EXPECTED[execution]
    assert recorder.steps == report.steps == 16
    assert recorder.totals()[NONE] < sum(recorder.totals().values())
    same = all(
        torch.equal(a, b)
        for a, b in zip(before.state_dict().values(), model.state_dict().values(), strict=True)
    )
    assert same == (execution != "training")
    assert bool(report.scores) == (execution == "training")
    assert ("validation" in recorder.outside) == (execution == "training")


def test_data_only_works_backward_and_steps_on_its_own_number(tmp_path: Path) -> None:
    model, _ = fit(tmp_path, CONFIG, execution="data_only")
    assert all(p.grad is None for p in model.parameters())
    with open(tmp_path / "logs" / "metrics.csv") as handle:
        losses = [float(row["loss"]) for row in csv.DictReader(handle)]
    assert losses[0] == 0.0
    assert any(losses[1:])


def test_an_unknown_mode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="execution='backward'; known: training, forward_backward"):
        fit(tmp_path, execution="backward")


def test_several_processes_of_srun_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    with pytest.raises(ConfigError, match="srun started 3 processes, and a run trains in one"):
        fit(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_steps_are_limited_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    _, report = fit(tmp_path, TrainingConfig(epochs=4, batch_size=64, steps=6, patience=0, device="cpu"))
    assert report.steps == 6
    with pytest.raises(ConfigError, match="training.steps=-1"):
        fit(tmp_path, TrainingConfig(steps=-1))


def test_epochs_of_one_batch(tmp_path: Path) -> None:
    recorder = PhaseRecorder(warm_up=1)
    config = TrainingConfig(epochs=3, batch_size=500, patience=0, device="cpu")
    _, report = fit(tmp_path, config, recorder=recorder)
    assert (report.steps, recorder.begun, recorder.steps) == (3, 3, 2)


class Plot(Callback):
    """Draws something after every so many steps; never, if that is 0."""

    def __init__(self, every: int) -> None:
        self.every, self.drawn = every, 0

    def on_train_batch_end(self, *arguments: object) -> None:
        if self.every:
            self.drawn += 1


@pytest.mark.parametrize("every", [0, 1])
def test_further_callbacks_are_part_of_the_run_and_of_its_phases(tmp_path: Path, every: int) -> None:
    plot = Plot(every)
    fit(tmp_path, CONFIG, callbacks=[plot])
    assert plot.drawn == 16 * every


def test_a_model_that_returns_more_than_a_mean(tmp_path: Path) -> None:
    from dataclasses import dataclass

    from wildtype.models.interface import Prediction

    @dataclass(slots=True)
    class Wordy(Prediction):
        attention: torch.Tensor | None = None

    organism_genes = 24

    class Model(CellTransformer):
        def forward(self, wild_type, mutants):  # type: ignore[no-untyped-def]
            return Wordy(super().forward(wild_type, mutants).mean, torch.ones(organism_genes))

    recorder = PhaseRecorder(warm_up=0)
    model = Model(
        CellTransformerConfig(width=16, layers=1, heads=4), genes=24, features=0, phenotypes=1, relations=[]
    )
    fit_model(
        model, OrganismTensors(torch.zeros(24, 0)), *tables(), CONFIG, folder=tmp_path, show=False,
        recorder=recorder,
    )  # fmt: skip
    assert recorder.totals()["head"] > 0


def test_less_than_three_percent_of_a_step_is_unattributed(tmp_path: Path) -> None:
    genes, mutants = 1500, 1200
    rng = np.random.default_rng(0)
    sets = [rng.choice(genes, 2, replace=False).tolist() for _ in range(mutants)]
    value = rng.normal(size=mutants).astype(np.float32)
    table = MutantTable.from_sets(sets, value=value)
    model = CellTransformer(
        CellTransformerConfig(width=32, layers=2, heads=4),
        genes=genes,
        features=0,
        phenotypes=1,
        relations=[],
    )
    recorder = PhaseRecorder(warm_up=5)
    config = TrainingConfig(epochs=4, batch_size=100, steps=30, device="cpu")
    fit_model(
        model, OrganismTensors(torch.zeros(genes, 0)), table, table.take(np.arange(50)), config,
        folder=tmp_path, show=False, recorder=recorder,
    )  # fmt: skip
    share = np.median(recorder.phase_seconds(NONE)) / np.median(recorder.step_seconds())
    assert recorder.steps == 25
    assert share < 0.03


@pytest.mark.parametrize("loss", ["kl", "bce"])
def test_training_in_bfloat16_learns_as_in_float32(tmp_path: Path, loss: str) -> None:
    losses = {}
    for precision in ("bf16", "32"):
        torch.manual_seed(0)
        config = CellTransformerConfig(width=16, layers=1, heads=4)
        config.prior.loss = loss
        organism = tiny_dataset().organism
        model = CellTransformer(config, genes=24, features=0, phenotypes=1, relations=list(organism.graphs))
        tensors = OrganismTensors(torch.zeros(24, 0), model.priors(organism.graphs))
        training = TrainingConfig(epochs=2, batch_size=64, precision=precision, device="cpu")
        fit_model(model, tensors, *tables(), training, folder=tmp_path / precision, show=False)
        with open(tmp_path / precision / "logs" / "metrics.csv") as handle:
            losses[precision] = [float(row["loss"]) for row in csv.DictReader(handle) if row["loss"]]
    assert losses["bf16"] == pytest.approx(losses["32"], rel=0.05)
    assert losses["bf16"] != losses["32"]
