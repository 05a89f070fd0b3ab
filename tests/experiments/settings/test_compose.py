from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets.dataset import Dataset
from wildtype.datasets.storage import save_dataset
from wildtype.errors import ConfigError, WildtypeError
from wildtype.experiments.folder import changed_setting, settings_of
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import FULLER, FURTHER, compose, known
from wildtype.experiments.settings.stored import RUN
from wildtype.files import write_json
from wildtype.models.baselines import BASELINES
from wildtype.models.registry import MODELS, check, config_class
from wildtype.sources.catalogue import DATASETS, dataset_folder

SCREEN, FULL = "yeast-digenic-costanzo2010", FULLER["yeast-digenic-best"]


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


@pytest.fixture
def full_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of the dataset of all scores of 2016 in a cache of the test's own; not there yet."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    return dataset_folder(FULL) / "dataset.json"


def build_full(record: Path) -> None:
    record.parent.mkdir(parents=True)
    record.write_text("{}")


def test_the_fuller_screen_is_taken_where_it_is_built(full_screen: Path) -> None:
    said: list[str] = []
    recipe = compose(["experiment=yeast-digenic-best"], said.append)
    assert (recipe.data.name, recipe.data.listed) == (SCREEN, None)
    build_full(full_screen)
    fuller = compose(["experiment=yeast-digenic-best", "seed=2"], said.append)
    # The preset of the dataset, and what the experiment fixes.
    assert (fuller.data.name, fuller.data.listed, fuller.data.tokens) == (FULL, 400_000, "all")
    assert (fuller.model.name, fuller.seed, fuller.split.validation) == ("pair_screen", 2, 0.05)
    assert said == [
        f"dataset {SCREEN}: {FULL} is not built; name another with data=…",
        f"dataset {FULL}: it is built, and fuller than {SCREEN}; name another with data=…",
    ]
    assert compose(["experiment=yeast-digenic-listed"]).data.name == f"{SCREEN}-stringent"


@pytest.mark.parametrize("key", ["data", "data.name"])
def test_a_dataset_that_is_named_is_taken(full_screen: Path, key: str) -> None:
    build_full(full_screen)
    said: list[str] = []
    for name in (SCREEN, FULL):
        config = compose(["experiment=yeast-digenic-best", f"{key}={name}"], said.append)
        assert (config.data.name, config.model.name, said) == (name, "pair_screen", [])


def test_a_run_keeps_its_dataset(full_screen: Path, tmp_path: Path) -> None:
    words = ["experiment=yeast-digenic-best", f"run.folder={tmp_path / 'run'}"]
    first, said = compose(words), []
    write_json(tmp_path / "run" / RUN, {"plugins": [], "settings": settings_of(first)})
    assert settings_of(first)["data"]["name"] == SCREEN
    build_full(full_screen)
    for how in ("run.resume=true", "run.requeued=true"):
        again = compose([*words, how], said.append)
        assert changed_setting(tmp_path / "run", again) is None
    assert said == [f"dataset {SCREEN}: that of the run in {words[1][11:]!r}; name another with data=…"] * 2
    assert compose([*words, "run.overwrite=true"]).data.name == FULL
    full_screen.unlink()
    write_json(
        tmp_path / "run" / RUN, {"plugins": [], "settings": settings_of(compose([*words, f"data={FULL}"]))}
    )
    assert compose(words).data.name == FULL


