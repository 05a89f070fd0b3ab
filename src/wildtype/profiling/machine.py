"""The machine that a measurement belongs to, what it has left, and time and memory that a call takes."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from wildtype.memory import MIB as MIB
from wildtype.memory import resident_mib
from wildtype.plugins import plugin_paths

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def machine() -> dict[str, Any]:
    """Return processor, cores, memory, threads and accelerator; torch's facts only where torch is loaded."""
    torch = sys.modules.get("torch")  # `doctor` and records of light commands must not load it
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "torch": str(torch.__version__) if torch else "not loaded",
        "threads": int(torch.get_num_threads()) if torch else None,
        "accelerator": str(torch.cuda.get_device_name()) if torch and torch.cuda.is_available() else "none",
    }


def _processor() -> str:
    # psutil counts processors and does not name them; platform.processor() is empty on most Linux systems.
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def take_turns(
    runs: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    summary: Callable[[list[float]], float] = statistics.median,
    synchronise: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Return seconds of every run, after one warm-up each.

    Parameters
    ----------
    runs : dict of str to callable
        What is timed.
    repeats : int
        Timed calls of each.
    summary : callable
        Of the seconds of one run: the median, or ``min`` where only other work on the machine varies.
    synchronise : callable
        Waits for an accelerator: its kernels are queued, and the clock would stop before they end.
    """
    taken: dict[str, list[float]] = {name: [] for name in runs}
    # The first call compiles kernels and fills caches. Turns spread a drift of the machine (heat, neighbours)
    # over all runs alike, so that it cancels in their ratios.
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            synchronise()
            start = time.perf_counter()
            run()
            synchronise()
            if repeat:
                taken[name].append(time.perf_counter() - start)
    return {name: summary(seconds) for name, seconds in taken.items()}


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
        self.before = resident_mib() if self.exact else float("nan")
        self.peak = float("nan")
        return self

    def __exit__(self, *error: object) -> None:
        self.peak = _high_water_mib() if self.exact else _process_peak_mib()


class PeakOnDevice:
    """Measures the peak memory of torch's tensors on a GPU in a block, as `PeakMemory` does on the CPU."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __enter__(self) -> Self:
        import torch

        torch.cuda.reset_peak_memory_stats(self.device)
        self.before, self.peak = torch.cuda.memory_allocated(self.device) / MIB, float("nan")
        return self

    def __exit__(self, *error: object) -> None:
        import torch

        self.peak = torch.cuda.max_memory_allocated(self.device) / MIB


def peak_memory(device: Any) -> PeakMemory | PeakOnDevice:
    """Return what measures the peak memory of a block that computes on a device."""
    return PeakMemory() if device.type == "cpu" else PeakOnDevice(device)


def high_water() -> float:
    """Return the highest resident memory since the last call, MiB; NaN if the system reports none."""
    try:
        peak = _high_water_mib()
        CLEAR.write_text("5")
    except OSError:
        return float("nan")
    return peak


def peak_in_fresh_process(module: str, *arguments: Any) -> float:
    """Return the result of a module's ``peak_above_import`` in a new process, MiB.

    An allocator keeps what it was given back, so a later peak in the same process hides below an earlier one.

    Parameters
    ----------
    module : str
        Its dotted name.
    *arguments
        Of the function, as JSON values.

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
        # The path of this process, so that the module is found that asked, installed or not.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(result.stdout.split()[-1])


def _high_water_mib() -> float:
    """Return Linux's VmHWM, which can be reset; psutil has no counterpart."""
    for line in STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return float("nan")


def _process_peak_mib() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float(psutil.Process().memory_info().peak_wset) / MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MIB if sys.platform == "darwin" else 1024)  # bytes on macOS, KiB elsewhere


def available_memory_mib(
    *, root: Path = Path("/"), free_mib: float | None = None, held_mib: float | None = None
) -> float:
    """Return the memory that this process may hold in all, MiB: what it holds, and what it can still take.

    The latter is the smaller of the machine's available memory and of what is left in every control group of
    the process; cached pages of files count as free there, since the kernel drops them under pressure.

    Parameters
    ----------
    root : Path
        Parent of Linux's folders proc and sys, where control groups are described.
    free_mib, held_mib : float, optional
        Available on the machine, and held by this process; psutil reports them unless given.
    """
    left = [psutil.virtual_memory().available / MIB if free_mib is None else free_mib]
    left += [room / MIB for room in _cgroup_rooms(root)]
    return min(left) + (resident_mib() if held_mib is None else held_mib)


def available_device_mib(device: str) -> float:
    """Return the memory that this process may hold on a GPU in all, MiB: torch's reserve and what is free."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return float(free + torch.cuda.memory_reserved(device)) / MIB


def free_disk(folder: str | Path, *, usage: Callable[[Path], Any] = shutil.disk_usage) -> int:
    """Return the bytes left for a folder that need not exist yet; quotas are not known."""
    path = Path(folder).absolute()
    while not path.exists():
        path = path.parent
    return int(usage(path).free)


def _cgroup_rooms(root: Path) -> list[float]:
    """Return the bytes left in every control group with a limit, of this process and above (v1 and v2)."""
    rooms = []
    own, mounted = root / "proc/self/cgroup", root / "sys/fs/cgroup"
    for line in own.read_text(encoding="utf-8").splitlines() if own.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, limit, used, cache = mounted, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top = mounted / "memory"
            limit, used, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the path may be the host's, of which only the top is mounted.
        parts = Path(path.lstrip("/")).parts
        for depth in range(len(parts), -1, -1):
            group = top.joinpath(*parts[:depth])
            if not all((group / name).is_file() for name in (limit, used)):
                continue
            most = (group / limit).read_text(encoding="utf-8").strip()
            if most == "max":
                continue
            taken = int((group / used).read_text(encoding="utf-8"))
            rooms.append(max(int(most) - taken + _counter(group / "memory.stat", cache), 0.0))
    return rooms


def _counter(path: Path, name: str) -> int:
    """Return the number behind a name in a file of lines such as ``inactive_file 123``; 0 if it is absent."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((int(value) for key, _, value in (line.partition(" ") for line in lines) if key == name), 0)
