"""What many phenotypes of one mutant cost: 281 traits and one number for each of 6,000 genes, in one step.

* grouped: a mutant passes the model once and the loss gathers its targets; expression is [B, r] @ [r, N];
* per row: every trait is a row that passes the model by itself; run on a part, stated per mutant.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import Reference, chosen
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors, Output
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import MutantLoader
from wildtype.profiling.machine import MIB, PeakMemory, machine, take_turns
from wildtype.seeds import derive, generator
from wildtype.training.objective import objective
from wildtype.training.weights import TargetWeights


def bench_phenotypes(
    *,
    mutants: int = 1484,
    traits: int = 281,
    genes: int = 6000,
    width: int = 64,
    batch_size: int = 256,
    repeats: int = 5,
    seed: int = 0,
    reference: Reference = True,
) -> dict[str, Any]:
    """A training step with a vector of traits and one number per gene; against one row at a time.

    Parameters
    ----------
    mutants, traits, genes : int
        Single deletions, scalars measured of each (one vector), and genes, each with a number per mutant.
    width : int
        Of the cell transformer, without encoder layers.
    batch_size : int
        Mutants per step.
    repeats : int
        Timed steps; the median counts.
    seed : int
        Of labels and weights.
    reference : bool
        Whether to run the rows one by one as well.
    """
    problem = chosen(locals(), "reference")
    table = _table(mutants, traits, genes, seed)
    outputs = [Output(f"trait {i}", group="morphology") for i in range(traits)]
    outputs.append(Output("expression", form="gene"))
    torch.manual_seed(derive(seed, "bench phenotypes"))
    config = CellTransformerConfig(width=width, layers=0, features=False, dropout=0.0)
    model = CellTransformer(config, genes=genes, features=0, phenotypes=outputs)
    organism = OrganismTensors(torch.zeros(genes, 0))
    weights = TargetWeights.fit(table, outputs, balance="heads")
    # Every step does the same work, and the two ways at the end compute the loss of the same weights.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)

    def step(batch: MutantBatch) -> float:
        optimizer.zero_grad()
        wild_type = model.encode(organism)
        loss = objective(model(wild_type, batch), wild_type, batch, weights=weights).total
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    batch = next(iter(MutantLoader(table, batch_size, shuffle=True, seed=seed)))
    step(batch)  # kernels and the optimizer's moments are there before memory is watched
    with PeakMemory() as memory:
        per_step = take_turns({"step": lambda: step(batch)}, repeats)["step"]
    assert table.profiles is not None
    result: dict[str, Any] = {
        "machine": machine(),
        "problem": problem,
        "MiB of numbers per gene": table.profiles.nbytes / MIB,
        "MiB of traits while training": 24 * mutants * traits / MIB,
        "seconds per step": per_step,
        "mutants per second": len(batch) / per_step,
        "peak MiB of a step, above before": memory.peak - memory.before,
        "MiB if every mutant had gene states": 4 * len(batch) * genes * width / MIB,
    }
    if reference:
        few = table.take(np.flatnonzero(table.gene < min(8, mutants)))
        rows = MutantBatch.from_table(few).with_own_profiles()
        once = MutantBatch.grouped(few).with_own_profiles()
        start = time.perf_counter()
        alone = step(rows)
        spent = time.perf_counter() - start
        start = time.perf_counter()
        together = step(once)
        result["per row"] = {
            "mutants": len(once),
            "rows": len(rows),
            "seconds per mutant": spent / len(once),
            "grouped seconds per mutant": (time.perf_counter() - start) / len(once),
            "difference of the loss, relative": abs(alone - together) / abs(alone),
        }
    return result


def _table(mutants: int, traits: int, genes: int, seed: int) -> MutantTable:
    draw = generator(seed, "bench phenotypes")
    deleted = np.repeat(np.arange(mutants), traits)
    rows = MutantTable.from_matrix(
        deleted[:, None],
        value=draw.standard_normal(len(deleted)),
        phenotype=np.tile(np.arange(traits), mutants),
    )
    expression = MutantTable.from_matrix(
        np.arange(mutants)[:, None],
        phenotype=np.full(mutants, traits),
        profile=np.arange(mutants),
        profiles=draw.standard_normal((mutants, genes), dtype=np.float32),
    )
    return MutantTable.concatenate([rows, expression])
