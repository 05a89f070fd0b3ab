"""`OtherScreen`: what another laboratory measured of pairs, in whatever unit.

Legend: n genes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.pair_matrix import PairMatrix

CROSSED = "crossed"
"""Array of a stored grid: a bit per pair of strains, whether it is known."""


@dataclass(frozen=True, eq=False)
class OtherScreen:
    """The visible measurements of pairs of another screen.

    Attributes
    ----------
    name : str
        The dataset.
    matrix : PairMatrix
        In the unit of that screen, on the genes of the run.
    """

    name: str
    matrix: PairMatrix

    def without(self, genes: NDArray[np.bool_]) -> OtherScreen:
        """Return the screen without all strains of some genes [n]."""
        return replace(self, matrix=self.matrix.part(np.flatnonzero(~genes[self.matrix.gene])))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the measurements as arrays, each pair once; of a grid one bit for each cross that is 0."""
        matrix = self.matrix
        first, second = np.nonzero(np.triu(matrix.values != 0 if matrix.of_grid else matrix.known))
        arrays: dict[str, NDArray[Any]] = {
            "gene": matrix.gene,
            "kind": matrix.kind,
            "first": first.astype(np.int32),
            "second": second.astype(np.int32),
            "value": matrix.values[first, second],
        }
        return arrays | {CROSSED: np.packbits(matrix.known)} if matrix.of_grid else arrays

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> OtherScreen:
        """Return the screen that ``to_arrays`` gave; raises ``KeyError`` where an array is missing."""
        gene, first, second = arrays["gene"], arrays["first"], arrays["second"]
        s, crossed = len(gene), arrays.get(CROSSED)
        values, known = np.zeros((s, s), np.float32), np.zeros((s, s), bool)
        if crossed is not None:
            known = np.unpackbits(crossed, count=s * s).reshape(s, s).astype(bool)
        values[first, second] = values[second, first] = arrays["value"]
        known[first, second] = known[second, first] = True
        return cls(name, PairMatrix(gene, arrays["kind"], values, known, crossed is not None))
