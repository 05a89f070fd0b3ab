"""Training stops in one sentence when a loss or weight is not finite, and leaves nothing that predicts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from tests.experiments.test_models import TRAINED, run
from tests.tiny import tiny_dataset
from tests.training.test_fit import CONFIG, fit
from tests.training.test_micro_batches import words
from wildtype.errors import CheckpointError, DivergedError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.files import sha256_of_file
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import MutantTable
from wildtype.training.objective import Objective
from wildtype.training.task import FitTask, NotFinite
from wildtype.training.world import World


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_run_that_diverges_is_an_error_and_leaves_no_checkpoint(tmp_path: Path, accumulate: int) -> None:
    more = (
        "training.learning_rate=1e30",
        "training.clip=0",
        f"training.gradient_accumulation_steps={accumulate}",
    )
    with pytest.raises(
        DivergedError, match=r"step \d+.*data.*training.learning_rate=1e\+30.*training.clip=1"
    ):
        train(compose(words("cell_transformer", *more, f"run.folder={tmp_path}")), dataset=tiny_dataset())
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "comparison.json").exists()
    assert not (tmp_path / "resume").exists()


@pytest.mark.parametrize("name", [name for name in TRAINED if name != "cell_transformer"])
def test_every_model_that_diverges_is_an_error(name: str, tmp_path: Path) -> None:
    more = ("training.learning_rate=1e30", "training.clip=0", f"run.folder={tmp_path}")
    with pytest.raises(DivergedError, match=r"training diverged"):
        train(compose(words(name, *more)), dataset=tiny_dataset())
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "comparison.json").exists()


def test_an_ensemble_of_which_a_member_diverges_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = FitTask._objective_of, set()

    def poisoned(task: FitTask, *arguments: Any) -> Objective:
        begun.add(task)
        result = real(task, *arguments)
        if len(begun) == 2:
            result.total = result.total * torch.nan
        return result

    monkeypatch.setattr(FitTask, "_objective_of", poisoned)
    with pytest.raises(DivergedError, match="training diverged at step "):
        train(compose(words("dango", "training.members=2", f"run.folder={tmp_path}")), dataset=tiny_dataset())
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "comparison.json").exists()


def test_predictions_that_are_no_numbers_are_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Checkpoint.predict_measured

    def broken(checkpoint: Checkpoint, table: MutantTable) -> NDArray[np.float64]:
        values = real(checkpoint, table)
        values[3] = np.nan
        return values

    monkeypatch.setattr(Checkpoint, "predict_measured", broken)
    with pytest.raises(DivergedError, match=r"1 of \d+ predictions of test rows are not finite; lower"):
        run("dango", tmp_path)
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "comparison.json").exists()


def saved_epochs(folder: Path) -> int:
    return int(json.loads((folder / "resume" / "state.json").read_text())["epoch"])


def poison(monkeypatch: pytest.MonkeyPatch, term: str, step: int) -> None:
    """Make a term of the loss not a number from one step on."""
    real = FitTask._objective_of

    def poisoned(task: FitTask, *arguments: Any) -> Objective:
        result = real(task, *arguments)
        if task.step >= step and term in result.terms:
            result.terms[term] = result.terms[term] * torch.nan
            result.total = result.total * torch.nan
        return result

    monkeypatch.setattr(FitTask, "_objective_of", poisoned)


@pytest.mark.parametrize("term", ["data", "prior/physical"])
@pytest.mark.parametrize("execution", ["training", "forward_backward", "forward"])
def test_the_message_names_step_and_term_in_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, execution: str
) -> None:
    poison(monkeypatch, term, 6)
    with pytest.raises(DivergedError, match=f"step 7 .*{term}.* nan"):
        fit(tmp_path, CONFIG, execution=execution)
    assert saved_epochs(tmp_path) == 1  # step 7 is in the second


def test_a_batch_without_any_number_is_no_divergence_of_data_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the last batch of a process that there is no mutant for."""
    monkeypatch.setattr(
        FitTask,
        "transfer_batch_to_device",
        lambda task, batch, *_: replace(batch, value=torch.full_like(batch.value, torch.nan)),
    )
    model, report = fit(tmp_path, CONFIG, execution="data_only")
    assert report.steps == 16
    assert all(value.isfinite().all() for value in model.state_dict().values())


def test_weights_that_the_last_step_spoils_are_not_saved(tmp_path: Path) -> None:
    """The loss of the step was a number; what the optimiser made of it is none."""

    class Spoil(Callback):
        def on_train_batch_end(self, trainer, pl_module, *arguments):  # type: ignore[no-untyped-def]
            if pl_module.step == 8:  # the last of the second epoch
                with torch.no_grad():
                    next(pl_module.model.parameters()).fill_(torch.inf)

    with pytest.raises(DivergedError, match="after step 8: weights"):
        fit(tmp_path, CONFIG, callbacks=[Spoil()])
    assert saved_epochs(tmp_path) == 1


def test_spoilt_weights_are_no_snapshot(tmp_path: Path) -> None:
    class Spoil(Callback):
        def on_train_batch_end(self, trainer, pl_module, *arguments):  # type: ignore[no-untyped-def]
            if pl_module.step == 8:
                with torch.no_grad():
                    next(pl_module.model.parameters()).fill_(torch.nan)

    with pytest.raises(DivergedError, match="after step 8: weights"):
        fit(tmp_path, replace(CONFIG, snapshots=2), callbacks=[Spoil()])
    assert not (tmp_path / "snapshots").exists()


def test_a_state_whose_tensors_are_not_finite_is_not_resumed(tmp_path: Path) -> None:
    fit(tmp_path)
    path, record = tmp_path / "resume" / "state.safetensors", tmp_path / "resume" / "state.json"
    state = load_file(path)
    name = next(key for key, x in state.items() if key.startswith("model/") and x.is_floating_point())
    state[name] = torch.full_like(state[name], torch.nan)
    save_file(state, path)
    record.write_text(json.dumps(json.loads(record.read_text()) | {"sha256": sha256_of_file(path)}))
    with pytest.raises(CheckpointError, match=f"{name}.*not finite.*train again"):
        fit(tmp_path, resume=True)


def test_a_process_stops_for_a_loss_that_another_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = NotFinite(step=2, epoch=0, term="reconstruction/physical", value=float("inf"))
    monkeypatch.setattr(World, "gathered", lambda world, value: [value, other])
    with pytest.raises(DivergedError, match="step 3 .*reconstruction/physical.* inf.*lower the weight of"):
        fit(tmp_path, CONFIG)


def test_a_loss_that_is_no_number_before_any_step_points_at_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, "data", 0)
    with pytest.raises(DivergedError, match=r"step 1 \(epoch 1\).*check labels, features and embeddings"):
        fit(tmp_path, CONFIG)
