from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError, OutputError, SplitError, WildtypeError
from wildtype.evidence.reference import PARTS
from wildtype.experiments import folder as module
from wildtype.experiments import run as run_module
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build
from wildtype.experiments.stored import Run
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Model, OrganismTensors
from wildtype.mutants.selection import Selection
from wildtype.training import saved_weights

QUICK = [
    "model.width=16",
    "model.heads=4",
    "model.layers=1",
    "model.head.heads=2",
    "training.epochs=2",
    "training.batch_size=64",
    "baselines=[mean]",
    "run.progress=false",
    "run.replicates=20",
    "data.name=tiny-growth",
]


def settings(folder: Path, *words: str) -> TrainConfig:
    return compose([*QUICK, f"run.folder={folder}", *words])


def test_a_network_with_few_rows_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for few, warned in ((1_000, True), (0, False)):
        monkeypatch.setattr(run_module, "FEW_ROWS", few)
        said: list[str] = []
        train(settings(tmp_path / str(few), "training.epochs=1"), dataset=tiny_dataset(), log=said.append)
        found = [line for line in said if " training rows are few: " in line]
        assert len(found) == warned
        assert all("--evidence" in line for line in found)


def test_run_folder_holds_everything(tiny_run: Path) -> None:
    names = {path.name for path in tiny_run.iterdir()}
    assert names == {
        "settings.json",
        "split.json",
        "card.json",
        "record.json",
        "profile.json",
        "checkpoint",
        "comparison.json",
        "comparison.md",
        "predictions.parquet",
        "logs",
        "resume",
    }
    run = Run(tiny_run)
    comparison = run.comparisons["epsilon"]
    assert {score.model for score in comparison.scores} == {"cell_transformer", "mean", "additive_ridge"}
    assert comparison.split == "random"
    assert all(score.seconds is not None and score.peak_mib for score in comparison.scores)
    assert run.metrics["test"]["epsilon"]["pearson"]["value"] == pytest.approx(
        comparison["cell_transformer"].pearson.value
    )
    assert json.loads((tiny_run / "record.json").read_text())["packages"]["torch"].startswith("2.")


def test_table_is_computed_from_the_stored_predictions(tiny_run: Path) -> None:
    frame = pd.read_parquet(tiny_run / "predictions.parquet")
    score = Run(tiny_run).comparisons["epsilon"]["additive_ridge"]
    assert len(frame) == score.n
    assert np.corrcoef(frame["value"], frame["additive_ridge"])[0, 1] == pytest.approx(
        score.pearson.value, abs=1e-6
    )
    assert score.mse.value == pytest.approx(
        ((frame["value"] - frame["additive_ridge"]) ** 2).mean(), rel=1e-5
    )


def test_test_labels_reach_no_prediction(tmp_path: Path) -> None:
    """Shuffling the labels of the test rows must change no prediction of any model."""
    dataset = tiny_dataset()
    words = ("baselines=[mean,additive_ridge,boosting]", "training.deterministic=true")
    train(settings(tmp_path / "a", *words), dataset=dataset)
    split = prepare(settings(tmp_path / "a"), dataset).split
    value = dataset.table.value.copy()
    rows = np.flatnonzero(dataset.table.phenotype == 1)[split.test]
    value[rows] = np.random.default_rng(0).permutation(value[rows])
    shuffled = replace(dataset, table=replace(dataset.table, value=value))
    train(settings(tmp_path / "b", *words), dataset=shuffled)
    a, b = (pd.read_parquet(tmp_path / x / "predictions.parquet").set_index("genes") for x in "ab")
    assert set(a.index) == set(b.index)
    for model in ("cell_transformer", "mean", "additive_ridge", "boosting"):
        np.testing.assert_array_equal(a[model], b.loc[a.index, model], err_msg=model)
    assert not np.array_equal(a["value"], b.loc[a.index, "value"])


def test_a_run_of_a_list_says_so(tmp_path: Path) -> None:
    dataset, lines = tiny_dataset(), list[str]()
    fitness, epsilon = dataset.phenotypes
    chosen = Selection(-0.12, 0.16, 0.05)
    dataset = replace(dataset, phenotypes=(fitness, replace(epsilon, selection=chosen)))
    run = train(settings(tmp_path / "r", "baselines=[mean]"), dataset=dataset, log=lines.append)
    assert chosen.sentence("epsilon") in lines
    assert run.card["selection"] == {"epsilon": chosen.sentence("epsilon")}
    assert Selection.from_json(run.predictor.checkpoint.phenotypes[0]["selection"]) == chosen


