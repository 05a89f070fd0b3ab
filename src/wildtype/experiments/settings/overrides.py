"""One override `key=value`, read by Hydra's grammar; texts that the grammar has no place for need no quotes.

data.relations=[my_ppi.csv,screen=hits.csv] run.folder=runs/größe data.phenotypes=[growth rate (1/h)]
"""

from __future__ import annotations

import re
from functools import cache

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from wildtype.characters import name_fault
from wildtype.errors import ConfigError, shown
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import MODELS, config_class
from wildtype.settings import declared

TEXT = ("text", "text or null")
LIST = "list"
OPENING, CLOSING = "([{", ")]}"
QUOTES = "'\""


def read_override(text: str) -> Override:
    """Return an override as Hydra reads it; texts, and those of lists, as they stand where it cannot.

    What Hydra reads keeps its meaning: quoted texts, numbers, null, lists, maps and several values.

    Raises
    ------
    ConfigError
        If it cannot be read, or not without a hidden character.
    ValueError
        On a number of too many digits.
    """
    key, _, value = text.partition("=")
    kind = _kinds(tuple(config_class(name) for name in MODELS)).get(key.lstrip("+"), "")
    try:
        return _parser().parse_override(text)
    except HydraException:
        if fault := name_fault(text):
            raise ConfigError(fault) from None
        readable = _with_quotes(value, as_list=kind == LIST) if kind in (*TEXT, LIST) else None
    if readable is not None:
        try:
            found = _parser().parse_override(f"{key}={readable}")
        except HydraException:
            pass
        else:
            found.input_line = text  # messages show what was written
            return found
    raise ConfigError(f"{shown(text)} cannot be read: {_remedy(key.lstrip('+'), kind)}")


def quoted(text: str) -> str:
    """Return a text between quotes, as Hydra reads it back."""
    # There, only a quote needs a backslash, and backslashes are doubled only before a quote or at the end.
    escaped = re.sub(r"(\\*)('|\Z)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"


@cache
def _parser() -> OverridesParser:
    return OverridesParser.create()


@cache
def _kinds(models: tuple[type, ...]) -> dict[str, str]:
    """Return the type of every setting in words, by name; a text where it is one of any of the models."""
    found = [*declared(TrainConfig())]
    for model in models:
        found += declared(model(), "model.")
    kinds: dict[str, str] = {}
    for one in found:
        if one.name not in kinds or one.kind in (*TEXT, LIST):
            kinds[one.name] = one.kind
    return kinds


def _with_quotes(value: str, *, as_list: bool) -> str | None:
    """Return a value, or several, with quotes around the texts that need them; None where it is not clear
    which these are.
    """
    parts = _split(value)
    if parts is None:
        return None
    made = []
    for part in parts:
        if as_list and part.startswith("[") and part.endswith("]"):
            items = _split(part[1:-1])
            texts = None if items is None else [_text(item) for item in items]
            made.append(None if texts is None or None in texts else f"[{','.join(filter(None, texts))}]")
        else:
            made.append(_text(part))
    return None if None in made else ",".join(filter(None, made))


def _text(part: str) -> str | None:
    """Return a text as Hydra reads it; None for an empty one, or what begins as a list, map or quote."""
    if not part:
        return None
    try:
        _parser().parse_override(f"key={part}")
        return part
    except HydraException:
        return None if part[0] in QUOTES or part[0] in "[{" else quoted(part)


def _split(text: str) -> list[str] | None:
    """Split at commas outside of quotes and brackets; None where one of these is not closed."""
    parts, depth, quote, i = [""], 0, "", 0
    while i < len(text):
        c = text[i]
        if c == "\\":  # with what it escapes
            parts[-1] += text[i : i + 2]
            i += 2
            continue
        if quote:
            quote = "" if c == quote else quote
        elif c in QUOTES and parts[-1].rstrip()[-1:] in ("", "[", ","):  # later: an apostrophe, as in 5'UTR
            quote = c
        elif c in OPENING:
            depth += 1
        elif c in CLOSING:
            depth = max(depth - 1, 0)
        if c == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += c
        i += 1
    return None if depth or quote else [part.strip() for part in parts]


def _remedy(key: str, kind: str) -> str:
    if kind in TEXT:
        return f"""put the text in quotes, as in "{key}='a, b'\""""
    if kind == LIST:
        return f"""put each text in quotes and the list in brackets, as in "{key}=['a, b','c']\""""
    if kind == "map":
        return f"give its entries one by one, as in {key}.NAME=VALUE"
    return f"write {key}=VALUE, where the value is {'null or ' if kind.endswith(' or null') else ''}" + (
        f"a {kind.removesuffix(' or null')}" if "number" in kind else kind or "a number, a text or a list"
    )
