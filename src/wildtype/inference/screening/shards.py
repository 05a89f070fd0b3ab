"""Shards of a screen: ranges of its pieces for processes on any machines, and their merge.

A shard is stored as the state of a screen of its pieces, with the request and where the model came from.
Pieces are those of the whole screen, and a merge adds results in the order of pieces: it returns what one
process does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError, shown
from wildtype.files import finite
from wildtype.inference.core import PredictionCore
from wildtype.inference.screening.screen import ScreenRequest, make_screen, shortlist
from wildtype.inference.screening.stream import Screen, ScreenResult, read_record, read_state, run

if TYPE_CHECKING:
    import pandas as pd

FILE = "shard-{}.npz"


@dataclass(frozen=True)
class Shard:
    """One of several shards of a screen.

    Attributes
    ----------
    number : int
        From 0.
    of : int
        How many shards the screen has.

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

    def pieces(self, screen: Screen) -> range:
        """Return its pieces of a screen; none, where there are fewer pieces than shards."""
        first, last = (number * screen.pieces // self.of for number in (self.number, self.number + 1))
        return range(first, last)


@dataclass(frozen=True)
class StoredShards:
    """All shards of a screen in a directory, checked to be complete and of one request.

    Attributes
    ----------
    request : ScreenRequest
        What was screened.
    origin : dict
        Where the model and its evidence came from.
    paths : tuple of Path
        The files, in order.
    """

    request: ScreenRequest
    origin: Mapping[str, str]
    paths: tuple[Path, ...]


def folder_of(output: Path) -> Path:
    """Return the directory of the shards of a screen that ends in the table ``output``."""
    return output.with_name(f"{output.name}.shards")


def screen_shard(
    core: PredictionCore,
    request: ScreenRequest,
    shard: Shard,
    folder: Path,
    *,
    origin: Mapping[str, str],
    processes: int = 1,
    report_progress: Callable[[int, int], None] = lambda done, count: None,
) -> ScreenResult:
    """Predict the mutants of one shard, and store its result in ``folder``; a killed one continues.

    Parameters
    ----------
    core, request
        As for a whole screen.
    shard : Shard
        Which one.
    folder : Path
        Directory of all shards.
    origin : mapping
        Where the core came from, which a merge needs to load it again.
    processes : int
        Number of processes here; the result does not depend on it.
    report_progress : callable
        Called with the numbers of the design that are done and those of the shard.

    Raises
    ------
    ConfigError
        As for a screen, or if the directory holds this shard of another screen.
    OutputError
        If the shard cannot be written.
    """
    screen, _ = make_screen(core, request)
    pieces, path = shard.pieces(screen), folder / FILE.format(shard.number)
    about = {"request": _plain(request), "shards": shard.of, "origin": dict(origin)}
    about |= {"pieces": [pieces.start, pieces.stop]}
    if path.exists():
        remedy = "write to another file, or remove the directory to begin anew"
        _check_alike(path, read_record(path, remedy), "this command", about, remedy)
    # The last piece of the design may be shorter than the others.
    count = min(pieces.stop * screen.piece, screen.design.count) - pieces.start * screen.piece
    count = max(count, 0)
    report_progress(0, count)
    return run(
        core,
        screen,
        pieces=pieces,
        about=about,
        processes=processes,
        state=path,
        report_progress=lambda found: report_progress(min(found.done * screen.piece, count), count),
    )


def stored_shards(folder: Path) -> StoredShards:
    """Return the shards of a directory.

    Raises
    ------
    ConfigError
        If there are none, some are missing, unfinished or damaged, or they are of different requests or
        models, naming them.
    """
    found: dict[int, Path] = {}
    for path in folder.glob(FILE.format("*")):
        text = path.stem.rpartition("-")[2]
        if not text.isdecimal() or path.name != FILE.format(int(text)):
            raise ConfigError(f"{str(path)!r} is no shard of a screen: remove it")
        found[int(text)] = path
    if not found:
        raise ConfigError(
            f"{str(folder)!r} holds no shards of a screen: name the directory FILE.shards that "
            "`screen --shard` wrote"
        )
    numbers = sorted(found)
    remedy = "screen this shard again"
    records = {number: read_record(found[number], remedy) for number in numbers}
    first = records[numbers[0]]
    for number in numbers[1:]:
        _check_alike(
            found[number], records[number], FILE.format(numbers[0]), first, "merge shards of one screen"
        )
    shards = first["shards"]
    if surplus := [number for number in numbers if number >= shards]:
        raise ConfigError(
            f"{str(folder)!r} has {_named(surplus)} of a screen of {shards}: remove what is foreign"
        )
    if missing := sorted(set(range(shards)) - set(numbers)):
        raise ConfigError(
            f"{str(folder)!r} lacks {_named(missing)} of {shards}: screen them with --shard, and merge then"
        )
    unfinished = [n for n in numbers if records[n]["done"] < len(range(*records[n]["pieces"]))]
    if unfinished:
        raise ConfigError(
            f"{_named(unfinished)} of {shards} in {str(folder)!r} did not end: give the same command again, "
            "which continues"
        )
    foreign = [number for number in numbers if records[number]["screen"] != first["screen"]]
    if foreign:
        raise ConfigError(
            f"{_named(foreign)} of {shards} in {str(folder)!r} came from another model or other evidence "
            f"than shard {numbers[0]}: merge shards of one screen"
        )
    return StoredShards(
        ScreenRequest(**first["request"]), first["origin"], tuple(found[number] for number in numbers)
    )


def merge_shards(core: PredictionCore, shards: StoredShards) -> pd.DataFrame:
    """Return the table of a screen from its shards, as `screen_mutants` does in one process.

    Raises
    ------
    ConfigError
        If the core is not the model of the shards.
    """
    screen, exempt = make_screen(core, shards.request)
    mark, found = screen.fingerprint(core), ScreenResult(screen.lists())
    for path in shards.paths:
        found.add(read_state(path, mark, screen, "name the model and evidence that the shards are of"))
    return shortlist(core, screen, found, shards.request, exempt)


def _plain(request: ScreenRequest) -> dict[str, Any]:
    """Return a request as JSON returns it: lists for tuples."""
    plain: dict[str, Any] = finite(asdict(request))
    return plain


def _check_alike(
    path: Path, record: Mapping[str, Any], other: str, theirs: Mapping[str, Any], remedy: str
) -> None:
    """Refuse a shard of another request, naming the first option that differs."""
    mine = {"shards": record.get("shards")} | dict(record.get("request") or {})
    for name, value in ({"shards": theirs["shards"]} | dict(theirs["request"])).items():
        if mine.get(name) != value:
            raise ConfigError(
                f"{str(path)!r} was screened with {name}={shown(mine.get(name))}, and {other} with "
                f"{name}={shown(value)}: {remedy}"
            )


def _named(numbers: Sequence[int]) -> str:
    """Return ``shards 1, 4-7``, as sbatch writes the tasks of an array."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    listed = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"shard{'' if len(numbers) == 1 else 's'} {listed}"