def test_killed_run_resumes_to_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("training.deterministic=true", "training.epochs=3")
    whole = train(settings(tmp_path / "whole", *words), dataset=tiny_dataset())
    from wildtype.training import saved_weights

    save = saved_weights.BestCheckpoint._save

    def save_and_die(self: saved_weights.BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        if self.epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(saved_weights.BestCheckpoint, "_save", save_and_die)
        with pytest.raises(BaseException):  # noqa: B017 (Lightning turns an interrupt into an exit)
            train(settings(tmp_path / "killed", *words), dataset=tiny_dataset())
    with pytest.raises(CheckpointError, match="no checkpoint|did not finish"):
        wt.load(tmp_path / "killed")
    resumed = train(settings(tmp_path / "killed", *words, "run.resume=true"), dataset=tiny_dataset())
    a, b = (pd.read_parquet(run.path / "predictions.parquet") for run in (whole, resumed))
    pd.testing.assert_frame_equal(a, b)


def test_resume_and_reproduce_take_the_recorded_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wildtype.experiments.reproduce import reproduce
    from wildtype.training import fit

    taken: list[int] = []
    real = fit._threads

    def threads(wanted: int) -> object:
        taken.append(wanted)
        return real(1)  # two threads beside another test wait for each other

    monkeypatch.setattr(fit, "_threads", threads)
    rule = "wildtype.experiments.run.threads_of_training"
    with monkeypatch.context() as patched:
        patched.setattr(rule, lambda *arguments, **options: 2)
        train(settings(tmp_path / "a", "training.epochs=1", "training.patience=0"), dataset=tiny_dataset())
    record = json.loads((tmp_path / "a" / "record.json").read_text())
    stored = json.loads((tmp_path / "a" / "settings.json").read_text())["settings"]
    assert (record["threads"], stored["training"]["threads"]) == (2, 0)
    reproduce(tmp_path / "a", tmp_path / "b", dataset=tiny_dataset())
    # A run that did not come to its end: the state is there, and the table is not.
    (tmp_path / "a" / "comparison.json").unlink()
    config = settings(tmp_path / "a", "training.epochs=1", "training.patience=0", "run.resume=true")
    assert run_module._threads(config, *untrained(config)) == 2
    # A run of an earlier version records the threads of its machine.
    del record["threads"]
    (tmp_path / "a" / "record.json").write_text(json.dumps(record | {"machine": {"threads": 3}}))
    assert run_module._threads(config, *untrained(config)) == 3
    assert taken == [2, 2]


def untrained(config: TrainConfig) -> tuple[Model, OrganismTensors, Callable[[str], None]]:
    """The model of settings, what it sees, and a log that nobody reads."""
    return *build(config, prepare(config, tiny_dataset()), 0), lambda text: None


def test_taken_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds no run"):
        train(settings(tmp_path, "run.overwrite=true"), dataset=tiny_dataset())
    assert os.listdir(tmp_path) == ["notes.txt"]
    with pytest.raises(CheckpointError, match="no run to resume"):
        train(settings(tmp_path / "none", "run.resume=true"), dataset=tiny_dataset())


def test_existing_run_is_replaced_only_on_request(tmp_path: Path) -> None:
    train(settings(tmp_path / "r"), dataset=tiny_dataset())
    with pytest.raises(ConfigError, match="holds a run already"):
        train(settings(tmp_path / "r"), dataset=tiny_dataset())
    train(settings(tmp_path / "r", "run.overwrite=true", "seed=1"), dataset=tiny_dataset())
    assert json.loads((tmp_path / "r" / "settings.json").read_text())["settings"]["seed"] == 1


def test_failure_before_training_leaves_no_folder(tmp_path: Path) -> None:
    for words, error in (
        (("baselines=[oracle]",), ConfigError),
        (("data.phenotypes=[tau]",), WildtypeError),
        (("split.test=1e-9",), SplitError),
        (("model.leave_out=[nothing]",), ConfigError),
    ):
        with pytest.raises(error):
            train(settings(tmp_path / "r", *words), dataset=tiny_dataset())
        assert not (tmp_path / "r").exists(), words


def test_features_made_from_the_targets_are_not_given_to_models(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    data = prepare(settings(tmp_path), dataset)
    assert data.single_fitness is not None
    assert len(data.features([]).matrix(24)[1]) == 4  # three of the block, one of single-mutant fitness
    singles = prepare(settings(tmp_path, "data.phenotypes=[fitness]"), dataset)
    hidden = np.concatenate(
        [singles.part(part).take(singles.part(part).order == 1).gene for part in ("validation", "test")]
    )
    assert hidden.size
    assert singles.single_fitness is not None
    assert np.isnan(singles.single_fitness[hidden]).all()
    same_source = replace(dataset, single_fitness_source="tiny:epsilon")
    assert prepare(settings(tmp_path), same_source).single_fitness is None


def test_known_rows_carry_their_part(tmp_path: Path) -> None:
    data = prepare(settings(tmp_path), tiny_dataset())
    known = data.known()
    epsilon = np.flatnonzero(known.table.phenotype == 1)
    assert (known.part[known.table.phenotype == 0] == PARTS.index("unused")).all()
    np.testing.assert_array_equal(np.flatnonzero(known.part[epsilon] == PARTS.index("test")), data.split.test)


def test_measured_tokens_keep_every_row(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    rows = (dataset.table.gene < 20).reshape(-1)
    keep = np.bincount(dataset.table.row, weights=~rows) == 0
    part = replace(dataset, table=dataset.table.take(keep))
    data = prepare(settings(tmp_path, "data.tokens=measured"), part)
    assert len(data.dataset.organism.genes) == 20
    assert len(data.dataset) == 190
    with pytest.raises(ConfigError, match="tokens='some'"):
        prepare(settings(tmp_path, "data.tokens=some"), part)


def test_fit_of_the_public_interface(tmp_path: Path) -> None:
    run = wt.fit(
        dataset=tiny_dataset(),
        seed=1,
        model__width=16,
        model__heads=4,
        model__layers=0,
        model__head__heads=2,
        training__epochs=1,
        baselines=[],
        run__folder=str(tmp_path / "r"),
        run__progress=False,
    )
    assert run.path == tmp_path / "r"
    assert list(run.comparisons) == ["epsilon"]
    with pytest.raises(ConfigError, match="no model 'oracle'"):
        wt.fit(model="oracle", dataset=tiny_dataset())


FOLDERS = [
    "a, b",
    "[a]",
    "{a}",
    "it's",
    'an "a"',
    "a\\",
    "a\\\n",
    "a\\'b",
    "k=v, l=w",
    " a ",
    "α (1)",
    "a: b",
    "",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_fit_takes_texts_letter_by_letter(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def keeps(config: Any, dataset: Any) -> Run:
        given.append(config)
        return Run(tmp_path)

    monkeypatch.setattr("wildtype.experiments.run.train", keeps)
    wt.fit(run__folder=folder, data__phenotypes=[folder], data__embeddings=["a,b.csv"])
    config = given[-1]
    assert config.run.folder == folder
    assert config.data.phenotypes == [folder]
    assert config.data.embeddings == ["a,b.csv"]
    wt.fit(run__folder=Path("a, b"), seed=3, baselines=[], training__learning_rate=1e-3)
    config = given[-1]
    assert (config.run.folder, config.seed, config.baselines) == ("a, b", 3, [])
    assert config.training.learning_rate == 1e-3
    wt.fit(model__evidence__holdout={"seen": 1.5})
    assert given[-1].model.evidence.holdout == {"seen": 1.5}


def test_snapshots_are_members_that_say_how_far_they_lie_apart(tmp_path: Path) -> None:
    words = ("training.snapshots=2", "baselines=[]", "training.deterministic=true")
    run = train(settings(tmp_path / "r", *words), dataset=tiny_dataset())
    model = run.predictor.checkpoint.model
    assert isinstance(model, Ensemble)
    assert len(model.members) == 2
    assert run.metrics["fit"]["snapshots"] == [1, 2]
    frame = run.predictor.predict([["G003", "G005"]], interval=0.9)
    assert frame["epsilon_sd"].iloc[0] > 0
    module.clear(run.path)
    assert [path.name for path in run.path.iterdir()] == []


@pytest.mark.slow
def test_a_command_that_is_given_again_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("baselines=[]", "training.deterministic=true", "run.requeued=true")
    whole = train(settings(tmp_path / "whole", *words), dataset=tiny_dataset())  # nothing had begun
    save, saved = saved_weights.BestCheckpoint._save, []

    def save_and_die(self: saved_weights.BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        saved.append(self.epoch)
        if saved == [1]:
            raise InterruptedError

    monkeypatch.setattr(saved_weights.BestCheckpoint, "_save", save_and_die)
    with pytest.raises(InterruptedError):
        train(settings(tmp_path / "again", *words), dataset=tiny_dataset())
    again = train(settings(tmp_path / "again", *words), dataset=tiny_dataset())
    assert saved[:2] == [1, 2]  # not from the start
    part = tiny_dataset().select(["epsilon"]).table.take(np.arange(50))
    one, other = (run.predictor.checkpoint.predict(part) for run in (whole, again))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ConfigError, match=r"name the run directory with run\.folder"):
        train(compose(["run.requeued=true", "data.name=tiny-growth"]), dataset=tiny_dataset())


def test_unfinished_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no finished run"):
        _ = Run(tmp_path).comparisons
    (tmp_path / module.DONE).write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        _ = Run(tmp_path).comparisons
