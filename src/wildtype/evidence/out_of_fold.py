"""`OutOfFold`: the evidence of training mutants, as test mutants will see theirs.

Legend: q queries · Σk their genes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.holdout import (
    GENE_FOLDS,
    ROW_FOLDS,
    SCHEMES,
    TOUCHED_FOLDS,
    check_holdout,
    leading_pairs,
)
from wildtype.evidence.lookup import EvidenceIndex, answer
from wildtype.evidence.part import EvidencePart
from wildtype.evidence.shared import Asked, arrays
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.identity import keys_of, mixed_words
from wildtype.seeds import generator


class OutOfFold:
    """Evidence of training mutants, out of fold.

    A training mutant never sees its own gene set, nor, drawn anew in every epoch, those of a tenth of the
    others. Hiding its own set alone would leak its label: the statistics of its genes would lack exactly that
    label, and a model that has learned their totals could subtract. Mutants that are known to lose the same
    reactions are hidden together, so that a mutant learns from similar ones, not from copies of itself. Folds
    follow from (seed, epoch) and the gene set, whatever the order of batches.

    Parameters
    ----------
    index : EvidenceIndex
        Over all training rows.
    fractions : mapping of str to float
        Fraction of mutants of each holdout scheme, up to a common factor.
    seed : int
        Root of the draws.

    Raises
    ------
    ConfigError
        On an unknown scheme, or fractions that are negative or all 0.
    """

    def __init__(self, index: EvidenceIndex, fractions: Mapping[str, float], seed: int) -> None:
        check_holdout(fractions)
        total = sum(fractions.values())
        self.index, self.seed = index, seed
        self.fractions = {name: fraction / total for name, fraction in fractions.items()}
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draw the folds of an epoch."""
        self._word = np.uint64(generator(self.seed, "evidence", epoch).integers(0, 2**64, dtype=np.uint64))
        self._parts: dict[int, EvidencePart] = {}

    def tokens_of(self, asked: Asked) -> EvidenceTokens:
        """Return the evidence of training mutants, without their own gene sets and what schemes hide."""
        gene, offsets, condition = arrays(asked)
        keys = keys_of(gene, offsets, self.index.words)
        # A hash of the gene set, not a stream: the same mutant gets the same scheme in any batch.
        draw = self._hash(keys, 1) / np.float64(2**64)
        scheme = np.searchsorted(np.cumsum([*self.fractions.values()])[:-1], draw, side="right")
        number = np.empty(len(keys), np.int64)
        for i, name in enumerate(self.fractions):
            rows = scheme == i
            number[rows] = SCHEMES.index(name) * 10**6 + self._fold(name, keys, gene, offsets)[rows]
        return answer(self._part, number, gene, offsets, condition, self.index.effect_of(asked))

    def _fold(
        self, scheme: str, keys: NDArray[np.uint64], gene: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the fold [q] whose measurements are hidden from each query; of ``none``, a mask of folds."""
        if scheme == "seen":
            return self._folds(self.index.hides(keys), 2, ROW_FOLDS)
        if scheme == "pair":
            return self._pair_folds(keys)
        if scheme == "none":
            row = np.repeat(np.arange(len(keys)), np.diff(offsets))
            mask = np.zeros(len(keys), np.int64)
            np.bitwise_or.at(mask, row, 1 << self._gene_fold(TOUCHED_FOLDS)[gene])
            return mask
        sizes = np.diff(offsets)
        which = (self._hash(keys, 3) % np.maximum(sizes, 1).astype(np.uint64)).astype(np.int64)
        hidden = gene[np.minimum(offsets[:-1] + which, max(len(gene) - 1, 0))]
        return np.asarray(self._gene_fold(GENE_FOLDS)[hidden])

    def _gene_fold(self, count: int) -> NDArray[np.int64]:
        return self._folds(self.index.gene_hidden_with, 4, count)

    def _pair_folds(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the fold of the leading pair of every gene set, which must be one of the index."""
        known, first = np.unique(self.index.keys, return_index=True)
        if not len(known):
            return np.zeros(len(keys), np.int64)
        fold = self._code_fold()[first]
        return np.asarray(fold[np.minimum(np.searchsorted(known, keys), len(known) - 1)])

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        """The leading pair of every row of the index (-1: none)."""
        table = self.index.table
        return leading_pairs(table, table, self.index.similarity.genes)[0]

    def _code_fold(self) -> NDArray[np.int64]:
        codes = np.where(self._codes < 0, self.index.keys.astype(np.int64), self._codes).astype(np.uint64)
        return self._folds(codes, 5, ROW_FOLDS)

    def _part(self, number: int) -> EvidencePart:
        if number not in self._parts:
            scheme, fold = SCHEMES[number // 10**6], number % 10**6
            self._parts[number] = self.index.part(self._hidden(scheme, fold))
        return self._parts[number]

    def _hidden(self, scheme: str, fold: int) -> NDArray[np.bool_]:
        """Return which rows of the index one fold hides."""
        index = self.index
        if scheme == "seen":
            return np.asarray(self._folds(index.hidden_with, 2, ROW_FOLDS) == fold)
        if scheme == "pair":
            return np.asarray(self._code_fold() == fold)
        if scheme == "none":
            gone = (1 << self._gene_fold(TOUCHED_FOLDS)) & fold > 0
        else:
            gone = self._gene_fold(GENE_FOLDS) == fold
        # A mutant with any hidden gene is hidden: it would say something of the gene.
        return np.asarray(
            np.bincount(index.table.row, weights=gone[index.table.gene], minlength=len(index.table)) > 0
        )

    def _hash(self, keys: NDArray[np.uint64], purpose: int) -> NDArray[np.uint64]:
        """Return well mixed words, one per key: others for another purpose and in another epoch."""
        with np.errstate(over="ignore"):
            return mixed_words(keys + self._word * np.uint64(2 * purpose + 1))

    def _folds(self, keys: NDArray[np.uint64], purpose: int, count: int) -> NDArray[np.int64]:
        return np.asarray((self._hash(keys, purpose) % np.uint64(count)).astype(np.int64))
