"""What a training step of the cell transformer costs, with all graph priors and without, and the plain way.

Legend: n genes · e edges · b mutants per step · d width · L layers · H heads.

Timed is a full step: encode the wild type, predict b mutants, loss, backward, clipping, AdamW.

* priors: every relation regularises a head;
* no priors: the same model and kernels without the auxiliary losses;
* plain: the definitions: explicit attention maps, dense [n, n] targets rebuilt per step, and every mutant's
own values
  [b, n, d] in the head (in chunks and with recomputation, or it would not fit into memory).

Repeats of the first two are interleaved, so that their ratio holds when the machine drifts.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.profiling.machine import PeakMemory, machine, peak_in_fresh_process
from wildtype.profiling.synthetic_problem import distinct_pairs

if TYPE_CHECKING:
    import torch

    from wildtype.models.cell_transformer.model import CellTransformer
    from wildtype.models.interface import OrganismTensors
    from wildtype.mutants.batch import MutantBatch

Problem = dict[str, int]
PLAIN_CHUNK = 64


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
    reference: bool = True,
) -> dict[str, Any]:
    """Return seconds per step, mutants per second, ratios, peak memory, and the difference to the plain way.

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
    reference : bool
        Also run one plain step, and compare loss and gradients.
    """
    problem = dict(
        nodes=nodes,
        relations=relations,
        edges=edges,
        width=width,
        layers=layers,
        heads=heads,
        batch_size=batch_size,
        seed=seed,
    )
    model, organism, batch = _setup(problem)
    bare = type(organism)(organism.features)
    step, step_bare = _stepper(model, organism, batch), _stepper(model, bare, batch)
    seconds: dict[str, list[float]] = {"priors": [], "no priors": []}
    for repeat in range(repeats + 1):
        for name, run in (("priors", step), ("no priors", step_bare)):
            start = time.perf_counter()
            run()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": problem | {"repeats": repeats},
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds_per_step": median,
        "mutants_per_second": {name: batch_size / value for name, value in median.items()},
        "ratios": {"speed_with_priors_to_without": median["no priors"] / median["priors"]},
        "peak_mib_above_import": peak_in_fresh_process("benchmarks.step", problem),
    }
    if reference:
        report |= _against_plain(model, organism, batch, median["priors"])
    return report


def peak_above_import(problem: Problem) -> float:
    """Return the MiB that two training steps add to this process."""
    import wildtype.models.cell_transformer.model
    import wildtype.training.objective  # noqa: F401

    with PeakMemory() as memory:
        model, organism, batch = _setup(problem)
        step = _stepper(model, organism, batch)
        step()
        step()
    return memory.peak - memory.before


def _setup(problem: Problem) -> tuple[CellTransformer, OrganismTensors, MutantBatch]:
    import torch

    from wildtype.models.cell_transformer.config import CellTransformerConfig
    from wildtype.models.cell_transformer.model import CellTransformer
    from wildtype.models.interface import OrganismTensors
    from wildtype.mutants import MutantTable
    from wildtype.mutants.batch import MutantBatch
    from wildtype.organism import GeneGraphs, Relation
    from wildtype.seeds import derive, generator

    n, share = problem["nodes"], problem["edges"] // problem["relations"]
    draw = generator(problem["seed"], "bench step")
    graphs = GeneGraphs(
        Relation.from_edges(f"relation {i}", *distinct_pairs(draw, n, share), n, directed=True)
        for i in range(problem["relations"])
    )
    torch.manual_seed(derive(problem["seed"], "bench step"))
    config = CellTransformerConfig(
        width=problem["width"], layers=problem["layers"], heads=problem["heads"], features=False, dropout=0.0
    )
    model = CellTransformer(config, genes=n, features=0, phenotypes=1, relations=list(graphs))
    organism = OrganismTensors(torch.zeros(n, 0), model.priors(graphs))
    genes = np.argsort(draw.random((problem["batch_size"], min(n, 64))), axis=1)[:, :3]
    sets = [row[: 2 + i % 2] for i, row in enumerate(genes * (n // min(n, 64)))]
    table = MutantTable.from_sets(sets, value=draw.standard_normal(len(sets)))
    return model, organism, MutantBatch.from_table(table)


def _stepper(
    model: CellTransformer, organism: OrganismTensors, batch: MutantBatch
) -> Callable[[], torch.Tensor]:
    import torch

    from wildtype.training.objective import objective

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        wild_type = model.encode(organism)
        loss = objective(model(wild_type, batch), wild_type, batch).total
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def _against_plain(
    model: CellTransformer, organism: OrganismTensors, batch: MutantBatch, seconds: float
) -> dict[str, Any]:
    from wildtype.training.objective import objective

    def gradients() -> tuple[float, list[torch.Tensor], float]:
        model.zero_grad()
        start = time.perf_counter()
        wild_type = model.encode(organism)
        loss = objective(model(wild_type, batch), wild_type, batch).total
        loss.backward()
        elapsed = time.perf_counter() - start
        return (
            float(loss.detach()),
            [p.grad.clone() for p in model.parameters() if p.grad is not None],
            elapsed,
        )

    fast_loss, fast, _ = gradients()
    with plain_formulations():
        plain_loss, plain, plain_seconds = gradients()
    scale = max(float(g.abs().max()) for g in plain)
    worst = max(float((a - b).abs().max()) for a, b in zip(fast, plain, strict=True))
    return {
        "plain": {"seconds_per_step": plain_seconds, "note": "one step, forward and backward"},
        "plain_to_priors": plain_seconds / seconds,
        "difference": {
            "loss, relative": abs(fast_loss - plain_loss) / abs(plain_loss),
            "gradients, of the largest": worst / scale,
        },
    }


@contextlib.contextmanager
def plain_formulations() -> Iterator[None]:
    """Swap attention, graph prior and perturbation head for their definitions, for comparison."""
    from unittest import mock

    import torch
    from torch.utils.checkpoint import checkpoint

    from wildtype.nn.attention import attention_with_lse_reference
    from wildtype.nn.graph_prior import graph_prior_kl_reference
    from wildtype.nn.perturbation_head import perturbation_attention_reference

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, outside: torch.Tensor) -> Any:
        return checkpoint(attention_with_lse_reference, q, k, v, outside=outside, use_reentrant=False)

    def prior(
        q: torch.Tensor, k: torch.Tensor, lse: torch.Tensor, op: Any, *, scale: float, rows: None
    ) -> Any:
        inside = torch.arange(1, len(k))
        return checkpoint(graph_prior_kl_reference, q, k, op, scale=scale, inside=inside, use_reentrant=False)

    def perturbation(
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        gene: torch.Tensor,
        offsets: torch.Tensor,
        delta: torch.Tensor,
    ) -> torch.Tensor:
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
