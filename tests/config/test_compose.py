from __future__ import annotations

import pytest

from wildtype.config.compose import compose, known
from wildtype.errors import ConfigError
from wildtype.sources.catalogue import DATASETS


def test_defaults_then_dataset_then_words() -> None:
    config = compose(
        ["data=yeast-digenic-costanzo2010", "model.layers=0", "seed=3", "model.prior.heads.physical.layer=1"]
    )
    assert config.data.name == "yeast-digenic-costanzo2010"
    assert config.data.tokens == "measured"
    assert (config.model.layers, config.seed, config.model.prior.heads["physical"].layer) == (0, 3, 1)
    assert compose().data.name == "ecoli-core-growth"


def test_every_dataset_has_settings() -> None:
    assert set(known("data")) == {*DATASETS, "other"}
    for name in DATASETS:
        assert compose([f"data={name}"]).data.name == name


def test_own_data_take_the_general_settings() -> None:
    config = compose(["data=my-screen", "seed=2"])
    assert (config.data.name, config.data.tokens, config.seed) == ("my-screen", "all", 2)
    assert compose(["data.name=my-screen"]) == compose(["data=my-screen"])


def test_an_experiment_chooses_its_data() -> None:
    config = compose(["experiment=yeast-trigenic", "split.name=random"])
    assert (config.data.name, config.split.name) == ("yeast-trigenic-kuzmin2018", "random")
    assert compose(["experiment=yeast-trigenic"]).split.name == "query-pair"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("model.layer=2", "'model.layer' is not a setting; did you mean model.layers"),
        ("data=a b", "no dataset 'a b'; known: ecoli-core-growth"),
        ("experiment=yeast", "no experiment 'yeast'; known: yeast-trigenic"),
        ("model.layers=two", "two"),
        ("layers", "write key=value"),
        ("+extra=1", "'extra' is not a setting"),
        ("model._target_=os.system", "not a setting"),
    ],
)
def test_wrong_words_are_one_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        compose([word])
    assert "\n" not in str(caught.value)
