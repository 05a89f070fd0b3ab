"""What a search of settings is: a base, and the settings that are searched, each with its range or choices.

    base: [data=ecoli-core-growth]                               overrides of `wildtype train`
    space:
      training.learning_rate: {low: 1.0e-4, high: 1.0e-2, log: true}
      model.dropout: {low: 0.0, high: 0.4, step: 0.1}
      training.batch_size: {low: 64, high: 1024, log: true}      whole numbers stay whole
      model.layers: [0, 1, 2]                                    one of these

Both ends of every range and every choice are checked before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wildtype.errors import ConfigError, shown
from wildtype.experiments.settings.plans import (
    SET_RUN_BY_RUN,
    Overrides,
    composed,
    overrides_of,
    read_plan,
    require_same_model,
)
from wildtype.experiments.settings.schema import TrainConfig

PARTS = ("base", "space")
RANGE = ("low", "high", "log", "step")
Value = str | int | float


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included.

    Attributes
    ----------
    low, high : float
        Whole numbers if both are written as such.
    log : bool
        Whether equal ratios are equally likely, rather than equal differences.
    step : float or None
        Between neighbours, from ``low`` on.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether the numbers are whole."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: object) -> bool:
        """Say whether a value is one of the range."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not self.low <= value <= self.high
        ):
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return (isinstance(value, int) or not self.whole) and abs(steps - round(steps)) < 1e-9

    def grid(self) -> tuple[Value, ...]:
        """Return all values; none where they have no end."""
        step = 1 if self.whole and self.step is None else self.step
        if step is None:
            return ()
        count = int((self.high - self.low) / step + 1e-9) + 1
        return tuple(self.low + i * step for i in range(count))

    def probes(self) -> tuple[Value, ...]:
        """Return the values that tell whether the range makes sense."""
        return self.low, self.high


@dataclass(frozen=True)
class Choices:
    """One of some values, as they are written on a command line."""

    values: tuple[str, ...]

    def holds(self, value: object) -> bool:
        """Say whether a value is one of the choices."""
        return written(value) in self.values

    def probes(self) -> tuple[Value, ...]:
        """Return every value."""
        return self.values


@dataclass(frozen=True)
class Tuning:
    """A base and the settings to search, all checked.

    Attributes
    ----------
    name : str
        Of the file.
    base : tuple of str
        Overrides of the base.
    space : dict of str to Range or Choices
        By setting.
    config : TrainConfig
        Settings of the base.
    """

    name: str
    base: Overrides
    space: Mapping[str, Range | Choices]
    config: TrainConfig

    def overrides(self, params: Mapping[str, Value]) -> Overrides:
        """Return the overrides that put values into the base."""
        return tuple(f"{key}={written(value)}" for key, value in params.items())

    def with_params(self, params: Mapping[str, Value]) -> TrainConfig:
        """Return the base with values put in; raises ``ConfigError`` where they do not go together."""
        return composed((*self.base, *self.overrides(params)), f"search {self.name!r}")

    def grid(self) -> dict[str, list[Value]]:
        """Return every value of every setting; raises ``ConfigError`` where they cannot be counted."""
        found = {}
        for key, dimension in self.space.items():
            values = dimension.values if isinstance(dimension, Choices) else dimension.grid()
            if not values:
                raise ConfigError(
                    f"search {self.name!r}, {key!r}: a range without a step has no end of values: give a "
                    f"step, or a list of choices"
                )
            found[key] = list(values)
        return found

    def base_params(self) -> dict[str, Value] | None:
        """Return the base's own values of what is searched; None if one lies outside of its range."""
        found: dict[str, Value] = {}
        for key, dimension in self.space.items():
            value: Any = asdict(self.config)
            for part in key.split("."):
                value = value[part]
            if not dimension.holds(value):
                return None
            found[key] = written(value) if isinstance(dimension, Choices) else value
        return found

    def describe(self) -> dict[str, Any]:
        """Return what tells this search from others, as JSON."""
        return {"base": list(self.base), "space": {key: asdict(d) for key, d in self.space.items()}}


def read_tuning(what: str, overrides: Sequence[str] = ()) -> Tuning:
    """Read a search of settings and check all of it.

    Parameters
    ----------
    what : str
        A YAML file, or the name of one that comes with the package.
    overrides : sequence of str
        Further ones, for the base.

    Raises
    ------
    ConfigError
        If there is no such file, it is not of the form above, or a value is none that the setting can have.
    """
    name, where, found = read_plan(what, "search", PARTS, needed="space")
    base = overrides_of(found.get("base", []), f"{where}, base") + overrides_of(
        list(overrides), f"{where}, given overrides"
    )
    if not isinstance(found["space"], dict) or not found["space"]:
        raise ConfigError(f"{where}, space: write setting: range, as in model.dropout: {{low: 0, high: 0.4}}")
    space = {key: _dimension(given, f"{where}, {key!r}") for key, given in found["space"].items()}
    config = composed(base, f"{where}, base")
    for key, dimension in space.items():
        if key.partition(".")[0] in ("data", "split") or key in SET_RUN_BY_RUN:
            raise ConfigError(
                f"{where}, {key!r}: the rows that are compared must stay the same: search settings of the "
                f"model or of training"
            )
        for value in dimension.probes():
            given, place = f"{key}={written(value)}", f"{where}, {key!r}"
            require_same_model(composed((*base, given), place), config, [given], place)
    return Tuning(name, base, space, config)


def written(value: object) -> str:
    """Return a value as an override writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"[{','.join(written(part) for part in value)}]"
    return repr(value) if isinstance(value, float) else str(value)


def _dimension(given: Any, place: str) -> Range | Choices:
    if isinstance(given, list) and given:
        values = tuple(written(value) for value in given)
        if len(set(values)) < len(values):
            raise ConfigError(f"{place}: a choice is repeated in {shown(given)}")
        return Choices(values)
    if not isinstance(given, dict) or set(given) - set(RANGE) or not {"low", "high"} <= set(given):
        raise ConfigError(
            f"{place}: received {shown(given)}; write a range, as in {{low: 0.001, high: 0.1, log: true}}, "
            f"or a list of choices"
        )
    found = Range(**given)
    numbers = [found.low, found.high, *([] if found.step is None else [found.step])]
    if any(isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) for x in numbers):
        raise ConfigError(f"{place}: low, high and step are numbers; received {shown(given)}")
    if not isinstance(found.log, bool) or found.low >= found.high or (found.log and found.low <= 0):
        raise ConfigError(f"{place}: low must be below high, and above 0 where log is true: {shown(given)}")
    if found.step is not None and (found.log or found.step <= 0 or found.step > found.high - found.low):
        raise ConfigError(
            f"{place}: a step is above 0, fits the range, and does not go with log: {shown(given)}"
        )
    return found
