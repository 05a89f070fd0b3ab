"""What a screen costs per mutant: all sets of so many candidates, with z_S over all genes and every readout.

* own reads: every gene reads by its own query (``model.head.summary=own_reads``), and what a set reads is a
  sum over its genes and their pairs, whose rows are tables;
* sum: the normalised sum over the set as the query, with which attention is computed set by set;
* one by one: the same two models as they predict any table of mutants;
* products: what a query of the set costs at least, even where it is the mean of its genes' queries, so that
  exp(q_S · k_j) is a product over genes: the products of matrices that attention over all genes then is, of
  full size, and nothing else.

Pieces of the screen are drawn at random. Tables that are made once, of members and of their pairs, are timed
apart from the pieces that use them: a piece is scored twice, and the second time counts.

Legend: n genes · e edges · c candidates · k genes per mutant · d width · H heads of the cross-attention.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import Reference, chosen
from wildtype.inference.predictor import Predictor
from wildtype.inference.screening.stream import Screen, ScreenWorker
from wildtype.nn.devices import device_named, waits_for
from wildtype.nn.threads import each
from wildtype.profiling.machine import machine, take_turns
from wildtype.profiling.speed import random_organism, random_predictor, screen_of
from wildtype.seeds import generator

SUMMARIES = {"own reads": "own_reads", "sum": "sum"}
RUNS = 64
"""Sets that share all genes but one, side by side in a product."""


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
    device: str = "cpu",
    reference: Reference = True,
) -> dict[str, Any]:
    """A screen of all triples of a list, by tables of pairs and set by set, against one by one.

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
        Scored pieces of 65,536 mutants.
    seed : int
        Of graphs, weights and pieces.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``: where sets are predicted by tables.
    reference : bool
        Also predict a part of a piece one by one.
    """
    problem = chosen(locals(), "reference")
    draw = generator(seed, "bench screen")
    organism = random_organism(nodes, relations, edges, draw)
    gene = np.sort(draw.choice(nodes, candidates, replace=False)).astype(np.int64)
    screen = replace(screen_of(gene, order), device=device)
    drawn = np.sort(draw.choice(screen.pieces, min(pieces, screen.pieces), replace=False))
    found: dict[str, dict[str, float]] = {}
    for name, summary in SUMMARIES.items():
        head = {"summary": summary, "heads": heads, "direct": direct.split(",")}
        predictor = random_predictor(organism, head, width, seed)
        predictor.predict([[organism.genes.names[0]]])  # the wild type is encoded now
        start = time.perf_counter()
        worker = ScreenWorker(predictor.core, screen)
        tables = time.perf_counter() - start
        seconds, first, scored = [], 0.0, 0
        # The first call of a piece also makes its tables: the difference to the second call is theirs.
        for piece in drawn.tolist():
            first += _seconds(partial(worker, piece))
            seconds.append(_seconds(partial(worker, piece)))
            scored += worker(piece).asked
        spent = sum(seconds)
        found[name] = {"mutants_per_second": scored / spent, "seconds_of_tables": tables + first - spent}
        if reference:
            found[name] |= _one_by_one(predictor, screen, int(drawn[0]))
            found[name]["to_one_by_one"] = (
                found[name]["mutants_per_second"] / found[name]["one_by_one_per_second"]
            )
    return {
        "machine": machine(),
        "problem": problem | {"pieces": len(drawn), "mutants in all": screen.design.count},
        **found,
        "products": _products(nodes, candidates, width // heads, heads, device_named(device)),
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _products(genes: int, candidates: int, width: int, heads: int, device: torch.device) -> dict[str, float]:
    """Return how many mutants a second the products allow, where a set asks by the mean of queries.

    Σ_j exp(q_S · k_j) [v_j, 1] is Σ_j w_bj (Π w_aj [v_j, 1]) with w_aj = exp(q_a · k_j / k), for all last
    genes b of sets that share the others.
    """
    wide = width + 1  # the values of a head, and the sum of the weights
    own, shared = (torch.rand(*shape, device=device) for shape in ((candidates, genes), (genes, RUNS * wide)))
    out = torch.empty(heads, candidates, RUNS * wide, device=device)

    def product(head: int) -> None:
        torch.mm(own, shared, out=out[head])

    all_heads = {"products": lambda: each(heads, product, together=device.type == "cpu")}
    seconds = take_turns(all_heads, repeats=3, synchronise=waits_for(device))["products"]
    rate, each_one = candidates * RUNS / seconds, 2 * heads * genes * wide
    return {
        "mutants_per_second": rate,
        "floating_point_operations_per_mutant": each_one,
        "billions_of_them_per_second": rate * each_one / 1e9,
    }


def _one_by_one(predictor: Predictor, screen: Screen, piece: int) -> dict[str, float]:
    numbers = np.arange(8192) + piece * screen.piece
    mutants = screen.mutants(numbers[numbers < screen.design.count])
    how = screen.design.order, screen.condition, screen.device
    combinations = predictor.core.combinations(screen.gene, screen.kind, *how)
    assert combinations is not None
    plain = predictor.predict_with_sd(mutants.table)[0]
    seconds = statistics.median(_seconds(partial(predictor.predict_with_sd, mutants.table)) for _ in range(3))
    gap = np.abs(combinations(mutants.members) - plain).max() / np.abs(plain).max()
    return {"one_by_one_per_second": len(plain) / seconds, "difference, of the largest": float(gap)}
