"""What all parts of an index share: similarity of genes, settings of lookup, and effects of mutants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.edits import Queries
from wildtype.evidence.effects import Effect, KnockoutEffects
from wildtype.evidence.pieces import Run
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.table import MutantTable

Asked = MutantTable | MutantBatch


def arrays(asked: Asked) -> Queries:
    """Return genes, offsets and conditions of what is asked about, as arrays."""
    columns = (asked.gene, asked.offsets, asked.condition)
    return Queries(*(x if isinstance(x, np.ndarray) else x.numpy() for x in columns))


@dataclass(frozen=True)
class EvidenceSizes:
    """How much is looked up.

    Attributes
    ----------
    tokens, two : int
        Tokens per query one edit and two edits away. Without ``tokens`` nothing is looked up among the
        measurements: all that they tell is the additive model.
    neighbours : int
        Neighbours per gene whose statistics are read.
    replacements : int
        Neighbours per gene that replace it where two genes are replaced.
    additive : bool
        Whether the additive model is fitted; its effects are 0 otherwise.
    ranked : (int, int)
        So many tokens, one and two edits away, are the best there are, in order; None: all of them, in any
        order.
    """

    tokens: int = 32
    two: int = 16
    neighbours: int = 8
    replacements: int = 32
    additive: bool = True
    ranked: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Shared:
    """What all parts of an index share; see `wildtype.evidence.lookup.EvidenceIndex`."""

    similarity: GeneSimilarity
    words: NDArray[np.uint64]
    phenotypes: int
    sizes: EvidenceSizes
    run: Run
    effects: KnockoutEffects | None
    interactions: NDArray[np.bool_]

    @property
    def looks_up(self) -> bool:
        """Whether single measurements are looked up; else the additive model is all there is."""
        return self.sizes.tokens > 0

    def effect_of(self, asked: Asked) -> Effect | None:
        """Return what mutants lose; None where it is not known."""
        if self.effects is None:
            return None
        gene, offsets, condition = arrays(asked)
        kind, dose = (
            x if x is None or isinstance(x, np.ndarray) else x.numpy() for x in (asked.kind, asked.dose)
        )
        assert kind is not None
        return self.effects.of(gene, offsets, kind, condition, dose)
