"""Shards of a screen: ranges of its pieces for processes on any machines, and their merge.

A shard is stored as the state of a screen of its pieces, with the request and where the model came from.
Pieces are those of the whole screen, and a merge adds results in the order of pieces: it returns what one
process does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.inference.core import PredictionCore
from wildtype.inference.screening.screen import ScreenRequest, make_screen, shortlist
from wildtype.inference.screening.stream import ScreenResult, read_record, read_state, run
from wildtype.inference.shards import REMEDY, Shard, ShardKind, named

if TYPE_CHECKING:
    import pandas as pd

KIND = ShardKind("screen", "a screen", "screened", ".npz")


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
    pieces : tuple of range
        Of each of them.
    """

    request: ScreenRequest
    origin: Mapping[str, str]
    paths: tuple[Path, ...]
    pieces: tuple[range, ...]


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
    pieces, path = shard.range_of(screen.pieces), folder / KIND.name(shard.number)
    about = {"request": _plain(request), "shards": shard.of, "origin": dict(origin)}
    about |= {"pieces": [pieces.start, pieces.stop]}
    if path.exists():
        KIND.check_alike(path, _options(read_record(path, REMEDY)), "this command", _options(about), REMEDY)
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
    found = KIND.found(folder)
    numbers = list(found)
    records = {number: read_record(path, "screen this shard again") for number, path in found.items()}
    for number, record in records.items():
        if not {"shards", "request", "origin", "pieces"} <= record.keys():
            raise ConfigError(f"{str(found[number])!r} is the state of a screen without shards: remove it")
    first = records[numbers[0]]
    for number in numbers[1:]:
        mine, theirs = _options(records[number]), _options(first)
        KIND.check_alike(found[number], mine, KIND.name(numbers[0]), theirs, "merge shards of one screen")
    of = first["shards"]
    KIND.check_complete(folder, numbers, of)
    pieces = {number: range(*record["pieces"]) for number, record in records.items()}
    unfinished = [number for number in numbers if records[number]["done"] < len(pieces[number])]
    if unfinished:
        raise ConfigError(
            f"{named(unfinished)} of {of} in {str(folder)!r} did not end: give the same command again, "
            "which continues"
        )
    marks = {number: record["screen"] for number, record in records.items()}
    KIND.check_same(folder, marks, of, "came from another model or other evidence")
    return StoredShards(
        ScreenRequest(**first["request"]), first["origin"], tuple(found.values()), tuple(pieces.values())
    )


def merge_shards(core: PredictionCore, shards: StoredShards) -> pd.DataFrame:
    """Return the table of a screen from its shards, as `screen_mutants` does in one process.

    Raises
    ------
    ConfigError
        If the core is not the model of the shards, or a file holds another shard than its name states.
    """
    screen, exempt = make_screen(core, shards.request)
    mark, found = screen.fingerprint(core), ScreenResult(screen.lists())
    of = len(shards.paths)
    for number, (path, pieces) in enumerate(zip(shards.paths, shards.pieces, strict=True)):
        result = read_state(path, mark, screen, "name the model and evidence that the shards are of")
        if pieces != Shard(number, of).range_of(screen.pieces):
            raise KIND.misnamed(path)
        found.add(result)
    return shortlist(core, screen, found, shards.request, exempt)


def _plain(request: ScreenRequest) -> dict[str, Any]:
    """Return a request as JSON returns it: lists for tuples."""
    plain: dict[str, Any] = finite(asdict(request))
    return plain


def _options(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all shards of a screen have in common."""
    return {"shards": record.get("shards"), **(record.get("request") or {})}
