"""What a training step of the cell transformer costs, with all graph priors and without, and the plain way.

Legend: n genes · e edges · b mutants per step · d width · L layers · H heads.

Timed is a full step: encode the wild type, predict b mutants, loss, backward, clipping, AdamW.

* priors: every relation regularises a head;
* no priors: the same model and kernels without the auxiliary losses;
* plain: the definitions: explicit attention maps, dense [n, n] targets rebuilt per step, and in the head a
  copy of all gene values for every mutant [b, n, d] (in chunks and with recomputation, or it would not fit
  into memory).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from benchmarks.measuring import Problem, Reference, chosen, gradients, largest_gap, training_step
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.attention import attention_with_lse_reference
from wildtype.nn.devices import device_named, waits_for
from wildtype.nn.graph_prior import graph_prior_kl_reference
from wildtype.nn.perturbation_head import perturbation_attention_reference
from wildtype.nn.sparse import SparseOperator
from wildtype.profiling.machine import machine, peak_in_fresh_process, peak_memory, take_turns
from wildtype.profiling.speed import random_relations
from wildtype.profiling.synthetic_problem import CLIP
from wildtype.seeds import derive, generator
from wildtype.training.objective import objective

PLAIN_CHUNK = 64
"""Mutants whose copies of the gene values stand in memory together."""


def bench_step(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_500_000,
    width: int = 64,
    layers: int = 4,
    heads: int = 8,
    batch_size: int = 4096,
    repeats: int = 3,
    seed: int = 0,
    device: str = "cpu",
    reference: Reference = True,
) -> dict[str, Any]:
    """A training step of the cell transformer with all priors, without, and in the plain formulation.

    Parameters
    ----------
    nodes, relations, edges : int
        Genes n, gene graphs, and directed edges e of all graphs together, drawn at random.
    width, layers, heads : int
        d, L and H.
    batch_size : int
        Mutants b per step, half pairs and half triples.
    repeats : int
        Timed steps of each kind; medians are reported.
    seed : int
        Of graphs, weights and mutants.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    reference : bool
        Also run one plain step, and compare loss and gradients.
    """
    problem = chosen(locals(), "repeats", "reference")
    model, organism, batch = _setup(problem)
    bare, wait = OrganismTensors(organism.features), waits_for(device_named(device))
    seconds = take_turns(
        {
            "priors": training_step(model, organism, batch, clip=CLIP),
            "no priors": training_step(model, bare, batch, clip=CLIP),
        },
        repeats,
        synchronise=wait,
    )
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": problem | {"repeats": repeats},
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds_per_step": seconds,
        "mutants_per_second": {name: batch_size / value for name, value in seconds.items()},
        "ratios": {"speed_with_priors_to_without": seconds["no priors"] / seconds["priors"]},
        "peak_mib_above_import": peak_in_fresh_process("benchmarks.step", problem),
    }
    if reference:
        report |= _against_plain(model, organism, batch, seconds["priors"])
    return report


def peak_above_import(problem: Problem) -> float:
    """Return the MiB that two training steps add to this process."""
    with peak_memory(device_named(problem["device"])) as memory:
        step = training_step(*_setup(problem), clip=CLIP)
        step()
        step()  # the second step holds the optimizer's moments, which the first one made
    return memory.peak - memory.before


def _setup(problem: Problem) -> tuple[CellTransformer, OrganismTensors, MutantBatch]:
    n = problem["nodes"]
    draw = generator(problem["seed"], "bench step")
    graphs = random_relations(n, problem["relations"], problem["edges"], draw)
    torch.manual_seed(derive(problem["seed"], "bench step"))
    config = CellTransformerConfig(
        width=problem["width"], layers=problem["layers"], heads=problem["heads"], features=False, dropout=0.0
    )
    model = CellTransformer(config, genes=n, features=0, phenotypes=1, relations=list(graphs))
    organism = OrganismTensors(torch.zeros(n, 0), model.priors(graphs))
    genes = np.argsort(draw.random((problem["batch_size"], min(n, 64))), axis=1)[:, :3]
    sets = [row[: 2 + i % 2] for i, row in enumerate(genes * (n // min(n, 64)))]
    table = MutantTable.from_sets(sets, value=draw.standard_normal(len(sets)))
    on = device_named(problem["device"])
    return model.to(on), organism.to(on), MutantBatch.from_table(table).to(on)


def _against_plain(
    model: CellTransformer, organism: OrganismTensors, batch: MutantBatch, seconds: float
) -> dict[str, Any]:
    def run() -> tuple[float, list[Tensor], float]:
        model.zero_grad()
        start = time.perf_counter()
        wild_type = model.encode(organism)
        loss = objective(model(wild_type, batch), wild_type, batch).total
        loss.backward()
        elapsed = time.perf_counter() - start
        return float(loss.detach()), gradients(model), elapsed

    fast_loss, fast, _ = run()
    # One plain step is enough: it takes minutes, and its ratio is far from 1.
    with plain_formulations():
        plain_loss, plain, plain_seconds = run()
    return {
        "plain": {"seconds_per_step": plain_seconds, "note": "one step, forward and backward"},
        "plain_to_priors": plain_seconds / seconds,
        "difference": {
            "loss, relative": abs(fast_loss - plain_loss) / abs(plain_loss),
            "gradients, of the largest": largest_gap(fast, plain),
        },
    }


@contextlib.contextmanager
def plain_formulations() -> Iterator[None]:
    """Swap attention, graph prior and perturbation head for their definitions, for comparison."""

    def attention(q: Tensor, k: Tensor, v: Tensor, *, outside: Tensor) -> Any:
        return checkpoint(attention_with_lse_reference, q, k, v, outside=outside, use_reentrant=False)

    def prior(
        q: Tensor, k: Tensor, lse: Tensor, op: SparseOperator, *, scale: float, rows: None, **settings: Any
    ) -> Any:
        assert settings == {"epsilon": 0.0, "normalised": False, "reduction": "mean"}, "the defaults alone"
        inside = torch.arange(1, len(k), device=k.device)  # the first token is CLS, which no relation names
        return checkpoint(graph_prior_kl_reference, q, k, op, scale=scale, inside=inside, use_reentrant=False)

    def perturbation(
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        gene: Tensor,
        offsets: Tensor,
        delta: Tensor,
        *,
        shared: int | None = None,
    ) -> Tensor:
        assert shared is None, "training asks about tokens alone"
        out = []
        for h in range(len(query)):
            parts = []
            for a in range(0, len(offsets) - 1, PLAIN_CHUNK):
                b = min(a + PLAIN_CHUNK, len(offsets) - 1)
                i, j = int(offsets[a]), int(offsets[b])
                arguments = (
                    query[h, a:b],
                    keys[h],
                    values[h],
                    gene[i:j],
                    offsets[a : b + 1] - i,
                    delta[h, i:j],
                )
                # Recomputed in the backward pass: one chunk's [b, n, d] is in memory at a time.
                parts.append(checkpoint(perturbation_attention_reference, *arguments, use_reentrant=False))
            out.append(torch.cat(parts))
        return torch.stack(out)

    room = "wildtype.models.cell_transformer"
    with (
        mock.patch(f"{room}.encoder.attention_with_lse", attention),
        mock.patch(f"{room}.encoder.graph_prior_kl", prior),
        mock.patch(f"{room}.head.perturbation_attention", perturbation),
    ):
        yield
