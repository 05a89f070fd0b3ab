"""A small organism of three relations, one of them empty, and one gene without neighbours."""

from __future__ import annotations

from typing import Any

import torch

from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.model import DifferenceGNN
from wildtype.models.interface import OrganismTensors
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.sparse import SparseOperator

N = 13
RELATIONS = ("physical", "empty", "regulatory")


def organism(
    *, n: int = N, edges: int = 30, seed: int = 0, weighted: bool = False, dtype: torch.dtype = torch.float64
) -> OrganismTensors:
    draw = torch.Generator().manual_seed(seed)
    relations = {}
    for name in RELATIONS:
        count = 0 if name == "empty" else edges
        pairs = torch.randint(0, (n - 1) ** 2, (count,), generator=draw).unique()
        rows, cols = pairs // (n - 1), pairs % (n - 1)
        if name == "physical":  # in both directions
            rows, cols = torch.cat([rows, cols]), torch.cat([cols, rows])
        rows, cols = torch.stack([rows, cols]).unique(dim=1)
        values = torch.rand(len(rows), generator=draw, dtype=torch.float64) + 0.5 if weighted else None
        relations[name] = SparseOperator.from_edges(rows, cols, n, values, name=name)
    return OrganismTensors(torch.zeros(n, 0, dtype=dtype), relations=relations)


def build(
    *,
    n: int = N,
    phenotypes: int = 1,
    conditions: int = 1,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    **settings: Any,
) -> DifferenceGNN:
    torch.manual_seed(seed)
    config = DifferenceGNNConfig(**({"width": 8, "layers": 2, "gin_layers": 2, "heads": 2} | settings))
    model = DifferenceGNN(
        config, genes=n, features=0, phenotypes=phenotypes, conditions=conditions, relations=RELATIONS
    ).to(dtype)
    with torch.no_grad():  # zeros, and a table near zero, hide mistakes
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter) * (1.0 if name == "table" else 0.1))
    return model


def batch_of(sets: list[tuple[list[int], list[Any]]]) -> MutantBatch:
    sizes = [len(genes) for genes, _ in sets]
    count = len(sets)
    return MutantBatch(
        gene=torch.tensor([g for genes, _ in sets for g in genes], dtype=torch.int64),
        offsets=torch.tensor([0, *sizes]).cumsum(0),
        kind=torch.tensor([int(k) for _, kinds in sets for k in kinds], dtype=torch.uint8),
        condition=torch.zeros(count, dtype=torch.int64),
        phenotype=torch.zeros(count, dtype=torch.int64),
        value=torch.zeros(count),
        sd=torch.zeros(count),
    )
