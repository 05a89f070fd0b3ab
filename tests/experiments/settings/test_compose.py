from __future__ import annotations

import pytest

from wildtype.errors import ConfigError
from wildtype.experiments.settings.compose import compose, known
from wildtype.models.baselines import BASELINES
from wildtype.models.registry import MODELS, check, config_class
from wildtype.sources.catalogue import DATASETS


def test_defaults_then_dataset_then_words() -> None:
    config = compose(
        ["data=yeast-digenic-costanzo2010", "model.layers=0", "seed=3", "model.prior.heads.physical.layer=1"]
    )
    assert config.data.name == "yeast-digenic-costanzo2010"
    assert config.data.tokens == "measured"
    assert (config.model.layers, config.seed, config.model.prior.heads["physical"].layer) == (0, 3, 1)
    assert compose().data.name == "ecoli-core-growth"


@pytest.mark.slow
def test_every_dataset_has_settings() -> None:
    assert set(known("data")) == {*DATASETS, "other"}
    for name in DATASETS:
        config = compose([f"data={name}"])
        assert config.data.name == name
        check(config.model)


def test_own_data_take_the_general_settings() -> None:
    config = compose(["data=my-screen", "seed=2"])
    assert (config.data.name, config.data.tokens, config.seed) == ("my-screen", "all", 2)
    assert compose(["data.name=my-screen"]) == compose(["data=my-screen"])


def test_an_experiment_chooses_its_data() -> None:
    config = compose(["experiment=yeast-trigenic", "split.name=random"])
    assert (config.data.name, config.split.name) == ("yeast-trigenic-kuzmin2018", "random")
    assert compose(["experiment=yeast-trigenic"]).split.name == "query-pair"


def test_experiments_of_many_phenotypes_split_as_they_say() -> None:
    order = compose(["experiment=yeast-xga-order"]).split
    assert (order.name, order.order, order.up_to) == ("order", 9, 6)
    assert compose(["experiment=yeast-calls"]).split.name == "query-pair"
    config = compose(["experiment=yeast-morphology"])
    assert config.split.name == "unseen"
    assert "feature_ridge" in config.baselines
    assert set(config.baselines) <= set(BASELINES)


def test_the_published_protocol_of_dango_is_a_recipe() -> None:
    config = compose(["experiment=dango-published", "split.name=unseen", "split.genes=400"])
    assert (config.model.name, config.data.name, config.data.flip) == (
        "dango",
        "yeast-trigenic-kuzmin2018",
        True,
    )
    assert (config.training.loss, config.training.weighting, config.training.members) == ("log_cosh", "p", 10)
    assert (config.split.name, config.split.genes) == ("unseen", 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_has_settings_and_fits_datasets_of_every_kind(name: str) -> None:
    for data in ("ecoli-core-growth", "yeast-trigenic-kuzmin2018", "yeast-xga-celaj2020"):
        config = compose([f"model={name}", f"data={data}"])
        assert config.data.name == data
        assert type(config.model) is config_class(name)
        check(config.model)
    assert compose([f"model.name={name}"]) == compose([f"model={name}"])


def test_keys_are_those_of_the_chosen_model() -> None:
    assert compose(["model=dango", "model.transition=3", "model.zeros.fusion=0.5"]).model.zeros == {
        "fusion": 0.5
    }
    with pytest.raises(ConfigError, match=r"'model\.prior\.heads' is not a setting"):
        compose(["model=dango", "model.prior.heads={}"])
    with pytest.raises(ConfigError, match=r"'model\.zeros\.fusion' is not a setting"):
        compose(["model.zeros.fusion=0.5"])


def test_what_suits_data_and_model_together_is_not_for_other_models() -> None:
    assert compose(["data=yeast-digenic-costanzo2010"]).model.table is False
    assert compose(["data=yeast-digenic-costanzo2010", "model.table=true"]).model.table is True
    assert not hasattr(compose(["data=yeast-digenic-costanzo2010", "model=dango"]).model, "table")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("model=gnn", "no model 'gnn'; known models: cell_transformer, pair_screen, dango, difference_gnn"),
        ("model.layer=2", "'model.layer' is not a setting; did you mean model.layers"),
        ("data=a b", "no dataset 'a b'; known: ecoli-core-doses"),
        ("experiment=yeast", "no experiment 'yeast'; known: dango-published"),
        ("model.layers=two", "two"),
        pytest.param("model.layers=" + "9" * 5_000, "digits", id="a number of 5,000 digits"),
        ("layers", "write key=value"),
        ("+extra=1", "'extra' is not a setting"),
        ("model._target_=os.system", "not a setting"),
    ],
)
def test_wrong_words_are_one_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        compose([word])
    assert "\n" not in str(caught.value)
