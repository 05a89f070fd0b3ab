"""What a training step of DANGO costs, and what it costs the way it was first written.

Legend: n genes · e edges · b mutants per step · d width.

Timed is a full step: zero_grad, embeddings of all genes, prediction of b mutants, losses, backward, AdamW.

* fast: `Dango`;
* reference: `ReferenceDango`, whose dense [n, n] targets are made again for every step, and whose training
  loop passes through the model twice, once for the loss and once for the log;
* targets kept: the same, with dense targets made once;
* targets kept, one pass: the same without the second pass, so that what is left is the formulation alone.

Repeats of all are interleaved, so that the ratios hold when the machine drifts. Memory is measured in a
process of its own for each of the first two, above what imports take.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wildtype.profiling.machine import PeakMemory, machine, peak_in_fresh_process

if TYPE_CHECKING:
    import torch

    from wildtype.models.dango.model import Dango
    from wildtype.models.interface import OrganismTensors
    from wildtype.mutants.batch import MutantBatch

Problem = dict[str, int]
Step = Callable[[], "torch.Tensor"]
REFERENCES: dict[str, Any] = {
    "reference": {"keep_targets": False, "passes": 2},
    "targets kept": {"keep_targets": True, "passes": 2},
    "targets kept, one pass": {"keep_targets": True, "passes": 1},
}


def bench_dango(
    *,
    nodes: int = 6607,
    relations: int = 6,
    edges: int = 1_700_000,
    width: int = 64,
    batch_size: int = 64,
    repeats: int = 3,
    seed: int = 0,
    reference: bool = True,
) -> dict[str, Any]:
    """Return seconds per step, ratios, peak memory, and the difference to the reference.

    Parameters
    ----------
    nodes, relations, edges : int
        Genes n, networks, and stored edges e of all networks together, drawn at random; networks are called
        like the channels of STRING and have their weights of zeros.
    width : int
        d.
    batch_size : int
        Mutants b per step, triples.
    repeats : int
        Timed steps of each kind; medians are reported.
    seed : int
        Of graphs, weights and mutants.
    reference : bool
        Also run the reference in all its forms; needs torch_geometric.
    """
    problem = dict(
        nodes=nodes, relations=relations, edges=edges, width=width, batch_size=batch_size, seed=seed
    )
    setup = _setup(problem)
    steps = {"fast": _fast_step(setup)}
    if reference:
        steps |= {name: _reference_step(setup, **how) for name, how in REFERENCES.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(repeats + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": problem | {"repeats": repeats},
        "parameters": sum(p.numel() for p in setup.model.parameters()),
        "seconds_per_step": median,
        "mutants_per_second": {name: batch_size / value for name, value in median.items()},
        "largest_array": {"elements": largest_array(steps["fast"]), "all_pairs": nodes**2},
        "peak_mib_above_import": {
            name: peak_in_fresh_process("benchmarks.dango", problem, name)
            for name in ("fast", "reference")
            if name in steps
        },
    }
    if reference:
        report["ratios"] = {f"{name} to fast": median[name] / median["fast"] for name in REFERENCES}
        report["difference"] = _difference(setup, steps)
    return report


def largest_array(run: Callable[[], object]) -> int:
    """Return the number of elements of the largest array that any operation of torch makes in ``run``; of a
    sparse tensor only what it stores counts.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    def elements(x: object) -> int:
        if not isinstance(x, torch.Tensor):
            return 0
        if x.layout == torch.strided:
            return int(x.untyped_storage().nbytes() // x.element_size())
        return int(x._nnz())

    class Watch(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            self.largest = max(self.largest, *map(elements, tree_leaves(made)), 0)
            return made

    watch = Watch()
    with watch:
        run()
    return watch.largest


def peak_above_import(problem: Problem, name: str) -> float:
    """Return the MiB that graphs, a model and two steps of one kind add to this process."""
    import wildtype.models.dango.model
    import wildtype.training.objective  # noqa: F401

    if name in REFERENCES:
        import torch_geometric.nn  # noqa: F401

    with PeakMemory() as memory:
        setup = _setup(problem)
        step = _fast_step(setup) if name == "fast" else _reference_step(setup, **REFERENCES[name])
        step()
        step()
    return memory.peak - memory.before


@dataclass(frozen=True)
class _Setup:
    model: Dango
    organism: OrganismTensors
    batch: MutantBatch


def _setup(problem: Problem) -> _Setup:
    import numpy as np
    import torch

    from wildtype.models.dango.config import ZEROS, DangoConfig
    from wildtype.models.dango.model import Dango
    from wildtype.models.interface import OrganismTensors
    from wildtype.mutants import MutantTable
    from wildtype.mutants.batch import MutantBatch
    from wildtype.nn.sparse import SparseOperator
    from wildtype.seeds import derive, generator

    n, count = problem["nodes"], problem["relations"]
    channels = list(ZEROS)
    names = [f"string{i // len(channels)}_{channels[i % len(channels)]}" for i in range(count)]
    draw = generator(problem["seed"], "bench dango")
    relations = {}
    pairs = problem["edges"] // (2 * count)
    for name in names:
        drawn = np.unique(draw.integers(0, n * n, 3 * pairs))
        drawn = draw.permutation(drawn[drawn // n < drawn % n])[:pairs]
        ends = torch.from_numpy(np.stack([drawn // n, drawn % n]))
        both = torch.cat([ends, ends.flip(0)], 1)
        relations[name] = SparseOperator.from_edges(both[0], both[1], n, name=name)
    organism = OrganismTensors(torch.zeros(n, 0), relations=relations)
    torch.manual_seed(derive(problem["seed"], "bench dango"))
    config = DangoConfig(width=problem["width"])
    model = Dango(config, genes=n, features=0, phenotypes=1, relations=names)
    model.set_epoch(config.transition)
    sets = np.stack([draw.choice(n, 3, replace=False) for _ in range(problem["batch_size"])])
    table = MutantTable.from_matrix(sets, value=draw.standard_normal(len(sets)))
    return _Setup(model, organism, MutantBatch.from_table(table))


def _fast_step(setup: _Setup) -> Step:
    from wildtype.training.objective import objective

    model, batch = setup.model, setup.batch

    def loss() -> torch.Tensor:
        wild_type = model.encode(setup.organism)
        return objective(model(wild_type, batch), wild_type, batch, loss="log_cosh").total

    return _training(model, loss)


def _reference_step(setup: _Setup, *, keep_targets: bool, passes: int) -> Step:
    from wildtype.models.dango.reference import ReferenceDango
    from wildtype.training.objective import objective

    batch = setup.batch
    made = ReferenceDango.from_model(setup.model, setup.organism.relations, keep_targets=keep_targets)

    def loss() -> torch.Tensor:
        outputs = made(batch)
        total = objective(outputs.prediction, made.wild_type(outputs), batch, loss="log_cosh").total
        for _ in range(passes - 1):
            made(batch)
        return total

    return _training(setup.model, loss)


def _training(model: Dango, loss: Step) -> Step:
    """A step of training at learning rate 0, so that every step does the same work."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        total = loss()
        total.backward()
        optimizer.step()
        return total.detach()

    return step


def _difference(setup: _Setup, steps: dict[str, Step]) -> dict[str, float]:
    losses, gradients = [], []
    for name in ("fast", "reference"):
        losses.append(float(steps[name]()))
        gradients.append([p.grad.clone() for p in setup.model.parameters() if p.grad is not None])
    pairs = list(zip(*gradients, strict=True))
    scale = max(float(plain.abs().max()) for _, plain in pairs)
    return {
        "loss, relative": abs(losses[0] - losses[1]) / abs(losses[1]),
        "gradients, of the largest": max(float((fast - plain).abs().max()) for fast, plain in pairs) / scale,
    }
