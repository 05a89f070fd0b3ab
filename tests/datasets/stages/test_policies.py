from __future__ import annotations

from dataclasses import fields

import pytest

from wildtype.datasets.stages.policies import POLICIES, Policies
from wildtype.errors import ConfigError


@pytest.mark.parametrize("choice", list(POLICIES))
def test_an_unknown_setting_names_the_known_ones(choice: str) -> None:
    with pytest.raises(ConfigError, match=f"{choice}.*no setting 'other'.*{next(iter(POLICIES[choice]))}"):
        Policies(**{choice.replace(" ", "_"): "other"})


def test_every_field_is_described_and_every_meaning_is_one_line() -> None:
    described = Policies(neutral=("HO",)).described()
    assert len(described) == len(fields(Policies)) - 1  # environment stands with environments
    assert described["neutral loci"] == "HO"
    assert described["replicates"].startswith("mean: ")
    assert not [text for known in POLICIES.values() for text in known.values() if "\n" in text or not text]


def test_the_chosen_environment_is_told() -> None:
    chosen = Policies(environments="one", environment="YPD, 30 °C")
    assert chosen.described()["environments"].startswith("one (YPD, 30 °C): ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"environments": "one"}, "do not fit: name an environment"),
        ({"environment": "YPD"}, "do not fit: name an environment"),
        ({"replicates": "apart"}, "a mean over alleles is one over their replicates too"),
        ({"neutral": "HO"}, "is not a list of gene names"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policies(**settings)  # type: ignore[arg-type]


def test_parse() -> None:
    parsed = Policies.parse({"listed-again": "once", "neutral": "YDL227C, HO", "essential": "fitness 0"})
    assert parsed == Policies(neutral=("HO", "YDL227C"), essential="fitness 0")
    assert Policies.parse({"neutral": ""}) == Policies()
    with pytest.raises(ConfigError, match="no policy 'colour': choose among studies"):
        Policies.parse({"colour": "red"})
