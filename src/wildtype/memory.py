"""Memory of the process."""

from __future__ import annotations

import contextlib
import ctypes
import sys


def release_memory() -> None:
    """Give the system back what was freed: between blocks, allocators keep more than the rows take."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it, and needs it
        ctypes.CDLL(None).malloc_trim(0)
