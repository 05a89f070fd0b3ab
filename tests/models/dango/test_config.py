from __future__ import annotations

import pytest

from tests.models.dango.examples import NAMES
from wildtype.errors import ConfigError
from wildtype.models.dango.config import (
    SCHEDULES,
    DangoConfig,
    chosen_relations,
    published_zeros,
    reconstruction_share,
)
from wildtype.models.registry import check


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "tango"}, "model.name='tango'"),
        ({"width": 1}, "model.width=1"),
        ({"heads": 0}, "model.heads=0"),
        ({"layers_head": 0}, "layers_head=0"),
        ({"heads": 5}, "model.heads=5 does not divide model.width=64"),
        ({"dropout": 1.0}, "model.dropout=1.0"),
        ({"schedule": "cosine"}, "model.schedule='cosine': choose pre_then_post, linear_until_uniform"),
        ({"transition": -1}, "model.transition=-1"),
        ({"zeros": {"physical": -0.1}}, "model.zeros={'physical': -0.1}: every number must be at least 0"),
        ({"zeros": {"physical": float("nan")}}, "model.zeros={'physical': nan}"),
        ({"relations": ["physical", "physical"]}, "'physical' more than once"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(DangoConfig(**settings))  # type: ignore[arg-type]


def test_defaults_pass() -> None:
    check(DangoConfig())


def test_published_weights_by_channel() -> None:
    assert [published_zeros(name) for name in NAMES] == [0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert published_zeros("string_coexpression") == 0.1
    assert published_zeros("string9.1_experimental") == 0.1
    # Not channels of STRING, whatever their ending.
    assert published_zeros("coexpression_hu2007") == 1.0
    assert published_zeros("my_coexpression") == 1.0
    assert published_zeros("string12_coexpression_filtered") == 1.0


def test_relations_and_their_weights() -> None:
    assert list(chosen_relations(DangoConfig(), NAMES)) == list(NAMES)
    config = DangoConfig(relations=["regulatory", NAMES[0]], zeros={"regulatory": 0.5, NAMES[2]: 0.0})
    assert chosen_relations(config, NAMES) == {"regulatory": 0.5, NAMES[0]: 0.1}
    with pytest.raises(ConfigError, match="model.relations names 'physicl'.*known: string12_coexpression,"):
        chosen_relations(DangoConfig(relations=["physicl"]), NAMES)
    with pytest.raises(ConfigError, match="model.zeros names 'physicl'.*known: string12_coexpression,"):
        chosen_relations(DangoConfig(zeros={"physicl": 0.5}), NAMES)
    with pytest.raises(ConfigError, match="needs a gene network"):
        chosen_relations(DangoConfig(), ())


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("pre_then_post", [1, 1, 1, 1, 0, 0]),
        ("linear_until_uniform", [1, 0.875, 0.75, 0.625, 0.5, 0.5]),
        ("linear_until_flipped", [1, 0.75, 0.5, 0.25, 0, 0]),
    ],
)
def test_schedules(schedule: str, expected: list[float]) -> None:
    assert [reconstruction_share(schedule, epoch, 4) for epoch in range(6)] == expected
    assert reconstruction_share(schedule, 0, 0) == expected[-1]
    assert schedule in SCHEDULES
