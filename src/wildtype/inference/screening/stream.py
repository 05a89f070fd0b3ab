"""A screen as a stream: predict piece by piece and keep the best; in several processes, and resumable.

Every mutant of a design is predicted, so the best are exact. A piece depends on its number alone, and merging
pieces keeps a total order: neither processes nor interruptions change the result.

Legend: c members · p outputs · m mutants of a piece.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, WildtypeError, reason_of
from wildtype.files import content_hash, writing
from wildtype.inference.core import PredictionCore, Source
from wildtype.inference.screening.constraints import Constraints
from wildtype.inference.screening.designs import Design, Mutants
from wildtype.nn.devices import device_named
from wildtype.plugins import load_plugins, plugin_paths
from wildtype.unpacking import read_arrays

DIRECTIONS = ("low", "high")
PIECE = 1 << 16
OFTEN = 4
"""Mutants per member from which the tables of a faster prediction pay off."""
AGAIN = "the same mutant again"
TWICE = "one gene twice"
NOT_A_NUMBER = "no number predicted"


class Best:
    """The lowest or highest ``count`` values of a stream, with their numbers.

    Values are ordered by (value, number). This order is total, so the result depends neither on how the
    stream is cut into pieces nor on their order, and ties never change it.

    Raises
    ------
    ConfigError
        If ``count`` is not positive, or the direction is not one of ``DIRECTIONS``.
    """

    def __init__(self, count: int, direction: str) -> None:
        if count < 1:
            raise ConfigError(f"top={count}: ask for at least one mutant")
        if direction not in DIRECTIONS:
            raise ConfigError(f"direction={direction!r} is not known; known: {', '.join(DIRECTIONS)}, both")
        self.count, self.direction = count, direction
        self.value = np.zeros(0, np.float64)
        self.number = np.zeros(0, np.int64)

    def add(self, value: NDArray[np.float64], number: NDArray[np.int64]) -> None:
        """Add values [m] with their numbers [m]; values that are not finite are never kept."""
        sign = 1.0 if self.direction == "low" else -1.0
        there = np.isfinite(value)
        if len(self.value) == self.count:
            # "<=", not "<": a value equal to the last one replaces it if its number is smaller.
            there &= sign * value <= sign * self.value[-1]
        if not there.any():
            return
        value = np.concatenate([self.value, value[there]])
        number = np.concatenate([self.number, number[there]])
        if len(value) > 4 * self.count:
            # Selection is O(m) and sorting O(m log m): sort only values up to the count-th, all ties
            # included.
            limit = np.partition(sign * value, self.count - 1)[self.count - 1]
            stays = sign * value <= limit
            value, number = value[stays], number[stays]
        order = np.lexsort((number, sign * value))[: self.count]
        self.value, self.number = value[order], number[order]


@dataclass(frozen=True, eq=False)
class Screen:
    """A design with its constraints, and the outputs to rank mutants by.

    Attributes
    ----------
    design : Design
        Mutants by number, of c members.
    gene : int64 [c]
        The gene of every member.
    kind : uint8 [c]
        Its perturbation.
    doses : float32 [number of kinds]
        Dose of every perturbation of a kind, the assumed one of the model; NaN: none.
    constraints : Constraints
        Mutants to leave out.
    outputs : tuple of int
        Outputs of the model to rank by.
    directions : tuple of str
        ``low``, ``high`` or both.
    keep : int
        Mutants to keep for every output and direction.
    condition : int
        Condition that phenotypes are predicted in.
    piece : int
        Numbers of the design per piece.
    alone : float64 [c, p] or None
        What is predicted of every member alone, for each of the outputs to rank by. Mutants are then ranked
        by their prediction minus the product over their members; None: by the prediction.
    device : str
        Where mutants are predicted: ``cpu``, ``cuda`` or ``cuda:1``.
    """

    design: Design
    gene: NDArray[np.int64]
    kind: NDArray[np.uint8]
    doses: NDArray[np.float32]
    constraints: Constraints
    outputs: tuple[int, ...]
    directions: tuple[str, ...]
    keep: int
    condition: int = 0
    piece: int = PIECE
    alone: NDArray[np.float64] | None = None
    device: str = "cpu"

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return -(-self.design.count // self.piece)

    def scores(self, values: NDArray[np.float64], members: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what mutants [m, k] with these predictions of the outputs [m, p] are ranked by: [m, p]."""
        return values if self.alone is None else values - self.alone[members].prod(1)

    def lists(self) -> list[Best]:
        """Return an empty ranked list per output and direction."""
        return [Best(self.keep, direction) for _ in self.outputs for direction in self.directions]

    def mutants(self, numbers: NDArray[np.int64]) -> Mutants:
        """Return the mutants of these numbers [m] that are new and have k distinct genes."""
        members, new = self.design.members(numbers)
        genes, kinds = self.gene[members], self.kind[members]
        if (genes[:, 1:] < genes[:, :-1]).any():
            order = np.argsort(genes, axis=1, kind="stable")
            genes, kinds = np.take_along_axis(genes, order, 1), np.take_along_axis(kinds, order, 1)
        rows = new & (genes[:, 1:] != genes[:, :-1]).all(1)
        kept = genes[rows], kinds[rows], self.condition, members[rows], numbers[rows]
        return Mutants(*kept, rows, new, self.doses)

    def fingerprint(self, core: PredictionCore) -> str:
        """Return a hash of everything that the result depends on, so that no state is resumed by mistake."""
        c, known = self.constraints, core.checkpoint.known
        weights = [x.numpy() for x in core.checkpoint.model.state_dict().values()]
        places = c.coordinates.to_arrays() if c.min_linkage_kb and c.coordinates is not None else {}
        return content_hash(
            self.design.describe(),
            self.gene,
            self.kind,
            list(self.outputs),
            list(self.directions),
            self.keep,
            self.condition,
            self.piece,
            # What members have alone follows from the model, and its last bits from the machine.
            self.alone is not None,
            c.min_linkage_kb,
            [places[k].tolist() for k in sorted(places)],
            # Versions before kinds and conditions counted left out whole gene sets, and hashed True here.
            "measured mutants" if c.measured is not None else False,
            *(
                np.zeros(0) if x is None else x
                for x in (c.required, c.lethal, c.deletion_lethal, c.dubious, c.overlapping)
            ),
            *weights,
            known.part,
            known.table.gene,
            known.table.offsets,
            known.table.kind,
            # Without doses as before there were any: stored states go on.
            *(() if known.table.dose is None else (known.table.dose,)),
            known.table.phenotype,
            known.table.condition,
            known.table.value,
        )


