"""What a screen costs per mutant: all sets of so many candidates, with z_S over all genes and every readout.

* product: the mean of the genes' own queries asks (``model.head.summary=own_queries``), so that attention
  over all genes is a product of matrices;
* sum: the normalised sum over the set asks, so that attention is computed set by set;
* one by one: the same two models as they predict any table of mutants.

Pieces of the screen are drawn at random. Tables that are made once, of members and of their pairs, are timed
apart from the pieces that use them: a piece is asked twice, and the second time counts.

Legend: n genes · e edges · c candidates · k genes per mutant · d width · H heads of the cross-attention.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.profiling.graphs import distinct_pairs
from wildtype.profiling.machine import machine

if TYPE_CHECKING:
    from wildtype.inference.predictor import Predictor
    from wildtype.models.cell_transformer.config import HeadConfig
    from wildtype.organism import Organism

MEASURED = 20_000  # pairs, to which the additive model is fitted
ASKS = {"product": "own_queries", "sum": "sum"}


def bench_screen(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_500_000,
    candidates: int = 1000,
    order: int = 3,
    width: int = 64,
    heads: int = 4,
    direct: str = "sum,product,set_attention",
    pieces: int = 5,
    seed: int = 0,
    reference: bool = True,
) -> dict[str, Any]:
    """Return mutants per second of both ways to ask, seconds that their tables take, and what one by one
    costs and says.

    Parameters
    ----------
    nodes, relations, edges : int
        Genes n, gene graphs, and directed edges e of all graphs together, drawn at random.
    candidates, order : int
        c and k: all sets of k candidates are the screen.
    width, heads : int
        d, and H of the cross-attention.
    direct : str
        Summaries of S that reach the output directly, with commas between them.
    pieces : int
        Pieces of 65,536 mutants that are asked.
    seed : int
        Of graphs, weights and pieces.
    reference : bool
        Also predict a part of a piece one by one.
    """
    from wildtype.inference.screening.constraints import Constraints
    from wildtype.inference.screening.designs import Combinations
    from wildtype.inference.screening.stream import Screen, ScreenWorker
    from wildtype.models.cell_transformer.config import HeadConfig
    from wildtype.seeds import generator
    from wildtype.settings import build

    draw = generator(seed, "bench screen")
    organism = _organism(nodes, relations, edges, draw)
    gene = np.sort(draw.choice(nodes, candidates, replace=False)).astype(np.int64)
    screen = Screen(
        Combinations(candidates, order),
        gene,
        np.zeros(candidates, np.uint8),
        Constraints(),
        outputs=(0,),
        directions=("low", "high"),
        keep=100,
    )
    chosen = np.sort(draw.choice(screen.pieces, min(pieces, screen.pieces), replace=False))
    found: dict[str, dict[str, float]] = {}
    for name, summary in ASKS.items():
        head = build(HeadConfig, {"summary": summary, "heads": heads, "direct": direct.split(",")})
        predictor = _predictor(organism, head, width, seed)
        predictor.predict([[organism.genes.names[0]] * 1])  # the wild type is encoded now
        start = time.perf_counter()
        asker = ScreenWorker(predictor, screen)
        tables = time.perf_counter() - start
        seconds, first, asked = [], 0.0, 0
        for piece in chosen.tolist():
            first += _seconds(partial(asker, piece))
            seconds.append(_seconds(partial(asker, piece)))
            asked += asker(piece).asked
        spent = sum(seconds)
        found[name] = {"mutants_per_second": asked / spent, "seconds_of_tables": tables + first - spent}
        if reference:
            found[name] |= _one_by_one(predictor, screen, int(chosen[0]))
            found[name]["to_one_by_one"] = (
                found[name]["mutants_per_second"] / found[name]["one_by_one_per_second"]
            )
    return {
        "machine": machine(),
        "problem": {
            "nodes": nodes,
            "relations": relations,
            "edges": edges,
            "candidates": candidates,
            "order": order,
            "width": width,
            "heads": heads,
            "direct": direct,
            "pieces": len(chosen),
            "seed": seed,
            "mutants in all": screen.design.count,
        },
        **found,
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _one_by_one(predictor: Predictor, screen: Any, piece: int) -> dict[str, float]:
    numbers = np.arange(8192) + piece * screen.piece
    mutants = screen.mutants(numbers[numbers < screen.design.count])
    answer = predictor.combinations(screen.gene, screen.kind, screen.design.order)
    assert answer is not None
    plain = predictor.predict_values(mutants.table)
    seconds = statistics.median(_seconds(partial(predictor.predict_values, mutants.table)) for _ in range(3))
    apart = np.abs(answer(mutants.members) - plain).max() / np.abs(plain).max()
    return {"one_by_one_per_second": len(plain) / seconds, "difference, of the largest": float(apart)}


def _organism(nodes: int, relations: int, edges: int, draw: np.random.Generator) -> Organism:
    from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation

    graphs = GeneGraphs(
        Relation.from_edges(
            f"relation {i}", *distinct_pairs(draw, nodes, edges // relations), nodes, directed=True
        )
        for i in range(relations)
    )
    names = GeneIndex([f"G{i:05d}" for i in range(nodes)], organism="synthetic")
    return Organism("synthetic", names, graphs)


def _predictor(organism: Organism, head: HeadConfig, width: int, seed: int) -> Predictor:
    """Return a predictor with random weights, which says something of every mutant."""
    import torch

    from wildtype.evidence.similarity import GeneSimilarity
    from wildtype.inference.predictor import Predictor
    from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig
    from wildtype.models.cell_transformer.model import CellTransformer
    from wildtype.models.checkpoint import Checkpoint
    from wildtype.models.interface import organism_tensors
    from wildtype.models.known import ReferenceMeasurements
    from wildtype.mutants import MutantTable
    from wildtype.seeds import derive, generator

    n = len(organism.genes)
    similarity = GeneSimilarity.of(organism)
    torch.manual_seed(derive(seed, "bench screen"))
    config = CellTransformerConfig(
        width=width, layers=1, features=False, head=head, evidence=EvidenceConfig(tokens=0)
    )
    model = CellTransformer(
        config,
        genes=n,
        features=0,
        phenotypes=1,
        relations=list(organism.graphs)[:7],
        channels=len(similarity.channels),
        traits=len(similarity.trait_names),
    )
    model.head.largest_order.fill_(3)
    draw = generator(seed, "measured pairs")
    measured = MutantTable.from_matrix(
        [draw.choice(n, 2, replace=False) for _ in range(MEASURED)], value=draw.normal(size=MEASURED)
    )
    unknown = np.full(n, np.nan, np.float32)
    return Predictor(
        Checkpoint(
            model=model.eval(),
            genes=organism.genes,
            organism=organism_tensors(model, organism, torch.zeros(n, 0), similarity, priors=False),
            phenotypes=[{"name": "tau", "unit": "", "min_order": 1}],
            conditions=["reference"],
            mean=np.zeros(1),
            sd=np.ones(1),
            relations=list(organism.graphs),
            known=ReferenceMeasurements(
                ("tau",), measured, np.zeros(len(measured), np.uint8), unknown, unknown, np.zeros(n, bool)
            ),
        )
    )
