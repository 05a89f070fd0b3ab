"""Running an ablation: order, budget, what is kept, what failed; a stand-in trains where that will do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, ConfigError, LockedError, OutputError
from wildtype.experiments.ablation import ablate, preview
from wildtype.experiments.folder import DONE, MARK, resumable, settings_of
from wildtype.experiments.run import train
from wildtype.experiments.settings.ablation import Ablation, read_ablation
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.files import write_json
from wildtype.locks import exclusive_lock
from wildtype.training import saved_weights

PLAN = """
base: [data.name=tiny-growth, model.width=16, model.heads=4, model.layers=1, model.head.heads=2,
       training.epochs=2, training.batch_size=64, run.progress=false, run.replicates=20]
splits: {R: [split.name=random]}
factors:
  layers:
    none: [model.layers=0]
    one: [model.layers=1]
  lambda:
    strong: [model.prior.weight=1]
"""
ORDER = [
    *(f"base/R/seed-{seed}" for seed in (0, 1)),
    *(f"{level}/R/seed-{seed}" for seed in (0, 1) for level in ("layers/none", "lambda/strong")),
]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    path = tmp_path_factory.mktemp("plan") / "tiny.yaml"
    path.write_text(PLAN)
    return read_ablation(str(path))


class Clock:
    """Time that passes only while something runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Standing:
    """Trains by copying a finished run; better predictions without an encoder."""

    def __init__(self, finished: Path, clock: Clock | None = None, seconds: float = 10.0) -> None:
        self.finished, self.clock, self.seconds = finished, clock or Clock(), seconds
        self.done: list[str] = []
        self.fails: Callable[[TrainConfig], None] = lambda config: None

    def __call__(self, config: TrainConfig, dataset: Dataset) -> None:
        self.clock.now += self.seconds
        folder = Path(config.run.folder)
        self.done.append(str(folder).split("out/")[1])
        self.fails(config)
        shutil.copytree(self.finished, folder, dirs_exist_ok=True)
        write_json(folder / MARK, {"plugins": [], "settings": settings_of(config)})
        frame = pd.read_parquet(folder / "predictions.parquet")
        noise = np.random.default_rng(config.seed).normal(size=len(frame)) * frame["value"].std()
        frame["cell_transformer"] = frame["value"] + (0.2 if config.model.layers == 0 else 1.0) * noise
        frame.to_parquet(folder / "predictions.parquet")
        metrics = json.loads((folder / "checkpoint" / "metrics.json").read_text())
        metrics["fit"] |= {"best_score": 0.5 + (config.model.layers == 0) * 0.25 + 0.01 * config.seed}
        write_json(folder / "checkpoint" / "metrics.json", metrics)


@pytest.fixture
def standing(tiny_run: Path) -> Standing:
    return Standing(tiny_run)