@dataclass
class ScreenResult:
    """The best mutants of a screen, or of some of its pieces.

    Attributes
    ----------
    best : list of Best
        One per output and direction.
    asked : int
        Mutants that were predicted.
    left_out : dict
        Mutants that were not, or whose prediction is no number, by reason.
    done : int
        Number of pieces.
    """

    best: list[Best]
    asked: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    done: int = 0

    def add(self, other: ScreenResult) -> None:
        """Add the result of further pieces."""
        for mine, theirs in zip(self.best, other.best, strict=True):
            mine.add(theirs.value, theirs.number)
        self.asked += other.asked
        for reason, count in other.left_out.items():
            self.left_out[reason] = self.left_out.get(reason, 0) + count
        self.done += other.done


class ScreenWorker:
    """Predicts pieces of a screen.

    Raises
    ------
    ConfigError
        If the device is not there, or does not predict this screen.
    """

    def __init__(self, core: PredictionCore, screen: Screen) -> None:
        self.core, self.screen = core, screen
        device_named(screen.device)
        design, gene = screen.design, screen.gene
        self._fast = None
        if design.count >= OFTEN * len(gene):
            how = design.order, screen.condition, screen.device
            self._fast = core.combinations(gene, screen.kind, *how)
        if self._fast is None and screen.device != "cpu":
            raise ConfigError(
                f"device={screen.device!r}: this screen is predicted mutant by mutant on the CPU, since it "
                f"is small, or its model reads evidence or has no tables of members: leave the device out"
            )

    def __call__(self, piece: int) -> ScreenResult:
        """Return the result of one piece."""
        screen = self.screen
        start = piece * screen.piece
        numbers = np.arange(start, min(start + screen.piece, screen.design.count))
        mutants = screen.mutants(numbers)
        out = ScreenResult(screen.lists(), done=1)
        lost = {AGAIN: int((~mutants.new).sum()), TWICE: int((mutants.new & ~mutants.rows).sum())}
        left = np.zeros(len(mutants), bool)
        if len(mutants):
            for reason, refused in screen.constraints.refused(mutants).items():
                # A mutant that breaks several constraints counts with the first, so that counts add up.
                lost[reason] = int((refused & ~left).sum())
                left |= refused
        if left.any():
            mutants = mutants.take(np.flatnonzero(~left))
        out.asked = len(mutants)
        if len(mutants):
            fast = self._fast
            plain = self.core.predict_with_sd
            values = plain(mutants.table)[0] if fast is None else fast(mutants.members)
            scores = screen.scores(values[:, list(screen.outputs)], mutants.members)
            lost[NOT_A_NUMBER] = int((~np.isfinite(scores)).any(1).sum())
            lists = iter(out.best)
            for column in scores.T:
                for _ in screen.directions:
                    next(lists).add(column, mutants.number)
        out.left_out = {reason: count for reason, count in lost.items() if count}
        return out


