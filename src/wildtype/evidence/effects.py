"""Mutants that lose the same reactions, and so cannot differ in a metabolic network; their measurements.

Genes of one enzyme complex, and of reactions whose fluxes are tied to each other, are equivalent in the
network. A mutant has two keys. The first covers the reactions it loses and those that its genes lose singly
and in pairs: mutants with equal first keys have equal interactions under flux balance. The second covers the
reactions it loses in all: mutants with equal second keys, of any order, have equal fitness. Perturbations
other than deletions, and deletions of genes that no rule names, are equivalent to themselves only.

A mutant that loses all reactions that another one loses grows no faster: the measurement of the other is an
upper bound.

Legend: q mutants · Σk their genes · n genes · c complexes · r reactions · m metabolites · p phenotypes · u
distinct keys of measured mutants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.measured import MeasuredSets
from wildtype.mutants import Kind
from wildtype.mutants.identity import gene_words, mixed_words
from wildtype.mutants.rows import pairs_in
from wildtype.organism.flux_coupling import coupled_reactions
from wildtype.seeds import generator

Words = NDArray[np.uint64]
WHOLE, ALONE, PAIRED, OTHER = (np.uint64(i) for i in range(1, 5))
INTERACTIONS, WHOLE_KEY = 0, 1  # the columns of `Effect.keys`
LARGEST = 4
"""Largest mutants whose key covers what pairs lose: k genes have k (k - 1) / 2 pairs."""


@dataclass(frozen=True, eq=False)
class Effect:
    """Reactions that q mutants lose.

    Attributes
    ----------
    keys : uint64 [q, 2]
        Equal for mutants of equal interactions, and of equal fitness.
    lost : csr [q, r]
        1 where a set of tied reactions is lost.
    plain : bool [q]
        Whether nothing else was done to a mutant than removing genes that rules name.
    """

    keys: Words
    lost: sparse.csr_array
    plain: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Effect:
        """Return the effect of some mutants."""
        return Effect(self.keys[rows], self.lost[rows], self.plain[rows])


class KnockoutEffects:
    """Keys of mutants by the reactions they lose.

    Parameters
    ----------
    complexes : csr [c, n]
        1 where a complex needs a gene.
    isozymes : csr [r, c]
        1 where a complex is enough for a reaction.
    stoichiometry : csr [m, r]
        Coefficients.

    Attributes
    ----------
    alone : uint64 [n]
        Word of the reactions that each gene loses alone; of a gene without rules, its own word.
    """

    def __init__(
        self, complexes: sparse.csr_array, isozymes: sparse.csr_array, stoichiometry: sparse.csr_array
    ) -> None:
        self.n = complexes.shape[1]
        self._gene_complex = sparse.csr_array(complexes.T)
        self._complex_reaction = sparse.csr_array(isozymes.T)
        self._needed = np.asarray(isozymes.sum(axis=1)).reshape(-1)
        self._set = coupled_reactions(stoichiometry)
        self._words = generator(0, "reaction words").integers(0, 2**64, len(self._set), dtype=np.uint64)
        self.ruled = np.diff(self._gene_complex.indptr) > 0
        every = np.arange(self.n)
        lost = self._word(self._codes(every, np.arange(self.n + 1)), self.n)
        self.alone: Words = np.where(self.ruled, _mix(lost, ALONE), _mix(gene_words(self.n), OTHER))

    def of(
        self,
        gene: NDArray[np.int64],
        offsets: NDArray[np.int64],
        kind: NDArray[Any],
        condition: NDArray[np.int64],
        dose: NDArray[Any] | None = None,
    ) -> Effect:
        """Return what mutants lose; mutants of different conditions have different keys."""
        q = len(offsets) - 1
        row = np.repeat(np.arange(q), np.diff(offsets))
        gone = (kind == Kind.ABSENT) & self.ruled[gene]
        ends = np.concatenate([[0], np.cumsum(np.bincount(row[gone], minlength=q))]).astype(np.int64)
        code, r = self._codes(gene[gone], ends), max(len(self._set), 1)
        lost = sparse.csr_array((np.ones(len(code), np.float32), (code // r, code % r)), shape=(q, r))
        with np.errstate(over="ignore"):
            # Sums of words modulo 2⁶⁴ do not depend on the order of genes. Words are mixed per purpose, so
            # that a reaction lost by a gene alone does not cancel against one lost by a pair or by the whole
            # mutant.
            done = _mix(gene_words(self.n)[gene] + kind.astype(np.uint64), OTHER)
            if dose is not None:
                done = done + _mix(np.nan_to_num(dose, nan=-1.0).astype(np.float32).view(np.uint32), OTHER)
            here = _mix(self._word(code, q), WHOLE) + _mix(condition.astype(np.uint64), OTHER)
            apart = np.where(kind == Kind.ABSENT, self.alone[gene], done)
            whole = here + _total(np.where(gone, np.uint64(0), apart), row, q)
            interacting = here + _total(apart, row, q) + self._in_pairs(gene[gone], ends)
        plain = np.bincount(row[~gone], minlength=q) == 0
        return Effect(np.stack([interacting, whole], axis=1), lost, plain)

    def _in_pairs(self, gene: NDArray[np.int64], offsets: NDArray[np.int64]) -> Words:
        """Return a word [q] for what pairs of genes lose; 0 for mutants of fewer than three, or too many."""
        sizes = np.diff(offsets)
        # The only pair of a double mutant is the mutant itself, which its key covers already.
        some = (sizes > 2) & (sizes <= LARGEST)
        if not some.any():
            return np.zeros(len(sizes), np.uint64)
        ends = np.concatenate([[0], np.cumsum(np.where(some, sizes, 0))]).astype(np.int64)
        of, left, right = pairs_in(gene[np.repeat(some, sizes)], ends)
        pairs = np.stack([left, right], axis=1).reshape(-1)
        lost = self._word(self._codes(pairs, np.arange(len(left) + 1) * 2), len(left))
        return _total(_mix(lost, PAIRED), of, len(sizes))

    def _word(self, code: NDArray[np.int64], mutants: int) -> Words:
        """Return a word [q] for what mutants lose, given as numbers of `_codes`."""
        r = max(len(self._set), 1)
        return _total(self._words[code % r], code // r, mutants)

    def _codes(self, gene: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is lost as sorted numbers: mutant · r + set."""
        q = len(offsets) - 1
        without = sparse.csr_array((np.ones(len(gene)), gene, offsets), shape=(q, self.n))
        broken = sparse.csr_array(without @ self._gene_complex)
        # A complex breaks once, however many of its genes are missing: counts become 1 before they are
        # summed.
        broken.data[:] = 1
        dead = sparse.coo_array(broken @ self._complex_reaction)
        row, reaction = (x.astype(np.int64) for x in dead.coords)
        # A reaction is lost when all its complexes are; reactions without flux (-1) change nothing.
        lost = (dead.data == self._needed[reaction]) & (self._set[reaction] >= 0)
        return np.unique(row[lost] * max(len(self._set), 1) + self._set[reaction[lost]])


