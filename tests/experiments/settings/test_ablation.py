"""Ablations as files: everything wrong is found before anything runs, and told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import ConfigError
from wildtype.experiments.settings.ablation import Ablation, read_ablation
from wildtype.experiments.settings.compose import known

SMALL = """
base: [data.name=tiny-growth, model.layers=2]
splits:
  R: [split.name=random]
  G: [split.name=unseen]
factors:
  layers:
    0: [model.layers=0]
    2: [model.layers=2]
  lambda:
    0.5: [model.prior.weight=0.5]
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    path = tmp_path_factory.mktemp("ablation") / "small.yaml"
    path.write_text(SMALL)
    return read_ablation(str(path), ["model.layers=1", "training.epochs=3"])


def test_later_words_win_and_a_level_changes_its_own(small: Ablation) -> None:
    base = small.configs["base", "", "G"]
    assert (base.model.layers, base.training.epochs, base.split.name) == (1, 3, "unseen")
    level = small.configs["layers", "0", "R"]
    assert (level.model.layers, level.training.epochs, level.split.name) == (0, 3, "random")
    assert small.levels == [("base", ""), ("layers", "0"), ("layers", "2"), ("lambda", "0.5")]


def test_the_first_runs_say_most(small: Ablation) -> None:
    names = [run.name for run in small.runs([4, 5])]
    assert names == [
        *(f"base/{split}/seed-{seed}" for seed in (4, 5) for split in "RG"),
        *(
            f"{level}/{split}/seed-{seed}"
            for seed in (4, 5)
            for level in ("layers/0", "layers/2", "lambda/0.5")
            for split in "RG"
        ),
    ]
    run = small.runs([4])[-1]
    assert (run.config.seed, run.config.baselines, run.config.split.name) == (4, [], "unseen")
    for seeds in ([], [1, 1], [-1]):
        with pytest.raises(ConfigError, match="give each once"):
            small.runs(seeds)


def test_a_level_that_changes_nothing_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "same.yaml"
    path.write_text(
        "base: [model.layers=2]\nfactors: {layers: {two: [model.layers=2], one: [model.layers=1]}}"
    )
    plan = read_ablation(str(path))
    assert plan.is_base("layers", "two", "as-base")
    assert not plan.is_base("base", "", "as-base")
    assert [run.name for run in plan.runs([0])] == ["base/as-base/seed-0", "layers/one/as-base/seed-0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("factors: {a: {b: [model.layer=0]}}", "factor 'a', level 'b': 'model.layer' is not a setting; did"),
        ("base: [model.width=x]\nfactors: {a: {b: [seed=1]}}", "factor 'a', 'b': 'seed=1' is set run by run"),
        ("base: [run.folder=x]\nfactors: {a: {b: []}}", "base: 'run.folder=x' is set run by run"),
        ("factors: {a: {b: [model.heads=3]}}", "level 'b': model.heads=3 does not divide"),
        ("factors: {a: {b: [split.name=unseen]}}", "changes the rows that are compared; make it a split"),
        (
            "splits: {R: [data.rows=9]}\nfactors: {a: {b: []}}",
            "split 'R': 'data.rows=9' is no setting of split",
        ),
        ("factors: {a: {../b: []}}", "'../b' cannot name a directory"),
        ("factors: {base: {b: []}}", "'base' cannot name a directory"),
        ("factors: {a: {b: model.layers=2}}", "received 'model.layers=2'; write a list of overrides"),
        ("factors: {a: {b: [], b: []}}", "'b' is given twice"),
        ("factors: {a: [model.layers=2]}", "factor 'a': write name: value"),
        ("factors: {}", "factors: write name: value"),
        ("factor: {a: {b: []}}", "must have the parts base, splits, factors"),
        ("factors: [", "is not YAML"),
    ],
)
def test_wrong_files_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_ablation(str(path))
    assert "\n" not in str(caught.value)


def test_unknown_ablations_are_named() -> None:
    with pytest.raises(ConfigError, match="known: ecoli-core, encoder, encoder-simulated, yeast-digenic"):
        read_ablation("fly")
    with pytest.raises(ConfigError, match=r"no file 'fly\.yaml'"):
        read_ablation("fly.yaml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "splits", "as_base"),
    [
        ("ecoli-core", {"R", "G"}, [("layers", "0")]),
        ("encoder", {"R"}, []),
        ("encoder-simulated", {"R"}, []),
        ("yeast-digenic", {"R", "G"}, []),
        ("yeast-pairs", {"R", "Q"}, []),
    ],
)
def test_ablations_that_come_along_are_right(
    name: str, splits: set[str], as_base: list[tuple[str, str]]
) -> None:
    assert known("ablation") == ["ecoli-core", "encoder", "encoder-simulated", "yeast-digenic", "yeast-pairs"]
    plan = read_ablation(name)
    assert set(plan.splits) >= splits
    for split in plan.splits:
        assert [level for level in plan.levels[1:] if plan.is_base(*level, split)] == as_base