@pytest.mark.slow
def test_every_level_is_run_once_and_compared(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = ablate(
        plan,
        [0, 1],
        folder=out,
        replicates=20,
        dataset=tiny_dataset(),
        trainer=standing,
        clock=standing.clock,
    )
    assert standing.done == ORDER
    assert set(report.states.values()) == {"finished"}
    (table,) = report.tables
    assert (table.dataset, table.phenotype, table.split, table.clusters) == (
        "tiny-growth",
        "epsilon",
        "R",
        "genes",
    )
    rows = {(row.factor, row.level): row for row in table.rows}
    base, none, same = rows["base", ""], rows["layers", "none"], rows["layers", "one"]
    assert list(rows) == plan.levels
    assert (none.validation.mean, none.validation_difference.mean) == pytest.approx((0.755, 0.25))
    assert none.test_difference.low > 0
    assert rows["lambda", "strong"].test_difference.value == 0
    assert same.remarks == ("this is the base",)
    assert (same.test.mean, same.validation_difference.runs) == (base.test.mean, 0)
    assert base.seconds_per_epoch > 0
    assert base.peak_mib > 0
    text = (out / "ablation.md").read_text()
    assert "| layers | none | 0,1 | 0.755 ± 0.007 | +0.250 ± 0.000 |" in text
    assert "Choose by validation" in text
    assert json.loads((out / "table.json").read_text())["runs"] == report.states
    again = ablate(plan, [0, 1], folder=out, replicates=20, dataset=tiny_dataset(), trainer=standing)
    assert standing.done == ORDER  # finished runs are taken
    assert again.to_json() == report.to_json()


@pytest.mark.slow
def test_what_does_not_fit_the_budget_is_listed(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    asked = []

    def estimator(config: TrainConfig, dataset: Dataset) -> float:
        asked.append((config.model.layers, config.model.prior.weight, config.seed))
        return 25.0 if config.model.prior.weight == 1 else 10.0

    def go(budget: float) -> dict[str, str]:
        report = ablate(
            plan,
            [0, 1],
            folder=tmp_path / "out",
            budget=budget,
            replicates=20,
            dataset=tiny_dataset(),
            trainer=standing,
            estimator=estimator,
            clock=standing.clock,
        )
        notes.extend(report.notes)
        remarks.update({(r.factor, r.level): r.remarks for r in report.tables[0].rows})
        return report.states

    notes: list[str] = []
    remarks: dict[tuple[str, str], tuple[str, ...]] = {}
    states = go(45.0)
    # 10 + 10 + 10 s are gone when the level of 25 s comes, and what is left does for another of 10 s
    assert [room for room in ORDER if states[room] == "skipped"] == [
        "lambda/strong/R/seed-0",
        "lambda/strong/R/seed-1",
    ]
    assert standing.done == [room for room in ORDER if "lambda" not in room]
    assert "2 of 6 runs did not fit the budget" in notes
    assert remarks["lambda", "strong"] == (
        "seed 0 not run: it would take about 25 s and 15 s of the budget are left",
        "seed 1 not run: it would take about 25 s and 5 s of the budget are left",
    )
    # the base's second seed is known from its first; a level that never ran is asked for anew
    assert asked == [(1, 0.1, 0), (0, 0.1, 0), (1, 1.0, 0), (1, 1.0, 1)]
    assert set(go(60.0).values()) == {"finished"}
    standing.done.clear()
    assert go(0.001)["base/R/seed-0"] == "finished"
    assert standing.done == []


@pytest.mark.slow
def test_one_run_that_fails_does_not_stop_the_others(
    plan: Ablation, standing: Standing, tmp_path: Path
) -> None:
    def fails(config: TrainConfig) -> None:
        if config.model.layers == 0:
            raise MemoryError
        if config.model.prior.weight == 1 and config.seed == 1:
            raise RuntimeError("CUDA error: device-side assert\nat line 3")

    standing.fails = fails
    report = ablate(
        plan, [0, 1], folder=tmp_path / "out", replicates=20, dataset=tiny_dataset(), trainer=standing
    )
    assert standing.done == ORDER
    assert report.failed == ["layers/none/R/seed-0", "layers/none/R/seed-1", "lambda/strong/R/seed-1"]
    rows = {(row.factor, row.level): row for row in report.tables[0].rows}
    assert rows["layers", "none"].remarks == ("seed 0, 1 failed: out of memory",)
    assert rows["lambda", "strong"].remarks == (
        "seed 1 failed: RuntimeError: CUDA error: device-side assert",
    )
    assert rows["lambda", "strong"].seeds == (0,)
    record = json.loads((tmp_path / "out" / "ablation.json").read_text())["runs"]
    assert "device-side" in record["lambda/strong/R/seed-1"]["trace"]
    standing.fails = lambda config: None
    standing.done.clear()
    report = ablate(
        plan, [0, 1], folder=tmp_path / "out", replicates=20, dataset=tiny_dataset(), trainer=standing
    )
    assert standing.done == ["layers/none/R/seed-0", "layers/none/R/seed-1", "lambda/strong/R/seed-1"]
    assert not report.failed


def test_a_changed_base_or_level_is_refused(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ablate(plan, [0], folder=out, replicates=20, dataset=tiny_dataset(), trainer=standing)
    standing.done.clear()

    def changed(*where: str, epochs: int) -> Ablation:
        configs = {
            key: replace(config, training=replace(config.training, epochs=epochs))
            if key[0] in where
            else config
            for key, config in plan.configs.items()
        }
        return replace(plan, configs=configs)

    with pytest.raises(ConfigError, match=r"was run with training\.epochs 2, and the base now has 5"):
        ablate(changed("base", "layers", "lambda", epochs=5), [0], folder=out, trainer=standing)
    with pytest.raises(ConfigError, match="factor 'layers', level 'none' now has 7: choose another --folder"):
        preview(changed("layers", epochs=7), [0], out)
    assert standing.done == []
    threads = {
        key: replace(config, training=replace(config.training, threads=1))
        for key, config in plan.configs.items()
    }
    assert {step.state for step in preview(replace(plan, configs=threads), [0], out)} == {"finished"}
    # A run of a version that had fewer settings: it was made with what is the default since.
    mark = out / "base/R/seed-0" / MARK
    record = json.loads(mark.read_text())
    del record["settings"]["model"]["head"]["screen"], record["settings"]["model"]["pretraining"]
    write_json(mark, record)
    assert {step.state for step in preview(plan, [0], out)} == {"finished"}


def test_one_process_at_a_time(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "out", "running an ablation in"),
        pytest.raises(OutputError, match="another process is running an ablation in"),
    ):
        ablate(plan, [0], folder=tmp_path / "out", dataset=tiny_dataset(), trainer=standing)
    assert standing.done == []


@pytest.mark.slow
def test_tasks_of_an_array_do_one_run_each(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    out, options = tmp_path / "out", {"replicates": 20, "dataset": tiny_dataset(), "trainer": standing}

    def fails(config: TrainConfig) -> None:
        if config.model.prior.weight == 1:
            raise ConfigError("too strong")

    standing.fails = fails
    for only in (2, 0, 3, 4):
        report = ablate(plan, [0, 1], folder=out, only=only, **options)  # type: ignore[arg-type]
        assert list(report.states) == [ORDER[only]]
    assert standing.done == [ORDER[only] for only in (2, 0, 3, 4)]
    assert ablate(plan, [0, 1], folder=out, only=2, **options).failed == []  # type: ignore[arg-type]
    assert len(standing.done) == 4  # a finished one is kept
    assert not (out / "ablation.md").exists()
    steps = {step.run: step.state for step in preview(plan, [0, 1], out)}
    assert [steps[run] for run in ORDER] == [
        "finished",
        "planned",
        "finished",
        "failed",
        "finished",
        "planned",
    ]
    report = ablate(plan, [0, 1], folder=out, tables_only=True, **options)  # type: ignore[arg-type]
    assert len(standing.done) == 4
    assert report.failed == [ORDER[3]]
    rows = {row.level: row for row in report.tables[0].rows}
    assert "too strong" in rows["strong"].remarks[0]
    assert rows["none"].seeds == (0, 1)
    assert rows["none"].seconds_per_epoch is not None  # as the tasks timed it
    standing.fails = lambda config: None
    assert ablate(plan, [0, 1], folder=out, **options).failed == []  # type: ignore[arg-type]
    assert standing.done[4:] == [ORDER[1], ORDER[3], ORDER[5]]


def test_two_tasks_of_one_number_do_not_meet(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "out" / ".tasks" / "1", "running"),
        pytest.raises(LockedError, match="doing run 1 of an ablation"),
    ):
        ablate(plan, [0], folder=tmp_path / "out", only=1, dataset=tiny_dataset(), trainer=standing)
    with pytest.raises(ConfigError, match="only=3: there are 3 runs, counted from 0"):
        ablate(plan, [0], folder=tmp_path / "out", only=3, dataset=tiny_dataset(), trainer=standing)


@pytest.mark.slow
def test_runs_that_are_killed_again_and_again_are_given_up(
    plan: Ablation, standing: Standing, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    room = "base/R/seed-0"

    def killed(config: TrainConfig) -> None:
        Path(config.run.folder).mkdir(parents=True, exist_ok=True)
        write_json(Path(config.run.folder) / MARK, {"plugins": [], "settings": settings_of(config)})
        raise KeyboardInterrupt

    standing.fails = killed
    for _ in range(3):  # a person may stop it as often as they like
        with pytest.raises(KeyboardInterrupt):
            ablate(plan, [0], folder=out, dataset=tiny_dataset(), trainer=standing)
    assert standing.done == [room] * 3
    record = json.loads((out / "ablation.json").read_text())
    assert (record["runs"][room]["state"], record["runs"][room]["tries"]) == ("stopped", 0)
    record["runs"][room] |= {"state": "running", "tries": 3}  # as the kernel leaves it
    write_json(out / "ablation.json", record)
    standing.fails = lambda config: None
    report = ablate(plan, [0], folder=out, replicates=20, dataset=tiny_dataset(), trainer=standing)
    assert report.failed == [room]
    assert "killed 3 times" in report.tables[0].rows[0].remarks[0]


def test_a_damaged_record_or_run_is_told(plan: Ablation, standing: Standing, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ablate(plan, [0], folder=out, replicates=20, dataset=tiny_dataset(), trainer=standing)
    (out / "base/R/seed-0" / "predictions.parquet").write_bytes(b"PAR1")
    (out / "old/R/seed-0").mkdir(parents=True)
    (out / "old/R/seed-0" / MARK).write_text("{}")
    report = ablate(plan, [0], folder=out, replicates=20, dataset=tiny_dataset(), trainer=standing)
    assert report.failed == ["base/R/seed-0"]
    assert "is damaged" in report.tables[0].rows[0].remarks[0]
    assert "1 runs in the directory are not of this plan, as old/R/seed-0" in report.notes
    (out / "ablation.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"ablation\.json.*is damaged"):
        preview(plan, [0], out)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(
    plan: Ablation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With true training: the interrupted base is resumed, not begun anew, and all are finished then."""
    save = saved_weights.BestCheckpoint._save

    def save_and_die(self: saved_weights.BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    small = replace(plan, factors={"layers": {"none": plan.factors["layers"]["none"]}})
    begun = []

    def trainer(config: TrainConfig, dataset: Dataset) -> None:
        begun.append((config.model.layers, config.run.resume))
        train(config, dataset=dataset)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(saved_weights.BestCheckpoint, "_save", save_and_die)
        with pytest.raises(BaseException):  # noqa: B017 (Lightning turns an interrupt into an exit)
            ablate(small, [0], folder=out, dataset=tiny_dataset(), trainer=trainer)
    assert not (out / "base/R/seed-0" / DONE).is_file()
    assert [step.state for step in preview(small, [0], out)] == ["begun", "planned"]
    report = ablate(small, [0], folder=out, replicates=20, dataset=tiny_dataset(), trainer=trainer)
    assert begun == [(1, False), (1, True), (0, False)]
    base, none = report.tables[0].rows
    assert base.remarks == ("seed 0 resumed, so that its time is not known",)
    assert np.isnan(base.seconds_per_epoch)
    assert none.seconds_per_epoch > 0
    assert np.isfinite(none.test_difference.value)
    stored = json.loads((out / "base/R/seed-0" / MARK).read_text())["settings"]
    assert resumable(stored) == json.loads(json.dumps(resumable(settings_of(small.runs([0])[0].config))))
