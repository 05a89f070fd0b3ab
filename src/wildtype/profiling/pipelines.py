"""Cost of a mutant from the table to a batch: five pipelines, as node masks and with torch_geometric.

Legend: N genes · E stored edges of all relations · B mutants of a batch · S perturbed genes, two or three.

Both paths read the same table in the same order, from rows to a collated batch:

* fast: slices of arrays (`MutantLoader`), then node masks over one wiring for the whole batch;
* reference: per mutant a torch_geometric sample, cut out or masked, then torch_geometric's `Batch` (or, for
  the lazy pipeline, one graph and concatenated masks).

Every row is timed for a limited time, whole batches only, after one mutant to warm up. Nodes and edges per
mutant are those kept (for indices only: S and none), counted by both paths independently and compared, as
are the nodes themselves. Memory of a batch is that of its distinct tensors, each storage once; what all
batches share is in it only where the batch refers to it, as the lazy reference does. The largest batch:
memory is measured at 1, 2, 4, … mutants until time, table or an eighth of the budget ends, and the line
through one mutant and the largest measured batch is extended to the budget; that batch is stated beside it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.phases import phase
from wildtype.profiling.machine import machine

if TYPE_CHECKING:
    from wildtype.mutants import MutantTable
    from wildtype.mutants.batch import MutantBatch
    from wildtype.mutants.cell_graph import CellGraph
    from wildtype.mutants.representations import Representation
    from wildtype.mutants.representations.pyg import Reference

    Make = Callable[[MutantBatch], Any]
    Kept = list[tuple[list[int], list[int]]]  # per mutant: its genes, and edges per relation

MIB = 2**20
PHASES_OF_DATA = ("fetch", "representation", "collate")
PIPELINES = (
    ("perturbation", "perturbation", 1),
    ("lazy_subgraph", "lazy_subgraph", 1),
    ("1-hop", "neighbor_subgraph", 1),
    ("2-hop", "neighbor_subgraph", 2),
    ("3-hop", "neighbor_subgraph", 3),
)
"""Name in the table, name of the representation, hops."""


@dataclass(frozen=True)
class Row:
    """One pipeline on one path.

    Attributes
    ----------
    name, path : str
        Pipeline; ``fast`` or ``reference``.
    batch_size : int
        B.
    batches : int
        Batches that were timed.
    iterations_per_second, mutants_per_second : float
        From the table to a collated batch.
    nodes_per_mutant, edges_per_mutant : float
        Genes and edges kept, means over the compared mutants.
    mib_per_batch : float
        Memory of a batch of B.
    largest_batch : int
        Mutants that fit into the budget, by the line through measured sizes.
    largest_batch_built : int
        The largest size that was built and measured.
    ratio_to_perturbation : float
        Mutants per second, relative to the pipeline ``perturbation`` of the same path and batch size.
    fetch_ms, representation_ms, collate_ms : float
        Milliseconds per batch in each phase: rows of the table, masks or samples, and one batch made of them.
    """

    name: str
    path: str
    batch_size: int
    batches: int
    iterations_per_second: float
    mutants_per_second: float
    nodes_per_mutant: float
    edges_per_mutant: float
    mib_per_batch: float
    largest_batch: int
    largest_batch_built: int
    ratio_to_perturbation: float
    fetch_ms: float
    representation_ms: float
    collate_ms: float


def measure_pipelines(
    graph: CellGraph,
    table: MutantTable,
    *,
    batch_size: int = 32,
    large_batch: int = 0,
    compared: int = 8,
    repeats: int = 5,
    seconds: float = 4.0,
    budget_gib: float = 8.0,
    seed: int = 0,
    reference: bool = True,
) -> dict[str, Any]:
    """Return the table of pipelines, k-hop search against torch_geometric's, and whether results are equal.

    Parameters
    ----------
    graph, table
        Wiring without metabolism, and mutants.
    batch_size, large_batch : int
        B of both paths; a further B for the fast path alone, left out if 0.
    compared : int
        Mutants whose kept nodes and edges are compared between the paths, and searched by torch_geometric.
    repeats : int
        Repeats of the fast k-hop search on a batch; medians count.
    seconds : float
        Time limit of each row, and again of its measurement of memory; at least one batch is timed.
    budget_gib : float
        Memory that the largest batch may take.
    seed : int
        Random seed of the shuffling.
    reference : bool
        Also run torch_geometric; needs the extra ``pyg``.
    """
    from wildtype.mutants.representations import representation

    start = time.perf_counter()
    union_edges = graph.union.nnz  # made on first access, for all pipelines, and timed on its own
    union_seconds = time.perf_counter() - start
    part = table.take(np.arange(min(compared, len(table))))
    fast = {name: representation(kind, graph, hops=hops) for name, kind, hops in PIPELINES}
    kept = {name: {"fast": _kept_by_masks(kind, part)} for name, kind in fast.items()}
    paths: list[tuple[str, int, dict[str, Make]]] = [
        ("fast", size, {name: _through_masks(kind) for name, kind in fast.items()})
        for size in dict.fromkeys((batch_size, large_batch or batch_size))
    ]
    plain: dict[str, Reference] = {}
    if reference:
        plain = _references(graph)
        paths.append(
            ("reference", batch_size, {name: _through_samples(kind) for name, kind in plain.items()})
        )
        for name, kind in plain.items():
            kept[name]["reference"] = _kept_by_samples(kind, part)
    rows = []
    for path, size, makers in paths:
        rates: dict[str, float] = {}
        for name, make in makers.items():
            batches, elapsed, mib, phases = _timed(make, table, size, seconds, seed)
            rates[name] = batches / elapsed
            largest, built = _largest(make, table, (size, mib), seconds, budget_gib * 1024)
            rows.append(
                Row(
                    name,
                    path,
                    size,
                    batches,
                    rates[name],
                    size * rates[name],
                    float(np.mean([len(genes) for genes, _ in kept[name][path]])),
                    float(np.mean([sum(counts) for _, counts in kept[name][path]])),
                    mib,
                    largest,
                    built,
                    rates[name] / rates["perturbation"],
                    *(1000 * phases.get(name, 0.0) / batches for name in PHASES_OF_DATA),
                )
            )
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": {
            "nodes": graph.n, "relations": len(graph.edges), "edges": sum(graph.edges.values()),
            "union_edges": union_edges, "batch_size": batch_size, "large_batch": large_batch,
            "mutants": len(table), "compared": len(part), "repeats": repeats, "seconds": seconds,
            "budget_gib": budget_gib, "seed": seed,
        },
        "seconds_to_unite_relations": union_seconds,
        "rows": [asdict(row) for row in rows],
    }  # fmt: skip
    if reference:
        speed = {(row.path, row.name): row.mutants_per_second for row in rows if row.batch_size == batch_size}
        report["ratios"] = {
            "fast_to_reference": {name: speed["fast", name] / speed["reference", name] for name in kept}
        }
        report["k_hop"] = _k_hop(graph, table, part, batch_size, repeats)
        report["equal"] = all(paths["fast"] == paths["reference"] for paths in kept.values()) and all(
            hop["equal"] for hop in report["k_hop"].values()
        )
    return report


def _through_masks(kind: Representation) -> Make:
    def make(batch: MutantBatch) -> Any:
        with phase("representation"):
            return batch, kind.masks(batch)

    return make


def _references(graph: CellGraph) -> dict[str, Reference]:
    from wildtype.organism.pyg import require_pyg

    require_pyg()
    from wildtype.mutants.representations.pyg import GraphTensors, Reference

    wiring = GraphTensors.of(graph)
    wiring.union  # noqa: B018  (made once, like the union of the fast path, and not timed)
    return {name: Reference(kind, wiring, hops=hops) for name, kind, hops in PIPELINES}


def _through_samples(kind: Reference) -> Make:
    from wildtype.mutants.representations.pyg import lazy_batch, pyg_batch

    collate = lazy_batch if kind.name == "lazy_subgraph" else pyg_batch

    def make(batch: MutantBatch) -> Any:
        with phase("representation"):
            samples = kind.samples(batch)
        with phase("collate"):
            return collate(samples)

    return make


def _timed(
    make: Make, table: MutantTable, size: int, seconds: float, seed: int
) -> tuple[int, float, float, dict[str, float]]:
    """Return how many batches were made within a time limit, the time they took, the MiB of the last, and
    seconds per phase.
    """
    from wildtype.training.phase_recorder import PhaseRecorder

    stream = _batches(table, size, seed)
    make(next(stream).slice(0, 1))
    done, start = 0, time.perf_counter()
    while True:
        made = make(next(stream))
        done += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            break
    recorder, spent = PhaseRecorder(warm_up=0), time.perf_counter()
    with recorder.listening():
        for _ in range(done):  # once more, for the phases: listening takes time of its own
            recorder.begin()
            make(next(stream))
            if time.perf_counter() - spent >= seconds / 4:
                break
        recorder.finish()
    phases = {name: value * done / recorder.steps for name, value in recorder.totals().items()}
    return done, elapsed, tensor_bytes(made) / MIB, phases


def _batches(table: MutantTable, size: int, seed: int) -> Iterator[MutantBatch]:
    """Serve shuffled whole batches, epoch after epoch."""
    from wildtype.mutants.loader import MutantLoader

    loader, epoch = MutantLoader(table, size, shuffle=True, seed=seed), 0
    while True:
        loader.set_epoch(epoch)
        yield from (batch for batch in loader if len(batch) == loader.batch_size)
        epoch += 1


def _largest(
    make: Make, table: MutantTable, built: tuple[int, float], seconds: float, budget: float
) -> tuple[int, int]:
    """Return the largest batch within ``budget`` MiB, by a line through sizes, and the largest built.

    ``built`` is a batch that was measured already: its mutants and MiB.
    """
    from wildtype.mutants.batch import MutantBatch

    def mib(count: int) -> float:
        return tensor_bytes(make(MutantBatch.from_table(table.take(np.arange(count))))) / MIB

    # A batch has a fixed part and a part per mutant, so that a line through two sizes extends to any size.
    start = time.perf_counter()
    one, largest, found = mib(1), *max((2, mib(2)), built)
    while (
        2 * largest <= len(table)
        and 16 * found <= budget  # the next one takes an eighth
        and time.perf_counter() - start < seconds / 3  # the next one takes two thirds
    ):
        largest, found = 2 * largest, mib(2 * largest)
    slope = (found - one) / (largest - 1)
    return max(largest + int((budget - found) / slope), 0), largest


def tensor_bytes(value: Any) -> int:
    """Return the bytes of all distinct tensors in a batch, however nested.

    A tensor in two places counts once; one that is expanded counts its storage, one that is a view of a
    larger storage counts its own part.
    """
    import torch

    # Keyed by place and shape: the same tensor in two fields is one, two halves of a storage are two.
    found: dict[tuple[int, int, tuple[int, ...]], int] = {}
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, torch.Tensor):
            storage = item.untyped_storage()
            key = (storage.data_ptr(), int(item.storage_offset()), tuple(item.shape))
            found[key] = min(item.numel() * item.element_size(), storage.nbytes())
        elif hasattr(item, "stores"):  # torch_geometric's data
            rest += [entry for store in item.stores for entry in store.values()]
        elif is_dataclass(item) and not isinstance(item, type):
            rest += [getattr(item, field.name) for field in fields(item)]
        elif isinstance(item, list | tuple):
            rest += item
    return sum(found.values())


def _kept_by_masks(kind: Representation, part: MutantTable) -> Kept:
    """Genes and edges per relation that every mutant keeps, by multiplying the adjacency with the masks."""
    from wildtype.mutants.batch import MutantBatch

    masks = kind.masks(MutantBatch.from_table(part))
    if masks is None:
        return [(list(genes), []) for genes in part.sets()]
    keep = masks.gene.numpy()
    # An edge is kept if both of its ends are: per mutant Σ_ij k_i A_ij k_j, with A of ones.
    counts = [
        (keep * (relation.adjacency.astype(bool).astype(np.int64) @ keep.astype(np.int64))).sum(0)
        for relation in kind.graph.relations.values()
    ]
    return [
        (np.flatnonzero(keep[:, i]).tolist(), [int(count[i]) for count in counts]) for i in range(len(part))
    ]


def _kept_by_samples(kind: Reference, part: MutantTable) -> Kept:
    """The same, read off the samples."""
    from wildtype.mutants.batch import MutantBatch

    out: Kept = []
    for sample in kind.samples(MutantBatch.from_table(part)):
        gene, edges = sample["gene"], [sample[edge] for edge in sample.edge_types]
        if kind.name == "perturbation":
            ids = gene.perturbation_indices
        else:
            ids = gene.mask.nonzero().flatten() if "mask" in gene else gene.node_ids
        out.append(
            (ids.tolist(), [int(e.mask.sum() if "mask" in e else e.edge_index.shape[1]) for e in edges])
        )
    return out


def _k_hop(
    graph: CellGraph, table: MutantTable, part: MutantTable, size: int, repeats: int
) -> dict[str, dict[str, Any]]:
    """Time the masks of a batch against torch_geometric's search, mutant by mutant, both on the union."""
    import torch
    from torch_geometric.utils import k_hop_subgraph

    from wildtype.mutants.batch import MutantBatch
    from wildtype.mutants.representations import NeighborSubgraph
    from wildtype.mutants.representations.reach import unpack

    union = graph.union.tocoo()
    edge_index = torch.from_numpy(np.stack([union.row, union.col]).astype(np.int64))
    batch, some = (MutantBatch.from_table(rows) for rows in (table.take(np.arange(size)), part))
    report = {}
    for hops in (1, 2, 3):
        kind = NeighborSubgraph(graph, hops=hops)
        ours, theirs, equal = [], [], True
        for _ in range(repeats + 1):
            start = time.perf_counter()
            kind.masks(batch)
            ours.append((time.perf_counter() - start) / len(batch))
        found = unpack(kind.packed(some), len(some))
        for i in range(len(some)):
            genes = some.gene[some.offsets[i] : some.offsets[i + 1]]
            start = time.perf_counter()
            reached = k_hop_subgraph(genes, hops, edge_index, num_nodes=graph.n)[0]
            theirs.append(time.perf_counter() - start)
            equal &= reached.tolist() == np.flatnonzero(found[:, i]).tolist()
        fast, plain = statistics.median(ours[1:]), statistics.median(theirs)
        report[f"{hops}-hop"] = {
            "seconds_per_mutant": {"fast": fast, "torch_geometric": plain},
            "ratio": plain / fast,
            "equal": equal,
        }
    return report
