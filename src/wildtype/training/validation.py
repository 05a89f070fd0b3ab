"""`ScoredRows`: how well rows were predicted, as one number by which epochs are compared, however many
phenotypes there are, and phenotype by phenotype in original units.

For the score, a scalar counts by its Pearson over the mutants; a class by its average precision; a number per
gene by the mean over genes of the Pearson over mutants. The score is the mean over heads: the members of a
vector are averaged first, so that 281 traits of one screen do not outvote fitness. What has no value (fewer
than two rows, or all equal) is left out.

Legend: m rows · n genes · p phenotypes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.datasets.scaling import LabelScaler
from wildtype.models.interface import GeneProfile, Output, Prediction
from wildtype.mutants.batch import MutantBatch
from wildtype.training.objective import profile_targets, targets_of
from wildtype.training.world import World

Floats = NDArray[np.float64]
MOST_KEPT = 2_000_000
"""Predicted numbers of an epoch's training steps that are kept until they are scored: the last ones."""


@dataclass(frozen=True)
class PhenotypeScore:
    """How well the rows of one phenotype were predicted.

    Attributes
    ----------
    phenotype : str
        Its name.
    count : int
        Measured numbers.
    metrics : dict of str to float
        Of a scalar ``pearson``, ``rmse`` and ``mae``; of a class ``average_precision`` and ``log_loss``
        (nats); of a number per gene ``pearson`` (mean over genes), ``rmse`` and ``mae``. Errors are in the
        phenotype's unit; NaN: not defined.
    """

    phenotype: str
    count: int
    metrics: dict[str, float]


class ScoredRows:
    """Collects what was predicted and measured, batch by batch.

    Parameters
    ----------
    outputs : sequence of Output
        The phenotypes; none: all are scalars that stand alone.
    probabilities : bool
        Whether predictions of classes are probabilities; else they are logits.
    """

    def __init__(self, outputs: Sequence[Output] = (), *, probabilities: bool = False) -> None:
        self.outputs = outputs
        self.probabilities = probabilities
        self._rows: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        self._profiles: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._kept: deque[tuple[Prediction, MutantBatch, int]] = deque()
        self._numbers = 0

    def keep(self, prediction: Prediction, batch: MutantBatch) -> None:
        """Take note of a training batch without reading it, which would make a GPU wait; `add_kept` does.

        Of more than ``MOST_KEPT`` numbers, the first batches are forgotten.
        """
        profiles = {p: _detached(profile) for p, profile in prediction.profiles.items()}
        kept = Prediction(prediction.mean.detach(), profiles)
        # Only what scores are computed from: looked-up evidence is kilobytes per mutant.
        nothing = batch.gene[:0]
        batch = replace(
            batch, gene=nothing, kind=nothing, dose=None, p=None, evidence=None, columns=None, unseen=None
        )
        numbers = kept.mean.numel() + sum(len(x.mutants) * len(x.genes) for x in profiles.values())
        self._kept.append((kept, batch, numbers))
        self._numbers += numbers
        while self._numbers > MOST_KEPT and len(self._kept) > 1:
            self._numbers -= self._kept.popleft()[2]

    def add_kept(self) -> None:
        """Take note of the batches that are kept."""
        while self._kept:
            prediction, batch, _ = self._kept.popleft()
            self.add(prediction, batch)

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
        by_head: dict[object, list[float]] = {}
        squares, count = 0.0, 0
        for p, a, b in self._by_phenotype():
            output = self._output(p)
            squares, count = squares + float(torch.sum((a - b) ** 2)), count + len(a)
            score = _average_precision(a, b) if output.form == "class" else _pearson(a, b)
            if not np.isnan(score):
                by_head.setdefault(output.head, []).append(score)
        for p, (said, truth) in self._profiles.items():
            a, b = torch.cat(said), torch.cat(truth)
            there = ~b.isnan()
            squares, count = squares + float(torch.sum((a - b)[there] ** 2)), count + int(there.sum())
            score = _mean_over_genes(a, b)
            if not np.isnan(score):
                by_head.setdefault(self.outputs[p].head, []).append(score)
        heads = [float(np.mean(scores)) for scores in by_head.values()]
        return float(np.mean(heads)) if heads else 0.0, squares / max(count, 1)

    def by_phenotype(self, scaler: LabelScaler | None = None) -> list[PhenotypeScore]:
        """Return the metrics of every phenotype with rows, in the units that labels had before ``scaler``."""
        found = []
        for p, a, b in self._by_phenotype():
            output, metrics = self._output(p), {}
            if output.form == "class":
                # A wrong probability of exactly 0 or 1 would make the loss infinite: float32's resolution.
                q = a.double().clamp(2**-24, 1 - 2**-24)
                loss = torch.nn.functional.binary_cross_entropy(q, b.double())
                metrics = {"average_precision": _average_precision(a, b), "log_loss": float(loss)}
            else:
                metrics = {"pearson": _pearson(a, b)} | _errors(a, b, _unit(scaler, p))
            found.append(PhenotypeScore(output.name, len(a), metrics))
        for p, (said, truth) in self._profiles.items():
            a, b = torch.cat(said), torch.cat(truth)
            there = ~b.isnan()
            metrics = {"pearson": _mean_over_genes(a, b)} | _errors(a[there], b[there], _unit(scaler, p))
            found.append(PhenotypeScore(self._output(p).name, int(there.sum()), metrics))
        return found

    def in_units(self, scaler: LabelScaler | None = None) -> dict[int, tuple[Floats, Floats]]:
        """Return what was predicted and measured [m], by position of the phenotype; profiles are left out."""
        out = {}
        for p, a, b in self._by_phenotype():
            mean = 0.0 if scaler is None else float(scaler.mean[p])
            sd = 1.0 if scaler is None else float(scaler.sd[p])
            out[p] = (mean + sd * a.double().numpy(), mean + sd * b.double().numpy())
        return out

    def _output(self, p: int) -> Output:
        return self.outputs[p] if self.outputs else Output(str(p))

    def _by_phenotype(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield position, predictions [m] and labels [m]; of a class, probabilities."""
        predicted, measured, phenotype = (
            torch.cat(parts) if parts else torch.empty(0) for parts in self._rows
        )
        for p in phenotype.unique().tolist():
            rows = phenotype == p
            a, b = predicted[rows], measured[rows]
            logits = self._output(int(p)).form == "class" and not self.probabilities
            yield int(p), a.sigmoid() if logits else a, b


def _detached(profile: GeneProfile) -> GeneProfile:
    return GeneProfile(
        profile.mutants.detach(), profile.genes.detach(), profile.own.detach(), profile.gene, profile.offsets
    )


def _unit(scaler: LabelScaler | None, p: int) -> float:
    """Return how much of a phenotype's unit 1 of its scaled labels is."""
    return 1.0 if scaler is None else abs(float(scaler.sd[p]))


def _errors(a: Tensor, b: Tensor, unit: float) -> dict[str, float]:
    if not len(a):
        return {"rmse": float("nan"), "mae": float("nan")}
    error = (a.double() - b.double()).abs() * unit
    return {"rmse": float(error.square().mean().sqrt()), "mae": float(error.mean())}


def _mean_over_genes(a: Tensor, b: Tensor) -> float:
    scores = pearson_by_gene(a.double().numpy(), b.double().numpy())
    return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


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
