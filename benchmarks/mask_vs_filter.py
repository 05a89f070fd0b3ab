"""Which edges a mutant keeps: what generating the masks costs, and whether to mask messages or filter edges.

* generators: the five of ``wildtype.mutants.edge_masks`` on one batch, with what they keep in memory; masks
  are written to those of the batch before, and once more to fresh memory, which the system must first give;
* steps: messages over the edges of one relation, forward and backward, at a growing share of removed edges:
  masked (all messages, those of removed edges multiplied by zero), filtered (kept edges taken out first, then
  messages over them), and shared (the adjacency that all mutants share, between node masks).

Legend: n genes · e stored edges of a relation · b mutants · d width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.measuring import chosen
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import GENERATORS, FilteredEdges, ResetMasks, Wiring
from wildtype.nn.message_passing import shared_propagate
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneIndex, Relation
from wildtype.profiling.machine import machine, take_turns
from wildtype.profiling.synthetic_problem import distinct_pairs
from wildtype.seeds import derive, generator

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def bench_mask_vs_filter(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    batch_size: int = 32,
    repeats: int = 3,
    seed: int = 0,
    shares: Sequence[float] = SHARES,
) -> dict[str, Any]:
    """Generating edge masks in five ways; masking all messages against filtering the edges first.

    Parameters
    ----------
    nodes, relations, edges : int
        Genes n, gene graphs, and stored edges of all of them together, drawn at random.
    width : int
        Width d of the messages.
    batch_size : int
        Mutants b of 2 or 3 removed genes whose masks are generated at once.
    repeats : int
        Timed runs; the fastest counts.
    seed : int
        Of graphs, mutants and states.
    shares : sequence of float
        Shares of removed edges at which messages are passed, for one mutant over the first relation.
    """
    problem = chosen(locals(), "shares")
    graph, batch = problem_of(nodes, relations, edges, batch_size, seed)
    generators, same = _generators(graph, batch, repeats)
    step = _Step(graph, width, seed)
    steps = {f"{share:.1%}": step.row(share, repeats) for share in shares}
    first = next(iter(graph.edges.values()))
    loop = generators["loop"]["seconds_per_mutant"]
    return {
        "machine": machine(),
        "problem": problem | {"edges": sum(graph.edges.values()), "removed_genes": "2 or 3"},
        "generators": generators,
        "ratios": {f"loop_to_{name}": loop / row["seconds_per_mutant"] for name, row in generators.items()},
        "steps": {"edges": first, "mutants": 1, "shares": steps},
        "crossover": {
            "filtered_pays_from": crossover(steps.values(), "filtered"),
            "shared_pays_from": crossover(steps.values(), "shared"),
            "note": "share of removed edges from which it costs no more than masking; none: it never does",
        },
        "difference": max(row["difference"] for row in steps.values()),
        "equal": same and all(row["difference"] < 1e-4 for row in steps.values()),
    }


def crossover(rows: Iterable[Mapping[str, float]], way: str) -> float | None:
    """Return the share of removed edges from which ``way`` costs no more than masking, up to the last row.

    Between two measured shares the difference is taken as linear. Returns None if the last row says that
    masking is cheaper; the first share if ``way`` is never dearer.
    """
    points = [(row["removed_share"], row[f"{way}_seconds"] - row["masked_seconds"]) for row in rows]
    dearer = [i for i, (_, more) in enumerate(points) if more > 0]
    if not dearer:
        return points[0][0]
    last = dearer[-1]
    if last == len(points) - 1:
        return None
    (a, above), (b, below) = points[last], points[last + 1]
    return a + (b - a) * above / (above - below)


def problem_of(
    nodes: int, relations: int, edges: int, batch_size: int, seed: int
) -> tuple[CellGraph, MutantBatch]:
    """Return a random wiring, and mutants that lose two or three genes each."""
    draw = generator(seed, "bench edge masks")
    made = {}
    for i in range(relations):
        pairs = distinct_pairs(draw, nodes, edges // relations + (i < edges % relations))
        name = f"relation {i}"
        made[name] = Relation.from_edges(name, *pairs, nodes, directed=True)
    genes = GeneIndex([f"G{i}" for i in range(nodes)])
    sets = [draw.choice(nodes, 2 + i % 2, replace=False).tolist() for i in range(batch_size)]
    return CellGraph(genes, made), MutantBatch.from_table(MutantTable.from_sets(sets))


def _generators(graph: CellGraph, batch: MutantBatch, repeats: int) -> tuple[dict[str, Any], bool]:
    wiring = Wiring(graph)
    made = {name: kind(wiring) for name, kind in GENERATORS.items()}
    expected = made["loop"].masks(batch)
    # Masks of one batch are written over those of the batch before: fresh memory costs page faults.
    used = made["csr"].masks(batch)
    output = sum(mask.nbytes for mask in expected.values())
    runs: dict[str, Callable[[], object]] = {
        name: partial(generator.masks, batch, used) for name, generator in made.items()
    }
    runs["csr, fresh memory"] = partial(made["csr"].masks, batch)
    reset = made["reset"]
    assert isinstance(reset, ResetMasks)

    def lend() -> None:
        with reset.lent(batch):
            pass

    runs["reset"] = lend
    filtered = FilteredEdges(wiring)
    runs["filter"] = lambda: [None for _ in filtered.edges(batch)]
    # what is there when a batch is ready: the masks, lent ones (counted as kept), or one mutant's edges
    ready = {name: output for name in runs} | {"reset": 0}
    ready["filter"] = 16 * int(sum(mask[0].sum() for mask in expected.values()))
    same = all(
        torch.equal(mask, expected[relation])
        for generator in made.values()
        for relation, mask in generator.masks(batch).items()
    )
    for mutant, edges in enumerate(filtered.edges(batch)):
        same &= all(
            torch.equal(pair, wiring.ends[name].positions[:, expected[name][mutant]])
            for name, pair in edges.items()
        )
    rows = {
        name: {
            "seconds_per_mutant": _fastest(run, repeats) / len(batch),
            "bytes_kept": 0 if name == "filter" else made[name.partition(",")[0]].kept_bytes,
            "bytes_of_a_batch": ready[name],
        }
        for name, run in runs.items()
    }
    return rows, same


class _Step:
    """One mutant's messages over the first relation, forward and backward, in three ways.

    Ends of edges, states x [n, d] and the gradient of the messages [n, d] are the same for all.
    """

    def __init__(self, graph: CellGraph, width: int, seed: int) -> None:
        ends = next(iter(Wiring(graph).ends.values()))
        self.source, self.target, self.index = ends.source, ends.target, ends.positions
        self.stream = torch.Generator().manual_seed(derive(seed, "bench edge masks"))
        self.n = graph.n
        self.x = torch.randn(self.n, width, generator=self.stream)
        self.grad = torch.randn(self.n, width, generator=self.stream)
        self.op = SparseOperator.from_edges(self.target, self.source, self.n)

    def row(self, share: float, repeats: int) -> dict[str, float]:
        """Return what each way costs where about ``share`` of the edges is removed, and their difference."""
        # an edge goes with either of its ends, so s of the edges go with 1 - sqrt(1 - s) of the nodes
        gone = max(round(self.n * (1 - (1 - share) ** 0.5)), 1)
        keep = torch.ones(self.n, dtype=torch.bool)
        keep[torch.randperm(self.n, generator=self.stream)[:gone]] = False
        mask = keep[self.source] & keep[self.target]
        ways: dict[str, Callable[[Tensor], Tensor]] = {
            "masked": lambda x: masked_messages(x, self.index, mask),
            "filtered": lambda x: messages(x, self.index[:, mask]),
            "shared": lambda x: shared_messages(x, self.op, keep),
        }
        results = {name: self._run(way) for name, way in ways.items()}
        scale = max(float(part.abs().max()) for part in results["masked"])
        worst = max(
            float((a - b).abs().max())
            for result in results.values()
            for a, b in zip(result, results["masked"], strict=True)
        )
        seconds = {
            f"{name}_seconds": _fastest(partial(self._run, way), repeats) for name, way in ways.items()
        }
        return {
            "removed_share": 1 - float(mask.float().mean()),
            **seconds,
            "filtering_alone_seconds": _fastest(lambda: self.index[:, mask], repeats),
            "difference": worst / max(scale, 1e-30),
        }

    def _run(self, way: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        x = self.x.clone().requires_grad_()
        out = way(x)
        out.backward(self.grad)
        assert x.grad is not None
        return out.detach(), x.grad


def messages(x: Tensor, index: Tensor) -> Tensor:
    """Sum the states x [n, d] of sources at targets, over edges int64 [2, e]."""
    return x.new_zeros(x.shape).index_add(0, index[1], x.index_select(0, index[0]))


def masked_messages(x: Tensor, index: Tensor, mask: Tensor) -> Tensor:
    """Do as ``messages`` where all edges send, and those that mask [e] does not keep send zero."""
    sent = x.index_select(0, index[0]) * mask.unsqueeze(-1)
    return x.new_zeros(x.shape).index_add(0, index[1], sent)


def shared_messages(x: Tensor, op: SparseOperator, keep: Tensor) -> Tensor:
    """Do as ``messages`` with the adjacency of all mutants and the nodes that this one keeps [n]."""
    return shared_propagate(op, x.unsqueeze(1), keep.unsqueeze(1)).squeeze(1)


def _fastest(run: Callable[[], object], repeats: int) -> float:
    """Return the seconds of the fastest run: whatever else the machine does can only add to it."""
    return take_turns({"run": run}, repeats, summary=min)["run"]
