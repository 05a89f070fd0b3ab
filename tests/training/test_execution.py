"""Execution modes and phases of a real training loop."""

import csv
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from tests.tiny import tiny_dataset
from tests.training.test_fit import CONFIG, Killed, fit, kill_after, tables
from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.phases import COLLECTOR, current
from wildtype.profiling.operators import OperatorCounter
from wildtype.profiling.record import RecordWriter, Workload
from wildtype.training.config import TrainingConfig
from wildtype.training.fit import fit_model
from wildtype.training.phase_recorder import NONE, PhaseRecorder, seconds_per_cut
from wildtype.training.task import FitTask

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
    # The garbage collector comes when it wants.
    assert set(recorder.totals()) - {COLLECTOR} == EXPECTED[execution]
    assert recorder.steps == report.steps == 16
    weights = dict(before.named_parameters())
    same = all(torch.equal(value, weights[name]) for name, value in model.named_parameters())
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
    with pytest.raises(ConfigError, match="execution='backward': choose training, forward_backward"):
        fit(tmp_path, execution="backward")


def test_a_job_of_slurm_with_more_tasks_than_were_started_trains_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "4", "SLURM_JOB_NAME": "own"}.items():
        monkeypatch.setenv(name, value)
    _, report = fit(tmp_path, TrainingConfig(epochs=1, batch_size=64, device="cpu"))
    assert report.epochs == 1


def test_steps_are_limited_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    _, report = fit(tmp_path, TrainingConfig(epochs=4, batch_size=64, steps=6, patience=0, device="cpu"))
    assert report.steps == 6
    with pytest.raises(ConfigError, match="training.steps=-1"):
        fit(tmp_path, TrainingConfig(steps=-1))


def test_a_run_that_its_steps_ended_is_finished(tmp_path: Path) -> None:
    config = TrainingConfig(epochs=4, batch_size=64, steps=6, patience=0, device="cpu")
    _, report = fit(tmp_path, config)
    _, again = fit(tmp_path, config, resume=True)
    assert (again.steps, again.epochs) == (report.steps, report.epochs) == (6, 2)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "logs" / "metrics.csv") as handle:
        return list(csv.DictReader(handle))


class Dies(Callback):
    def on_train_batch_end(self, trainer, pl_module, *arguments):  # type: ignore[no-untyped-def]
        if pl_module.step == 6:
            raise ValueError("step 6")


def test_the_steps_before_an_error_are_logged_and_nothing_is_left_behind(tmp_path: Path) -> None:
    counter = OperatorCounter()
    recorder = PhaseRecorder(warm_up=8, inside=counter)  # counts in the sixth step
    with pytest.raises(ValueError, match="step 6"):
        fit(tmp_path, CONFIG, callbacks=[Dies()], recorder=recorder)
    assert [int(row["step"]) for row in rows_of(tmp_path) if row["loss"]] == [0, 1, 2, 3, 4, 5]
    assert not _get_current_dispatch_mode_stack()
    assert current() is None


@pytest.mark.parametrize(
    ("raised", "seen", "code"),
    [(KeyboardInterrupt, KeyboardInterrupt, ()), (SIGTERMException, SystemExit, (143,))],
)
def test_a_stop_is_not_taken_for_success(
    tmp_path: Path, raised: type[BaseException], seen: type[BaseException], code: tuple[int, ...]
) -> None:
    class Stop(Callback):
        def on_train_batch_end(self, *arguments: object) -> None:
            raise raised

    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(seen) as stop:
            fit(tmp_path, CONFIG, callbacks=[Stop()])
    finally:
        signal.signal(signal.SIGINT, before)  # Lightning ignores it from the first interrupt on
    assert stop.value.args == code


def test_validation_is_logged_at_the_last_step_of_its_epoch_also_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 2)
        fit(tmp_path)
    fit(tmp_path, resume=True)
    rows = rows_of(tmp_path)
    assert [(row["epoch"], row["step"]) for row in rows if row["validation/pearson"]] == [
        ("0", "3"),
        ("1", "7"),
        ("2", "11"),
        ("3", "15"),
    ]
    # Rows of the epochs before the kill stay.
    assert [int(row["step"]) for row in rows if row["loss"]] == list(range(16))


def test_what_lies_in_no_phase_is_unattributed_also_within_the_optimisers_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    real = FitTask.training_step

    def slow(self: FitTask, *arguments: object) -> object:
        now[0] += 1.0
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FitTask, "training_step", slow)
    recorder = PhaseRecorder(warm_up=0, clock=lambda: now[0], cpu_clock=lambda: 0.0)
    fit(tmp_path, CONFIG, recorder=recorder)
    assert recorder.totals()[NONE] == 16.0
    assert sum(recorder.totals().values()) == 16.0


def test_a_wild_type_encoded_once_per_epoch_is_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CellTransformer, "encode_per_epoch", True)
    recorder = PhaseRecorder(warm_up=0)
    fit(tmp_path, CONFIG, recorder=recorder)
    assert recorder.outside["start of epoch"] > 0
    assert "encode wild type" not in recorder.totals()


def test_a_record_written_within_a_step_leaves_it_as_it_is(tmp_path: Path) -> None:
    seconds_per_cut.cache_clear()
    recorder = PhaseRecorder(warm_up=0)
    work = Workload("cell_transformer", "tiny", 24, 2, 80, 1000, 64, 4)
    writer = RecordWriter(tmp_path / "p.json", recorder, work, every=0.0, name="a", execution="training")

    class Write(Callback):
        def on_train_batch_end(self, *arguments: object) -> None:
            writer.step()

    fit(tmp_path, CONFIG, recorder=recorder, callbacks=[Write()])
    assert recorder.cuts_per_step() < 60


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
            return Wordy(super().forward(wild_type, mutants).mean, attention=torch.ones(organism_genes))

    recorder = PhaseRecorder(warm_up=0)
    model = Model(
        CellTransformerConfig(width=16, layers=1, heads=4), genes=24, features=0, phenotypes=1, relations=[]
    )
    fit_model(
        model,
        OrganismTensors(torch.zeros(24, 0)),
        *tables(),
        CONFIG,
        folder=tmp_path,
        show=False,
        recorder=recorder,
    )
    assert recorder.totals()["head"] > 0


@pytest.mark.slow
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
    config = TrainingConfig(epochs=4, batch_size=100, steps=20, device="cpu")
    fit_model(
        model,
        OrganismTensors(torch.zeros(genes, 0)),
        table,
        table.take(np.arange(50)),
        config,
        folder=tmp_path,
        show=False,
        recorder=recorder,
    )
    share = np.median(recorder.phase_seconds(NONE)) / np.median(recorder.step_seconds())
    assert recorder.steps == 15
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
