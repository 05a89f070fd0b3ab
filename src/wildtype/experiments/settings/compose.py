"""From `key=value` overrides to checked settings, with Hydra; unknown keys and forbidden values are
errors in one sentence.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import MISSING, DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from wildtype.datasets.storage import stored_rows
from wildtype.errors import ConfigError, did_you_mean, reason_of, shown
from wildtype.experiments.settings.overrides import read_override
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.settings.stored import RUN, model_settings, read_settings
from wildtype.models.registry import MODELS, config_class, model_for_rows
from wildtype.settings import build, check_settings, declared, refuse_interpolations, schema
from wildtype.sources.catalogue import DATASETS, dataset_folder, further_datasets, is_built
from wildtype.training.config import WITHOUT_GRADIENTS

SETTINGS = Path(__file__).parents[1] / "presets"
GROUPS = {"data": "dataset", "model": "model", "experiment": "experiment"}
FULLER = {"yeast-digenic-best": "yeast-digenic-costanzo2016-full"}
"""The dataset that an experiment takes, where it is built, before that of its preset."""
FURTHER = {
    "yeast-digenic-best": ("yeast-emap-collins2007", "yeast-emap-schuldiner2005", "yeast-gis-diazmejia2018")
}
"""Other screens (``data.screens``) that an experiment looks at, those of them that are built."""
LONGEST = 500
"""Characters of another library's message about an override."""


def compose(overrides: Sequence[str] = (), log: Callable[[str], None] = lambda text: None) -> TrainConfig:
    """Return the settings of a run: defaults, then the presets of dataset and experiment, then ``overrides``.

    An experiment in ``FULLER`` takes the dataset named there where it is built, unless the overrides name
    one, or ``run.folder`` holds a run that is not to be overwritten: that run keeps its dataset. The screens
    in ``FURTHER`` are taken likewise, unless the overrides name some, or another model. A dataset of the
    user's own with few rows takes the model for so few (`model_for_rows`), unless the overrides name a model
    or an experiment, or set something that this model does not use, as the epochs of a network.

    Parameters
    ----------
    overrides : sequence of str
        ``data=yeast-digenic-costanzo2010``, ``model=dango``, ``experiment=yeast-trigenic``,
        ``model.layers=0``, ``seed=1``, …
    log : callable
        Receives a line that says which dataset was taken, and why, where an experiment has two, a line about
        other screens, and one about the model of few rows.

    Raises
    ------
    ConfigError
        On an unknown key, dataset, model or experiment, or a value of the wrong type or out of range.
    CheckpointError
        If the model is to have the settings of another, or a run its dataset, and there is none, or it is
        damaged.
    """
    keys = dict(_key_and_value(override) for override in overrides)
    overrides = [*overrides, *_model_of_rows(overrides, log)]
    config = _composed(overrides)
    if (fuller := FULLER.get(keys.get("experiment", ""))) and keys.keys().isdisjoint(("data", "data.name")):
        name, why = _of_two(config, fuller)
        log(f"dataset {name}: {why}; name another with data=…")
        if name != config.data.name:
            config = _composed([*overrides, f"data={name}"])
    if (further := FURTHER.get(keys.get("experiment", ""))) and keys.keys().isdisjoint(
        ("data.screens", "model", "model.name")
    ):
        config.data.screens = _further(config, further)
        if config.data.screens:
            log(f"other screens: {', '.join(config.data.screens)}; name others with data.screens=[…]")
    return config


def _model_of_rows(overrides: Sequence[str], log: Callable[[str], None]) -> list[str]:
    """Return the override that names the model of a small dataset of the user's own; none where the overrides
    choose one, and ``log`` is told of a choice that is not named.
    """
    keys = {_key_and_value(override)[0] for override in overrides}
    if keys & {"model", "model.name", "experiment"} or not keys & {"data", "data.name"}:
        return []
    # Settings of the model can be checked only when it is known which model they are of.
    config = _composed([text for text in overrides if not _key_and_value(text)[0].startswith("model.")])
    name = config.data.name
    # A name is a path only where such a dataset is known: it may be of any length, or lead elsewhere.
    if name in known("data") or name not in further_datasets():
        return []
    if (mark := _run_of(config)) is not None:
        found, why = read_settings(mark).model.name, f"that of the run in {config.run.folder!r}"
    else:
        rows, numbers = stored_rows(dataset_folder(name))
        fitting = model_for_rows(rows) if numbers else None
        if fitting is None:
            return []
        found, why = fitting, f"{name} has {rows:,} rows, from which a network learns little"
        if (other := _not_of(fitting, config.model.name, overrides)) is not None:
            found = config.model.name
            why = (
                f"{shown(other)} is not for {fitting}, the default for the {rows:,} rows of {name}, from "
                f"which a network learns little"
            )
    log(f"model {found}: {why}; name another with model=…")
    return [] if found == config.model.name else [f"model={found}"]


