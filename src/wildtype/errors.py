"""Errors for users: each is one sentence with the offending value, its place and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

LONGEST_WORD = 300
"""Most characters of a word in a message; paths can be this long, longer words come from damaged files."""


class WildtypeError(Exception):
    """Base of all errors for users; the command line prints them without a traceback."""

    def __init__(self, *args: object) -> None:
        longer = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
        super().__init__(*(longer.sub(_cut, arg) if isinstance(arg, str) else arg for arg in args))


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][: LONGEST_WORD - 4]}...{word[0][-1]}"


class UnknownGeneError(WildtypeError, KeyError):
    """A gene name that the organism does not have."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, with quotes around the sentence.
        return str(self.args[0])


class AmbiguousGeneError(WildtypeError, KeyError):
    """A gene name that stands for more than one gene."""

    def __str__(self) -> str:
        return str(self.args[0])


class GeneSetError(WildtypeError, ValueError):
    """A set of genes that is empty, or that names one gene twice."""


class ShapeError(WildtypeError, ValueError):
    """A tensor of the wrong shape; prints the argument, what was received and what was expected."""


class SourceError(WildtypeError, ValueError):
    """A publisher's file that is missing, damaged, or not in the published layout."""


class MissingFileError(SourceError):
    """A publisher's file that is not in the folder."""


class DatasetError(WildtypeError, ValueError):
    """A dataset that is unknown, empty or unsuitable."""


class SplitError(WildtypeError, ValueError):
    """A split that cannot be made, or that leaks."""


class ConfigError(WildtypeError, ValueError):
    """A setting that does not exist or does not fit."""


class CheckpointError(WildtypeError, ValueError):
    """A run folder or checkpoint that is missing, damaged or of another format."""


class DivergedError(WildtypeError, ArithmeticError):
    """A training whose loss or weights are no longer finite numbers."""


class ProcessLostError(WildtypeError, RuntimeError):
    """Another of the processes that train one model ended, or does not answer."""


class OutputError(WildtypeError, OSError):
    """A place that cannot be written: read-only, full, or not a folder."""


class LockedError(OutputError):
    """A directory that another process writes to."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str, *, count: int = 3) -> str:
    """Return the known names that look like an unknown one as a question; ``otherwise`` if none does."""
    by_fold = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=count, cutoff=0.6)
    return f"did you mean {' or '.join(by_fold[one] for one in close)}?" if close else otherwise


def reason_of(error: BaseException) -> str:
    """Return another library's message as part of a sentence: its first line, printable and cut."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= 200 else f"{text[:197]}..."


def shown(value: object) -> str:
    """Return a value as messages show it: its repr, cut where it is long."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= 60 else text[:57] + "..."
    return repr(short) if isinstance(value, str) else short
