"""What an ablation is: a base configuration, its splits, and factors whose levels change it one at a time.

    base: [data=ecoli-core-growth, training.epochs=8]      overrides, as `wildtype train` takes them
    splits:                                                each in every split
      R: [split.name=random]
    factors:                                               one level at a time instead of the base
      layers:
        none: [model.layers=0]
        two: [model.layers=2]

Everything is checked before anything runs. A level that changes nothing is the base by another name, and is
not run a second time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wildtype.errors import ConfigError
from wildtype.experiments.settings.plans import (
    Overrides,
    PlannedRun,
    composed,
    overrides_of,
    read_plan,
    require_same_model,
)
from wildtype.experiments.settings.schema import TrainConfig

BASE = "base"
"""Factor of the base itself, which has no level."""
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
PARTS = ("base", "splits", "factors")


@dataclass(frozen=True)
class AblationRun(PlannedRun):
    """One run of an ablation.

    Attributes
    ----------
    factor, level : str
        What is changed, and to what; ``base`` and empty for the base.
    split : str
        Name of the split in the ablation.
    """

    factor: str
    level: str
    split: str

    @property
    def described(self) -> str:
        """What its settings are made of, for messages."""
        return "the base" if self.factor == BASE else f"factor {self.factor!r}, level {self.level!r}"


@dataclass(frozen=True)
class Ablation:
    """A base and what is changed of it, all checked.

    Attributes
    ----------
    name : str
        Of the file.
    base : tuple of str
        Overrides of the base.
    splits : dict of str to tuple of str
        Overrides of every split, by name.
    factors : dict of str to dict of str to tuple of str
        Overrides of every level, by factor and level.
    configs : dict
        Settings by factor, level and split; those of the base under ``("base", "", split)``.
    """

    name: str
    base: Overrides
    splits: Mapping[str, Overrides]
    factors: Mapping[str, Mapping[str, Overrides]]
    configs: Mapping[tuple[str, str, str], TrainConfig]

    @property
    def levels(self) -> list[tuple[str, str]]:
        """Factor and level of every row of the table, the base first."""
        changed = [(factor, level) for factor, levels in self.factors.items() for level in levels]
        return [(BASE, ""), *changed]

    def is_base(self, factor: str, level: str, split: str) -> bool:
        """Whether a level changes nothing."""
        return factor != BASE and self.configs[factor, level, split] == self.configs[BASE, "", split]

    def runs(self, seeds: Sequence[int], directory: Path = Path()) -> list[AblationRun]:
        """Return the runs, the most informative first, so that a budget may end anywhere.

        The base on all seeds, since every difference needs it; then every level on the first seed; then on
        the others. Levels that change nothing are left out.

        Parameters
        ----------
        seeds : sequence of int
            Of split, initial weights and order of rows.
        directory : Path
            Of the ablation.

        Raises
        ------
        ConfigError
            If there is no seed, or one is repeated.
        """
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ConfigError(f"seeds {list(seeds)}: give each once, from 0 on, as in 0,1,2")
        order = [(BASE, "", seed) for seed in seeds]
        order += [(factor, level, seed) for seed in seeds for factor, level in self.levels if factor != BASE]
        return [
            self._run(factor, level, split, seed, directory)
            for factor, level, seed in order
            for split in self.splits
            if not self.is_base(factor, level, split)
        ]

    def _run(self, factor: str, level: str, split: str, seed: int, directory: Path) -> AblationRun:
        name = "/".join(part for part in (factor, level, split, f"seed-{seed}") if part)
        config = self.configs[factor, level, split]
        run = replace(config.run, folder=str(directory / name))
        return AblationRun(name, replace(config, seed=seed, baselines=[], run=run), factor, level, split)


def read_ablation(what: str, overrides: Sequence[str] = ()) -> Ablation:
    """Read an ablation and check every level of it.

    Parameters
    ----------
    what : str
        A YAML file, or the name of one that comes with the package.
    overrides : sequence of str
        Further ones, for the base.

    Raises
    ------
    ConfigError
        If there is no such file, it is not of the form above, or an override is no setting; with the place.
    """
    name, where, found = read_plan(what, "ablation", PARTS, needed="factors")
    base = (
        *overrides_of(found.get("base", []), f"{where}, base"),
        *overrides_of(list(overrides), f"{where}, given overrides"),
    )
    splits = _named(found.get("splits") or {"as-base": []}, f"{where}, splits")
    levels = {
        factor: _named(given, f"{where}, factor {factor!r}")
        for factor, given in _mapping(found["factors"], f"{where}, factors").items()
    }
    for split, given in splits.items():
        for override in given:
            if not override.startswith("split."):
                raise ConfigError(
                    f"{where}, split {split!r}: {override!r} is no setting of split; use a factor"
                )
    places: dict[tuple[str, str], tuple[str, Overrides]] = {(BASE, ""): (f"{where}, base", ())}
    for factor, named in levels.items():
        for level, given in named.items():
            place = f"{where}, factor {factor!r}, level {level!r}"
            places[factor, level] = place, given
            if moved := [override for override in given if override.startswith("split.")]:
                raise ConfigError(
                    f"{place}: {moved[0]!r} changes the rows that are compared; make it a split"
                )
    made = {key: composed((*base, *given), place) for key, (place, given) in places.items()}
    for key, (place, given) in places.items():
        require_same_model(made[key], made[BASE, ""], given, place)
    of_split = {
        split: composed((*base, *given), f"{where}, split {split!r}").split if given else made[BASE, ""].split
        for split, given in splits.items()
    }
    configs = {
        (*key, split): replace(config, split=settings)
        for key, config in made.items()
        for split, settings in of_split.items()
    }
    return Ablation(name, base, splits, levels, configs)


def _mapping(given: Any, place: str) -> dict[str, Any]:
    """Return a mapping whose names can name directories."""
    if not isinstance(given, dict) or not given:
        raise ConfigError(f"{place}: write name: value, as in layers: {{none: [model.layers=0]}}")
    for name in given:
        if not NAME.fullmatch(name) or name == BASE:
            raise ConfigError(
                f"{place}: {name!r} cannot name a directory of runs; use letters, digits and . _ + -, "
                f"and not {BASE!r}"
            )
    return given


def _named(given: Any, place: str) -> dict[str, Overrides]:
    return {
        name: overrides_of(overrides, f"{place}, {name!r}")
        for name, overrides in _mapping(given, place).items()
    }
