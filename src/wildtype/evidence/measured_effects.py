"""`MeasuredEffects`: what was measured of mutants that lose the same reactions as those asked about.

Legend: q queries · p phenotypes · u measured effects · r sets of tied reactions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.effects import Effect
from wildtype.evidence.measured import MeasuredSets

INTERACTIONS, WHOLE = 0, 1  # the columns of `Effect.keys`


class MeasuredEffects:
    """Lookup of measurements by what mutants lose.

    Parameters
    ----------
    effect : Effect
        Of the measured mutants, of which there is at least one.
    measured : MeasuredSets
        Their values.
    interactions : bool [p]
        Phenotypes that also depend on what the genes of a mutant do apart.
    """

    def __init__(self, effect: Effect, measured: MeasuredSets, interactions: NDArray[np.bool_]) -> None:
        self.interactions = interactions
        self._tables = {
            column: _means(effect.keys[:, column], measured.value) for column in (INTERACTIONS, WHOLE)
        }
        # One of every effect, among the mutants that only lose genes with rules.
        _, first = np.unique(effect.keys[:, WHOLE], return_index=True)
        first = first[effect.plain[first]]
        keys, value, known = self._tables[WHOLE]
        at = np.searchsorted(keys, effect.keys[first, WHOLE])
        self._lost = sparse.csc_array(effect.lost[first].T)
        self._value = np.where(known[at], value[at], np.inf).astype(np.float32)
        self._condition = measured.condition[first]

    def equal(self, effect: Effect) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the mean value [q, p] of measured mutants of the same effect, and whether there are any."""
        shape = (len(effect.keys), len(self.interactions))
        out, there = np.zeros(shape, np.float32), np.zeros(shape, bool)
        for column, (keys, value, known) in self._tables.items():
            own = effect.keys[:, column]
            at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
            asked = self.interactions == (column == INTERACTIONS)
            found = (keys[at] == own)[:, None] & known[at] & asked
            out, there = np.where(found, value[at], out), there | found
        return out, there

    def bound(self, effect: Effect, condition: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the least value [q, p] of the measured mutants, in the same condition, that lose a part of
        what a mutant loses; inf where there are none, and for interactions, which have no bound.
        """
        queries = len(effect.keys)
        out = np.full((queries, len(self.interactions)), np.inf, np.float32)
        if self.interactions.all():
            return out
        shared = sparse.csr_array(effect.lost @ self._lost)
        row = np.repeat(np.arange(queries), np.diff(shared.indptr))
        other = shared.indices
        within = shared.data == np.diff(self._lost.indptr)[other]
        within &= condition[row] == self._condition[other]
        for p in np.flatnonzero(~self.interactions):
            np.minimum.at(out[:, p], row[within], self._value[other[within], p])
        out[~effect.plain] = np.inf
        return out


class _Means(NamedTuple):
    """Mean values of equal keys [u]: values, and whether there are any [u, p]."""

    keys: NDArray[np.uint64]
    value: NDArray[np.float32]
    known: NDArray[np.bool_]


def _means(keys: NDArray[np.uint64], value: NDArray[np.float32]) -> _Means:
    unique, of = np.unique(keys, return_inverse=True)
    known = np.isfinite(value)
    total, count = (np.zeros((len(unique), value.shape[1])) for _ in range(2))
    np.add.at(total, of, np.where(known, value, 0))
    np.add.at(count, of, known)
    return _Means(unique, (total / np.maximum(count, 1)).astype(np.float32), count > 0)
