"""Searches as files: everything wrong is found before anything runs, and told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import ConfigError
from wildtype.experiments.settings.compose import known
from wildtype.experiments.settings.tuning import Choices, Range, read_tuning, written


def test_ranges_choices_and_the_base(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "base: [model.layers=2, model.dropout=0.25]\n"
        "space: {model.layers: {low: 0, high: 4, step: 2}, model.dropout: {low: 0.0, high: 0.5},\n"
        "        model.head.direct: [[sum], [sum, product]], model.table: [true, false]}\n"
    )
    plan = read_tuning(str(path), ["model.head.direct=[sum]"])
    assert plan.space["model.layers"] == Range(0, 4, step=2)
    assert plan.space["model.head.direct"] == Choices(("[sum]", "[sum,product]"))
    params = plan.base_params()
    assert params is not None
    assert params["model.layers"] == 2
    assert params["model.head.direct"] == "[sum]"
    config = plan.with_params(params | {"model.layers": 4, "model.head.direct": "[sum,product]"})
    assert (config.model.layers, config.model.head.direct) == (4, ["sum", "product"])
    assert read_tuning(str(path), ["model.layers=1"]).base_params() is None


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("{model.layer: [1]}", "'model.layer': 'model.layer' is not a setting; did"),
        ("{model.heads: [3]}", "'model.heads': model.heads=3 does not divide"),
        ("{model.dropout: {low: 0.5, high: 0.1}}", "low must be below high"),
        ("{model.dropout: {low: 0.0, high: 0.1, log: true}}", "above 0 where log is true"),
        ("{model.dropout: {low: 0, high: 0.4, step: 0.5}}", "a step is above 0"),
        ("{model.dropout: {low: 0, high: x}}", "low, high and step are numbers"),
        ("{model.dropout: {low: 0, high: .nan}}", "low, high and step are numbers"),
        ("{model.dropout: {low: 0}}", "write a range"),
        ("{model.dropout: []}", "write a range"),
        ("{model.layers: [1, 1]}", "a choice is repeated"),
        ("{data.rows: [100, 200]}", "rows that are compared must stay the same"),
        ("{split.name: [random, unseen]}", "rows that are compared must stay the same"),
        ("{seed: [1, 2]}", "rows that are compared must stay the same"),
        ("{}", "space: write setting: range"),
        ("[]", "space: write setting: range"),
        (f"{{model.layers: [{'9' * 5000}]}}", "is not YAML"),
    ],
)
def test_wrong_files_are_one_sentence(tmp_path: Path, space: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(f"space: {space}")
    with pytest.raises(ConfigError, match=message) as caught:
        read_tuning(str(path))
    assert "\n" not in str(caught.value)


def test_unknown_searches_are_named() -> None:
    with pytest.raises(ConfigError, match="no search 'fly'; known: ecoli-core"):
        read_tuning("fly")


def test_searches_that_come_along_are_right_and_begin_with_their_base() -> None:
    assert known("search") == ["ecoli-core"]
    for name in known("search"):
        assert read_tuning(name).base_params() is not None


def test_values_are_written_as_words() -> None:
    assert [written(x) for x in (True, None, 3, 1e-5, "a", [1, "b"])] == [
        "true",
        "null",
        "3",
        "1e-05",
        "a",
        "[1,b]",
    ]
