"""What serving mutants costs: slices of arrays against one Python object per mutant.

* sliced: `MutantLoader`, shuffled, ragged orders, ready tensors;
* per sample: a map-style dataset that builds one record per mutant and a collate function that stacks them,
  which is how mutants are usually served; run on a part of the table, since it is slow.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measuring import chosen
from wildtype.mutants import MutantTable
from wildtype.mutants.loader import MutantLoader
from wildtype.profiling.machine import machine
from wildtype.seeds import derive, generator


def bench_loader(
    *, mutants: int = 2_000_000, genes: int = 6607, batch_size: int = 4096, repeats: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Serving shuffled batches of mutants: slices of arrays against one record per mutant.

    Parameters
    ----------
    mutants, genes : int
        Rows of the synthetic table (half pairs, half triples), and genes to draw from.
    batch_size : int
        Mutants per batch.
    repeats : int
        Timed epochs; the median counts.
    seed : int
        Of table and shuffling.
    """
    problem = chosen(locals())
    table = _table(mutants, genes, seed)
    loader = MutantLoader(table, batch_size, shuffle=True, seed=seed)
    seconds = []
    for epoch in range(repeats + 1):
        loader.set_epoch(epoch)
        start = time.perf_counter()
        served = sum(len(batch) for batch in loader)
        seconds.append(time.perf_counter() - start)
        assert served == mutants
    part = table.take(np.arange(min(mutants, 20 * batch_size)))
    start = time.perf_counter()
    plain = list(_per_sample(part, batch_size, seed))
    plain_rate = len(part) / (time.perf_counter() - start)
    rate = mutants / statistics.median(seconds[1:])  # the first epoch touches the pages of the table
    ours = list(MutantLoader(part, batch_size, shuffle=True, seed=seed))
    equal = all(
        bool(
            (a.gene == b["gene"]).all()
            and (a.offsets == b["offsets"]).all()
            and (a.value == b["value"]).all()
        )
        for a, b in zip(ours, plain, strict=True)
    )
    return {
        "machine": machine(),
        "problem": problem,
        "mutants_per_second": {"sliced": rate, "per sample": plain_rate},
        "ratios": {"sliced_to_per_sample": rate / plain_rate},
        "equal": equal,
    }


def _table(mutants: int, genes: int, seed: int) -> MutantTable:
    draw = generator(seed, "bench loader")
    order = np.where(np.arange(mutants) % 2, 3, 2)
    offsets = np.concatenate([[0], np.cumsum(order)])
    # Ascending draws with gaps of at least one cannot repeat a gene within a row.
    start = draw.integers(0, genes - 3 * 64, mutants)
    step = draw.integers(1, 64, (mutants, 3))
    gene = (start[:, None] + np.cumsum(step, axis=1))[np.arange(3)[None, :] < order[:, None]]
    value = draw.standard_normal(mutants).astype(np.float32)
    return MutantTable.build(gene, offsets, value=value)


def _per_sample(table: MutantTable, batch_size: int, seed: int) -> Iterator[dict[str, Tensor]]:
    # The same permutation as MutantLoader's first epoch, so that batches can be compared.
    stream = torch.Generator().manual_seed(derive(seed, "shuffle", 0))
    rows = torch.randperm(len(table), generator=stream).tolist()
    for at in range(0, len(rows), batch_size):
        samples: list[dict[str, Any]] = []
        for row in rows[at : at + batch_size]:
            a, b = int(table.offsets[row]), int(table.offsets[row + 1])
            samples.append(
                {
                    "gene": torch.from_numpy(table.gene[a:b]),
                    "kind": torch.from_numpy(table.kind[a:b]),
                    "value": float(table.value[row]),
                }
            )
        sizes = torch.tensor([0] + [len(s["gene"]) for s in samples])
        yield {
            "gene": torch.cat([s["gene"] for s in samples]),
            "kind": torch.cat([s["kind"] for s in samples]),
            "offsets": torch.cumsum(sizes, 0),
            "value": torch.tensor([s["value"] for s in samples]),
        }
