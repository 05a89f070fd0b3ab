"""`EvidenceIndex`: what was measured of mutants similar to the ones asked about.

Legend: n genes · q queries · Σk their genes · p phenotypes.

A record of a query's own gene set is never a token, nor does it enter any statistic: a query whose set was
measured is answered by an index without the tenth of the sets that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.effects import Effect, KnockoutEffects
from wildtype.evidence.part import EvidencePart
from wildtype.evidence.pieces import Run, one_after_the_other
from wildtype.evidence.shared import Asked, EvidenceSizes, Shared, arrays
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.evidence_tokens import EvidenceTokens, joined
from wildtype.mutants.identity import gene_words, keys_of
from wildtype.mutants.table import MutantTable

__all__ = ["EvidenceIndex", "EvidenceSizes", "answer"]

FOLDS = np.uint64(10)
"""An own record is hidden with a tenth of all sets: ten indices serve every measured query."""
MOST = 0.75
"""Share of a batch from which on a part answers all of it, and others write over what they answer."""


class EvidenceIndex:
    """Looks up evidence among given measurements.

    Parameters
    ----------
    similarity : GeneSimilarity
        Of the n genes.
    table : MutantTable
        What may be looked at, values scaled so that 0 stands for no effect and 1 for a typical one.
    phenotypes : int
        Number of phenotypes p.
    sizes : EvidenceSizes
        How much is looked up.
    run : callable
        Runs work(0) … work(count - 1), perhaps beside each other.
    effects : KnockoutEffects, optional
        Which mutants lose the same reactions, of an organism with metabolism.
    interactions : sequence of bool [p]
        Phenotypes that also depend on what the genes of a mutant do apart; empty: all.
    """

    def __init__(
        self,
        similarity: GeneSimilarity,
        table: MutantTable,
        phenotypes: int,
        sizes: EvidenceSizes | None = None,
        run: Run = one_after_the_other,
        effects: KnockoutEffects | None = None,
        interactions: Sequence[bool] = (),
    ) -> None:
        self.similarity, self.table, self.sizes = similarity, table, sizes or EvidenceSizes()
        depends = np.ones(phenotypes, bool)
        depends[: len(interactions)] = interactions
        self.words = gene_words(similarity.genes)
        self.shared = Shared(similarity, self.words, phenotypes, self.sizes, run, effects, depends)
        self.keys = keys_of(table.gene, table.offsets, self.words)
        self._measured, first, of = np.unique(self.keys, return_index=True, return_inverse=True)
        self._parts: dict[int, EvidencePart] = {}
        effect = self.effect_of(table)
        self._effect = self.keys[first] if effect is None else effect.keys[first, 0]
        self.hidden_with = self._effect[of]
        """Rows of one word are hidden together out of fold: of one gene set or of one known effect."""
        self.gene_hidden_with = self.words if effects is None else effects.alone
        """The same of genes."""

    @property
    def looks_up(self) -> bool:
        """Whether single measurements are looked up; else the additive model is all there is."""
        return self.shared.looks_up

    def part(self, hidden: NDArray[np.bool_] | None = None) -> EvidencePart:
        """Return the evidence without the rows ``hidden`` of the table; the whole is made once."""
        if hidden is None:
            return self._fold(-1)
        return EvidencePart(self.shared, self.table.take(~hidden))

    def effect_of(self, asked: Asked) -> Effect | None:
        """Return what mutants lose; None where it is not known."""
        return self.shared.effect_of(asked)

    def hides(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the words of ``hidden_with`` for keys [q] of measured gene sets."""
        if not len(self._measured):
            return keys
        return self._effect[np.minimum(np.searchsorted(self._measured, keys), len(self._measured) - 1)]

    def tokens_of(self, asked: Asked) -> EvidenceTokens:
        """Return the evidence of every mutant asked about; measured values in it are not read.

        A mutant whose gene set was measured is answered without the records of the tenth of the sets it is
        in. The additive model alone, in which one record hardly counts, is that of all records.
        """
        gene, offsets, condition = arrays(asked)
        if not self.looks_up:
            return self.part().tokens_of(gene, offsets, condition)
        keys = keys_of(gene, offsets, self.words)
        at = np.minimum(np.searchsorted(self._measured, keys), max(len(self._measured) - 1, 0))
        measured = self._measured[at] == keys if len(self._measured) else np.zeros(len(keys), bool)
        number = np.where(measured, (keys % FOLDS).astype(np.int64), -1)
        return answer(self._fold, number, gene, offsets, condition, self.effect_of(asked))

    def _fold(self, fold: int) -> EvidencePart:
        if fold not in self._parts:
            table = self.table if fold < 0 else self.table.take(self.keys % FOLDS != fold)
            self._parts[fold] = EvidencePart(self.shared, table, lasting=True)
        return self._parts[fold]


def answer(
    part: Callable[[int], EvidencePart],
    number: NDArray[np.int64],
    gene: NDArray[np.int64],
    offsets: NDArray[np.int64],
    condition: NDArray[np.int64],
    effect: Effect | None,
) -> EvidenceTokens:
    """Return the evidence of queries, each answered by the part of its ``number`` [q]."""
    found = np.unique(number)
    if len(found) == 1:
        return part(int(found[0])).tokens_of(gene, offsets, condition, effect)
    sizes = np.diff(offsets)
    row = np.repeat(np.arange(len(number)), sizes)
    rows = [np.flatnonzero(number == i) for i in found]
    whole, most = None, max(range(len(found)), key=lambda i: len(rows[i]))
    if len(rows[most]) > MOST * len(number):
        # Few mutants of a screen were measured: a copy of all that is known of the others would cost more
        # than to answer these twice.
        whole = part(int(found[most])).tokens_of(gene, offsets, condition, effect)
        found, rows = np.delete(found, most), [*rows[:most], *rows[most + 1 :]]
    parts = []
    for i, chosen in zip(found, rows, strict=True):
        ends = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        inside = gene[np.isin(row, chosen)]
        own = None if effect is None else effect.take(chosen)
        parts.append(part(int(i)).tokens_of(inside, ends, condition[chosen], own))
    return joined(parts, rows, row, whole)
