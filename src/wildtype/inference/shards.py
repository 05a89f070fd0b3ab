"""Shards: ranges of a command's work for processes on any machines, each a file in one directory.

What a file holds depends on the command: `inference.screening.shards`, `inference.prediction_shards`. Here is
how the work is divided and the files are named, and which sets of files are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import ConfigError, shown

REMEDY = "write to another file, or remove the directory to begin anew"
"""What to do about a shard in the directory that is not of this command."""


@dataclass(frozen=True)
class Shard:
    """One of several shards.

    Attributes
    ----------
    number : int
        From 0.
    of : int
        How many shards there are.

    Raises
    ------
    ConfigError
        If there is no such shard.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        if self.of < 1:
            raise ConfigError(f"shards={self.of}: give at least one")
        if not 0 <= self.number < self.of:
            raise ConfigError(f"shard={self.number}: {self.of} shards are numbered 0 to {self.of - 1}")

    def range_of(self, pieces: int) -> range:
        """Return which of so many pieces it has; none, where there are fewer pieces than shards."""
        first, last = (number * pieces // self.of for number in (self.number, self.number + 1))
        return range(first, last)


@dataclass(frozen=True)
class ShardKind:
    """Shards of one command: names of their files, and checks with the command's words in the messages.

    Attributes
    ----------
    command : str
        Its name, which is also the verb of messages.
    what : str
        Result of the command, as in ``a screen``.
    done : str
        Past participle of the verb.
    suffix : str
        Of the files.
    """

    command: str
    what: str
    done: str
    suffix: str

    def name(self, number: int | str) -> str:
        """Return the name of the file of a shard."""
        return f"shard-{number}{self.suffix}"

    def found(self, folder: Path) -> dict[int, Path]:
        """Return the files of a directory by number, in order.

        Raises
        ------
        ConfigError
            If there are none, or one has a name that no shard has.
        """
        found: dict[int, Path] = {}
        for path in folder.glob(self.name("*")):
            text = path.stem.rpartition("-")[2]
            if not text.isdecimal() or path.name != self.name(int(text)):
                raise ConfigError(f"{str(path)!r} is no shard of {self.what}: remove it")
            found[int(text)] = path
        if not found:
            raise ConfigError(
                f"{str(folder)!r} holds no shards of {self.what}: name the directory FILE.shards that "
                f"`{self.command} --shard` wrote"
            )
        return dict(sorted(found.items()))

    def check_alike(
        self, path: Path, mine: Mapping[str, Any], other: str, theirs: Mapping[str, Any], remedy: str
    ) -> None:
        """Refuse a shard of other options; raises ``ConfigError``, naming the first that differs."""
        for name, value in theirs.items():
            if mine.get(name) != value:
                raise ConfigError(
                    f"{str(path)!r} was {self.done} with {name}={shown(mine.get(name))}, and {other} with "
                    f"{name}={shown(value)}: {remedy}"
                )

    def check_complete(self, folder: Path, numbers: Sequence[int], of: int) -> None:
        """Refuse shards that are not all of so many; raises ``ConfigError``, naming those."""
        if surplus := [number for number in numbers if number >= of]:
            raise ConfigError(
                f"{str(folder)!r} has {named(surplus)} of {self.what} of {of}: remove what is foreign"
            )
        if missing := sorted(set(range(of)) - set(numbers)):
            raise ConfigError(
                f"{str(folder)!r} lacks {named(missing)} of {of}: {self.command} them with --shard, and "
                "merge then"
            )

    def check_same(self, folder: Path, marks: Mapping[int, Any], of: int, what: str) -> None:
        """Refuse shards whose mark, by number, is not that of the first; raises ``ConfigError``.

        ``what`` names what the mark is of, such as ``came from another model``.
        """
        first = min(marks, default=0)
        if others := [number for number, mark in marks.items() if mark != marks[first]]:
            raise ConfigError(
                f"{named(others)} of {of} in {str(folder)!r} {what} than shard {first}: merge shards of "
                f"{self.what.replace('a ', 'one ', 1)}"
            )

    def misnamed(self, path: Path) -> ConfigError:
        """Return the error for the file of a shard that holds another one."""
        return ConfigError(
            f"{str(path)!r} holds another shard than its name states, as a renamed file or a copy does: "
            f"remove it, and {self.command} this shard again"
        )


def folder_of(output: Path) -> Path:
    """Return the directory of the shards that are merged to the table ``output``."""
    return output.with_name(f"{output.name}.shards")


def named(numbers: Sequence[int]) -> str:
    """Return ``shards 1, 4-7``, as sbatch writes the tasks of an array."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    listed = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"shard{'' if len(numbers) == 1 else 's'} {listed}"