def _not_of(model: str, default: str, overrides: Sequence[str]) -> str | None:
    """Return the first override that sets what ``model`` does not use, and the ``default`` does."""
    models = tuple(config_class(name) for name in MODELS)
    used, others = (_names_of((f"model={name}",), models) for name in (model, default))
    steps = MODELS.find(model).gradients
    for override in overrides:
        key, value = _key_and_value(override)
        section, _, name = key.partition(".")
        if section == "model":
            # A misspelt setting chooses nothing.
            chooses = _is_one_of(key, *others) and not _is_one_of(key, *used)
        elif section == "training":
            chooses = not steps and name not in WITHOUT_GRADIENTS
        else:
            chooses = not steps and key == "execution" and value != "training"
        if chooses:
            return override
    return None


def _run_of(config: TrainConfig) -> Path | None:
    """Return the settings of the run that a run's folder holds and that is to go on."""
    mark = Path(config.run.folder) / RUN
    return mark if config.run.folder and not config.run.overwrite and mark.is_file() else None


def _further(config: TrainConfig, names: Sequence[str]) -> list[str]:
    """Return the other screens of a run: those that are built, of its organism."""
    if (mark := _run_of(config)) is not None:
        return read_settings(mark).data.screens
    organism = DATASETS.get(config.data.name)
    return [
        name for name in names if name != config.data.name and DATASETS[name] == organism and is_built(name)
    ]


def _of_two(config: TrainConfig, fuller: str) -> tuple[str, str]:
    """Return the dataset of a run whose experiment has two, and why."""
    if (mark := _run_of(config)) is not None:
        return read_settings(mark).data.name, f"that of the run in {config.run.folder!r}"
    if is_built(fuller):
        return fuller, f"it is built, and fuller than {config.data.name}"
    return config.data.name, f"{fuller} is not built"


def _composed(overrides: Sequence[str]) -> TrainConfig:
    given = [_key_and_value(override) for override in overrides]
    groups = [f"{key}={value}" for key, value in (_chosen(*pair) for pair in given) if key in GROUPS]
    keys, maps = _names_of(tuple(groups), tuple(config_class(name) for name in MODELS))
    checked = [_checked(*_chosen(*pair), keys, maps) for pair in given]
    # Hydra cannot add entries to a map by their dotted names; OmegaConf can.
    entries = [text for text in checked if text.startswith(tuple(f"{name}." for name in maps))]
    others = [text for text in checked if text not in entries]
    chosen = {text.partition("=")[0] for text in others}
    if "data.name" in chosen and "data" not in chosen:
        others.insert(0, "data=other")
    config = _compose(others, entries)
    if config.training.like_start and config.training.start:
        if of_model := [key for key, _ in given if key.partition(".")[0] == "model"]:
            raise ConfigError(
                f"{of_model[0]}: the model is that of training.start={config.training.start}; leave it out, "
                f"or set training.like_start=false"
            )
        config.model = model_settings(Path(config.training.start))
    check_settings(config)
    return config


@cache
def _names_of(groups: tuple[str, ...], models: tuple[type, ...]) -> tuple[list[str], list[str]]:
    """Return the names of all settings that these groups choose, and of those that are maps, whose keys are
    names of the user's data; ``models`` are the settings that are registered, for the cache.
    """
    config = _compose(groups, [])
    return known_keys(config), [found.name for found in declared(config) if isinstance(found.value, dict)]


def _compose(overrides: Sequence[str], entries: Sequence[str]) -> TrainConfig:
    """Return the settings that Hydra composes of checked overrides, with further entries of maps."""
    for name, _, value in (text.partition("=") for text in (*overrides, *entries)):
        refuse_interpolations(value, name)
    groups = tuple(text for text in overrides if text.partition("=")[0] in GROUPS)
    own = [text for text in overrides if text not in groups]
    try:
        composed: Any = copy.deepcopy(_presets(groups, tuple((name, config_class(name)) for name in MODELS)))
        for text in own:
            _put(composed, read_override(text))
        OmegaConf.set_struct(composed, False)
        if entries:
            composed = OmegaConf.merge(composed, OmegaConf.from_dotlist(list(entries)))
        values: Any = OmegaConf.to_container(composed, throw_on_missing=True)
        refuse_interpolations(values)  # of a preset
    except ConfigError:  # a sentence already, and a ValueError
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:  # a number of 5,000 digits
        raise ConfigError(_explain(error)) from error
    model = values["model"]
    return build(TrainConfig, values | {"model": build(config_class(model["name"]), model)})


def _put(composed: DictConfig, override: Override) -> None:
    """Put the value of one override in; raises ``ConfigError`` that names it where it does not fit."""
    text = shown(override.input_line)
    if override.is_sweep_override():
        raise ConfigError(
            f"{text} names several values: write one, a list as [1,2], a text with a comma in quotes, or add "
            f"--multirun to train one run for each"
        )
    try:
        OmegaConf.update(composed, override.key_or_group, override.value(), force_add=override.is_add())
    except OmegaConfBaseException as error:
        raise ConfigError(f"{text}: {_instead(composed, override) or reason_of(error)}") from error


