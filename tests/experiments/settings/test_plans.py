from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets.storage import save_dataset
from wildtype.errors import ConfigError
from wildtype.experiments.settings.ablation import read_ablation
from wildtype.experiments.settings.plans import duration, runs_of_line
from wildtype.experiments.settings.tuning import read_tuning
from wildtype.sources.catalogue import dataset_folder


def test_every_choice_of_values_is_a_run() -> None:
    words = [
        "data=ecoli-core-growth",
        "model=cell_transformer,dango",
        "seed=1,2",
        "baselines=[mean,boosting]",
    ]
    found = runs_of_line([*words, "run.folder=runs/all"])
    assert [(one.config.model.name, one.config.seed) for one in found] == [
        ("cell_transformer", 1),
        ("cell_transformer", 2),
        ("dango", 1),
        ("dango", 2),
    ]
    assert found[1].name == "model=cell_transformer,seed=2"
    assert found[1].config.run.folder == "runs/all/model=cell_transformer,seed=2"
    assert all(one.config.baselines == ["mean", "boosting"] for one in found)


def test_values_may_be_a_range() -> None:
    found = runs_of_line(["data=ecoli-core-growth", "seed=range(4,7)", "run.folder=here"])
    assert [one.config.seed for one in found] == [4, 5, 6]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["seed=1"], "no setting has several values: write them with commas"),
        (["seed=1,2"], "name it with run.folder="),
        (["seed=1,2", "run.folder=a,b"], "give one directory"),
        (["seed=1,2", "run.folder=a", "run.resume=true"], "resume by themselves; leave it out"),
        (["seed=1,1", "run.folder=a"], "'seed=1' is repeated"),
        (["seed=range(0,2000)", "run.folder=a"], "make 2,000 runs, more than 1,000"),
        (["seed=interval(0,1)", "run.folder=a"], "no setting of several values"),
        (["data.path=a/b,c", "run.folder=a"], "cannot name a directory"),
        (["sed=1,2", "run.folder=a"], "'sed' is not a setting; did you mean seed"),
        (["seed", "run.folder=a"], "no setting has several values"),
        (["seed=1,x", "run.folder=a"], "seed"),
        (["model=dango,nothing", "run.folder=a"], "there is no model 'nothing'"),
    ],
)
def test_what_makes_no_runs_is_said(words: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("(", r"\(")):
        runs_of_line(words)


@pytest.mark.parametrize("read", [read_ablation, read_tuning])
def test_a_plan_of_a_small_table_compares_one_model(
    read: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    small = replace(tiny_dataset().select(["epsilon"]), name="few")
    save_dataset(small, dataset_folder("few"))
    plan = tmp_path / "plan.yaml"
    changes = (
        "factors: {layers: {none: [model.layers=0]}}"
        if read is read_ablation
        else "space: {model.layers: [0]}"
    )
    plan.write_text(f"base: [data=few]\n{changes}\n")
    with pytest.raises(ConfigError, match=r"takes model=gaussian_process: add model=cell_transformer to the"):
        read(str(plan))
    plan.write_text(f"base: [data=few, model=cell_transformer]\n{changes}\n")
    read(str(plan))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("45m", 2700), ("2h", 7200), ("1h30m", 5400), ("0.5h", 1800)]
)
def test_times(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 hours", "-1h", "0s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time"):
        duration(text)
