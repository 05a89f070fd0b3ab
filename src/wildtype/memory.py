"""Memory of the process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

STATM = Path("/proc/self/statm")
MIB = 2**20
SET_BY_USER = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)
"""Variables by which a user chooses what malloc keeps."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Numbers of parameters of mallopt(3)."""
KEPT, OF_ITS_OWN = 256 * MIB, 64 * MIB
"""Freed bytes at the end of the heap that are kept, and the size from which on a block goes back at once."""


def resident_mib() -> float:
    """Return the resident memory of this process, MiB."""
    try:
        # Without an object of psutil's, since this is read at every step of a training. See proc(5).
        with open(STATM, "rb", buffering=0) as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except OSError:  # a system other than Linux
        import psutil

        return float(psutil.Process().memory_info().rss) / MIB


def keep_freed_memory() -> None:
    """Let malloc keep what one batch frees for the next one, unless the user chose.

    By default it gives large blocks back to the system at once, which clears every page when it hands them
    out again: a sixth of the processor time of a screen with evidence. Only glibc has this.
    """
    if sys.platform != "linux" or any(name in os.environ for name in SET_BY_USER):
        return
    with contextlib.suppress(OSError, AttributeError):
        choose = ctypes.CDLL(None).mallopt
        choose(M_MMAP_THRESHOLD, OF_ITS_OWN)
        choose(M_TRIM_THRESHOLD, KEPT)
        # What a thread frees is for every thread: its own memory has gaps of its own, and goes back by heaps.
        choose(M_ARENA_MAX, 1)


def release_memory() -> None:
    """Give the system back what was freed: between blocks, allocators keep more than the rows take."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it, and needs it
        ctypes.CDLL(None).malloc_trim(0)
