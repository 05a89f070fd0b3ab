"""Every setting is declared once, and what is declared is what is checked, shown and documented."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import yaml
from omegaconf.errors import OmegaConfBaseException

from tools.settings_table import BEGIN, END, table
from wildtype.datasets.plans import ALIASES, BY, DEFAULT_FRACTIONS
from wildtype.errors import ConfigError
from wildtype.evidence.holdout import SCHEMES
from wildtype.experiments.settings.compose import compose, known
from wildtype.experiments.settings.schema import SplitName, TrainConfig
from wildtype.models.dango.config import SCHEDULES
from wildtype.models.difference_gnn.layers import ACTIVATIONS
from wildtype.models.registry import MODELS, config_class
from wildtype.mutants import Kind
from wildtype.settings import (
    Declared,
    Setting,
    build,
    check_settings,
    declared,
    from_record,
    schema,
    setting,
    to_yaml,
)
from wildtype.training.objective import LOSSES

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"


def every_setting() -> list[Declared]:
    found = list(declared(TrainConfig()))
    for name in MODELS:
        found += [d for d in declared(config_class(name)(), "model.")]
    return found


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("training.learning_rate=inf", "training.learning_rate=inf: it must be above 0"),
        ("training.learning_rate=0", "training.learning_rate=0.0: it must be above 0"),
        ("training.weight_decay=nan", "training.weight_decay=nan: it must be at least 0, and finite"),
        ("training.clip=-1", "training.clip=-1.0: it must be at least 0"),
        ("training.warmup=1", "training.warmup=1.0: it must be at least 0 and below 1"),
        ("training.threads=-4", "training.threads=-4: it must be at least 0"),
        ("training.patience=-1", "training.patience=-1: it must be at least 0"),
        ("training.loss=cubic", "training.loss='cubic': choose squared, log_cosh"),
        ("training.precision=16", "training.precision='16': did you mean bf16\\? choose auto, 32, bf16"),
        ("model.dropout=2", "model.dropout=2.0: it must be at least 0 and below 1"),
        ("model.feature_dropout=nan", "model.feature_dropout=nan: it must be at least 0 and below 1"),
        ("model.feedforward=0", "model.feedforward=0: it must be at least 1"),
        ("model.head.sharpness=inf", "model.head.sharpness=inf: it must be above 0"),
        ("model.head.direct=[sum,max]", "model.head.direct=.* names 'max': choose mean, sum, product"),
        ("model.prior.weight=-1", "model.prior.weight=-1.0: it must be at least 0"),
        ("model.prior.heads.physical.layer=-1", "model.prior.heads.physical.layer=-1: it must be at least 0"),
        ("model.trees.leaves=[7,1]", r"model.trees.leaves=\[7, 1\]: every number must be at least 2"),
        ("model.trees.mixing_weight=nan", "model.trees.mixing_weight=nan: it must be at most 1"),
        ("model.trees.tokens=-1", "model.trees.tokens=-1: it must be at least 0"),
        (
            "model.evidence.holdout.two=1",
            "model.evidence.holdout=.* names 'two': choose seen, one, none, pair",
        ),
        ("split.name=half", "split.name='half': choose random, one-unseen"),
        ("split.validation=1", "split.validation=1.0: it must be above 0 and below 1"),
        ("split.folds=1", "split.folds=1: it must be at least 2"),
        ("split.by=day", "split.by='day': choose query, condition, study"),
        ("data.rows=0", "data.rows=0: it must be at least 1"),
        ("data.tokens=some", "data.tokens='some': choose all, measured"),
        ("run.replicates=0", "run.replicates=0: it must be at least 1"),
        ("execution=half", "execution='half': choose training, forward_backward"),
        ("seed=-1", "seed=-1: it must be at least 0"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        compose([word])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("found", every_setting(), ids=lambda found: found.name)
def test_every_setting_says_what_it_is_and_what_it_may_be(found: Declared) -> None:
    assert found.setting.help.endswith(".")
    found.check()  # the default is allowed
    number = isinstance(found.value, int | float) and not isinstance(found.value, bool)
    if number or found.kind.startswith(("number", "whole number")):
        assert found.setting.range


def changed(config: Any, name: str, value: object) -> Any:
    *path, last = name.split(".")
    node = config
    for part in path:
        node = getattr(node, part)
    setattr(node, last, value)
    return config


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "found", [d for d in every_setting() if d.kind.startswith("number")], ids=lambda d: d.name
)
def test_no_number_may_be_infinite_or_not_a_number(found: Declared, bad: float) -> None:
    for name in MODELS:
        config = TrainConfig(model=config_class(name)())
        if found.name not in {d.name for d in declared(config)}:
            continue
        with pytest.raises(ConfigError, match=f"{found.name}="):
            check_settings(changed(config, found.name, bad))


def test_choices_are_those_that_the_code_knows() -> None:
    choices = {found.name: set(found.choices) for found in every_setting() if found.name != "model.name"}
    assert set(get_args(SplitName)) == {*DEFAULT_FRACTIONS, *ALIASES}
    assert choices["split.by"] == set(BY)
    assert choices["model.schedule"] == set(SCHEDULES)
    assert choices["model.activation"] == set(ACTIVATIONS)
    assert choices["model.removes"] == {kind.name.lower() for kind in Kind}
    assert choices["model.evidence.holdout"] == set(SCHEMES)
    assert choices["training.loss"] == set(LOSSES)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_shown_is_yaml_of_the_settings(name: str) -> None:
    config = compose([f"model={name}"])
    shown = yaml.safe_load(to_yaml(config))
    assert from_record(type(config.model), shown.pop("model")) == config.model
    rest = from_record(TrainConfig, shown)
    rest.model = config.model
    assert rest == config


def test_every_experiment_keeps_to_what_is_declared() -> None:
    for name in known("experiment"):
        check_settings(compose([f"experiment={name}"]))


@dataclass
class Inner:
    rate: float = setting(0.5, "A rate.", minimum=0, maximum=1)


@dataclass
class Outer:
    mode: Literal["fast", "slow"] = setting("fast", "A mode.")
    modes: list[Literal["fast", "slow"]] = setting(["slow"], "Modes.")
    by_name: dict[str, Inner] = setting({}, "By name.")
    maybe: Literal["a"] | None = setting(None, "Perhaps.")
    inner: Inner = field(default_factory=lambda: Inner(rate=0.25))
    plain: int = 3


def test_a_models_own_settings_are_read_back_as_they_were() -> None:
    given = Outer(mode="slow", by_name={"x": Inner(rate=1.0)}, maybe="a", plain=4)
    record = {"mode": "slow", "by_name": {"x": {"rate": 1.0}}, "maybe": "a", "plain": 4}
    assert from_record(Outer, record) == given
    assert type(from_record(Outer, record).by_name["x"]) is Inner
    assert build(Outer, {}) == Outer()
    assert Outer().modes is not Outer().modes
    assert [f.name for f in fields(schema(Outer))] == [f.name for f in fields(Outer)]
    with pytest.raises(OmegaConfBaseException):
        from_record(Outer, {"unknown": 1})
    with pytest.raises(OmegaConfBaseException):
        from_record(Outer, {"inner": {"rate": "much"}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Outer(mode="slower"), "mode='slower': did you mean slow\\? choose fast, slow"),  # type: ignore[arg-type]
        (Outer(modes=["fast", "x"]), "modes=.* names 'x': choose fast, slow"),  # type: ignore[list-item]
        (Outer(by_name={"x": Inner(rate=2)}), "by_name.x.rate=2: it must be at least 0 and at most 1"),
        (Outer(inner=Inner(rate=-1)), "inner.rate=-1: it must be at least 0 and at most 1"),
        (Outer(plain=math.inf), "plain=inf: it must be a finite number"),  # type: ignore[arg-type]
    ],
)
def test_nested_settings_lists_and_maps_are_checked(config: Outer, message: str) -> None:
    check_settings(Outer())
    with pytest.raises(ConfigError, match=message):
        check_settings(config)


def test_the_reference_lists_every_setting() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip() == table().strip(), (
        "python -m tools.settings_table writes the table anew"
    )
    assert is_dataclass(TrainConfig)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan")], ids=str)
def test_a_number_too_large_for_a_float_is_out_of_every_range(value: float) -> None:
    assert not Setting().holds(value)
    assert not Setting(minimum=-1, maximum=5).holds(value)
