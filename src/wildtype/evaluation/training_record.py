"""How a run was trained: its loss and validation score by epoch, and what the parts of its split share.

A split is checked when it is drawn (`datasets.splits`). A finished run is counted again from the rows that
its checkpoint keeps, without the dataset.

Legend: e epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from wildtype.datasets.draws import count_genes
from wildtype.evaluation.metrics import Floats
from wildtype.evidence.reference import PARTS, ReferenceMeasurements
from wildtype.mutants.identity import gene_words, keys_of

if TYPE_CHECKING:
    import pandas as pd

TERM, SHARE, TOTAL = "loss/", "share/", "loss"
SCORE, ERROR, TRAIN_SCORE = "validation/pearson", "validation/error", "train/pearson"
COSINE, ENERGY = "oversmoothing/cosine/", "oversmoothing/energy/"
SIDES = PARTS[:3]


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """Means over the steps of each epoch, NaN where nothing was logged.

    Attributes
    ----------
    epochs : float64 [E]
        Numbers of the epochs, from 1.
    total : float64 [E]
        The objective.
    terms : mapping of str to float64 [E]
        Each term of the loss as logged, before its weight: ``data`` and one per prior.
    shares : mapping of str to float64 [E]
        Share of each weighted term in the objective, from 0 to 1.
    score, error : float64 [E]
        On validation rows: the score that chooses the best epoch (mean Pearson over phenotypes), and the mean
        squared error of scaled labels.
    train_score : float64 [E] or None
        The same score on training rows, of the predictions that the epoch's steps made; None: not known.
    cosine, energy : mapping of str to float64 [E]
        Of the genes' states after every layer: mean cosine of all pairs, and Dirichlet energy.
    """

    epochs: Floats
    total: Floats
    terms: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    score: Floats
    error: Floats
    train_score: Floats | None = None
    cosine: Mapping[str, Floats] = field(default_factory=dict)
    energy: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def best(self) -> int | None:
        """Position of the epoch with the highest validation score; None where none was logged."""
        return int(np.nanargmax(self.score)) if np.isfinite(self.score).any() else None


def learning_curves(log: pd.DataFrame) -> LearningCurves | None:
    """Return the curves of a log with one row per step and one per validation; None where it has no rows."""
    if "epoch" not in log or not len(log):
        return None
    means = log.groupby("epoch").mean()
    nothing = np.full(len(means), np.nan)

    def column(name: str) -> Floats:
        return means[name].to_numpy(np.float64) if name in means else nothing

    def named(prefix: str) -> dict[str, Floats]:
        return {
            name.removeprefix(prefix): column(name) for name in map(str, means) if name.startswith(prefix)
        }

    return LearningCurves(
        means.index.to_numpy(np.float64) + 1,
        column(TOTAL),
        named(TERM),
        named(SHARE),
        column(SCORE),
        column(ERROR),
        column(TRAIN_SCORE) if TRAIN_SCORE in means else None,
        named(COSINE),
        named(ENERGY),
    )


@dataclass(frozen=True)
class Sides:
    """Training, validation and test rows of a finished run.

    Attributes
    ----------
    rows, gene_sets : mapping of str to int
        By side.
    on_two_sides : int
        Distinct gene sets with rows on more than one side: 0, or the test score is too high.
    unseen : mapping of str to mapping of int to int
        Of validation and test: number of rows by their number of genes without a training row.
    """

    rows: Mapping[str, int]
    gene_sets: Mapping[str, int]
    on_two_sides: int
    unseen: Mapping[str, Mapping[int, int]]


def count_sides(known: ReferenceMeasurements) -> Sides:
    """Count rows, gene sets and unseen genes of the sides.

    Gene sets are told apart by keys of 64 bits: two of 10⁷ sets have the same with probability below 10⁻⁵.
    """
    words, new = gene_words(len(known.essential)), ~known.seen_genes()
    rows, sets, unseen = {}, {}, {}
    for name in SIDES:
        side = known.rows(name)
        rows[name], sets[name] = len(side), np.unique(keys_of(side.gene, side.offsets, words))
        if name != SIDES[0]:
            values, counts = np.unique(count_genes(side, new), return_counts=True)
            unseen[name] = dict(zip(values.tolist(), counts.tolist(), strict=True))
    every = np.concatenate(list(sets.values()))
    return Sides(
        rows=rows,
        gene_sets={name: int(found.size) for name, found in sets.items()},
        on_two_sides=int((np.unique(every, return_counts=True)[1] > 1).sum()),
        unseen=unseen,
    )
