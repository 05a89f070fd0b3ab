"""What is fitted to every member of a run once its network is trained: trees, and equivalent mutants."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from wildtype.experiments.data import RunData
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import loaders, of_member
from wildtype.experiments.start import Log
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import Model, OrganismTensors
from wildtype.seeds import derive
from wildtype.training.post_fit import fit_equivalents, fit_trees


def post_fit(
    config: TrainConfig, data: RunData, tensors: OrganismTensors, members: Sequence[Model], log: Log
) -> None:
    """Fit the trees and equivalents of members that have them, and say how much they count."""
    for number, member in enumerate(members):
        if not isinstance(member, CellTransformer) or not (member.trees or member.equivalents):
            continue
        start = time.perf_counter()
        seed = derive(config.seed, "after member", number)
        batches = loaders(of_member(config, number, len(members)), data, tensors, seed, trees=True)
        found = []
        if member.trees is not None:
            found.append(fit_trees(member, tensors, batches.train, batches.validation, seed))
        if member.equivalents is not None:
            mean, sd = data.scaler.mean, data.scaler.sd
            shift = np.where(np.abs(mean) > 2 * np.abs(sd), 0.0, -mean / sd)
            found.append(fit_equivalents(member, tensors, batches.validation, shift))
        log(f"member {number + 1}: {'; '.join(found)}; {time.perf_counter() - start:.1f} s")