def test_other_screens_that_are_built_are_looked_at(full_screen: Path, tmp_path: Path) -> None:
    words = ["experiment=yeast-digenic-best", f"run.folder={tmp_path / 'run'}"]
    collins, schuldiner, repair = FURTHER["yeast-digenic-best"]
    said: list[str] = []
    assert compose(words).data.screens == []
    write_json(tmp_path / "run" / RUN, {"plugins": [], "settings": settings_of(compose(words))})
    build_full(dataset_folder(collins) / "dataset.json")
    # A run that goes on keeps what it began with.
    assert compose(words).data.screens == []
    assert compose(words[:1], said.append).data.screens == [collins]
    assert said[-1] == f"other screens: {collins}; name others with data.screens=[…]"
    build_full(dataset_folder(schuldiner) / "dataset.json")
    assert compose([*words[:1], f"data={SCREEN}"]).data.screens == [collins, schuldiner]
    assert compose([*words[:1], f"data={collins}"]).data.screens == [schuldiner]
    # A screen of a reporter is none of growth: it is looked at only where it is named.
    for name in (repair, "yeast-upr-jonikas2009"):
        build_full(dataset_folder(name) / "dataset.json")
    assert compose(words[:1]).data.screens == [collins, schuldiner, repair]
    assert compose([*words[:1], "data=ecoli-core-growth"]).data.screens == []
    for named in ("data.screens=[]", "model=cell_transformer"):
        assert compose([*words[:1], named]).data.screens == []
    assert compose(["experiment=yeast-digenic-listed"]).data.screens == []


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
        (
            "model=gnn",
            "no model 'gnn'; known models: cell_transformer, pair_screen, gaussian_process, dango, "
            "difference_gnn",
        ),
        ("model.layer=2", "'model.layer' is not a setting; did you mean model.layers"),
        ("data=a b", "no dataset 'a b'; known: ecoli-core-doses"),
        ("experiment=yeast", "no experiment 'yeast'; did you mean yeast-xga or yeast-calls"),
        ("model.layers=two", "two"),
        pytest.param("model.layers=" + "9" * 5_000, "digits", id="a number of 5,000 digits"),
        ("layers", "write key=value"),
        ("+extra=1", "'extra' is not a setting"),
        ("model._target_=os.system", "not a setting"),
        ("training.epochs=ten", "^'training.epochs=ten': Value 'ten' of type 'str' could not be .* Integer$"),
        ("seed=1,2", "^'seed=1,2' names several values: .* add --multirun to train one run for each$"),
        ("seed=range(1,3)", "names several values"),
    ],
)
def test_wrong_words_are_one_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        compose([word])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 5_000, "../elsewhere"])
def test_no_file_is_looked_for_by_a_name_that_is_no_dataset(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    for folder in ("datasets", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "elsewhere" / "dataset.json").write_text("no record", encoding="utf-8")
    config = compose([f"data.name={name}"])
    assert (config.data.name, config.model.name) == (name, compose([]).model.name)


def test_a_word_changes_no_settings_but_its_own() -> None:
    before = compose(["data=ecoli-core-growth"])
    changed = compose(["data=ecoli-core-growth", "baselines=[mean]", "model.prior.heads.physical.layer=1"])
    assert changed.baselines == ["mean"]
    assert compose(["data=ecoli-core-growth"]) == before


@pytest.mark.parametrize(
    "override",
    [
        "seed=${oc.env:HOME}",
        "run.folder=${oc.env:HOME}",
        "run.folder='a${oc.env:HOME}'",
        "baselines=[mean,'${oc.env:HOME}']",
        "model.layers=${seed}",
        "training.learning_rate=${oc.decode:1}",
        "data=${oc.env:HOME}",
    ],
)
def test_nothing_is_put_in_place_of_an_interpolation(override: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "secret")
    with pytest.raises(ConfigError, match=r"\$\{") as caught:
        compose([override])
    assert "secret" not in str(caught.value)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Dataset:
    """A built dataset of the user's own with 200 rows, beside one of a single row."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    dataset = tiny_dataset().select(["epsilon"])
    for name, rows in (("few", 200), ("none", 1)):
        save_dataset(
            replace(dataset, name=name, table=dataset.table.take(np.arange(rows))), dataset_folder(name)
        )
    return replace(dataset, name="few")


@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "training.threads=1",
        "training.device=cpu",
        "training.deterministic=true",
        "run.progress=false",
        "execution=training",
        "model.steps=10",
        "model.leave_out=[spectral]",
    ],
)
def test_a_small_table_takes_the_model_for_few_rows_whatever_this_model_uses(
    few: Dataset, override: str
) -> None:
    said: list[str] = []
    assert compose(["data=few", override], said.append).model.name == "gaussian_process"
    (line,) = said
    assert line.startswith("model gaussian_process: few has 200 rows, from which a network learns little")


def test_a_setting_of_the_model_for_few_rows_is_put_in(few: Dataset) -> None:
    config = compose(["model.steps=10", "data.name=few", "training.threads=2"])
    assert (config.model.name, config.model.steps, config.training.threads) == ("gaussian_process", 10, 2)


@pytest.mark.parametrize(
    "override",
    [
        "model.width=16",
        "model.prior.heads.physical.layer=1",
        "training.epochs=2",
        "training.batch_size=64",
        "training.members=2",
        "execution=data_only",
    ],
)
def test_a_small_table_takes_a_network_for_a_setting_of_networks_and_says_so(
    few: Dataset, override: str
) -> None:
    said: list[str] = []
    words = ["data=few", "training.threads=1", override]
    assert compose(words, said.append).model.name == "cell_transformer"
    assert said == [
        f"model cell_transformer: {override!r} is not for gaussian_process, the default for the 200 rows of "
        f"few, from which a network learns little; name another with model=…"
    ]


def test_a_small_table_takes_the_model_that_is_named_without_a_word(few: Dataset) -> None:
    said: list[str] = []
    for words in (["model=dango"], ["model.name=dango", "training.threads=1"], ["experiment=transfer"]):
        with contextlib.suppress(WildtypeError):
            assert compose(["data=few", *words], said.append).model.name != "gaussian_process"
    assert compose(["data=few", "model=gaussian_process"], said.append).model.name == "gaussian_process"
    assert not said


def test_a_misspelt_setting_chooses_no_network(few: Dataset) -> None:
    with pytest.raises(ConfigError, match=r"'model\.step' is not a setting; did you mean model\.steps"):
        compose(["data=few", "model.step=10"])


def test_a_run_of_a_small_table_that_goes_on_keeps_its_model(few: Dataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(compose(["data=few", "model=gaussian_process", "model.steps=1", "baselines=[]", f"run.folder={run}",
                   "run.progress=false"]), dataset=few)  # fmt: skip
    said: list[str] = []
    for words in ([], ["model.steps=1", "training.threads=1"]):
        config = compose(["data=few", f"run.folder={run}", "run.resume=true", *words], said.append)
        assert config.model.name == "gaussian_process"
    assert said == [f"model gaussian_process: that of the run in {str(run)!r}; name another with model=…"] * 2


def test_rows_that_are_no_numbers_keep_the_default_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    dataset = tiny_dataset().select(["epsilon"])
    signs = replace(dataset.table, value=(dataset.table.value > 0).astype(np.float32))
    phenotype = replace(dataset.phenotypes[0], form="class")
    called = replace(dataset, name="called", phenotypes=(phenotype,), table=signs)
    save_dataset(called, dataset_folder("called"))
    assert compose(["data=called"]).model.name == "cell_transformer"


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("split=random", "split has settings of its own: write split.name=random"),
        ("baselines=mean", r"it is a list: write baselines=\[mean\]"),
    ],
)
def test_a_plain_value_for_a_section_or_a_list_says_how_it_is_written(override: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        compose([override])
