"""How many threads a training step is worth, and what threads that spin cost a job beside it.

The constant of `training.thread_count` comes from here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import torch

from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.profiling.machine import machine, take_turns
from wildtype.profiling.synthetic_problem import ProblemSizes, SyntheticStep, synthetic_step
from wildtype.training.config import TrainingConfig
from wildtype.training.thread_count import threads_of_training, usable_cores
from wildtype.training.waiting import POLICY

POLICIES = ("active", "passive")


def bench_threads(
    *,
    genes: str = "128,512,2048,6600",
    batch_size: int = 2048,
    repeats: int = 7,
    beside: bool = True,
    seconds: float = 10.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Seconds of a training step by number of threads, and of two trainings beside each other.

    Each step is timed with every number of threads in turn, and the fastest counts: other work on the machine
    only adds time. ``beside`` also trains one and two processes of the smallest size for ``seconds``, with
    threads that spin and that sleep while they wait.

    Returns
    -------
    dict
        ``rows``: per size, ``ms`` by number of threads, and ``rule``, the number that a training takes.
        ``beside``: mutants per second of each process, by policy, threads and number of processes.
    """
    try:
        sizes = [int(size) for size in genes.split(",")]
    except ValueError:
        raise ConfigError(f"--genes={genes!r}: give whole numbers, as in 128,2048") from None
    numbers = _numbers(usable_cores())
    rows = []
    for size in sizes:
        made = _step(size, batch_size, seed)
        found = take_turns({str(n): _with_threads(made, n) for n in numbers}, repeats, summary=min)
        rule = threads_of_training(TrainingConfig(batch_size=batch_size), made.model, size)
        rows.append(
            {"genes": size, "rule": rule} | {f"ms, {n} threads": 1e3 * found[str(n)] for n in numbers}
        )
    report: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()[0], "rows": rows}
    if beside:
        report["beside"] = {
            f"{policy}, {n} threads, {together} at once": _together(
                policy, n, together, sizes[0], batch_size, seconds, seed
            )
            for policy in POLICIES
            for n in numbers[:2]
            for together in (1, 2)
        }
    return report


def _numbers(cores: int) -> list[int]:
    """Return 1, 2, 4 … and the number of cores."""
    return sorted({*(2**i for i in range(cores.bit_length()) if 2**i <= cores), cores})


def _step(genes: int, batch_size: int, seed: int) -> SyntheticStep:
    config = CellTransformerConfig(features=False, dropout=0.0)
    return synthetic_step(config, ProblemSizes(genes, 4, 40 * genes, batch_size, 2), seed=seed)


def _with_threads(made: SyntheticStep, threads: int) -> Any:
    def run() -> None:
        torch.set_num_threads(threads)
        made.step()

    return run


def _together(
    policy: str, threads: int, processes: int, genes: int, batch_size: int, seconds: float, seed: int
) -> list[float]:
    """Return mutants per second of processes that train beside each other."""
    arguments = f"{threads}, {genes}, {batch_size}, {seconds}, {seed}"
    code = f"from benchmarks.threads import rate; print(rate({arguments}))"
    environment = {**os.environ, POLICY: policy, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # The number of threads is set in the program; a variable would be its upper limit.
    environment.pop("OMP_NUM_THREADS", None)
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    return [json.loads(process.communicate()[0]) for process in started]


def rate(threads: int, genes: int, batch_size: int, seconds: float, seed: int) -> float:
    """Return the mutants per second of training steps in this process."""
    torch.set_num_threads(threads)
    made = _step(genes, batch_size, seed)
    made.step()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        made.step()
        steps += 1
    return steps * batch_size / (time.perf_counter() - start)
