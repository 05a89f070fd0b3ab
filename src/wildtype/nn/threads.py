"""Independent pieces of work on a CPU, in as many threads as torch has.

Products of thin matrices, and loops over them, gain little from a second thread; two mutants beside each
other gain nearly all of it. Loops between torch's own parallel operations also wait for the threads of
these, which go on spinning for a while: one thread per mutant avoids that too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Barrier, Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Made = TypeVar("Made")

_one_at_a_time, _making = Lock(), Lock()
_pools: dict[int, tuple[int, ThreadPoolExecutor]] = {}


@functools.cache
def survive_forks() -> None:
    """Let processes that are forked from this one compute, with one thread each.

    OpenMP's threads are not copied into a child, and its first parallel loop would wait for them for ever.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    global _one_at_a_time, _making
    _one_at_a_time, _making = Lock(), Lock()  # another thread of the parent may hold them
    torch.set_num_threads(1)


def loops(count: int, work: Callable[[int], None]) -> None:
    """Call work(0) … work(count - 1), compiled loops that release the interpreter, beside each other.

    As many threads as torch has take part, this one among them. What a thread raises is raised here.
    """
    threads = min(torch.get_num_threads(), count)
    todo = iter(range(count))

    def take() -> None:
        for i in todo:  # the iterator hands out each number once, whoever asks
            work(i)

    # The calling thread takes part: it would only wait, and the machine has no thread more than torch uses.
    others = [_pool(os.getpid()).submit(take) for _ in range(threads - 1)] if threads > 1 else []
    try:
        take()
        for other in others:
            other.result()
    finally:
        _stop(todo, others)


def each(count: int, work: Callable[[int], None], *, together: bool = True, alone: bool = False) -> None:
    """Call work(0) … work(count - 1), made of torch's operations, with one thread for each piece.

    Parameters
    ----------
    count
        Number of pieces.
    work
        Must not depend on the order. Gradients are recorded, or not, as in the calling thread.
    together
        False: one after the other, here; for work that draws random numbers, whose order would change.
    alone
        A single piece has one thread, too: products of matrices are rounded by how threads share them.
    """
    if alone and together and count == 1 and torch.get_num_threads() > 1:
        with _single_threaded():
            work(0)
        return
    threads = min(torch.get_num_threads(), count)
    if not together or threads < 2:
        for i in range(count):
            work(i)
        return
    todo = iter(range(count))
    with_grad = torch.is_grad_enabled()

    def take() -> None:
        with torch.set_grad_enabled(with_grad):
            for i in todo:
                work(i)

    pool = _pool(os.getpid())
    # Threads times threads would be more than the cores: torch's operations get one each while pieces run.
    with _single_threaded():
        parts = [pool.submit(take) for _ in range(threads)]
        try:
            for done in parts:
                done.result()  # raises what the thread raised
        finally:
            _stop(todo, parts)


def shares(count: int, work: Callable[[int, int], None], *, together: bool = True) -> None:
    """Call work(first, last) on as many equal ranges of ``count`` things as torch has threads.

    The ranges depend on the two numbers alone, so that sums over one repeat. With fewer things than threads,
    or not ``together``, it is one range, and torch's operations have all threads.
    """
    # Ranges by thread count, not by who is free: sums over a range are made in the same order every time.
    threads = torch.get_num_threads()
    ranges = threads if together and count >= threads else 1

    def one(i: int) -> None:
        work(count * i // ranges, count * (i + 1) // ranges)

    each(ranges, one)


def ahead(
    items: Iterable[Item], work: Callable[[Item], Made], *, instead: bool = False
) -> Iterator[tuple[Item, Callable[[], Made]]]:
    """Yield every item and a call that returns ``work`` of it, done by a thread while the one before is used.

    Work is done in order and one after the other, in one thread with one of torch's, so that it may keep a
    state; what it raises is raised by the call. Where torch has a single thread, the call does the work.

    Parameters
    ----------
    items, work
        What is worked on, and how.
    instead : bool
        Whether the thread is one of torch's, which has one less meanwhile. More threads than cores wait for
        each other at the end of every operation.
    """
    threads = torch.get_num_threads()
    if threads < 2:
        for item in items:
            yield item, lambda item=item: work(item)  # type: ignore[misc]
        return
    with _started(1) as pool, _threads(threads - instead):
        waiting: list[tuple[Item, Future[Made]]] = []
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 1:
                    done, future = waiting.pop(0)
                    yield done, future.result
            for done, future in waiting:
                yield done, future.result
        except BaseException:  # also where nobody asks for more
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _stop(todo: Iterator[int], parts: list[Future[None]]) -> None:
    """Let no piece begin any more, and wait for those that have: callers own what they write to."""
    for _ in todo:
        pass
    wait(parts)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Give every operation one thread: MKL's number is the process's own, OpenMP's is each thread's."""
    # MKL's setting is shared by the process: two callers at once would restore each other's number.
    with _one_at_a_time, _threads(1):
        yield


def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of a process, since threads do not survive a fork, as large as torch's or larger."""
    wanted = torch.get_num_threads()
    with _making:
        size, pool = _pools.get(process, (0, None))
        if pool is None or size < wanted:
            pool = _started(wanted)
            _pools[process] = (wanted, pool)
    return pool


def _started(threads: int) -> ThreadPoolExecutor:
    """All threads are started here, each of them with one thread of torch's."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="wildtype")
    met = Barrier(threads)

    def start(_: int) -> None:
        torch.get_num_threads()  # the first question in a thread gives it the process's number
        torch.set_num_threads(1)  # OpenMP's number belongs to the thread that sets it
        met.wait()  # holds every thread until all have started: a fast one would take another's turn

    with _single_threaded():
        list(pool.map(start, range(threads)))
    return pool
