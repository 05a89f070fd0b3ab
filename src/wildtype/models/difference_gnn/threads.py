"""Independent pieces of work, one thread of torch's for each at a time instead of all for one.

Products of thin matrices, and loops over them, gain little from a second thread; two mutants beside each
other gain nearly all of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock

import torch

_one_at_a_time = Lock()


def each(count: int, work: Callable[[int], None], *, together: bool = True) -> None:
    """Call work(0) … work(count - 1) in as many threads as torch has, or one after the other.

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
            for i in todo:  # the iterator hands out each number once, whoever asks
                work(i)

    with _single_threaded():
        for done in [_pool(threads, os.getpid()).submit(take) for _ in range(threads)]:
            done.result()  # raises what the thread raised


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
    """One pool per process: threads do not survive a fork."""
    return ThreadPoolExecutor(
        threads, thread_name_prefix="mutants", initializer=torch.set_num_threads, initargs=(1,)
    )
