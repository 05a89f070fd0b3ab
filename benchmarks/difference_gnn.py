"""A training step of the difference GNN: one shared graph against one graph per mutant, as ratios in one run.

Legend: n genes · R relations · e edges of all of them · d width · L layers · b mutants.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from benchmarks.measuring import Problem, Reference, chosen, gradients, largest_gap
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import OrganismTensors, Prediction, message_operator
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.profiling.machine import PeakMemory, machine, peak_in_fresh_process
from wildtype.profiling.speed import random_relations
from wildtype.seeds import derive, generator
from wildtype.training.objective import objective

REFERENCE_MUTANTS = 2
PEAK_BATCHES = (28, 64)


class Setting(NamedTuple):
    """What is measured: a model, its organism, and all mutants to draw batches from."""

    model: DifferenceGNN
    organism: OrganismTensors
    mutants: MutantBatch


def bench_difference_gnn(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    layers: int = 3,
    batch_size: int = 28,
    tile: int = 0,
    aggregation: str = "sum",
    repeats: int = 1,
    seed: int = 0,
    reference: Reference = True,
    memory: bool = True,
) -> dict[str, Any]:
    """A training step of the difference GNN on one shared graph, against one masked graph per mutant.

    Parameters
    ----------
    nodes, relations, edges : int
        Genes n, gene graphs R, and directed edges e of all graphs together, drawn at random.
    width, layers : int
        d and L.
    batch_size : int
        Mutants b per step, half pairs and half triples of deletions.
    tile : int
        As in the model's settings.
    aggregation : str
        As in the model's settings.
    repeats : int
        Timed steps after a first one; the fastest is reported.
    seed : int
        Of graphs, weights and mutants.
    reference : bool
        Also run the plain formulation on two mutants, one after the other, and compare loss and gradients;
        these once more in float64 on an eighth of the genes, because in float32 rounding alone moves the
        gradients of the first layers, differences of nearly equal numbers. Its seconds per mutant are those
        of one graph times 1 + 1/b, because a step encodes the wild type, too.
    memory : bool
        Also measure the peak memory of steps of 28 and of 64 mutants, each in a process of its own.
    """
    problem = chosen(locals(), "repeats", "reference", "memory")
    setting = _setup(problem)
    step = _stepper(setting, batch_size)
    runs = [step(i) for i in range(repeats + 1)][1:]
    fastest = min(runs, key=lambda phases: sum(phases.values()))
    seconds = sum(fastest.values())
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": problem | {"repeats": repeats},
        "parameters": sum(p.numel() for p in setting.model.parameters()),
        "seconds_per_step": seconds,
        "phases": fastest,
        "seconds_per_mutant": seconds / batch_size,
        "mutants_per_second": batch_size / seconds,
    }
    if memory:
        report["peak_mib_above_import"] = {
            f"batch {b}": peak_in_fresh_process("benchmarks.difference_gnn", problem | {"batch_size": b})
            for b in PEAK_BATCHES
        }
    if reference:
        found = _against_reference(setting, batch_size)
        found["difference"] |= _difference_in_float64(problem)
        report |= found | {"ratio": found["reference"]["seconds_per_mutant"] / (seconds / batch_size)}
    return report


def peak_above_import(problem: Problem) -> float:
    """Return the MiB that setting up and one training step add to this process."""
    with PeakMemory() as memory:
        _stepper(_setup(problem), problem["batch_size"])(0)
    return memory.peak - memory.before


def _setup(problem: Problem) -> Setting:
    n = problem["nodes"]
    draw = generator(problem["seed"], "bench difference gnn")
    graphs = random_relations(n, problem["relations"], problem["edges"], draw)
    torch.manual_seed(derive(problem["seed"], "bench difference gnn"))
    config = DifferenceGNNConfig(
        width=problem["width"],
        layers=problem["layers"],
        tile=problem["tile"],
        aggregation=problem["aggregation"],
    )
    model = DifferenceGNN(config, genes=n, features=0, phenotypes=1, relations=list(graphs))
    organism = OrganismTensors(
        torch.zeros(n, 0), relations={name: message_operator(graphs, name) for name in graphs}
    )
    sets = [draw.choice(n, 2 + i % 2, replace=False).tolist() for i in range(4 * problem["batch_size"])]
    table = MutantTable.from_sets(sets, value=draw.standard_normal(len(sets)))
    return Setting(model, organism, MutantBatch.from_table(table))


def _stepper(setting: Setting, batch_size: int) -> Callable[[int], dict[str, float]]:
    model, organism, mutants = setting
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    order = torch.arange(len(mutants))

    def step(number: int) -> dict[str, float]:
        ends = [time.perf_counter()]
        batch = mutants.take(order.roll(-number * batch_size)[:batch_size])
        ends.append(time.perf_counter())
        optimizer.zero_grad()
        wild_type = model.encode(organism)
        ends.append(time.perf_counter())
        prediction = model(wild_type, batch)
        ends.append(time.perf_counter())
        objective(prediction, wild_type, batch).total.backward()
        ends.append(time.perf_counter())
        optimizer.step()
        ends.append(time.perf_counter())
        names = ("mutants from the table", "wild type", "forward", "backward", "optimizer")
        return {name: b - a for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}

    return step


def _against_reference(setting: Setting, batch_size: int) -> dict[str, Any]:
    """Run the plain formulation and the fast one on the same few mutants."""
    from wildtype.models.difference_gnn.reference import ReferenceDifferenceGNN, edge_index

    model, organism, mutants = setting
    count = min(REFERENCE_MUTANTS, len(mutants))
    few = mutants.slice(0, count)
    model.zero_grad()
    wild_type = model.encode(organism)
    fast_loss = objective(model(wild_type, few), wild_type, few).total
    fast_loss.backward()
    fast = gradients(model)

    plain = ReferenceDifferenceGNN.from_model(model)
    edges = {name: edge_index(op) for name, op in organism.relations.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    start = time.perf_counter()
    optimizer.zero_grad()
    plain_loss = 0.0
    for i in range(count):
        # One mutant at a time, gradients added up: a batch of masked graphs would not fit into memory.
        one = few.slice(i, i + 1)
        loss = objective(Prediction(plain(edges, one)), wild_type, one).total / count
        loss.backward()
        plain_loss += float(loss.detach())
    optimizer.step()
    per_graph = (time.perf_counter() - start) / (2 * count)  # each mutant's graph, and the wild type's
    return {
        "reference": {
            "seconds_per_mutant": per_graph * (1 + 1 / batch_size),
            "seconds_per_graph": per_graph,
            "mutants": count,
        },
        "difference": {
            "loss, relative": abs(float(fast_loss.detach()) - plain_loss) / abs(plain_loss),
            "gradients, of the largest": largest_gap(fast, gradients(model)),
        },
    }


def _difference_in_float64(problem: Problem) -> dict[str, float]:
    """Compare a smaller problem of the same mean degree, the mutants one by one in the fast way, too."""
    from wildtype.models.difference_gnn.reference import ReferenceDifferenceGNN, edge_index

    nodes = min(max(problem["nodes"] // 8, 40), problem["nodes"])
    edges = problem["edges"] * nodes // problem["nodes"]
    model, organism, mutants = _setup(problem | {"nodes": nodes, "edges": edges, "tile": 1})
    model, few = model.double(), mutants.slice(0, REFERENCE_MUTANTS)
    plain = ReferenceDifferenceGNN.from_model(model)
    indices = {name: edge_index(op) for name, op in organism.relations.items()}
    found = []
    for predict in (lambda: model(model.encode(organism), few).mean, lambda: plain(indices, few)):
        model.zero_grad()
        (predict()[:, 0] - few.value).square().mean().backward()
        found.append(gradients(model))
    return {"gradients in float64, of the largest": largest_gap(*found)}
