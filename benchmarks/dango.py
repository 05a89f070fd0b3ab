"""What a training step of DANGO costs, and what it costs the way it was first written.

Legend: n genes · e edges · b mutants per step · d width.

Timed is a full step: zero_grad, embeddings of all genes, prediction of b mutants, losses, backward, AdamW.

* fast: `Dango`;
* reference: `ReferenceDango`, whose dense [n, n] targets are made again for every step, and whose training
  loop passes through the model twice, once for the loss and once for the log;
* targets kept: the same, with dense targets made once;
* targets kept, one pass: the same without the second pass, so that what is left is the formulation alone.

Memory is measured in a process of its own for each of the first two, above what imports take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.measuring import (
    Problem,
    Reference,
    Step,
    chosen,
    gradients,
    largest_gap,
    optimised,
    training_step,
)
from wildtype.models.dango.config import ZEROS, DangoConfig
from wildtype.models.dango.model import Dango
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.sparse import SparseOperator
from wildtype.profiling.machine import PeakMemory, machine, peak_in_fresh_process, take_turns
from wildtype.seeds import derive, generator
from wildtype.training.objective import objective

LOSS = "log_cosh"  # as its authors trained it
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
    reference: Reference = True,
) -> dict[str, Any]:
    """A training step of DANGO, against dense targets, global attention maps and torch_geometric.

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
    problem = chosen(locals(), "repeats", "reference")
    setup = _Setup.draw(problem)
    steps = {name: setup.step(name) for name in ("fast", *(REFERENCES if reference else ()))}
    median = take_turns(steps, repeats)
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

    def elements(x: object) -> int:
        if not isinstance(x, Tensor):
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
    if name in REFERENCES:
        import torch_geometric.nn  # noqa: F401  (part of the imports, which do not count)

    with PeakMemory() as memory:
        step = _Setup.draw(problem).step(name)
        step()
        step()  # the second step holds the optimizer's moments, which the first one made
    return memory.peak - memory.before


@dataclass(frozen=True)
class _Setup:
    model: Dango
    organism: OrganismTensors
    batch: MutantBatch

    @classmethod
    def draw(cls, problem: Problem) -> _Setup:
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
            # STRING's networks are undirected: every pair is stored in both directions.
            both = torch.cat([ends, ends.flip(0)], 1)
            relations[name] = SparseOperator.from_edges(both[0], both[1], n, name=name)
        organism = OrganismTensors(torch.zeros(n, 0), relations=relations)
        torch.manual_seed(derive(problem["seed"], "bench dango"))
        config = DangoConfig(width=problem["width"])
        model = Dango(config, genes=n, features=0, phenotypes=1, relations=names)
        model.set_epoch(config.transition)  # past the transition from reconstruction to phenotypes
        sets = np.stack([draw.choice(n, 3, replace=False) for _ in range(problem["batch_size"])])
        table = MutantTable.from_matrix(sets, value=draw.standard_normal(len(sets)))
        return cls(model, organism, MutantBatch.from_table(table))

    def step(self, name: str) -> Step:
        """Return a training step: ``fast``, or one of the references."""
        if name == "fast":
            return training_step(self.model, self.organism, self.batch, loss=LOSS)
        from wildtype.models.dango.reference import ReferenceDango

        keep_targets, passes = REFERENCES[name]["keep_targets"], REFERENCES[name]["passes"]
        made = ReferenceDango.from_model(self.model, self.organism.relations, keep_targets=keep_targets)

        def loss() -> Tensor:
            outputs = made(self.batch)
            total = objective(outputs.prediction, made.wild_type(outputs), self.batch, loss=LOSS).total
            # The published loop ran the model once more for its log.
            for _ in range(passes - 1):
                made(self.batch)
            return total

        return optimised(self.model, loss)


def _difference(setup: _Setup, steps: dict[str, Step]) -> dict[str, float]:
    losses, grads = {}, {}
    for name in ("fast", "reference"):
        losses[name] = float(steps[name]())
        grads[name] = gradients(setup.model)
    return {
        "loss, relative": abs(losses["fast"] - losses["reference"]) / abs(losses["reference"]),
        "gradients, of the largest": largest_gap(grads["fast"], grads["reference"]),
    }
