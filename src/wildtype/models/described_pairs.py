"""Training pairs of a screen with their columns, for models that learn what a whole screen says of a pair.

Legend: u distinct pairs · m rows · r descriptions · f columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.learned_kernel import LearnedKernel
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_index import PairIndex, Pairs
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.interface import RunRows
from wildtype.models.linear_columns import LinearColumns
from wildtype.mutants import MutantTable
from wildtype.nn.forest import load_sizes
from wildtype.seeds import generator

UNSEEN = (0, 1, 2)
"""Numbers of unseen genes of a pair; what is learned from pairs of seen genes is worse than nothing for
others."""


class KernelWeights(nn.Module):
    """The weights of a learned kernel in buffers, so that a checkpoint holds them."""

    source: Tensor
    power: Tensor
    ridge: Tensor

    def __init__(self, learned: LearnedKernel | None = None) -> None:
        super().__init__()
        nothing = np.zeros(0, np.float32)
        learned = learned or LearnedKernel(nothing, nothing, 1.0)
        self.register_buffer("source", torch.from_numpy(learned.source))
        self.register_buffer("power", torch.from_numpy(learned.power))
        self.register_buffer("ridge", torch.tensor(learned.ridge, dtype=torch.float64))

    @classmethod
    def of_screens(
        cls, similarity: GeneSimilarity, matrix: PairMatrix, screens: Sequence[OtherScreen]
    ) -> KernelWeights:
        """Learn which genes are alike from the largest of all screens.

        It is a matter of the organism: a small map takes it from another screen.
        """
        visible = [matrix, *(screen.matrix for screen in screens)]
        most = max(visible, key=lambda each: int(each.known.sum()))
        return cls(LearnedKernel.of_matrix(similarity, most))

    def learned(self) -> LearnedKernel:
        """Return the kernel."""
        return LearnedKernel(self.source.numpy(), self.power.numpy(), float(self.ridge))

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)


@dataclass(frozen=True, eq=False)
class PairRows:
    """Training rows by distinct pair.

    Attributes
    ----------
    pairs : Pairs
        The u pairs.
    table : MutantTable
        Training rows of two genes.
    pair : int64 [m]
        The pair of each row.
    """

    pairs: Pairs
    table: MutantTable
    pair: NDArray[np.int64]

    @classmethod
    def of(cls, train: MutantTable, model: str) -> PairRows:
        """Return the rows of pairs; raises ``ConfigError`` naming the ``model`` if there is none."""
        table = train.take(np.flatnonzero(train.order == 2))
        if not len(table):
            raise ConfigError(f"model {model} learns from pairs of genes, and no training row is one")
        gene, kind = table.matrix(2), table.kind.reshape(-1, 2)
        _, first, pair = np.unique(
            np.concatenate([gene, kind], axis=1), axis=0, return_index=True, return_inverse=True
        )
        return cls(Pairs(gene[first], kind[first]), table, pair.reshape(-1))

    def labels(self, output: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean label of each pair [u], NaN without one, and the weight of its rows."""
        rows = np.flatnonzero(self.table.phenotype == output)
        weight = (
            np.ones(len(rows)) if self.table.weight is None else self.table.weight[rows].astype(np.float64)
        )
        u = len(self.pairs)
        total = np.bincount(self.pair[rows], weight, minlength=u).astype(np.float64)
        value = np.bincount(self.pair[rows], weight * self.table.value[rows], minlength=u)
        with np.errstate(invalid="ignore", divide="ignore"):
            return value / total, total


@dataclass(frozen=True, eq=False)
class DescribedPairs:
    """Columns [r, f] of pairs, the number of each, ``pair`` [r], and its ``weight`` [r].

    A pair may stand several times.
    """

    pair: NDArray[np.int64]
    columns: NDArray[np.float32]
    weight: NDArray[np.float64]


def described(
    index: PairIndex, pairs: Pairs, seed: int, *, gene_folds: int, both_folds: int, share: NDArray[np.float64]
) -> Iterator[tuple[int, DescribedPairs]]:
    """Yield 0, 1 and 2, and pairs described as if so many of their genes were unseen, where there are any.

    ``gene_folds``, ``share`` and ``both_folds`` as of `PairIndex.with_unseen_genes`.
    """
    sources = (
        ((rows, columns, np.zeros(len(rows), np.int64)) for rows, columns in index.out_of_fold(pairs, seed)),
        # Each fold of genes gives pairs with one gene in it and pairs with both: its matrix is made once.
        index.with_unseen_genes(pairs, gene_folds, seed, share, both_folds),
    )
    for source in sources:
        parts: dict[int, list[tuple[NDArray[np.int64], NDArray[np.float32]]]] = {}
        for rows, columns, hidden in source:
            for unseen in np.unique(hidden).tolist():
                chosen = hidden == unseen
                parts.setdefault(unseen, []).append((rows[chosen], columns[chosen]))
        for unseen in sorted(parts):
            # Taken out, so that the parts are gone while they are learned from: they are as large as the
            # whole.
            rows, columns = (np.concatenate(column) for column in zip(*parts.pop(unseen), strict=True))
            # Pairs that are described more often than others stand for fewer.
            weight = share.min() / share[rows] if unseen == 1 else np.ones(len(rows))
            yield unseen, DescribedPairs(rows, columns, weight)


def weighted_sum(
    output: int,
    columns: NDArray[np.bool_],
    found: DescribedPairs,
    learn: PairRows,
    rows: RunRows,
    *,
    rising: bool = False,
    stand_in: NDArray[np.int64] | None = None,
    most: int | None = None,
) -> LinearColumns:
    """Return the sum of some columns that predicts an output, scaled, best; empty where it has no row.

    ``columns`` bool [f], ``rising`` and ``stand_in`` are as of `LinearColumns.fit`; of more descriptions than
    ``most``, so many are fitted to.
    """
    label, weight = learn.labels(output)
    place = np.flatnonzero(~np.isnan(label[found.pair]))
    if most is not None:
        place = some_rows(place, most, rows.seed)
    if not len(place):
        return LinearColumns()
    pair = found.pair[place]
    value = (label[pair] - rows.mean[output]) / rows.sd[output]
    weights = weight[pair] * found.weight[place]
    return LinearColumns.fit(found.columns[place], value, weights, columns, rising=rising, stand_in=stand_in)


def some_rows(rows: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    """Return rows, or of more than ``most`` a random part, ascending."""
    if len(rows) <= most:
        return rows
    return np.sort(generator(seed, "descriptions that are fitted to").choice(rows, most, replace=False))
