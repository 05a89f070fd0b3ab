"""Every neural model goes the whole way: settings, training, table, checkpoint, resume, prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError, DatasetError
from wildtype.experiments.report import write_report
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.models.ensemble import Ensemble
from wildtype.models.registry import MODELS, model_class
from wildtype.organism import Metabolism
from wildtype.training import saved_weights

SMALL = {
    "cell_transformer": ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2"],
    "dango": ["model.width=16", "model.transition=1"],
    "pair_screen": ["model.folds=2", "model.gene_folds=2", "model.iterations=20", "model.least_rows=10"],
    "gaussian_process": ["model.steps=5"],
    "difference_gnn": ["model.width=8", "model.layers=2", "model.gin_layers=1"],
}
TRAINED = [name for name in MODELS if MODELS[name].gradients]
"""Models with epochs that a run can be killed in."""
NAMES = pytest.mark.parametrize("name", list(MODELS))


def run(name: str, folder: Path, *more: str) -> Run:
    words = [f"model={name}", *SMALL[name], "training.epochs=2", "training.batch_size=64", "baselines=[mean]",
             f"run.folder={folder}", "run.progress=false", "run.replicates=20", "data.name=tiny-growth",
             "training.deterministic=true", *more]  # fmt: skip
    return train(compose(words), dataset=tiny_dataset())


@NAMES
def test_trains_stands_in_the_table_and_predicts_again(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path / "run")
    table = done.comparisons["epsilon"]
    assert {score.model for score in table.scores} == {name, "mean"}
    model = wt.load(done.path)
    sets = [["G001", "G002"], ["abc3", "G004", "G005"], ["G001", "G023:reduced"]]
    frame = model.predict(sets)
    scored = model_class(name).scored(np.array([2, 3, 2]))
    np.testing.assert_array_equal(np.isfinite(frame["epsilon"]), scored)
    assert frame["epsilon"].nunique() == scored.sum() >= 2
    assert model.checkpoint.metrics["parameters"] == sum(
        p.numel() for p in model.checkpoint.model.parameters()
    )
    part = tiny_dataset().select(["epsilon"]).table.take(np.arange(5))
    again = done.predictor.checkpoint.predict(part)
    np.testing.assert_array_equal(model.checkpoint.predict(part), again)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_a_killed_run_resumes_to_the_same_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(name, tmp_path / "whole")
    save = saved_weights.BestCheckpoint._save

    def save_and_die(self: saved_weights.BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(saved_weights.BestCheckpoint, "_save", save_and_die)
        with pytest.raises(InterruptedError):
            run(name, tmp_path / "killed")
    (tmp_path / "killed" / ".resume.0123abcd-1-89abcdef.part").mkdir()
    (tmp_path / "killed" / "resume" / ".state.json.0123abcd-1-89abcdef.part").write_text("{")
    resumed = run(name, tmp_path / "killed", "run.resume=true")
    assert not [*(tmp_path / "killed").rglob("*.part")]
    part = tiny_dataset().select(["epsilon"]).table.take(np.arange(50))
    first, second = (r.predictor.checkpoint.predict(part) for r in (whole, resumed))
    np.testing.assert_array_equal(first, second)


def test_the_metabolism_is_counted_trained_and_loaded_again(tmp_path: Path) -> None:
    dataset, edges = tiny_dataset(), sparse.csr_array(np.array([[-1.0, 0.0], [1.0, -1.0]]))
    bounds = np.zeros(2), np.ones(2), np.array([0.0, 1.0])
    network = Metabolism.build(["R1", "R2"], ["a", "b"], edges, *bounds, ["G001 and G002", "G003"])
    words = [f"run.folder={tmp_path / 'run'}", "model=difference_gnn", *SMALL["difference_gnn"],
             "baselines=[]", "model.metabolism=true", "training.epochs=1", "run.progress=false",
             "run.replicates=20", "data.name=tiny-growth"]  # fmt: skip
    with pytest.raises(ConfigError, match="metabolism"):
        train(compose(words), dataset=dataset)
    done = train(
        compose(words), dataset=replace(dataset, organism=replace(dataset.organism, metabolism=network))
    )
    again = wt.load(done.path).checkpoint
    assert (again.model.config.reactions, again.model.config.metabolites) == (2, 2)
    part = dataset.select(["epsilon"]).table.take(np.arange(20))
    np.testing.assert_array_equal(again.predict(part), done.predictor.checkpoint.predict(part))


@pytest.mark.slow
def test_an_ensemble_is_trained_saved_and_resumed(tmp_path: Path) -> None:
    single = run("dango", tmp_path / "one")
    double = run("dango", tmp_path / "two", "training.members=2")
    model = double.predictor.checkpoint.model
    assert isinstance(model, Ensemble)
    first, second = model.members
    for (label, a), b in zip(
        single.predictor.checkpoint.model.named_parameters(), first.parameters(), strict=True
    ):
        np.testing.assert_array_equal(a.detach(), b.detach(), err_msg=label)
    assert not np.array_equal(first.table.weight.detach(), second.table.weight.detach())  # type: ignore[union-attr,operator]
    assert (double.path / "member-2" / "resume" / "state.json").is_file()
    again = run("dango", double.path, "training.members=2", "run.resume=true")
    part = tiny_dataset().select(["epsilon"]).table.take(np.arange(50))
    np.testing.assert_array_equal(
        again.predictor.checkpoint.predict(part), double.predictor.checkpoint.predict(part)
    )
    with pytest.raises(CheckpointError, match="another configuration"):
        run("dango", double.path, "training.members=3", "run.resume=true")


@pytest.mark.slow
def test_flipped_labels_give_predictions_the_right_way_round(tmp_path: Path) -> None:
    words = [
        "training.epochs=12",
        "training.learning_rate=0.01",
        "model.schedule=pre_then_post",
        "model.transition=0",
    ]
    plain, flipped = (
        run("dango", tmp_path / flip, *words, f"data.flip={flip}") for flip in ("false", "true")
    )
    for done in (plain, flipped):
        table = tiny_dataset().select(["epsilon"]).table
        rows = done.predictor.checkpoint
        predicted = rows.predict_measured(table)
        assert np.corrcoef(predicted, table.value)[0, 1] > 0.3
    assert (flipped.predictor.checkpoint.sd < 0).all()


def test_a_model_of_flipped_labels_is_loaded_again(tmp_path: Path) -> None:
    done = run("dango", tmp_path / "run", "data.flip=true")
    loaded, given = wt.load(done.path).checkpoint, done.predictor.checkpoint
    assert (loaded.sd < 0).all()
    part = tiny_dataset().select(["epsilon"]).table.take(np.arange(20))
    for one, other in zip(loaded.predict_with_sd(part), given.predict_with_sd(part), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "words"), [("pair_screen", []), ("cell_transformer", ["model.head.smallest=true"])]
)
def test_what_asks_which_labels_are_smaller_refuses_flipped_ones(
    name: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"data\.flip trains on labels times -1"):
        run(name, tmp_path / "run", "data.flip=true", *words)
    assert not (tmp_path / "run").exists()


def test_weighing_by_p_needs_p_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="p-values"):
        run("dango", tmp_path / "run", "training.weighting=p")
    assert not (tmp_path / "run").exists()


def test_a_model_without_a_loss_weighs_no_rows(tmp_path: Path) -> None:
    for name in ("gaussian_process", "pair_screen"):
        with pytest.raises(ConfigError, match=r"training\.weighting=sd weighs the terms of a loss"):
            run(name, tmp_path / "run", "training.weighting=sd")


def test_a_run_that_is_not_resumed_stays_as_it_was(tmp_path: Path) -> None:
    done = run("dango", tmp_path / "run")
    before = {path.name: path.read_bytes() for path in done.path.iterdir() if path.is_file()}
    with pytest.raises(CheckpointError, match=r"another configuration .*\(split\.name is 'random' there"):
        run("dango", tmp_path / "run", "run.resume=true", "split.name=unseen")
    assert {path.name: path.read_bytes() for path in done.path.iterdir() if path.is_file()} == before


def test_a_finished_run_that_is_resumed_has_a_page(tmp_path: Path) -> None:
    run("dango", tmp_path / "run")
    again = run("dango", tmp_path / "run", "run.resume=true")
    write_report([again], tmp_path / "page.html", screened=0)
    assert "2 epochs, best" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_fewer_rows_are_the_same_whatever_the_seed(tmp_path: Path) -> None:
    runs = [run("dango", tmp_path / seed, "data.rows=100", f"seed={seed}") for seed in "01"]
    known = [set(map(tuple, r.predictor.checkpoint.known.table.gene.reshape(-1)[:, None])) for r in runs]
    assert known[0] == known[1]
    split = [r.comparisons["epsilon"].rows for r in runs]
    assert split == [10, 10]


@pytest.mark.parametrize("setting", ["model.layers=1000000000000", "model.width=1000000000000"])
def test_a_model_that_memory_does_not_hold_is_refused_before_anything_is_written(
    setting: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="memory holds in training: make the widths"):
        run("cell_transformer", tmp_path / "run", setting, "model.prior.weight=0")
    assert not (tmp_path / "run" / "checkpoint").exists()
