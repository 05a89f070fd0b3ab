"""`ValidationScore`: one number by which epochs are compared, however many phenotypes there are.

A scalar is scored by its Pearson over the validation mutants; a class by its average precision; a number per
gene by the mean over genes of the Pearson over mutants. The score is the mean over heads: the members of a
vector are averaged first, so that 281 traits of one screen do not outvote fitness. What has no value (fewer
than two rows, or all equal) is left out.

Legend: m rows · n genes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.models.interface import Output, Prediction
from wildtype.mutants.batch import MutantBatch
from wildtype.training.objective import profile_targets, targets_of
from wildtype.training.world import World

Floats = NDArray[np.float64]


class ValidationScore:
    """Collects what was predicted and measured, batch by batch.

    Parameters
    ----------
    outputs : sequence of Output
        The phenotypes; none: all are scalars that stand alone.
    """

    def __init__(self, outputs: Sequence[Output] = ()) -> None:
        self.outputs = outputs
        self._rows: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        self._profiles: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def add(self, prediction: Prediction, batch: MutantBatch) -> None:
        """Take note of a batch."""
        known = ~batch.value.isnan()
        self.add_rows(
            targets_of(prediction, batch)[known].float(), batch.value[known], batch.phenotype[known]
        )
        for p, profile in prediction.profiles.items():
            if (found := profile_targets(batch, p)) is not None:
                self.add_profiles(p, profile.dense(found[0]).float(), found[1])

    def add_rows(self, predicted: Tensor, measured: Tensor, phenotype: Tensor) -> None:
        """Take note of rows [m] of phenotypes that are no profiles."""
        for mine, theirs in zip(self._rows, (predicted, measured, phenotype), strict=True):
            mine.append(theirs.cpu())

    def add_profiles(self, phenotype: int, predicted: Tensor, measured: Tensor) -> None:
        """Take note of mutants [m, n] of a phenotype that has a number per gene."""
        said, truth = self._profiles.setdefault(phenotype, ([], []))
        said.append(predicted.cpu())
        truth.append(measured.cpu())

    def join(self, world: World) -> None:
        """Take note of what all processes have; every one must ask."""
        for rank, (rows, profiles) in enumerate(world.gathered((self._rows, self._profiles))):
            if rank == world.rank:
                continue
            for mine, theirs in zip(self._rows, rows, strict=True):
                mine.extend(theirs)
            for p, (said, truth) in profiles.items():
                own = self._profiles.setdefault(p, ([], []))
                own[0].extend(said)
                own[1].extend(truth)

    def result(self) -> tuple[float, float]:
        """Return the score, and the mean squared error over all numbers (of a class, of its probability)."""
        predicted, measured, phenotype = (torch.cat(parts) for parts in self._rows)
        by_head: dict[object, list[float]] = {}
        squares, count = 0.0, 0
        for p in phenotype.unique().tolist():
            rows = phenotype == p
            output = self.outputs[p] if self.outputs else Output(str(p))
            a, b = predicted[rows], measured[rows]
            a = a.sigmoid() if output.form == "class" else a
            squares, count = squares + float(torch.sum((a - b) ** 2)), count + len(a)
            score = _average_precision(a, b) if output.form == "class" else _pearson(a, b)
            if not np.isnan(score):
                by_head.setdefault(output.head, []).append(score)
        for p, (said, truth) in self._profiles.items():
            a, b = torch.cat(said), torch.cat(truth)
            there = ~b.isnan()
            squares, count = squares + float(torch.sum((a - b)[there] ** 2)), count + int(there.sum())
            scores = pearson_by_gene(a.double().numpy(), b.double().numpy())
            if np.isfinite(scores).any():
                by_head.setdefault(self.outputs[p].head, []).append(float(np.nanmean(scores)))
        heads = [float(np.mean(scores)) for scores in by_head.values()]
        return float(np.mean(heads)) if heads else 0.0, squares / max(count, 1)


def _pearson(a: Tensor, b: Tensor) -> float:
    a, b = a.double(), b.double()
    if len(a) > 1 and a.std() > 0 and b.std() > 0:
        return float(torch.corrcoef(torch.stack([a, b]))[0, 1])
    return float("nan")


def _average_precision(score: Tensor, label: Tensor) -> float:
    from sklearn.metrics import average_precision_score

    if not 0 < int(label.sum()) < len(label):
        return float("nan")
    return float(average_precision_score(label.numpy(), score.numpy()))


def pearson_by_gene(predicted: Floats, measured: Floats) -> Floats:
    """Return the Pearson [n] over mutants of every gene, from [m, n] (NaN: not measured); NaN where it has
    fewer than two mutants or all are equal.
    """
    # Centred before products: Σ (a − ā)(b − b̄), not Σ ab − n ā b̄, which cancels for nearly equal values.
    there = np.isfinite(measured)
    count = np.maximum(there.sum(0), 1)

    def centred(x: Floats) -> Floats:
        x = np.where(there, x, 0.0)
        return np.where(there, x - x.sum(0) / count, 0.0)

    a, b = centred(predicted), centred(measured)
    spread = np.sqrt((a * a).sum(0) * (b * b).sum(0))
    rows = max(len(a), 1)
    # A gene whose values differ by rounding alone has no correlation; it would be ±1 by chance.
    flat = (np.sqrt((a * a).sum(0) / rows) <= 1e-9) | (np.sqrt((b * b).sum(0) / rows) <= 1e-9)
    flat |= there.sum(0) < 2
    return np.asarray(np.where(flat, np.nan, (a * b).sum(0) / np.where(flat, 1.0, spread)))
