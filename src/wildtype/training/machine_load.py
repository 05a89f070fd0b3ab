"""`MachineLoad`: what else a machine did while steps were timed, and how fast its processor was.

A time on the wall belongs to a machine and to all that runs on it. These figures say whether another job ran
beside: the share of the processors that other processes had, those a hypervisor took away, involuntary
changes of the thread on a processor, and a fixed piece of arithmetic, which takes longer where a processor is
shared or runs at a lower clock.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import deque
from typing import Any

import numpy as np
import psutil

PROBES = 1000
"""Probes that are kept, the last ones."""
BUSY_CORES = 0.25
"""Cores' worth of other processes from which on a machine is called busy."""
PUT_OFF = 0.05
"""Share of a step without a processor from which on it is."""
AT_WORK = ("user", "nice", "system", "irq", "softirq")
"""Times of a core in which it works for a process of this machine; guests are part of the first two."""
_PROBE = np.linspace(0.0, 1.0, 4096)


class MachineLoad:
    """Compares the machine's counters before the first counted step with those after the last.

    Attributes
    ----------
    threads : int
        The most threads that torch had in a counted step.
    """

    def __init__(self) -> None:
        self.threads = 0
        self._first: dict[str, float] | None = None
        self._last: dict[str, float] = {}
        self._probes: deque[float] = deque(maxlen=PROBES)

    def begin(self) -> None:
        """The first counted step begins."""
        self._first = _counters()

    def step(self) -> None:
        """A counted step has ended."""
        torch = sys.modules.get("torch")
        if torch is not None:
            self.threads = max(self.threads, int(torch.get_num_threads()))
        # Every step takes the probe once: what slows the processor now and then must not hide between two.
        start = time.thread_time()
        for _ in range(8):
            np.dot(_PROBE, _PROBE)
        self._probes.append(time.thread_time() - start)

    def to_json(self, steps: int, delay: float, seconds: float) -> dict[str, Any]:
        """Return the findings: processors in use, interruptions per step, and whether the machine was busy.

        Parameters
        ----------
        steps : int
            Counted steps.
        delay, seconds : float
            Of a mean step: without a processor, and in all.
        """
        if self._first is None or not steps:
            return {}
        now = _counters()
        more = {name: now[name] - before for name, before in self._first.items()}
        wall = max(more["wall"], 1e-9)
        cores = len(_cores())
        others = max(more["busy"] - more["own"], 0.0) / wall
        return {
            "cores": cores,
            "threads": self.threads,
            "own_cores": more["own"] / wall,
            "other_cores": others,
            "stolen_cores": more["steal"] / wall,
            "load": now["load"],
            "involuntary_switches": more["switches"] / steps,
            "page_faults": more["faults"] / steps,
            "probe": statistics.median(self._probes) if self._probes else None,
            "put_off": delay / seconds if seconds else 0.0,
            # Threads of this run that take each other's processors are no other job.
            "busy": others >= BUSY_CORES and (delay >= PUT_OFF * seconds or others >= cores - 1),
        }


def _cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _counters() -> dict[str, float]:
    (own, switches, faults), cores, used_of = _own(), _cores(), psutil.cpu_times(percpu=True)
    # Of a large machine that many share, only what goes on at these cores matters.
    times = [used_of[core] for core in cores if core < len(used_of)]
    children = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            used = child.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        children += used.user + used.system
    return {
        "wall": time.perf_counter(),
        "busy": sum(sum(getattr(each, name, 0.0) for name in AT_WORK) for each in times),
        "steal": sum(getattr(each, "steal", 0.0) for each in times),
        "own": own + children,
        "switches": switches,
        "faults": faults,
        "load": psutil.getloadavg()[0],
    }


def _own() -> tuple[float, float, float]:
    """Return the seconds of this process and its ended children, involuntary switches, and page faults."""
    try:
        import resource
    except ImportError:  # Windows, where psutil does not count faults
        process = psutil.Process()
        return sum(process.cpu_times()[:4]), process.num_ctx_switches().involuntary, float("nan")
    here, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = here.ru_utime + here.ru_stime + ended.ru_utime + ended.ru_stime
    return seconds, here.ru_nivcsw, here.ru_minflt
