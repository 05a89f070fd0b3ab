"""Settings are fields of dataclasses, each declared once: default, meaning, range and choices stand together.

    learning_rate: float = setting(1e-3, "Peak learning rate of AdamW.", above=0)
    loss: Literal["squared", "log_cosh"] = setting("squared", "Loss of one regression target.")

The choices of a setting are those of its ``Literal``. `check_settings` refuses every other value, `to_yaml`
(`wildtype train --settings`) and the table of docs/reference.md show what is declared. OmegaConf reads
`schema`, since it does not know ``Literal``, and `build` makes the dataclasses of what it read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache, partial, reduce
from operator import or_
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from wildtype.errors import ConfigError, did_you_mean, shown

T = TypeVar("T")
KEY = "setting"
"""Key of a field's metadata."""

LARGEST = 1e300
"""Numbers from here on count as infinite."""


@dataclass(frozen=True)
class Setting:
    """What is declared of a setting.

    Attributes
    ----------
    help : str
        Its meaning, in a sentence or two.
    minimum, above, below, maximum : float or None
        Smallest value allowed, or bound that is not itself allowed; and the same upwards. They hold for
        every number of a list or map.
    choices : tuple of str
        Keys of a map; other texts have a ``Literal`` as their type.
    """

    help: str = ""
    minimum: float | None = None
    above: float | None = None
    below: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def holds(self, value: float) -> bool:
        """Return whether a number is finite and lies in the range."""
        # Comparisons with nan are False, so that each is written for what is allowed. An integer too large
        # for a float is compared, not converted.
        return (
            abs(value) < LARGEST
            and (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.maximum is None or value <= self.maximum)
        )

    @property
    def range(self) -> str:
        """The range in words; empty where every finite number is allowed."""
        bounds = (
            ("at least", self.minimum),
            ("above", self.above),
            ("below", self.below),
            ("at most", self.maximum),
        )
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)


def setting(
    default: T,
    help: str,
    *,
    minimum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> T:
    """Declare a field of a settings dataclass; see `Setting`. Every instance has its own list or map."""
    metadata = {KEY: Setting(help, minimum, above, below, maximum, choices)}
    # The type is that of the default for type checkers, as `dataclasses.field` does it.
    found: Any
    if isinstance(default, list | dict):
        found = field(default_factory=lambda: type(default)(default), metadata=metadata)
    else:
        found = field(default=default, metadata=metadata)
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Declared:
    """A setting of a configuration.

    Attributes
    ----------
    name : str
        Dotted, as on the command line.
    value : object
        In this configuration.
    setting : Setting
        What is declared of it.
    choices : tuple of str
        Texts that it, the entries of its list or the keys of its map may have; empty: any.
    kind : str
        Its type in words.
    """

    name: str
    value: Any
    setting: Setting
    choices: tuple[str, ...]
    kind: str

    @property
    def allowed(self) -> str:
        """What is allowed, in words; empty where the type says all."""
        parts = [", ".join(self.choices)] if self.choices else []
        return "; ".join([*parts, self.setting.range] if self.setting.range else parts)

    def check(self) -> None:
        """Raise ``ConfigError`` if the value is not allowed."""
        texts, numbers = _leaves(self.value)
        unknown = [text for text in texts if self.choices and text not in self.choices]
        if unknown:
            place = "" if unknown == [self.value] else f" names {unknown[0]!r}"
            near = did_you_mean(unknown[0], self.choices, "")
            raise ConfigError(
                f"{self.name}={shown(self.value)}{place}: {near}{' ' if near else ''}choose "
                f"{', '.join(self.choices)}"
            )
        if not all(self.setting.holds(number) for number in numbers):
            every = "it" if isinstance(self.value, int | float) else "every number"
            must = self.setting.range or "a finite number"
            if self.setting.range and not all(abs(number) < LARGEST for number in numbers):
                must += ", and finite"
            raise ConfigError(f"{self.name}={shown(self.value)}: {every} must be {must}")


# Evaluating the texts of annotations anew took a quarter of the time of composing settings.
_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)


def declared(config: Any, prefix: str = "") -> Iterator[Declared]:
    """Yield the settings of a settings dataclass, nested ones too, in the order of their declaration."""
    hints = _hints(type(config))
    for f in fields(config):
        value, name = getattr(config, f.name), prefix + f.name
        if is_dataclass(value):
            yield from declared(value, f"{name}.")
            continue
        hint = hints[f.name]
        found = f.metadata.get(KEY, Setting())
        yield Declared(name, value, found, found.choices or _choices(hint), _kind(hint))
        if isinstance(value, dict):
            for key, item in value.items():
                if is_dataclass(item):
                    yield from declared(item, f"{name}.{key}.")


def check_settings(config: Any, prefix: str = "") -> None:
    """Refuse a value outside of what is declared, a number that is not finite, or an unknown choice.

    Parameters
    ----------
    config : dataclass
        Settings, with nested ones.
    prefix : str
        What their dotted names begin with, as in ``model.``.

    Raises
    ------
    ConfigError
        Naming setting, value and what is allowed.
    """
    for found in declared(config, prefix):
        found.check()


