"""`profile` of a whole configuration: modes, fixed steps, traces, pipelines, estimates."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.test_run import QUICK
from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError
from wildtype.experiments.data import prepare
from wildtype.experiments.estimate import estimate_run, refuse
from wildtype.experiments.profile import (
    MODES,
    PARTS,
    TrainingLoop,
    chosen_modes,
    profile_folder,
    profile_pipelines,
    profile_python_lines,
    profile_run,
    profile_step,
    profile_trace,
)
from wildtype.experiments.representations import REPRESENTATIONS
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.profiling.estimate import RunEstimate
from wildtype.profiling.record import load_record
from wildtype.profiling.trace import Window


def config(*words: str):
    return compose([*QUICK, *words])


@pytest.mark.slow
def test_modes_add_up_and_parts_cover_the_step(tmp_path: Path) -> None:
    report = profile_run(config(), steps=4, folder=tmp_path, dataset=tiny_dataset())
    assert list(report["modes"]) == list(MODES)
    for mode, record in report["modes"].items():
        assert (record["execution"], record["steps"], record["complete"]) == (mode, 4, True)
        assert record["name"] == tmp_path.name + ("" if mode == "training" else f" ({mode})")
        assert json.loads((tmp_path / f"profile-{mode}.json").read_text())["execution"] == mode
    assert "encode wild type" not in report["modes"]["data_only"]["phases"]
    assert "backward" not in report["modes"]["forward"]["phases"]
    last = report["modes"]["training"]
    assert load_record(tmp_path)["execution"] == "training"
    assert sum(part["share"] for part in report["parts"].values()) == pytest.approx(1.0)
    assert set(PARTS) < set(report["parts"])
    added = report["added"]
    assert sum(row.get("added", 0.0) for row in added) == pytest.approx(
        added[-1]["seconds_per_step"] - added[0]["seconds_per_step"]
    )
    assert last["counters"]["backward"]["operators"] > 0
    assert all(phase["peak_mib"] is None or phase["peak_mib"] > 0 for phase in last["phases"].values())


def test_numbers_and_folders_that_make_no_profile(tmp_path: Path, tiny_run: Path) -> None:
    for steps in (0, -3):
        with pytest.raises(ConfigError, match=f"steps={steps}: it must be positive"):
            profile_run(config(), steps=steps, dataset=tiny_dataset())
    with pytest.raises(ConfigError, match="seconds=0"):
        profile_pipelines(config(), [], seconds=0, dataset=tiny_dataset())
    with pytest.raises(ConfigError, match="train_steps=-1"):
        profile_pipelines(config(), [], train_steps=-1, dataset=tiny_dataset())
    with pytest.raises(ConfigError, match="holds a training run"):
        profile_folder(str(tiny_run))
    assert profile_folder("") is None
    assert profile_folder(str(tmp_path)) == tmp_path


@pytest.mark.slow
def test_a_finished_run_that_is_resumed_keeps_its_profile(tmp_path: Path) -> None:
    words = ["training.epochs=3", f"run.folder={tmp_path / 'run'}"]
    train(config(*words), dataset=tiny_dataset())
    before = (tmp_path / "run" / "profile.json").read_text()
    said: list[str] = []
    train(config(*words, "run.resume=true"), dataset=tiny_dataset(), log=said.append)
    assert (tmp_path / "run" / "profile.json").read_text() == before
    assert not any("nan" in line for line in said)


@pytest.mark.slow
def test_an_estimate_knows_of_a_limit_of_steps() -> None:
    found = estimate_run(config("training.steps=2", "training.epochs=9"), dataset=tiny_dataset())
    assert (found.steps_per_epoch, found.epochs) == (2, 1)
    with pytest.raises(ConfigError, match="leave out execution=forward"):
        estimate_run(config("execution=forward"), dataset=tiny_dataset())
    with pytest.raises(ConfigError, match="which execution=forward is not"):
        train(config("execution=forward", "run.estimate=true"), dataset=tiny_dataset())


def test_modes_are_chosen_by_name() -> None:
    assert chosen_modes("training, data_only") == ("data_only", "training")
    for words in ("backward", ""):
        with pytest.raises(ConfigError, match="known: data_only, forward"):
            chosen_modes(words)


def test_a_step_on_a_batch_that_stays_the_same(tmp_path: Path) -> None:
    record = profile_step(config(), steps=3, folder=tmp_path, dataset=tiny_dataset())
    assert record["steps"] == 3
    assert record["perturbed_genes"] >= 64
    assert record["mutants_per_second"] == pytest.approx(64 / record["seconds_per_step"]["mean"])
    assert "collate" not in record["phases"]


@pytest.mark.slow
def test_a_trace_of_a_configuration(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    report = profile_trace(config(), Window(0, 1, 1), target=target, dataset=tiny_dataset())
    assert "aten::" in report.to_text()
    events = json.loads(target.read_text())["traceEvents"]
    names = " ".join(str(event.get("name")) for event in events)
    assert "backward" in names
    assert "encode wild type" in names
    with pytest.raises(ConfigError, match="the trace window takes 9 steps"):
        profile_trace(config("training.steps=5"), Window(), target=target, dataset=tiny_dataset())


def test_phases_are_ranges_for_external_profilers_where_there_is_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str | None] = []

    class Ranges:
        def change(self, phase: str | None) -> None:
            heard.append(phase)

    monkeypatch.setattr("wildtype.experiments.profile.nvtx_listener", Ranges)
    profile_step(config("training.warmup=0"), steps=1, dataset=tiny_dataset())  # a rate that does not rise
    assert {"encode wild type", "head", "backward", "optimizer"} <= set(heard)


def test_lines_of_the_data_pipeline() -> None:
    report = profile_python_lines(config(), batches=7, dataset=tiny_dataset())
    lines = report.to_json()["lines"]
    assert any("loader.py" in line["file"] for line in lines)


@pytest.mark.slow
def test_pipelines_feed_every_model() -> None:
    others = [compose([*QUICK[4:], "model=dango", "model.width=8"])]
    small = ["model.width=8", "model.heads=2", "model.layers=2", "model.gin_layers=1"]
    others.append(compose([*QUICK[4:], "model=difference_gnn", *small]))
    options = {"batches": 2, "seconds": 0.01, "train_steps": 2, "train_reference": True}
    report = profile_pipelines(config(), others, **options, dataset=tiny_dataset())
    assert {(row["path"], row["name"]) for row in report["rows"]} == {
        (path, name)
        for path in ("fast", "reference")
        for name in ("perturbation", "lazy_subgraph", "1-hop", "2-hop", "3-hop")
    }
    assert {row["model"] for row in report["models"]} == {"cell_transformer", "dango", "difference_gnn"}
    trained = {(row["representation"], row["path"]): row["test"] for row in report["accuracy"]}
    assert len(trained) == 10
    # Both paths compute the same, from equal weights and batches; only rounding differs.
    for name in REPRESENTATIONS:
        assert trained[name, "fast"] == pytest.approx(trained[name, "reference"], abs=1e-3)
    assert len({round(trained[name, "fast"], 6) for name in REPRESENTATIONS}) > 1
    assert all(0 < row["data_share"] < 1 for row in report["models"])
    plain = next(row for row in report["rows"] if (row["path"], row["name"]) == ("reference", "1-hop"))
    assert plain["representation_ms"] > 0
    assert plain["collate_ms"] > 0


@pytest.mark.parametrize("execution", ["data_only", "forward"])
def test_training_cut_short_leaves_a_profile_and_no_model(tmp_path: Path, execution: str) -> None:
    settings = config(f"execution={execution}", f"run.folder={tmp_path / 'run'}")
    run = train(settings, dataset=tiny_dataset())
    assert load_record(run.path)["execution"] == execution
    assert not (run.path / "checkpoint").exists()
    with pytest.raises(CheckpointError, match="holds no finished run"):
        _ = Run(run.path).comparisons
    with pytest.raises(ConfigError, match="execution='half'"):
        train(config("execution=half"), dataset=tiny_dataset())


@pytest.mark.slow
def test_an_estimate_is_made_before_and_judged_after(tmp_path: Path) -> None:
    said: list[str] = []
    settings = config("run.estimate=true", f"run.folder={tmp_path / 'run'}")
    train(settings, dataset=tiny_dataset(), log=said.append)
    outcome = json.loads((tmp_path / "run" / "estimate.json").read_text())
    assert set(outcome["errors"]) == {"seconds_per_epoch", "memory_mib", "disk_bytes"}
    for name, error in outcome["errors"].items():
        assert error == pytest.approx(outcome["predicted"][name] / outcome["measured"][name] - 1)
    assert abs(outcome["errors"]["memory_mib"]) < 0.5
    assert said[0].startswith("estimate: ")
    assert any(line.startswith("estimate against run: seconds_per_epoch") for line in said)


@pytest.mark.slow
def test_a_long_training_says_how_long_and_is_the_same_as_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {}
    for name, share in (("unasked", 10.0), ("none", 0.0)):
        monkeypatch.setattr("wildtype.experiments.estimate.SHARE", share)
        said: list[str] = []
        run = train(config(f"run.folder={tmp_path / name}"), dataset=tiny_dataset(), log=said.append)
        runs[name] = run.predictions
        (plan,) = [line for line in said if " weights, at most " in line]
        assert plan.endswith("epsilon of 276 mutants of tiny-growth, 24 genes")
        assert any(line.startswith("training takes about ") for line in said) == bool(share)
        assert not (tmp_path / name / "estimate.json").exists()
    pd.testing.assert_frame_equal(runs["unasked"], runs["none"])


@pytest.mark.slow
def test_a_run_that_will_not_fit_says_so_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wildtype.experiments.estimate.available_memory_mib", lambda: 100.0)
    settings = config("run.estimate=true", f"run.folder={tmp_path / 'run'}")
    with pytest.raises(ConfigError, match="MiB of memory and may have 100.0 MiB"):
        train(settings, dataset=tiny_dataset())
    assert not (tmp_path / "run").exists()
    found = estimate_run(settings, dataset=tiny_dataset())
    assert isinstance(found, RunEstimate)
    assert found.steps_per_epoch * 64 >= 150
    with pytest.raises(ConfigError):
        refuse(found)


def test_the_plain_loop_encodes_once_per_epoch_where_training_does(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = CellTransformer.encode
    monkeypatch.setattr(CellTransformer, "encode", lambda *a: calls.append(1) or real(*a))
    for once, expected in ((True, 1), (False, 3)):
        monkeypatch.setattr(CellTransformer, "encode_per_epoch", once)
        calls.clear()
        settings = config()
        loop = TrainingLoop(settings, prepare(settings, tiny_dataset()))
        for _ in range(3):
            loop.step()
        assert len(calls) == expected
        assert loop.task.step == 3
