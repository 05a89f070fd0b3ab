"""Label columns: what the labels of other measured mutants say of a mutant.

They are those of `wildtype.evidence.label_features`: means of genes and of their neighbours, and labels of
mutants with like genes. On dense maps of pairs they say more than how alike genes are. A training row's
columns come from rows of other folds: else they would hold its own label.

Legend: n genes · m training rows · b mutants · f columns.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from wildtype.evidence.holdout import folds, holdout_scheme
from wildtype.evidence.label_features import LabelFeatures
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable

MOST = 4.0
"""Standard deviations from the mean that a column has at most."""
FLAT = 1e-6


class LabelColumns:
    """Columns of mutants that are asked about, from all training rows.

    Parameters
    ----------
    similarity : GeneSimilarity
        Of the n genes.
    table : MutantTable
        The m training rows with scaled labels.
    columns : float32 [m, f]
        Theirs (`out_of_fold`), whose means and standard deviations are those of all columns.
    """

    def __init__(self, similarity: GeneSimilarity, table: MutantTable, columns: Tensor) -> None:
        self._similarity, self._table = similarity, table
        self.mean = columns.double().mean(0)
        spread = columns.double().std(0, unbiased=False)
        # A column that is one number in all training rows says nothing.
        self.scale = torch.where(spread > FLAT, 1 / spread.clamp(min=FLAT), 0.0)

    @cached_property
    def _of(self) -> LabelFeatures:
        # Made when a mutant is asked about: fitting the weights needs the training rows' own columns alone.
        graphs = self._similarity.graphs(np.unique(self._table.gene))
        return _features(self._table, self._similarity.genes, graphs, _several(self._table))

    def __call__(self, table: MutantTable) -> Tensor:
        """Return the standardised columns of mutants: float64 [b, f]."""
        found = torch.from_numpy(self._of(table)).double()
        return self.standardised(torch.where(found.isnan(), self.mean, found))

    def standardised(self, columns: Tensor) -> Tensor:
        """Return columns [b, f] standardised, in float64."""
        return ((columns.double() - self.mean) * self.scale).clamp(-MOST, MOST)


def out_of_fold(similarity: GeneSimilarity, table: MutantTable, held: MutantTable, seed: int) -> Tensor:
    """Return the columns of training rows, each from rows of other folds: float32 [m, f].

    Parameters
    ----------
    similarity : GeneSimilarity
        Of the n genes.
    table : MutantTable
        The m training rows with scaled labels.
    held : MutantTable
        Rows that are asked about later; a training row sees what these see (`holdout_scheme`).
    seed : int
        Of folds.
    """
    n, several = similarity.genes, _several(table)
    graphs = similarity.graphs(np.unique(table.gene))
    found: NDArray[np.float32] | None = None
    for ask, see in folds(holdout_scheme(table, held, n), table, n, seed):
        if ask.size:
            part = _features(table.take(see), n, graphs, several)(table.take(ask))
            if found is None:
                found = np.full((len(table), part.shape[1]), np.nan, np.float32)
            found[ask] = part
    if found is None:
        return torch.zeros(len(table), 0)
    known = ~np.isnan(found)
    mean = np.where(known, found, 0).sum(0) / np.maximum(known.sum(0), 1)
    # Checkpoints hold finite numbers only: what is not known is the mean.
    return torch.from_numpy(np.where(known, found, mean).astype(np.float32))


def _features(seen: MutantTable, n: int, graphs: dict[str, sparse.csr_array], several: bool) -> LabelFeatures:
    # Labels are scaled: their mean is 0.
    return LabelFeatures(seen, n, graphs, centre=0.0, several=several)


def _several(table: MutantTable) -> bool:
    """Return whether there are rows of order 3 or more, or of several orders."""
    return len(np.unique(table.order)) > 1 or int(table.order.max(initial=0)) > 2
