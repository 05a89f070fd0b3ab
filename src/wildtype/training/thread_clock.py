"""`ThreadClock`: how long the training thread computed, and how long it was ready but had no processor.

What is left of the time on the wall is waiting: sleep, a disk, another process, another thread. On Linux the
scheduler counts the second one itself (``run_delay`` in ``/proc/PID/task/TID/schedstat``): a job beside this
one makes it grow, and nothing else that a training step does. Elsewhere it is 0.
"""

from __future__ import annotations

import os
import time

PATH = "/proc/thread-self/schedstat"
SHORT = 20e-6
"""Seconds of the wall beyond those of the thread below which it cannot have been put off: nothing is read."""


class ThreadClock:
    """Seconds of the thread that made it: on a processor, and ready to run without one.

    Attributes
    ----------
    cpu, delay : float
        Both as of the last `read`.
    """

    def __init__(self, path: str = PATH) -> None:
        self.path = path
        self.cpu = self.delay = 0.0
        self._wall = 0.0
        self._file: int | None = None

    def open(self) -> None:
        """Count for the calling thread from now on."""
        self.close()
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no Linux, or a kernel that does not count
            self._file = None
        self.cpu, self._wall = time.thread_time(), float("-inf")
        self.read()

    def read(self) -> None:
        """Take both times."""
        cpu, wall = time.thread_time(), time.perf_counter()
        # Reading the file costs more than all clocks together. Only a thread that stood still for some of the
        # time can have been put off.
        stood = (wall - self._wall) - (cpu - self.cpu) > SHORT
        self.cpu, self._wall = cpu, wall
        if stood and self._file is not None:
            # Bytes and integers alone: nothing here may start the garbage collector within a reading.
            self.delay = int(os.pread(self._file, 64, 0).partition(b" ")[2].partition(b" ")[0]) * 1e-9

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
