"""A screen as a stream: piece by piece through the model, keeping the best; in several processes, resumable.

Legend: c members · n genes · p outputs · m mutants of a piece.
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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, WildtypeError, reason_of
from wildtype.files import content_hash, writing
from wildtype.inference.screening.best import Best
from wildtype.inference.screening.constraints import Constraints
from wildtype.inference.screening.designs import Design
from wildtype.inference.screening.mutants import Mutants
from wildtype.plugins import load_plugins, plugin_paths

if TYPE_CHECKING:
    from wildtype.inference.predictor import Predictor, Source

PIECE = 1 << 16
OFTEN = 4
"""Mutants per member from which on tables of members are worth making."""
AGAIN = "the same mutant again"
TWICE = "one gene twice"
NOT_A_NUMBER = "no number predicted"


@dataclass(frozen=True, eq=False)
class Screen:
    """What is asked.

    Attributes
    ----------
    design : Design
        Mutants by number, of c members.
    gene : int64 [c]
        The gene of every member.
    kind : uint8 [c]
        What is done to it.
    constraints : Constraints
        Mutants that are left out.
    outputs : tuple of int
        Outputs of the model that are ranked.
    directions : tuple of str
        ``low``, ``high`` or both.
    keep : int
        Mutants to keep for every output and direction.
    condition : int
        In which they are asked about.
    piece : int
        Mutants that pass the model between two looks at what is best.
    """

    design: Design
    gene: NDArray[np.int64]
    kind: NDArray[np.uint8]
    constraints: Constraints
    outputs: tuple[int, ...]
    directions: tuple[str, ...]
    keep: int
    condition: int = 0
    piece: int = PIECE

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return -(-self.design.count // self.piece)

    def lists(self) -> list[Best]:
        """Return an empty list per output and direction."""
        return [Best(self.keep, direction) for _ in self.outputs for direction in self.directions]

    def mutants(self, numbers: NDArray[np.int64]) -> Mutants:
        """Return the mutants of these numbers [m]: those that have k distinct genes."""
        members, new = self.design.members(numbers)
        genes, kinds = self.gene[members], self.kind[members]
        if (genes[:, 1:] < genes[:, :-1]).any():
            order = np.argsort(genes, axis=1, kind="stable")
            genes, kinds = np.take_along_axis(genes, order, 1), np.take_along_axis(kinds, order, 1)
        rows = new & (genes[:, 1:] != genes[:, :-1]).all(1)
        return Mutants(genes[rows], kinds[rows], self.condition, members[rows], numbers[rows], rows, new)

    def fingerprint(self, predictor: Predictor) -> str:
        """Return a hash of everything that the answer depends on."""
        c, known = self.constraints, predictor.checkpoint.known
        weights = [x.numpy() for x in predictor.checkpoint.model.state_dict().values()]
        places = c.coordinates.to_arrays() if c.linked and c.coordinates is not None else {}
        return content_hash(
            self.design.describe(),
            self.gene,
            self.kind,
            list(self.outputs),
            list(self.directions),
            self.keep,
            self.condition,
            self.piece,
            c.linked,
            [places[k].tolist() for k in sorted(places)],
            c.measured is not None,
            *(np.zeros(0) if x is None else x for x in (c.required, c.lethal)),
            *weights,
            known.part,
            known.table.gene,
            known.table.value,
        )


@dataclass
class Outcome:
    """What a screen, or a part of it, found.

    Attributes
    ----------
    best : list of Best
        One per output and direction.
    asked : int
        Mutants that passed the model.
    left_out : dict
        Mutants that did not, or got no number, by reason.
    done : int
        Pieces that are in this.
    """

    best: list[Best]
    asked: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    done: int = 0

    def add(self, other: Outcome) -> None:
        """Take another part into account."""
        for mine, theirs in zip(self.best, other.best, strict=True):
            mine.add(theirs.value, theirs.number)
        self.asked += other.asked
        for reason, count in other.left_out.items():
            self.left_out[reason] = self.left_out.get(reason, 0) + count
        self.done += other.done


class ScreenWorker:
    """Asks a predictor about pieces of a screen."""

    def __init__(self, predictor: Predictor, screen: Screen) -> None:
        self.predictor, self.screen = predictor, screen
        design, gene = screen.design, screen.gene
        self._fast = None
        if design.count >= OFTEN * len(gene):
            self._fast = predictor.combinations(gene, screen.kind, design.order, screen.condition)

    def __call__(self, piece: int) -> Outcome:
        """Return what one piece holds."""
        screen = self.screen
        start = piece * screen.piece
        numbers = np.arange(start, min(start + screen.piece, screen.design.count))
        mutants = screen.mutants(numbers)
        out = Outcome(screen.lists(), done=1)
        lost = {AGAIN: int((~mutants.new).sum()), TWICE: int((mutants.new & ~mutants.rows).sum())}
        left = np.zeros(len(mutants), bool)
        if len(mutants):
            for reason, refused in screen.constraints.refused(mutants).items():
                lost[reason] = int((refused & ~left).sum())
                left |= refused
        if left.any():
            mutants = mutants.take(np.flatnonzero(~left))
        out.asked = len(mutants)
        if len(mutants):
            fast = self._fast
            values = self.predictor.predict_values(mutants.table) if fast is None else fast(mutants.members)
            lost[NOT_A_NUMBER] = int((~np.isfinite(values[:, list(screen.outputs)])).any(1).sum())
            lists = iter(out.best)
            for output in screen.outputs:
                for _ in screen.directions:
                    next(lists).add(values[:, output], mutants.number)
        out.left_out = {reason: count for reason, count in lost.items() if count}
        return out


def run(
    predictor: Predictor,
    screen: Screen,
    *,
    processes: int = 1,
    state: Path | None = None,
    every: float = 30.0,
    report_progress: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Ask about every mutant of a screen.

    Parameters
    ----------
    predictor, screen
        Who is asked, and what.
    processes : int
        Beside each other; the answer does not depend on it.
    state : path, optional
        Where what was found is kept, at most ``every`` seconds old; a screen that finds its own state there
        goes on from it.
    report_progress : callable
        Is given what was found so far, after every piece.

    Raises
    ------
    ConfigError
        If the state is that of another screen, is damaged, or a process died.
    OutputError
        If the state cannot be written.
    """
    if processes < 1:
        raise ConfigError(f"processes={processes}: at least one")
    if processes > 1 and predictor.source is None:
        raise ConfigError(
            "several processes load the model themselves, and this one was changed after it was loaded: "
            "take processes=1"
        )
    found = Outcome(screen.lists())
    mark = "" if state is None else screen.fingerprint(predictor)
    if state is not None and state.exists():
        found = _read(state, mark, screen)
        report_progress(found)
    saved = time.monotonic()
    try:
        with _answers(predictor, screen, range(found.done, screen.pieces), processes) as answers:
            for answer in answers:
                found.add(answer)
                report_progress(found)
                if state is not None and time.monotonic() - saved >= every:
                    _save(state, mark, found)
                    saved = time.monotonic()
    finally:
        if state is not None:
            _save(state, mark, found)
    return found


