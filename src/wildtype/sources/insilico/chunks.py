"""Many linear programs in chunks, on one or more processes; each chunk is kept, so that a build can resume.

A chunk's file is named by the content of its question (metabolism, solver and bounds), so it is found
again by any later build that asks the same, and an interrupted build goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.errors import DatasetError
from wildtype.files import cache_dir, content_hash, writing
from wildtype.organism import Metabolism
from wildtype.sources.insilico.fba import Change, GrowthProgram, Growths, solve_all

VERSION = 2
"""Raised whenever ``fba`` changes what it is asked or answers: older chunk files are then not found."""
CHUNK = 256
WORTH_WORKERS = 5.0
"""Seconds of work left from which further processes are started."""

Changes = list[Change]


def write_chunk(path: Path, answer: Growths) -> None:
    """Write one chunk's answers, whole or not at all."""
    with writing(path) as temporary, open(temporary, "wb") as handle:
        np.savez_compressed(handle, growth=answer.growth, status=answer.status, active=answer.active)


def read_chunk(path: Path, size: int) -> Growths | None:
    """Read one chunk's answers; None if they are missing, damaged or not ``size`` many."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            answer = Growths(stored["growth"], stored["status"], stored["active"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return answer if len(answer.growth) == len(answer.status) == len(answer.active) == size else None


class ChunkSolver:
    """Solves the growth of many mutants of one metabolism.

    Parameters
    ----------
    metabolism : Metabolism
        The wild type.
    processes : int or None
        Processes that solve; None uses all cores once the work is worth starting them. The answers do not
        depend on it.
    keep : bool
        Whether chunk files stay in the cache folder, under ``fba``.
    progress : bool
        Whether to show a progress bar on the terminal.

    Raises
    ------
    DatasetError
        If the wild type does not grow, or a process dies.
    """

    def __init__(
        self,
        metabolism: Metabolism,
        *,
        processes: int | None = None,
        keep: bool = False,
        progress: bool = False,
    ) -> None:
        self.metabolism = metabolism
        self.program = GrowthProgram(metabolism)
        self.processes = processes
        self.progress = progress
        version = f"{VERSION}-glpk{self.program.glpk.glp_version()}"
        self._key = content_hash(version, metabolism.sha256)
        self.folder = cache_dir() / "fba" / self._key[:16] if keep else None

    def solve(self, changes: Changes, label: str = "flux balance") -> Growths:
        """Return the growth of u mutants, in their order."""
        chunks = [changes[start : start + CHUNK] for start in range(0, len(changes), CHUNK)]
        with ExitStack() as stack:
            folder = self.folder
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wildtype-fba-")))
            paths = [folder / f"{self._name(chunk)}.npz" for chunk in chunks]
            answers = [
                read_chunk(path, len(chunk)) if self.folder else None
                for path, chunk in zip(paths, chunks, strict=True)
            ]
            todo = [i for i, answer in enumerate(answers) if answer is None]
            advance = stack.enter_context(self._bar(label, sum(len(chunks[i]) for i in todo)))
            began, done = time.perf_counter(), 0
            while todo and not self._wants_workers(len(todo), done, time.perf_counter() - began):
                i = todo.pop(0)
                answer = answers[i] = solve_all(self.program, chunks[i])
                if self.folder:
                    write_chunk(paths[i], answer)
                advance(len(chunks[i]))
                done += 1
            if todo:
                self._on_workers(folder, [(paths[i], chunks[i]) for i in todo], advance)
                for i in todo:
                    answers[i] = read_chunk(paths[i], len(chunks[i]))
            whole = [answer for answer in answers if answer is not None]
        if len(whole) < len(chunks):
            raise DatasetError(
                f"{len(chunks) - len(whole)} chunks of {label} vanished from {folder}: build again"
            )
        width = -(-self.program.columns // 8)
        return Growths(
            np.concatenate([np.zeros(0)] + [a.growth for a in whole]),
            np.concatenate([np.zeros(0, np.uint8)] + [a.status for a in whole]),
            np.concatenate([np.zeros((0, width), np.uint8)] + [a.active for a in whole]),
        )

    def _name(self, chunk: Changes) -> str:
        sizes = np.array([one.reaction.size for one in chunk], dtype=np.int64)
        columns = [np.concatenate(column) for column in zip(*chunk, strict=True)]
        return content_hash(self._key, sizes, *columns)[:32]

    def _wants_workers(self, left: int, done: int, seconds: float) -> bool:
        if self.processes is not None:
            return self.processes > 1
        return done > 0 and left > 1 and _cores() > 1 and seconds / done * left > WORTH_WORKERS

    def _on_workers(self, folder: Path, jobs: list[tuple[Path, Changes]], advance: Any) -> None:
        """Hand jobs to worker processes one at a time; each writes its chunk file and then says so.

        Workers are fresh interpreters, not forks: they share no threads or locks with this process, and do
        not import its main module.
        """
        problem = folder / "metabolism.npz"
        with writing(problem) as temporary, open(temporary, "wb") as handle:
            arrays: dict[str, Any] = self.metabolism.to_arrays()
            np.savez_compressed(handle, **arrays)
        waiting = list(reversed(jobs))
        command = [sys.executable, "-m", "wildtype.sources.insilico.worker", str(problem)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        count = min(self.processes or _cores(), len(jobs))
        workers = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            for _ in range(count)
        ]
        try:
            with selectors.DefaultSelector() as ready:
                sizes: dict[int, int] = {}
                for worker in workers:
                    ready.register(worker.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
                    sizes[worker.pid] = _send(worker, waiting.pop())
                while sizes:
                    for key, _ in ready.select():
                        worker = key.data
                        if worker.stdout.readline().strip() != "done":
                            raise DatasetError(
                                f"a flux balance process died (exit code {worker.wait()}): what was solved "
                                f"is kept; build again, with processes=1 if it recurs"
                            )
                        advance(sizes.pop(worker.pid))
                        if waiting:
                            sizes[worker.pid] = _send(worker, waiting.pop())
                        else:
                            ready.unregister(worker.stdout)
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    if pipe is not None:
                        with suppress(BrokenPipeError):  # what a dead process was still to be told
                            pipe.close()

    @contextmanager
    def _bar(self, label: str, total: int) -> Iterator[Any]:
        if not self.progress or not total:
            yield lambda count: None
            return
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(label, total=total)
            yield lambda count: bar.advance(task, count)


def _send(worker: subprocess.Popen[str], job: tuple[Path, Changes]) -> int:
    path, chunk = job
    assert worker.stdin is not None
    changes = [[column.tolist() for column in one] for one in chunk]
    with suppress(BrokenPipeError):  # it died: its end is found when its answer is read
        worker.stdin.write(json.dumps({"path": str(path), "changes": changes}) + "\n")
        worker.stdin.flush()
    return len(chunk)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
