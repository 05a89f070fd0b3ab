"""`Constraints`: mutants of a design that are of no interest, or cannot be constructed.

Legend: n genes · m mutants · k genes per mutant · d pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.reference import LETHAL, ReferenceMeasurements
from wildtype.inference.screening.designs import Mutants
from wildtype.mutants import Kind
from wildtype.mutants.grid import ScreenGrid
from wildtype.mutants.identity import MutantIndex
from wildtype.organism import Coordinates

Ints = NDArray[np.int64]
LEFT_OUT = ("lethal", "linked", "overlapping", "dubious")
"""Mutants that a screen leaves out unless it is told to include them."""
MEASURED = "measured before"
LINKED_KB = 200.0
"""Default distance within which two genes count as linked; screens of yeast mask 200 to 300 kb."""


@dataclass(frozen=True, eq=False)
class Constraints:
    """Conditions that every predicted mutant meets.

    Attributes
    ----------
    required : bool [n] or None
        Genes of which a mutant must perturb at least one.
    min_linkage_kb : float
        Distance in kb that any two genes on one chromosome exceed, or a cross rarely combines them; 0: any.
    coordinates : Coordinates or None
        Places of the genes, to compute distances from.
    lethal : int64 [d, 2] or None
        Synthetic lethal pairs, which no mutant contains.
    measured : MutantIndex or None
        Mutants to leave out.
    screened : ScreenGrid or None
        Crosses to leave out: they were measured, whether they are listed or not.
    deletion_lethal, dubious, overlapping : bool [n] or None
        Genes that no mutant lacks; genes, and genes that share bases with another, that no mutant perturbs.
    """

    required: NDArray[np.bool_] | None = None
    min_linkage_kb: float = 0.0
    coordinates: Coordinates | None = None
    lethal: Ints | None = None
    measured: MutantIndex | None = None
    screened: ScreenGrid | None = None
    deletion_lethal: NDArray[np.bool_] | None = None
    dubious: NDArray[np.bool_] | None = None
    overlapping: NDArray[np.bool_] | None = None

    @cached_property
    def _lethal(self) -> tuple[int, Ints]:
        """The base of the codes a · base + b of lethal pairs a < b, and the codes, ascending."""
        lethal = np.zeros((0, 2), np.int64) if self.lethal is None else np.sort(self.lethal, axis=1)
        base = int(lethal.max(initial=0)) + 1
        return base, np.unique(lethal @ [base, 1])

    def refused(self, mutants: Mutants) -> dict[str, NDArray[np.bool_]]:
        """Return which mutants [m] are left out, by reason."""
        out: dict[str, NDArray[np.bool_]] = {}
        sets = mutants.genes
        # First, so that the other reasons count mutants that were not measured.
        if self.measured is not None:
            out[MEASURED] = self.measured.holds(mutants.table)
            if self.screened is not None:
                out[MEASURED] |= self.screened.measured(mutants.table)
        if self.required is not None:
            out["none of the required genes"] = np.asarray(~self.required[sets].any(axis=1))
        if self.deletion_lethal is not None:
            dead_alone = self.deletion_lethal[sets] & (mutants.kinds == Kind.ABSENT)
            out["lethal: deletes an essential gene"] = np.asarray(dead_alone.any(axis=1))
        if self.dubious is not None:
            out["holds a dubious ORF"] = np.asarray(self.dubious[sets].any(axis=1))
        if self.overlapping is not None:
            out["holds an ORF that overlaps another"] = np.asarray(self.overlapping[sets].any(axis=1))
        pairs = list(combinations(range(sets.shape[1]), 2))
        if self.min_linkage_kb and self.coordinates is not None:
            near = np.zeros(len(sets), bool)
            for i, j in pairs:
                # NaN, a gene without a known place, compares false: the mutant stays.
                apart = self.coordinates.distance(sets[:, i], sets[:, j])
                near |= np.asarray(apart <= self.min_linkage_kb)
            out[f"two genes within {self.min_linkage_kb:g} kb"] = near
        if self.lethal is not None and len(self.lethal):
            base, codes = self._lethal
            dead = np.zeros(len(sets), bool)
            for i, j in pairs:
                # A gene at or above the base would be read as another pair's code.
                dead |= (sets[:, j] < base) & np.isin(sets[:, i] * base + sets[:, j], codes)
            out["holds a pair that is known to be lethal"] = dead
        return out


def lethal_pairs(known: ReferenceMeasurements, condition: int = 0) -> Ints:
    """Return the pairs [d, 2] of viable single mutants whose double mutant has a fitness below ``LETHAL``.

    The fitness is measured in the condition, or implied by epsilon there: f_ab = f_a f_b + ε. A single mutant
    whose fitness is not known in the condition counts as viable, and implies no fitness of a pair.
    """
    table = known.table
    found = [np.zeros((0, 2), np.int64)]
    for name in {"fitness", "epsilon"} & set(known.phenotypes):
        rows = (table.phenotype == known.phenotypes.index(name)) & (table.order == 2)
        pairs = table.take(np.flatnonzero(rows & (table.condition == condition)))
        alone = known.single_fitness_of(pairs)[0].reshape(-1, 2)
        fitness = pairs.value + (alone.prod(1) if name == "epsilon" else 0.0)
        alive = np.isnan(alone) | (alone >= LETHAL)
        found.append(pairs.matrix(2)[(fitness < LETHAL) & alive.all(1)])
    return np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