def _total(words: Words, row: NDArray[np.int64], rows: int) -> Words:
    """Return sums modulo 2⁶⁴ by row, which ascends."""
    with np.errstate(over="ignore"):
        # Differences of running sums: exact modulo 2⁶⁴, overflow included.
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
        ends = np.searchsorted(row, np.arange(rows + 1))
        return np.asarray(total[ends[1:]] - total[ends[:-1]])


def _mix(words: NDArray[np.unsignedinteger], purpose: np.uint64) -> Words:
    """Return well mixed words, other ones for another purpose."""
    with np.errstate(over="ignore"):
        return mixed_words(words.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * purpose)


class MeasuredEffects:
    """Lookup of measurements by the reactions that mutants lose.

    Parameters
    ----------
    effect : Effect
        Of the measured mutants, of which there is at least one.
    measured : MeasuredSets
        Their values.
    interactions : bool [p]
        Phenotypes that also depend on what the genes of a mutant do singly: compared by the first key.
    """

    def __init__(self, effect: Effect, measured: MeasuredSets, interactions: NDArray[np.bool_]) -> None:
        self.interactions = interactions
        self._tables = {
            column: _means(effect.keys[:, column], measured.value) for column in (INTERACTIONS, WHOLE_KEY)
        }
        # One mutant per effect is enough for bounds, of those that lose genes with rules and nothing else.
        _, first = np.unique(effect.keys[:, WHOLE_KEY], return_index=True)
        first = first[effect.plain[first]]
        keys, value, known = self._tables[WHOLE_KEY]
        at = np.searchsorted(keys, effect.keys[first, WHOLE_KEY])
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
        # |A ∩ B| for all pairs of a query A and a measured B; B ⊆ A where that is |B|.
        shared = sparse.csr_array(effect.lost @ self._lost)
        row = np.repeat(np.arange(queries), np.diff(shared.indptr))
        other = shared.indices
        within = shared.data == np.diff(self._lost.indptr)[other]
        within &= condition[row] == self._condition[other]
        for p in np.flatnonzero(~self.interactions):
            np.minimum.at(out[:, p], row[within], self._value[other[within], p])
        # A hypomorph or an added gene may outgrow what loses fewer reactions.
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