def run(
    core: PredictionCore,
    screen: Screen,
    *,
    pieces: range | None = None,
    about: Mapping[str, Any] | None = None,
    processes: int = 1,
    state: Path | None = None,
    every: float = 30.0,
    report_progress: Callable[[ScreenResult], None] = lambda _: None,
) -> ScreenResult:
    """Predict every mutant of a screen, or of some of its pieces.

    Parameters
    ----------
    core, screen
        The model, and what to predict and rank.
    pieces : range, optional
        All by default.
    about : mapping, optional
        JSON values to keep in the state besides.
    processes : int
        Number of processes; the result does not depend on it.
    state : path, optional
        File that keeps the result so far, at most ``every`` seconds old; a screen continues from its own
        file.
    report_progress : callable
        Called with the result so far, after every piece.

    Raises
    ------
    ConfigError
        If the state is that of another screen or is damaged, or a process died.
    OutputError
        If the state cannot be written.
    """
    if processes < 1:
        raise ConfigError(f"processes={processes}: give at least one")
    if processes > 1 and screen.device != "cpu":
        raise ConfigError(f"processes={processes}: one process feeds a device: take processes=1, or the CPU")
    source = core.source if processes > 1 else None
    if processes > 1 and source is None:
        raise ConfigError(
            "each process loads the model from its directory, and this one was changed after it was loaded: "
            "take processes=1"
        )
    found = ScreenResult(screen.lists())
    mark = "" if state is None else screen.fingerprint(core)
    if state is not None and state.exists():
        found = read_state(
            state, mark, screen, f"remove it to begin anew, or write to another file ({str(state)!r})"
        )
        report_progress(found)
    pieces = range(screen.pieces) if pieces is None else pieces
    saved = time.monotonic()
    try:
        # Pieces are merged in their order, so ``done`` alone says which of them a stored state contains.
        with _results(core, screen, pieces[found.done :], processes, source) as results:
            for result in results:
                found.add(result)
                report_progress(found)
                if state is not None and time.monotonic() - saved >= every:
                    _save(state, mark, found, about)
                    saved = time.monotonic()
    finally:
        # What was refused before its first piece leaves no state, which another screen would stop at.
        if state is not None and (found.done or not pieces):
            _save(state, mark, found, about)
    return found


