"""Many runs from one line: words of several values, as Hydra's multirun writes them, and every choice of one.

seed=1,2,3 split.name=random,unseen model=cell_transformer,dango        twelve runs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from wildtype.errors import ConfigError, reason_of, shown
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.plans import OWN
from wildtype.experiments.settings.schema import TrainConfig

MOST = 1_000
"""Runs of one line."""
GIVEN = ("seed", "baselines", "execution", "run.folder", "run.estimate")
"""Of what plans set run by run, what a line of many runs may say."""


@dataclass(frozen=True)
class OneOfMany:
    """One run of a line of many.

    Attributes
    ----------
    name : str
        What tells it from the others, as in ``seed=1,split.name=random``: its folder in the line's folder.
    config : TrainConfig
        All settings; its folder is in them.
    """

    name: str
    config: TrainConfig


def runs_of(words: Sequence[str]) -> list[OneOfMany]:
    """Return the runs of a line, the last word's values varying fastest; all are checked.

    Parameters
    ----------
    words : sequence of str
        Settings; a word with several values, as in ``seed=1,2,3`` or ``seed=range(1,4)``, is one run each.

    Raises
    ------
    ConfigError
        If a word is none, no word has several values, there is no folder for them, two runs would be the
        same, or a word says what runs of one line do by themselves.
    """
    folder, choices = "", []
    for word in words:
        key, values = _values(word)
        if key in OWN and key not in GIVEN:
            raise ConfigError(f"{word!r}: runs of one line go on by themselves; leave it out")
        if key == "run.folder":
            if len(values) > 1:
                raise ConfigError(f"{word!r}: give one folder, in which each run gets its own")
            folder = values[0].partition("=")[2]
            continue
        choices.append(values)
    several = [i for i, values in enumerate(choices) if len(values) > 1]
    if not several:
        raise ConfigError("no setting has several values: write them with commas, as in seed=1,2,3")
    if not folder:
        raise ConfigError("the runs want a folder for their own: name it with run.folder=…")
    count = 1
    for values in choices:
        count *= len(values)
    if count > MOST:
        raise ConfigError(f"these settings make {count:,} runs, more than {MOST:,}: give fewer values")
    found: dict[str, OneOfMany] = {}
    for chosen in product(*choices):
        name = ",".join(chosen[i] for i in several)
        if name in found:
            raise ConfigError(f"{name!r} stands twice: give every value once")
        if "/" in name or len(name.encode()) > 255:
            raise ConfigError(f"{shown(name)} cannot name a folder: give shorter values, without slashes")
        config = compose([*chosen, "run.folder=here"])
        config.run.folder = str(Path(folder) / name)
        found[name] = OneOfMany(name, config)
    return list(found.values())


def _values(word: str) -> tuple[str, list[str]]:
    """Return the key of a word, and the word once for every value."""
    key, found, value = word.partition("=")
    if not found or not value:
        return key, [word]  # `compose` says what is wrong with it
    try:
        override = OverridesParser.create().parse_override(word)
        if not override.is_sweep_override():
            return key, [word]
        return key, [f"{key}={one}" for one in override.sweep_string_iterator()]
    except (HydraException, ValueError) as error:
        raise ConfigError(f"{shown(word)} is no setting of several values: {reason_of(error)}") from error
