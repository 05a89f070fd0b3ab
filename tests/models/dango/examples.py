"""A small organism with six networks of STRING and one other, and mutants of it."""

from __future__ import annotations

import numpy as np
import torch

from wildtype.models.dango.config import ZEROS, DangoConfig
from wildtype.models.dango.model import Dango
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.sparse import SparseOperator

N = 40
NAMES = (*(f"string12_{channel}" for channel in ZEROS), "regulatory")


def tiny_tensors(n: int = N, edges: int = 120, seed: int = 0) -> OrganismTensors:
    """Undirected unit networks; a directed weighted one; the last gene has no edge anywhere."""
    stream = torch.Generator().manual_seed(seed)
    relations = {}
    for name in NAMES:
        ends = torch.randint(0, n - 1, (2, edges), generator=stream)
        ends = ends[:, ends[0] != ends[1]].unique(dim=1)
        if name == "regulatory":
            values = torch.rand(ends.shape[1], generator=stream) + 0.1
            relations[name] = SparseOperator.from_edges(ends[0], ends[1], n, values, name=name)
        else:
            both = torch.cat([ends, ends.flip(0)], 1).unique(dim=1)
            relations[name] = SparseOperator.from_edges(both[0], both[1], n, name=name)
    return OrganismTensors(torch.zeros(n, 3), relations=relations)


def tiny_model(*, seed: int = 0, phenotypes: int = 2, conditions: int = 1, **settings: object) -> Dango:
    torch.manual_seed(seed)
    config = DangoConfig(**{"width": 16, "heads": 4} | settings)  # type: ignore[arg-type]
    return Dango(config, genes=N, features=3, phenotypes=phenotypes, conditions=conditions, relations=NAMES)


def mutants(sets: list[list[int]], *, conditions: int = 1, seed: int = 0) -> MutantBatch:
    draw = np.random.default_rng(seed)
    table = MutantTable.from_sets(
        sets,
        value=draw.standard_normal(len(sets)),
        condition=draw.integers(0, conditions, len(sets)),
        phenotype=np.arange(len(sets)) % 2,
    )
    return MutantBatch.from_table(table)


RAGGED = [[3], [0, 5], [1, 2, 39], [4, 8, 11, 30], [6, 7, 20, 21, 39], [], [5, 0]]
