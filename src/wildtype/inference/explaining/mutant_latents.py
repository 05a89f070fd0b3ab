"""`latents_of`: the vectors that a model reads the phenotypes of mutants off.

Legend: m mutants.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from wildtype.models.interface import Model, WildType
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

Floats = NDArray[np.float64]
ROWS = 1024
"""Mutants at a time."""


@torch.no_grad()
def latents_of(model: Model, wild_type: WildType, table: MutantTable) -> dict[str, Floats]:
    """Return every latent [m, ·] of the rows of a table, by name, some rows at a time."""
    batch, parts = MutantBatch.from_table(table), []
    for at in range(0, max(len(batch), 1), ROWS):
        parts.append(model.latents(wild_type, batch.slice(at, at + ROWS)))
    return {name: torch.cat([part[name] for part in parts]).double().numpy() for name in parts[0]}