def to_yaml(config: Any, indent: str = "") -> str:
    """Return settings as YAML, each with its meaning and what is allowed as a comment."""
    import yaml

    lines = []
    known = {found.name: found for found in declared(config)}
    for f in fields(config):
        value = getattr(config, f.name)
        if is_dataclass(value):
            lines += [f"{indent}{f.name}:", to_yaml(value, f"{indent}  ").rstrip("\n")]
            continue
        text = yaml.safe_dump(_plain_value(value), default_flow_style=True, width=math.inf, sort_keys=False)
        found = known[f.name]
        about = " ".join(filter(None, [found.setting.help, f"({found.allowed})" if found.allowed else ""]))
        lines.append(f"{indent}{f.name}: {text.splitlines()[0]}" + (f"  # {about}" if about else ""))
    return "\n".join(lines) + "\n"


_SCHEMAS: dict[type, type] = {}


def schema(settings: type) -> type:
    """Return a dataclass of the same fields and defaults that OmegaConf can read."""
    # Always the same class: OmegaConf compares the types of nested values with those of their fields.
    if settings not in _SCHEMAS:
        _SCHEMAS[settings] = _make_schema(settings)
    return _SCHEMAS[settings]


def _make_schema(settings: type) -> type:
    hints = _hints(settings)
    made = []
    for f in fields(settings):
        if f.default_factory is not MISSING:
            factory = f.default_factory
            made.append(
                (f.name, _known_type(hints[f.name]), field(default_factory=partial(_from_factory, factory)))
            )
        else:
            made.append((f.name, _known_type(hints[f.name]), field(default=f.default)))
    return make_dataclass(settings.__name__, made)


def _from_factory(factory: Callable[[], Any]) -> Any:
    return as_schema(factory())


def as_schema(value: Any) -> Any:
    """Return settings as an instance of their `schema`; other values as they are."""
    if is_dataclass(value) and not isinstance(value, type):
        return schema(type(value))(**{f.name: as_schema(getattr(value, f.name)) for f in fields(value)})
    return value


def build(settings: type[T], values: Mapping[str, Any]) -> T:
    """Return settings with these values, plain ones or of nested settings; the others have their defaults."""
    hints = _hints(settings)
    return settings(**{name: _built(hints[name], value) for name, value in values.items()})


def from_record(settings: type[T], record: Mapping[str, Any]) -> T:
    """Return settings that were stored as JSON, checked for their types but not for ranges.

    Raises
    ------
    omegaconf.errors.OmegaConfBaseException, ValueError
        On an unknown name or a value of the wrong type.
    """
    from omegaconf import OmegaConf

    refuse_interpolations(record)
    merged = OmegaConf.merge(OmegaConf.structured(schema(settings)), record)
    values: Any = OmegaConf.to_container(merged)
    return build(settings, values)


def refuse_interpolations(values: Any, name: str = "") -> None:
    """Refuse texts in which OmegaConf would put other values, as of the environment, in place of ``${...}``.

    Raises
    ------
    ConfigError
        Naming the setting.
    """
    if isinstance(values, Mapping):
        for key, item in values.items():
            refuse_interpolations(str(key), name)
            refuse_interpolations(item, f"{name}.{key}" if name else str(key))
    elif isinstance(values, list | tuple):
        for item in values:
            refuse_interpolations(item, name)
    elif isinstance(values, str) and "${" in values:
        raise ConfigError(
            f"{name}={shown(values)}: nothing is put in place of '${{...}}': write the value itself"
        )


def _leaves(value: Any) -> tuple[list[str], list[float]]:
    """Return the texts (keys of a map among them) and the numbers of a value."""
    items = (
        value
        if isinstance(value, list)
        else [*value, *value.values()]
        if isinstance(value, dict)
        else [value]
    )
    return (
        [item for item in items if isinstance(item, str)],
        [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)],
    )


def _choices(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((found for found in map(_choices, get_args(hint)) if found), ())


def _kind(hint: Any) -> str:
    words = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    origin, args = get_origin(hint), get_args(hint)
    if origin is list:
        return "list"
    if origin is dict:
        return "map"
    if origin in (Union, UnionType):
        return f"{_kind(args[0])} or null"
    return "text" if origin is Literal else words.get(hint, "settings")


def _known_type(hint: Any) -> Any:
    """Return a type as OmegaConf knows it: ``str`` for a ``Literal``, and the schema of a dataclass."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return str
    if is_dataclass(hint):
        return schema(hint)  # type: ignore[arg-type]
    known = tuple(map(_known_type, args))
    if known == args:
        return hint
    return reduce(or_, known) if origin in (Union, UnionType) else origin[known]


def _built(hint: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if is_dataclass(hint):
        return build(hint, value)  # type: ignore[arg-type]
    of = get_args(hint)
    return {key: _built(of[1], item) for key, item in value.items()} if of else dict(value)


def _plain_value(value: Any) -> Any:
    from dataclasses import asdict

    if isinstance(value, dict):
        return {key: _plain_value(item) for key, item in value.items()}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