@contextmanager
def _answers(
    predictor: Predictor, screen: Screen, pieces: range, processes: int
) -> Iterator[Iterator[Outcome]]:
    """Give the outcomes of pieces, in their order."""
    if processes == 1:
        yield map(ScreenWorker(predictor, screen), pieces)
        return
    assert predictor.source is not None  # `run` has looked
    threads = max((os.cpu_count() or 1) // processes, 1)
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), _begin, (predictor.source, screen, threads, plugin_paths())
    )
    try:
        yield _in_order(pool, pieces, 2 * processes)
    except BrokenProcessPool as error:
        raise ConfigError(
            "a process of the screen died, perhaps for lack of memory: take fewer processes; "
            "what was found is kept where a state was asked for"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, pieces: range, ahead: int) -> Iterator[Outcome]:
    waiting: deque[Future[Outcome]] = deque()
    for piece in pieces:
        waiting.append(pool.submit(_answer, piece))
        if len(waiting) == ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


_own: list[ScreenWorker] = []
"""Of a process of its own."""


def _begin(source: Source, screen: Screen, threads: int, plugins: list[str]) -> None:
    import torch

    load_plugins(plugins)

    torch.set_num_threads(threads)
    _own.append(ScreenWorker(source.load(), screen))


def _answer(piece: int) -> Outcome:
    return _own[0](piece)


def _save(path: Path, mark: str, found: Outcome) -> None:
    record = {"screen": mark, "asked": found.asked, "left_out": found.left_out, "done": found.done}
    arrays: dict[str, Any] = {f"value{i}": best.value for i, best in enumerate(found.best)}
    arrays |= {f"number{i}": best.number for i, best in enumerate(found.best)}
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, record=np.array(json.dumps(record)), **arrays)


def _read(path: Path, mark: str, screen: Screen) -> Outcome:
    remedy = f"remove it to begin anew, or write to another file ({str(path)!r})"
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays: Mapping[str, NDArray[np.generic]] = {name: stored[name] for name in stored.files}
        record = json.loads(str(arrays["record"]))
        if record["screen"] != mark:
            raise ConfigError(f"what was kept is of another screen or another model: {remedy}")
        found = Outcome(screen.lists(), record["asked"], record["left_out"], record["done"])
        for i, best in enumerate(found.best):
            best.add(arrays[f"value{i}"].astype(np.float64), arrays[f"number{i}"].astype(np.int64))
        return found
    except (KeyError, ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, WildtypeError):
            raise
        raise ConfigError(f"what was kept of the screen is damaged ({reason_of(error)}): {remedy}") from error
