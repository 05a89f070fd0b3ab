"""`PeakMemory`: the highest resident memory of this process inside a block."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from wildtype.plugins import plugin_paths

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


class PeakMemory:
    """Measures the peak resident memory of a block, in MiB.

    On Linux the kernel's high-water mark is reset on entry; elsewhere it cannot be, and the peak of the whole
    process is reported, with ``exact`` False.

    Attributes
    ----------
    before, peak : float
        Resident memory on entry and highest resident memory inside, MiB.
    exact : bool
        Whether ``peak`` belongs to this block alone.
    """

    def __enter__(self) -> Self:
        try:
            CLEAR.write_text("5")  # resets VmHWM, see proc(5)
            self.exact = True
        except OSError:
            self.exact = False
        self.before = _resident("VmRSS") if self.exact else float("nan")
        self.peak = float("nan")
        return self

    def __exit__(self, *error: object) -> None:
        self.peak = _resident("VmHWM") if self.exact else _process_peak()


def high_water() -> float:
    """Return the most resident memory since this was asked last, MiB; NaN where the system cannot tell."""
    try:
        peak = _resident("VmHWM")
        CLEAR.write_text("5")
    except OSError:
        return float("nan")
    return peak


def peak_in_fresh_process(module: str, *arguments: Any) -> float:
    """Return what ``peak_above_import`` of a module says in a process of its own, MiB.

    Parameters
    ----------
    module : str
        Its dotted name.
    *arguments
        Of the function, as JSON can say them.

    Raises
    ------
    subprocess.CalledProcessError
        If the process fails.
    """
    code = (
        f"import json, sys; from wildtype.plugins import load_plugins; load_plugins(sys.argv[2:]); "
        f"from {module} import peak_above_import; print(peak_above_import(*json.loads(sys.argv[1])))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments), *plugin_paths()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(result.stdout.split()[-1])


def _resident(key: str) -> float:
    for line in STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) / 1024
    return float("nan")


def _process_peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