@contextmanager
def _results(
    core: PredictionCore, screen: Screen, pieces: range, processes: int, source: Source | None
) -> Iterator[Iterator[ScreenResult]]:
    """Give the results of pieces, in their order; from child processes if there is a source to load."""
    if not pieces:  # all is done, and a worker would compute its tables for nothing
        yield iter(())
        return
    if source is None:
        yield map(ScreenWorker(core, screen), pieces)
        return
    # Processes share the cores of the machine; more threads than cores slow each other down.
    threads = max((os.cpu_count() or 1) // processes, 1)
    # "spawn", not "fork": a forked child of a process that has run torch's thread pool can deadlock.
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), _start_worker, (source, screen, threads, plugin_paths())
    )
    try:
        yield _in_order(pool, pieces, 2 * processes)
    except BrokenProcessPool as error:
        raise ConfigError(
            "a process of the screen died, perhaps for lack of memory: take fewer processes; "
            "the result so far is kept if a state file was given"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, pieces: range, ahead: int) -> Iterator[ScreenResult]:
    """Yield results in order, with ``ahead`` pieces submitted at a time: a design may have 10⁶ of them."""
    waiting: deque[Future[ScreenResult]] = deque()
    for piece in pieces:
        waiting.append(pool.submit(_answer, piece))
        if len(waiting) == ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


_worker: list[ScreenWorker] = []
"""The worker of a child process; a function of a pool takes picklable arguments only."""


def _start_worker(source: Source, screen: Screen, threads: int, plugins: list[str]) -> None:
    import torch

    load_plugins(plugins)

    torch.set_num_threads(threads)
    _worker.append(ScreenWorker(source.load(), screen))


def _answer(piece: int) -> ScreenResult:
    return _worker[0](piece)


def _save(path: Path, mark: str, found: ScreenResult, about: Mapping[str, Any] | None) -> None:
    record = {"screen": mark, "asked": found.asked, "left_out": found.left_out, "done": found.done}
    record |= about or {}
    arrays: dict[str, Any] = {f"value{i}": best.value for i, best in enumerate(found.best)}
    arrays |= {f"number{i}": best.number for i, best in enumerate(found.best)}
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, record=np.array(json.dumps(record)), **arrays)


def read_record(path: Path, remedy: str) -> dict[str, Any]:
    """Return what a state says of itself; raises ``ConfigError`` with a remedy if it is damaged."""
    with _reading(path, remedy):
        record: dict[str, Any] = json.loads(str(read_arrays(path)["record"]))
        if not isinstance(record["screen"], str) or not isinstance(record["done"], int):
            raise ValueError("its record is incomplete")
    return record


def read_state(path: Path, mark: str, screen: Screen, remedy: str) -> ScreenResult:
    """Return the result in a state.

    Parameters
    ----------
    path : Path
        The file.
    mark : str
        The fingerprint of the screen.
    screen : Screen
        What was screened.
    remedy : str
        What to do about a state that is refused.

    Raises
    ------
    ConfigError
        If the state is that of another screen or is damaged.
    """
    record = read_record(path, remedy)
    if record["screen"] != mark:
        raise ConfigError(f"the state is of another screen or another model: {remedy}")
    with _reading(path, remedy):
        stored = read_arrays(path)
        found = ScreenResult(screen.lists(), record["asked"], record["left_out"], record["done"])
        for i, best in enumerate(found.best):
            best.add(stored[f"value{i}"].astype(np.float64), stored[f"number{i}"].astype(np.int64))
    return found


@contextmanager
def _reading(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, WildtypeError):
            raise
        raise ConfigError(
            f"the state of the screen {str(path)!r} is damaged ({reason_of(error)}): {remedy}"
        ) from error
