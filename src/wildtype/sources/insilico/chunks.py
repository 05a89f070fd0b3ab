"""Many linear programs in chunks, on one or more processes; each chunk is kept, so that a build can resume.

The name of a chunk's file is a hash of metabolism, solver and bounds. A later build with the same programs
finds the file again, so that an interrupted build continues where it stopped.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
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
"""To be raised whenever programs or results of ``fba`` change, so that older chunk files are not found."""
CHUNK = 256
"""Mutants per chunk, which is what an interrupted process loses at most."""
WORTH_WORKERS = 5.0
"""Seconds of work left from which further processes are started."""

# Not ``-m``: the package imports this module first, so that it would exist twice in the worker.
_WORKER = f"import sys; from {__name__} import work; work(sys.argv[1])"

Changes = list[Change]


def write_chunk(path: Path, answer: Growths) -> None:
    """Write one chunk's answers, completely or not at all."""
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
            # A damaged or cut file reads as None and is solved again: what is kept never stops a build.
            todo = [i for i, answer in enumerate(answers) if answer is None]
            advance = stack.enter_context(self._bar(label, sum(len(chunks[i]) for i in todo)))
            # Chunks run here until one has shown its duration; workers cost seconds of imports to start.
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
            np.concatenate([np.zeros(0)] + [a.growth for a in whole]),  # the empty first part serves u = 0
            np.concatenate([np.zeros(0, np.uint8)] + [a.status for a in whole]),
            np.concatenate([np.zeros((0, width), np.uint8)] + [a.active for a in whole]),
        )

    def _name(self, chunk: Changes) -> str:
        # Sizes are hashed too: without them, {a}, {b, c} and {a, b}, {c} would have the same hash.
        sizes = np.array([one.reaction.size for one in chunk], dtype=np.int64)
        columns = [np.concatenate(column) for column in zip(*chunk, strict=True)]
        return content_hash(self._key, sizes, *columns)[:32]

    def _wants_workers(self, left: int, done: int, seconds: float) -> bool:
        if self.processes is not None:
            return self.processes > 1
        return done > 0 and left > 1 and _cores() > 1 and seconds / done * left > WORTH_WORKERS

    def _on_workers(self, folder: Path, jobs: list[tuple[Path, Changes]], advance: Any) -> None:
        """Send jobs to worker processes one at a time; each writes its chunk file, then answers ``done``.

        Workers are fresh interpreters, not forks: they share no threads or locks with this process, and do
        not import its main module.
        """
        problem = folder / "metabolism.npz"
        with writing(problem) as temporary, open(temporary, "wb") as handle:
            arrays: dict[str, Any] = self.metabolism.to_arrays()
            np.savez_compressed(handle, **arrays)
        waiting = list(reversed(jobs))
        command = [sys.executable, "-c", _WORKER, str(problem)]
        # The worker imports the very package of this process, also where a caller has changed sys.path.
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
                        # A pipe at its end is readable too and gives "": so a dead worker is found at once.
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
        from rich.progress import Progress

        from wildtype.terminal import PlainConsole

        console = PlainConsole(stderr=True)
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


def work(problem: str) -> None:
    """Serve jobs in a worker process: JSON lines in, a chunk's file and ``done`` out, until the input closes.

    ``problem`` is the file of the metabolism's arrays.
    """
    # Ctrl-C reaches the whole process group; the parent handles it and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with np.load(problem, allow_pickle=False) as arrays:
        program = GrowthProgram(Metabolism.from_arrays(arrays))
    for line in sys.stdin:
        job = json.loads(line)
        changes = [
            Change(np.array(reaction, dtype=np.int64), np.array(lower), np.array(upper))
            for reaction, lower, upper in job["changes"]
        ]
        write_chunk(Path(job["path"]), solve_all(program, changes))
        try:
            print("done", flush=True)
        except BrokenPipeError:  # the parent is gone; what was solved is kept for its next build
            sys.stdout = None
            return
