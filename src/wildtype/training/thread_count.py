"""How many CPU threads a training takes, unless ``training.threads`` says so: a fixed rule.

    threads = work / WORK_PER_THREAD, at least 1 and at most the cores of this process
    work    = weights that all genes share × (genes + mutants of a batch)
              weights that all genes share × genes × mutants, where every mutant is a graph of all genes

The work is a step's number of multiplications, as far as a number of weights gives it. A thread more must be
worth its waiting at the end of every operation: small models are as fast with one thread, and leave the
other cores to other jobs. The constant agrees with what is known of one small model; `python -m benchmarks
threads` times others. The number is kept in the record of a run, since the order of sums depends on it: a
run that is resumed or reproduced takes that of the first.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from wildtype.models.interface import Model
from wildtype.training.config import TrainingConfig

WORK_PER_THREAD = 250e6
"""Multiplications of a step, by the formula above, from which on another thread is worth it."""
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def threads_of_training(
    config: TrainingConfig,
    model: Model,
    genes: int,
    *,
    processes: int = 1,
    cores: int | None = None,
    accelerated: bool = False,
) -> int:
    """Return the number of CPU threads of one process of a training.

    Parameters
    ----------
    config
        ``threads`` and ``deterministic`` come before the rule.
    model, genes
        Its weights, and the number of genes that it sees.
    processes : int
        Of the training, on this machine; they share its cores.
    cores : int, optional
        Of this machine; by default those that this process may use.
    accelerated : bool
        Whether the model is on a GPU.
    """
    if config.deterministic:
        return 1  # sums of several threads are added in the order in which they finish
    if config.threads:
        return config.threads
    if accelerated:  # the threads make batches, and no sum of the model is theirs
        return max((usable_cores() if cores is None else cores) // max(processes, 1), 1)
    most = max((usable_cores() if cores is None else cores) // max(processes, 1), 1)
    if "OMP_NUM_THREADS" in os.environ:
        most = min(most, torch.get_num_threads())
    shared = sum(p.numel() for p in model.parameters() if not p.ndim or p.shape[0] != genes)
    mutants = -(-config.batch_size // max(processes, 1))
    return threads_for(shared * (genes * mutants if model.graph_per_mutant else genes + mutants), most)


def threads_for(work: float, most: int) -> int:
    """Return the number of threads for the multiplications of a step, at most ``most``."""
    return int(min(max(work // WORK_PER_THREAD, 1), most))


def usable_cores(quota: Path = QUOTA) -> int:
    """Return the cores that this process may use: of its affinity, and of its control group's limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        limit, period = quota.read_text(encoding="utf-8").split()
        return max(min(cores, int(limit) // int(period)), 1)
    except (OSError, ValueError):  # no control group, or the limit is "max"
        return cores
