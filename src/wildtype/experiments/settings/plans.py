"""Plans of many runs, as files: how they are found and read, and what every one of them may say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from wildtype.errors import ConfigError, reason_of, shown
from wildtype.experiments.settings.compose import SETTINGS, compose, known
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import check

OWN = (
    "seed", "baselines", "execution",
    "run.folder", "run.overwrite", "run.resume", "run.requeued", "run.estimate",
)  # fmt: skip
"""Settings that a plan makes itself."""
Words = tuple[str, ...]


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
            raise ConfigError(f"there is no {kind} {what!r}; known: {', '.join(known(kind))}, or a YAML file")
        path = SETTINGS / kind / f"{what}.yaml"
    try:
        found: Any = _Once(path.read_text(encoding="utf-8")).get_single_data()
    except FileNotFoundError:
        raise ConfigError(f"there is no file {what!r}: check the path") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError
        raise ConfigError(f"{what!r} is not YAML ({reason_of(error)}): mend it") from error
    where = f"{kind} {what!r}"
    if not isinstance(found, dict) or set(found) - set(parts) or needed not in found:
        raise ConfigError(f"{where} must have the parts {', '.join(parts)}; received {shown(found)}")
    return path.stem, where, found


class _Once(yaml.SafeLoader):
    """A safe loader that refuses a key that stands twice, and takes every key as it is written."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if not isinstance(key, str) or keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(problem=f"{key!r} stands twice or is no name")
        values = [self.construct_object(value, deep=True) for _, value in node.value]
        return dict(zip(keys, values, strict=True))


def words_of(given: Any, place: str) -> Words:
    """Return words as they are, none of which a plan makes itself."""
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise ConfigError(f"{place}: received {shown(given)}; write a list of words, as in [model.layers=0]")
    for word in given:
        if word.partition("=")[0].lstrip("+") in OWN:
            raise ConfigError(f"{place}: {word!r} is set run by run; leave it out")
    return tuple(given)


def composed(words: Words, place: str) -> TrainConfig:
    """Return settings, later words before earlier ones of the same key; names the place of an error."""
    last = {word.partition("=")[0]: word for word in words}
    try:
        config = compose(list(last.values()))
        check(config.model)
        config.training.check()
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    return config


def duration(text: str) -> float:
    """Return seconds of a time as people write it: ``90s``, ``45m``, ``2h``, ``1h30m``; raises
    ``ConfigError``.
    """
    found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    parts = [float(part or 0) for part in found.groups()] if found else []
    if not sum(parts):
        raise ConfigError(f"{text!r} is no time: write 90s, 45m, 2h or 1h30m")
    return 3600 * parts[0] + 60 * parts[1] + parts[2]
