"""`OutOfFold`: what a training mutant may see of the other measurements, so that it sees what a test mutant
will.

A training mutant never sees its own gene set, nor, drawn anew in every epoch, that of a tenth of the
others: else the model could tell its label from what is missing. Where it can be told which mutants lose the
same reactions, they are hidden together: a mutant learns from those that are like it, not from those that are
the same. How many of its genes it sees nothing of follows the split: see `imitation`. Everything is drawn
from (seed, epoch) and the gene set, whatever the order of batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.evidence.imitation import GENE_FOLDS, ROW_FOLDS, TOUCHED_FOLDS, leading_pairs
from wildtype.evidence.lookup import Asked, EvidenceIndex, EvidencePart, answer, arrays
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.identity import keys_of
from wildtype.seeds import generator

REGIMES = ("seen", "one", "none", "pair")


def check_shares(shares: Mapping[str, float]) -> None:
    """Refuse unknown regimes, and shares that are negative or all 0: raises ``ConfigError``."""
    for name, share in shares.items():
        if name not in REGIMES or not share >= 0:
            raise ConfigError(
                f"model.evidence.imitate.{name}={share}: known regimes are {', '.join(REGIMES)}, "
                f"shares at least 0"
            )
    if not sum(shares.values()):
        raise ConfigError("model.evidence.imitate gives no regime a share above 0: name one, or leave it out")


class OutOfFold:
    """Evidence of training mutants.

    Parameters
    ----------
    index : EvidenceIndex
        Over all training rows.
    shares : mapping of str to float
        Share of mutants that are asked about as each regime of `imitation` has it: ``seen``, ``one``,
        ``none`` (none of the genes was seen) or ``pair``.
    seed : int
        Root of the draws.

    Raises
    ------
    ConfigError
        On an unknown regime, or shares that are negative or all 0.
    """

    def __init__(self, index: EvidenceIndex, shares: Mapping[str, float], seed: int) -> None:
        check_shares(shares)
        total = sum(shares.values())
        self.index, self.seed = index, seed
        self.shares = {name: share / total for name, share in shares.items()}
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draw the folds of an epoch."""
        self._word = np.uint64(generator(self.seed, "evidence", epoch).integers(0, 2**64, dtype=np.uint64))
        self._parts: dict[int, EvidencePart] = {}

    def tokens_of(self, asked: Asked) -> EvidenceTokens:
        """Return the evidence of training mutants, each short of its own gene set and what its regime
        hides.
        """
        gene, offsets, condition = arrays(asked)
        keys = keys_of(gene, offsets, self.index.words)
        draw = _mixed(keys, self._word, 1) / np.float64(2**64)
        regime = np.searchsorted(np.cumsum([*self.shares.values()])[:-1], draw, side="right")
        number = np.empty(len(keys), np.int64)
        for i, name in enumerate(self.shares):
            rows = regime == i
            number[rows] = REGIMES.index(name) * 10**6 + self._fold(name, keys, gene, offsets)[rows]
        return answer(self._part, number, gene, offsets, condition, self.index.effect_of(asked))

    def _fold(
        self, name: str, keys: NDArray[np.uint64], gene: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the fold [q] whose records are hidden from each query; of ``none``, a mask of folds."""
        if name == "seen":
            return _folds(self.index.hides(keys), self._word, 2, ROW_FOLDS)
        if name == "pair":
            return self._pair_folds(keys)
        if name == "none":
            row = np.repeat(np.arange(len(keys)), np.diff(offsets))
            mask = np.zeros(len(keys), np.int64)
            np.bitwise_or.at(mask, row, 1 << self._gene_fold(TOUCHED_FOLDS)[gene])
            return mask
        sizes = np.diff(offsets)
        which = (_mixed(keys, self._word, 3) % np.maximum(sizes, 1).astype(np.uint64)).astype(np.int64)
        hidden = gene[np.minimum(offsets[:-1] + which, max(len(gene) - 1, 0))]
        return np.asarray(self._gene_fold(GENE_FOLDS)[hidden])

    def _gene_fold(self, folds: int) -> NDArray[np.int64]:
        return _folds(self.index.gene_hidden_with, self._word, 4, folds)

    def _pair_folds(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the fold of the leading pair of every gene set, which must be one of the index."""
        known, fold = self._leading()
        if not len(known):
            return np.zeros(len(keys), np.int64)
        return np.asarray(fold[np.minimum(np.searchsorted(known, keys), len(known) - 1)])

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        """The leading pair of every row of the index (-1: none)."""
        table = self.index.table
        return leading_pairs(table, table, self.index.similarity.genes)[0]

    def _leading(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        known, first = np.unique(self.index.keys, return_index=True)
        return known, self._code_fold()[first]

    def _code_fold(self) -> NDArray[np.int64]:
        codes = np.where(self._codes < 0, self.index.keys.astype(np.int64), self._codes).astype(np.uint64)
        return _folds(codes, self._word, 5, ROW_FOLDS)

    def _part(self, number: int) -> EvidencePart:
        if number not in self._parts:
            name, fold = REGIMES[number // 10**6], number % 10**6
            self._parts[number] = self.index.part(self._hidden(name, fold))
        return self._parts[number]

    def _hidden(self, name: str, fold: int) -> NDArray[np.bool_]:
        """Return which rows of the index one fold hides."""
        index = self.index
        if name == "seen":
            return np.asarray(_folds(index.hidden_with, self._word, 2, ROW_FOLDS) == fold)
        if name == "pair":
            return np.asarray(self._code_fold() == fold)
        if name == "none":
            gone = (1 << self._gene_fold(TOUCHED_FOLDS)) & fold > 0
        else:
            gone = self._gene_fold(GENE_FOLDS) == fold
        return np.asarray(
            np.bincount(index.table.row, weights=gone[index.table.gene], minlength=len(index.table)) > 0
        )


def _mixed(keys: NDArray[np.uint64], word: np.uint64, purpose: int) -> NDArray[np.uint64]:
    """Return well mixed 64-bit numbers, one per key (the finaliser of SplitMix64: Steele, Lea & Flood
    2014).
    """
    with np.errstate(over="ignore"):
        x = keys + word * np.uint64(2 * purpose + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def _folds(keys: NDArray[np.uint64], word: np.uint64, purpose: int, folds: int) -> NDArray[np.int64]:
    return np.asarray((_mixed(keys, word, purpose) % np.uint64(folds)).astype(np.int64))
