"""Independent pieces of work on a CPU, in as many threads as torch has.

Products of thin matrices, and loops over them, gain little from a second thread; two mutants beside each
other gain nearly all of it. Loops between torch's own parallel operations also wait for the threads of
these, which go on spinning for a while: one thread per mutant avoids that too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Barrier, Lock

import torch

_one_at_a_time = Lock()


def loops(count: int, work: Callable[[int], None]) -> None:
    """Call work(0) … work(count - 1), compiled loops that release the interpreter, beside each other.

    As many threads as torch has take part, this one among them. What a thread raises is raised here.
    """
    threads = min(torch.get_num_threads(), count)
    todo = iter(range(count))

    def take() -> None:
        for i in todo:  # the iterator hands out each number once, whoever asks
            work(i)

    others = [_pool(threads, os.getpid()).submit(take) for _ in range(threads - 1)]
    take()
    for other in others:
        other.result()


def each(count: int, work: Callable[[int], None], *, together: bool = True) -> None:
    """Call work(0) … work(count - 1), made of torch's operations, with one thread for each piece.

    Parameters
    ----------
    count
        Number of pieces.
    work
        Must not depend on the order. Gradients are recorded, or not, as in the calling thread.
    together
        False: one after the other, here; for work that draws random numbers, whose order would change.
    """
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

    pool = _pool(threads, os.getpid())
    with _single_threaded():
        for done in [pool.submit(take) for _ in range(threads)]:
            done.result()  # raises what the thread raised


def shares(count: int, work: Callable[[int, int], None], *, together: bool = True) -> None:
    """Call work(first, last) on as many equal ranges of ``count`` things as torch has threads.

    The ranges depend on the two numbers alone, so that sums over one repeat. With fewer things than threads,
    or not ``together``, it is one range, and torch's operations have all threads.
    """
    threads = torch.get_num_threads()
    ranges = threads if together and count >= threads else 1

    def one(i: int) -> None:
        work(count * i // ranges, count * (i + 1) // ranges)

    each(ranges, one)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Give every operation one thread: MKL's number is the process's own, OpenMP's is each thread's."""
    with _one_at_a_time:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """One pool per process, since threads do not survive a fork; all its threads are started here."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="wildtype")
    met = Barrier(threads)

    def start(_: int) -> None:
        torch.set_num_threads(1)
        met.wait()

    with _single_threaded():
        list(pool.map(start, range(threads)))
    return pool
