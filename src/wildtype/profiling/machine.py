"""The machine that a figure belongs to."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return processor, cores, memory, threads and accelerator; torch's facts only where torch is loaded."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    torch = sys.modules.get("torch")
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "torch": str(torch.__version__) if torch else "not loaded",
        "threads": int(torch.get_num_threads()) if torch else None,
        "accelerator": str(torch.cuda.get_device_name()) if torch and torch.cuda.is_available() else "none",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
