"""Memory of the process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

STATM = Path("/proc/self/statm")
MIB = 2**20


def resident_mib() -> float:
    """Return the resident memory of this process, MiB."""
    try:
        # Without an object of psutil's, since this is read at every step of a training. See proc(5).
        with open(STATM, "rb", buffering=0) as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except OSError:  # a system other than Linux
        import psutil

        return float(psutil.Process().memory_info().rss) / MIB


def release_memory() -> None:
    """Give the system back what was freed: between blocks, allocators keep more than the rows take."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it, and needs it
        ctypes.CDLL(None).malloc_trim(0)
