"""Five representations of random mutants, as node masks and with torch_geometric."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.measuring import Reference
from wildtype.errors import ConfigError
from wildtype.mutants import MutantTable
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism import GeneIndex, Relation
from wildtype.profiling.pipelines import measure_pipelines
from wildtype.seeds import generator


def bench_pipelines(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    batch_size: int = 32,
    large_batch: int = 4096,
    mutants: int = 200_000,
    compared: int = 8,
    repeats: int = 5,
    seconds: Annotated[float, typer.Option(help="Time limit of each row.")] = 4.0,
    budget_gib: Annotated[float, typer.Option(help="Memory for the largest batch.")] = 8.0,
    seed: int = 0,
    reference: Reference = True,
) -> dict[str, Any]:
    """Five representations of a mutant, from the table to a batch: node masks against torch_geometric.

    Parameters
    ----------
    nodes, relations, edges : int
        N, number of relations (a quarter of them directed), and E; random, with unequal degrees.
    batch_size, large_batch : int
        B of both paths; a further B for the fast path alone.
    mutants : int
        Rows of the table, half pairs and half triples of absent genes.
    compared : int
        Mutants whose kept nodes and edges are compared between the paths, and searched by torch_geometric.
    repeats : int
        Repeats of the fast k-hop search on a batch; medians count.
    seconds : float
        Time limit of each row, and again of its measurement of memory; at least one batch is timed.
    budget_gib : float
        Memory that the largest batch may take.
    seed : int
        Of graphs, mutants and shuffling.
    reference : bool
        Also run torch_geometric; needs the extra ``pyg``.

    Raises
    ------
    ConfigError
        If the sizes do not fit each other, or torch_geometric is missing.
    """
    if relations < 1 or not 1 <= batch_size <= mutants or not 1 <= large_batch <= mutants or mutants < 2:
        raise ConfigError(
            f"{relations} relations, {mutants} mutants and batches of {batch_size} and {large_batch} make no "
            "bench: give at least one relation, two mutants, and batches no larger than the table"
        )
    graph, table = _graph(nodes, relations, edges, seed), _table(nodes, mutants, seed)
    return measure_pipelines(
        graph,
        table,
        batch_size=batch_size,
        large_batch=large_batch,
        compared=compared,
        repeats=repeats,
        seconds=seconds,
        budget_gib=budget_gib,
        seed=seed,
        reference=reference,
    )


def _graph(nodes: int, relations: int, edges: int, seed: int) -> CellGraph:
    """Draw relations without repeated pairs; hubs are the same genes in all, as in real graphs."""
    share = edges // relations
    if 4 * share > nodes * (nodes - 1):
        raise ConfigError(
            f"{share} edges per relation are too many for {nodes} genes: give fewer edges or more genes"
        )
    draw = generator(seed, "bench pipelines")
    by_degree = draw.permutation(nodes)
    out = {}
    for i in range(relations):
        directed = i >= relations - relations // 4
        # Cubed uniform draws prefer small ranks, which makes hubs; repeats are dropped until enough are left.
        wanted = share if directed else share // 2
        pairs = np.zeros(0, np.int64)
        while len(pairs) < wanted:
            a, b = by_degree[(nodes * draw.random((2, wanted + 16)) ** 3).astype(np.int64)]
            if not directed:
                a, b = np.minimum(a, b), np.maximum(a, b)
            pairs = np.unique(np.concatenate([pairs, (a * nodes + b)[a != b]]))
        pairs = draw.permutation(pairs)[:wanted]
        name = f"relation {i}"
        out[name] = Relation.from_edges(name, pairs // nodes, pairs % nodes, nodes, directed=directed)
    return CellGraph(GeneIndex([f"G{i:05d}" for i in range(nodes)], organism="synthetic"), out)


def _table(nodes: int, mutants: int, seed: int) -> MutantTable:
    """Draw pairs and triples of absent genes, in turn."""
    if nodes < 4:
        raise ConfigError(f"{nodes} genes are too few for mutants of two and three: give 4 or more")
    draw = generator(seed, "bench pipelines, mutants")
    # steps that sum to less than N walk round the genes without meeting one again
    steps = draw.integers(1, max((nodes - 1) // 2, 1) + 1, (mutants, 2))
    genes = np.cumsum(np.concatenate([draw.integers(0, nodes, (mutants, 1)), steps], axis=1), axis=1) % nodes
    order = np.where(np.arange(mutants) % 2, 3, 2)
    offsets = np.concatenate([[0], np.cumsum(order)])
    value = draw.standard_normal(mutants)
    return MutantTable.build(genes[np.arange(3)[None, :] < order[:, None]], offsets, value=value)
