"""What is added to a trained cell transformer: trees over its evidence, and equivalent mutants.

Legend: m mutants · f features · p phenotypes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.models.boosted_trees import BoostedTrees
from wildtype.models.cell_transformer.config import TreesConfig
from wildtype.models.cell_transformer.equivalents import Equivalents
from wildtype.models.cell_transformer.trees import (
    CERTAIN,
    EvidenceTrees,
    least_squares_weight,
    posterior_weight,
)
from wildtype.models.interface import Model, OrganismTensors, Output, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.seeds import derive

Floats = NDArray[np.float32]

FIRST_DRAW = 10_000
"""First epoch number of the folds of trees, beyond any epoch of the network: their folds differ."""
LEAVES = (7, 15, 31)
MOST = 200_000
"""Training rows per output and draw; of more rows, a random subset is used."""


@torch.no_grad()
def fit_beyond_start(
    model: Model, outputs: Sequence[Output], weight: Tensor, organism: OrganismTensors, validation: Batches
) -> str:
    """Fit how much a network counts beyond the sums that its scalar outputs start from; return it as text.

    Least squares on validation mutants, from 0 to 1, into ``weight`` [p]: where the network found nothing
    that helps there, outputs stay where they started. Classes, which have no start, keep the weight 1.
    """
    model.eval()
    wild_type = model.encode(organism)
    scalars = [i for i, output in enumerate(outputs) if output.form == "scalar"]
    found: dict[int, list[tuple[Tensor, ...]]] = {i: [] for i in scalars}
    for batch in validation:
        weight.fill_(1)
        whole = model(wild_type, batch).mean
        weight.fill_(0)
        start = model(wild_type, batch).mean
        mutant = torch.arange(len(batch)) if batch.mutant is None else batch.mutant
        for i in scalars:
            rows = torch.nonzero(batch.phenotype == i).reshape(-1)
            found[i].append((start[mutant[rows], i], whole[mutant[rows], i], batch.value[rows]))
    weight.fill_(1)
    said = []
    for i, parts in found.items():
        start, whole, label = (torch.cat(column) for column in zip(*parts, strict=True))
        if len(label):
            weight[i] = least_squares_weight(start, whole, label)
            said.append(f"{weight[i]:.2f}")
    return f"weight of the network beyond its start {', '.join(said) or 'unknown'}"


@torch.no_grad()
def fit_trees(
    model: Model,
    trees: EvidenceTrees,
    settings: TreesConfig,
    equivalents: Equivalents | None,
    organism: OrganismTensors,
    train: Batches,
    validation: Batches,
    seed: int,
) -> str:
    """Fit the trees of a model to training mutants, and their mixing weights to validation mutants.

    Returns the chosen weights as text; outputs without training or validation rows keep the network alone.
    """
    model.eval()
    # What trees are averaged with is the network alone.
    trees.mixing_weight.zero_()
    if equivalents is not None:
        equivalents.mixing_weight.zero_()
    wild_type = model.encode(organism)
    said = []
    held = _Rows(trees)
    held.add(model, wild_type, validation)
    seen = _Rows(trees)
    # Every draw hides other measurements, so the same mutants give further out-of-fold rows.
    for draw in range(settings.draws):
        train.set_epoch(FIRST_DRAW + draw)
        seen.add(model, wild_type, train, MOST * (draw + 1))
    for i in trees.asked:
        x, y, _, weights = seen.of(i)
        held_x, held_y, network, held_weights = held.of(i)
        if not len(y) or not len(held_y):
            continue
        fitted = BoostedTrees(
            x,
            y,
            held_x,
            held_y,
            {"iterations": settings.iterations} if settings.iterations else {},
            bags=settings.bags,
            seed=derive(seed, "trees", i),
            leaves=settings.leaves or LEAVES,
            weights=weights,
        )
        forest = fitted.forest
        trees.forests[str(i)] = forest
        # Predictions of the stored float32 forest, not of LightGBM: the weight belongs to what is stored.
        there = forest(torch.from_numpy(held_x)).float()
        if i in trees.calls:
            there = there.clamp(CERTAIN, 1 - CERTAIN)
        trees.mixing_weight[i] = settings.mixing_weight
        if settings.mixing_weight < 0:
            count = None if held_weights is None else torch.from_numpy(held_weights)
            weight = posterior_weight(torch.from_numpy(network), there, torch.from_numpy(held_y), count)
            trees.mixing_weight[i] = weight
        said.append(f"{trees.mixing_weight[i]:.2f}")
    return f"mixing weight of the trees {', '.join(said) or 'none'}"


@torch.no_grad()
def fit_equivalents(
    model: Model,
    equivalents: Equivalents,
    organism: OrganismTensors,
    validation: Batches,
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
) -> str:
    """Fit the mixing weights of equivalent mutants to validation mutants; return them as text.

    ``mean`` and ``sd`` [p] are those of the training labels. Outputs without such validation rows keep
    their defaults.
    """
    model.eval()
    # From the scale of evidence, whose 0 may be no effect (`zero_of_evidence`), to that of the labels.
    shift = np.where(np.abs(mean) > 2 * np.abs(sd), 0.0, -mean / sd)
    equivalents.mixing_weight.zero_()
    equivalents.prediction_weight.fill_(1)
    equivalents.shift.copy_(torch.from_numpy(shift))
    wild_type = model.encode(organism)
    found: dict[int, list[tuple[Tensor, ...]]] = {i: [] for i in equivalents.scalars}
    for batch in validation:
        assert batch.evidence is not None
        said_of, measured = model(wild_type, batch).mean, equivalents.measured(batch.evidence)
        start = equivalents.start(batch.evidence)
        mutant = torch.arange(len(batch)) if batch.mutant is None else batch.mutant
        for i in found:
            rows = torch.nonzero(batch.phenotype == i).reshape(-1)
            columns = (column[mutant[rows], i] for column in (said_of, measured, start))
            found[i].append((*columns, batch.value[rows]))
    said = []
    for i, parts in found.items():
        network, measured, start, label = (torch.cat(column) for column in zip(*parts, strict=True))
        known = ~measured.isnan()
        if equivalents.smallest and bool((~known).any()):
            # The two weights are fitted to disjoint rows: those without an equivalent, then those with one.
            weight = least_squares_weight(start[~known], network[~known], label[~known])
            equivalents.prediction_weight[i] = weight
            said.append(f"weight of the prediction beyond the smallest value {weight:.2f}")
        if bool(known.any()):
            # As `Equivalents.forward` combines them: the second weight is fitted to the output of the first
            # step.
            if equivalents.smallest:
                network = torch.lerp(start, network, equivalents.prediction_weight[i])
            weight = least_squares_weight(network[known], measured[known], label[known])
            equivalents.mixing_weight[i] = weight
            said.append(f"mixing weight of equivalent mutants {weight:.2f} ({int(known.sum()):,} rows)")
    return ", ".join(said) or "no validation row has an equivalent"


class _Rows:
    """Collects rows for the outputs of trees: features [m, f], labels [m] and the network's predictions [m].

    Labels and predictions are relative to what the trees start from. Of rows that stand for several mutants,
    their numbers [m] are collected, too.
    """

    def __init__(self, trees: EvidenceTrees) -> None:
        self.trees = trees
        self.found: dict[int, list[tuple[Tensor, ...]]] = {i: [] for i in trees.asked}
        self.rows = dict.fromkeys(trees.asked, 0)

    def add(
        self, model: Model, wild_type: WildType, batches: Iterable[MutantBatch], most: float = math.inf
    ) -> None:
        """Add the rows of batches, of no output many more than ``most`` in all."""
        trees = self.trees
        for batch in batches:
            targets = {i: torch.nonzero(batch.phenotype == i).reshape(-1) for i in self.found}
            wanted = [i for i, rows in targets.items() if len(rows) and self.rows[i] < most]
            if not wanted:
                continue
            mean = model(wild_type, batch).mean
            for i, x in zip(wanted, trees.features(wild_type, batch, wanted), strict=True):
                mutant = targets[i] if batch.mutant is None else batch.mutant[targets[i]]
                said = mean[mutant, i].float()
                # Trees are fitted to labels 0 and 1, so what they are mixed with is a probability, not its
                # logit.
                said = said.sigmoid() if i in trees.calls else said
                base = trees.base(batch, i)[mutant]
                counted = () if batch.weight is None else (batch.weight[targets[i]].double(),)
                label = batch.value[targets[i]].float() - base
                self.found[i].append((x[mutant].float(), label, said - base, *counted))
                self.rows[i] += len(mutant)

    def of(self, output: int) -> tuple[Floats, Floats, Floats, NDArray[np.float64] | None]:
        """Return features, labels, the network's predictions and counts of one output, and forget them.

        Counts are None where each row stands for itself.
        """
        # Removed as they are read: features of all outputs at once would double the peak memory.
        found = self.found.pop(output)
        if not found:
            return np.zeros((0, 0), np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32), None
        x, y, said, *counted = (torch.cat(column).numpy() for column in zip(*found, strict=True))
        return x, y, said, counted[0] if counted else None