def _instead(composed: DictConfig, override: Override) -> str:
    """Return how a plain value is written for a section or a list of settings; empty for other values."""
    key, value = override.key_or_group, override.value()
    there = OmegaConf.select(composed, key, default=None)
    if not isinstance(value, str):
        return ""
    if isinstance(there, ListConfig):
        return f"it is a list: write {key}=[{value}]"
    if isinstance(there, DictConfig) and "name" in there:
        return f"{key} has settings of its own: write {key}.name={value}"
    return ""


@lru_cache(maxsize=64)
def _presets(groups: tuple[str, ...], models: tuple[tuple[str, type], ...]) -> DictConfig:
    """Return what the presets say that these groups choose; ``models`` are those that are registered.

    Hydra takes most of 0.2 s to find and merge presets, and a session asks for few choices many times.
    """
    _register(models)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(SETTINGS.resolve()), version_base="1.3"):
        composed: DictConfig = hydra_compose("train", overrides=list(groups))
    return composed


@lru_cache(maxsize=1)
def _register(models: tuple[tuple[str, type], ...]) -> None:
    """Store the types of all settings for Hydra, again only if other ``models`` are registered: it takes a
    third of the time of composing settings.
    """
    settings = OmegaConf.structured(schema(TrainConfig))
    settings.model = MISSING  # its type is that of the model that is chosen
    store = ConfigStore.instance()
    store.store(name="schema", node=settings)
    for name, config in models:
        store.store(group="model_schema", name=name, node=schema(config))
        if name not in _files("model"):  # training settings of a plug-in are registered with it
            recipe = {"defaults": [{"/model_schema@model": name}], "training": dict(MODELS[name].training)}
            store.store(group="model", name=name, node=recipe, package="_global_")


def known_keys(node: object = TrainConfig, prefix: str = "") -> list[str]:
    """Return the dotted names of all settings."""
    names: list[str] = []
    instance = node() if isinstance(node, type) else node
    if is_dataclass(instance):
        for field in fields(instance):
            value = getattr(instance, field.name)
            names.append(prefix + field.name)
            names += known_keys(value, f"{prefix}{field.name}.") if is_dataclass(value) else []
    return names


def known(group: str) -> list[str]:
    """Return the names that a group has: ``data``, ``model``, ``experiment``, or a kind of plan."""
    return sorted(MODELS) if group == "model" else _files(group)


def _files(group: str) -> list[str]:
    return sorted(path.stem for path in (SETTINGS / group).glob("*.yaml"))


def _key_and_value(override: str) -> tuple[str, str]:
    """Return key and value of an override; raises ``ConfigError`` without ``=``."""
    key, found, value = override.lstrip("+").partition("=")
    if not found:
        raise ConfigError(f"{shown(override)} is not a setting: write key=value, as in model.layers=2")
    return key, value


def _chosen(key: str, value: str) -> tuple[str, str]:
    """Check the preset that an override names; datasets of the user take the general preset."""
    if key == "model.name":
        key = "model"
    if key == "model":
        config_class(value)  # the name of an installed plug-in is asked for here
        return key, value
    if key not in GROUPS or value in known(key):
        return key, value
    if key == "data" and re.fullmatch(r"[A-Za-z0-9][\w.-]*", value):
        return "data.name", value  # the user's data, or a stored query
    hint = did_you_mean(value, known(key), f"known: {', '.join(known(key))}")
    raise ConfigError(f"there is no {GROUPS[key]} {shown(value)}; {hint}")


def _checked(key: str, value: str, keys: Sequence[str], maps: Sequence[str]) -> str:
    """Return an override as Hydra takes it, after checking its key; raises ``ConfigError``."""
    if key in GROUPS:
        return f"{key}={value}"
    owner = _map_of(key, maps)
    if owner is not None:
        return f"+{key}={value}" if key == owner else f"{key}={value}"
    if key not in keys:
        hint = did_you_mean(key, keys, "see `wildtype train --settings` for all of them")
        raise ConfigError(f"{shown(key)} is not a setting; {hint}")
    return f"{key}={value}"


def _map_of(key: str, maps: Sequence[str]) -> str | None:
    """Return the map that a key names, or an entry of it."""
    return next((name for name in maps if key == name or key.startswith(f"{name}.")), None)


def _is_one_of(key: str, keys: Sequence[str], maps: Sequence[str]) -> bool:
    return key in keys or _map_of(key, maps) is not None


def _explain(error: Exception) -> str:
    """Return the sentences of an error and of what caused it, on one line."""
    causes = [error, error.__cause__, error.__context__]
    lines = [line.strip() for cause in causes if cause for line in str(cause).splitlines() if line.strip()]
    text = re.sub(r"\s+", " ", "; ".join(dict.fromkeys(lines)))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
