"""Plans of many runs: files of them, and lines of overrides with several values for one setting.

seed=1,2,3 split.name=random,unseen model=cell_transformer,dango        twelve runs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from hydra.errors import HydraException

from wildtype.errors import ConfigError, did_you_mean, reason_of, shown
from wildtype.experiments.settings.compose import SETTINGS, compose, known
from wildtype.experiments.settings.overrides import read_override
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import check
from wildtype.yaml_files import read_yaml

SET_RUN_BY_RUN = (
    "seed",
    "baselines",
    "execution",
    "run.folder",
    "run.overwrite",
    "run.resume",
    "run.requeued",
    "run.estimate",
)
"""Settings that a plan chooses for each of its runs."""
OF_A_LINE = ("seed", "baselines", "execution", "run.folder", "run.estimate")
"""Those of them that a line of many runs may hold."""
MOST_RUNS = 1_000
"""Runs of one line."""
Overrides = tuple[str, ...]


@dataclass(frozen=True)
class PlannedRun:
    """One of many runs.

    Attributes
    ----------
    name : str
        What tells it from the others: its run directory, seen from the directory of all of them.
    config : TrainConfig
        All settings, the run directory among them.
    """

    name: str
    config: TrainConfig

    @property
    def directory(self) -> Path:
        """Its run directory."""
        return Path(self.config.run.folder)

    @property
    def described(self) -> str:
        """What its settings are made of, for messages."""
        return f"run {self.name!r}"

    @property
    def note(self) -> str:
        """What is logged beside its name."""
        return ""


def read_plan(what: str, kind: str, parts: Sequence[str], *, needed: str) -> tuple[str, str, dict[str, Any]]:
    """Return a plan's name, how messages call it, and its parts.

    Parameters
    ----------
    what : str
        A YAML file, or the name of one that comes with the package.
    kind : str
        Of plan, by which those that come along are sorted.
    parts, needed
        The parts that a plan may have, and the one that it must have.

    Raises
    ------
    ConfigError
        If there is no such file, it is not YAML, or has other parts.
    """
    path = Path(what)
    if not path.suffix:
        if what not in known(kind):
            hint = did_you_mean(what, known(kind), f"known: {', '.join(known(kind))}, or a YAML file")
            raise ConfigError(f"there is no {kind} {what!r}; {hint}")
        path = SETTINGS / kind / f"{what}.yaml"
    try:
        found: Any = read_yaml(path, keys_as_written=True)
    except FileNotFoundError:
        raise ConfigError(f"there is no file {what!r}: check the path") from None
    except (yaml.YAMLError, ValueError) as error:  # a number of 5,000 digits is a ValueError
        raise ConfigError(f"{what!r} is not YAML ({reason_of(error)}): mend it") from error
    where = f"{kind} {what!r}"
    if not isinstance(found, dict) or set(found) - set(parts) or needed not in found:
        raise ConfigError(f"{where} must have the parts {', '.join(parts)}; received {shown(found)}")
    return path.stem, where, found


def overrides_of(given: Any, place: str) -> Overrides:
    """Return a list of overrides; raises ``ConfigError`` on a setting that plans choose themselves."""
    if not isinstance(given, list) or not all(isinstance(override, str) for override in given):
        raise ConfigError(
            f"{place}: received {shown(given)}; write a list of overrides, as in [model.layers=0]"
        )
    for override in given:
        if override.partition("=")[0].lstrip("+") in SET_RUN_BY_RUN:
            raise ConfigError(f"{place}: {override!r} is set run by run; leave it out")
    return tuple(given)


def composed(overrides: Overrides, place: str) -> TrainConfig:
    """Return checked settings, the last override of a key winning; ``place`` stands before an error."""
    last = {override.partition("=")[0]: override for override in overrides}
    try:
        config = compose(list(last.values()))
        check(config.model)
        config.training.check()
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    return config


def require_same_model(config: TrainConfig, base: TrainConfig, overrides: Sequence[str], place: str) -> None:
    """Refuse ``overrides`` that name no model and yet make ``config`` one of another model than ``base``: for
    few rows, the default model depends on the overrides (`compose`).
    """
    named = {override.partition("=")[0].lstrip("+") for override in overrides}
    if config.model.name != base.model.name and named.isdisjoint(("model", "model.name", "experiment")):
        raise ConfigError(
            f"{place}: this takes model={config.model.name}, and the base takes model={base.model.name}: "
            f"add model={config.model.name} to the base"
        )


def runs_of_line(
    overrides: Sequence[str], log: Callable[[str], None] = lambda text: None
) -> list[PlannedRun]:
    """Return the runs of one line, the values of the last override varying fastest; all are checked.

    Parameters
    ----------
    overrides : sequence of str
        As Hydra's multirun writes them: one with several values, as in ``seed=1,2,3`` or ``seed=range(1,4)``,
        makes a run of each.
    log : callable
        As `compose` has it; each line once.

    Raises
    ------
    ConfigError
        If an override is none, none has several values, no directory for the runs is named, two runs would be
        the same, or an override names what runs of one line do by themselves.
    """
    folder, choices = "", []
    for override in overrides:
        key, values = _values(override)
        if key in SET_RUN_BY_RUN and key not in OF_A_LINE:
            raise ConfigError(f"{override!r}: runs of one line resume by themselves; leave it out")
        if key == "run.folder":
            if len(values) > 1:
                raise ConfigError(f"{override!r}: give one directory, in which each run gets its own")
            folder = compose(values).run.folder  # without its quotes
            continue
        choices.append(values)
    several = [i for i, values in enumerate(choices) if len(values) > 1]
    if not several:
        raise ConfigError("no setting has several values: write them with commas, as in seed=1,2,3")
    if not folder:
        raise ConfigError("the runs need a directory: name it with run.folder=…")
    count = 1
    for values in choices:
        count *= len(values)
    if count > MOST_RUNS:
        raise ConfigError(f"these settings make {count:,} runs, more than {MOST_RUNS:,}: give fewer values")
    found: dict[str, PlannedRun] = {}
    said: dict[str, None] = {}
    for chosen in product(*choices):
        name = ",".join(chosen[i] for i in several)
        if name in found:
            raise ConfigError(f"{name!r} is repeated: give every value once")
        if "/" in name or len(name.encode()) > 255:
            raise ConfigError(f"{shown(name)} cannot name a directory: give shorter values, without slashes")
        config = compose([*chosen, "run.folder=here"], said.setdefault)
        config.run.folder = str(Path(folder) / name)
        found[name] = PlannedRun(name, config)
    for text in said:
        log(text)
    return list(found.values())


def _values(override: str) -> tuple[str, list[str]]:
    """Return the key of an override, and the override once for every value."""
    key, found, value = override.partition("=")
    if not found or not value:
        return key, [override]  # `compose` reports what is wrong with it
    try:
        parsed = read_override(override)
        if not parsed.is_sweep_override():
            return key, [override]
        return key, [f"{key}={one}" for one in parsed.sweep_string_iterator()]
    except ConfigError:  # a sentence already, and a ValueError
        raise
    except (HydraException, ValueError) as error:
        raise ConfigError(f"{shown(override)} is no setting of several values: {reason_of(error)}") from error


def duration(text: str) -> float:
    """Return seconds of a time as people write it: ``90s``, ``45m``, ``2h``, ``1h30m``; raises
    ``ConfigError``.
    """
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    parts = [float(part or 0) for part in found.groups()] if found else []
    if not sum(parts):
        raise ConfigError(f"{text!r} is no time: write 90s, 45m, 2h or 1h30m")
    return 3600 * parts[0] + 60 * parts[1] + parts[2]
