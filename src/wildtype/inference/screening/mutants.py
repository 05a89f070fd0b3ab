"""`Mutants`: those that a run of numbers of a design stand for, as arrays; as a table where one is needed.

Legend: m numbers · M mutants · k genes per mutant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import MutantTable


@dataclass(frozen=True, eq=False)
class Mutants:
    """Mutants of a run of numbers.

    Attributes
    ----------
    genes : int64 [M, k]
        Ascending.
    kinds : uint8 [M, k]
        What is done to each.
    condition : int
        In which they are asked about.
    members : int64 [M, k]
        Their members of the design.
    number : int64 [M]
        Their numbers.
    rows : bool [m]
        Which of the numbers are theirs.
    new : bool [m]
        Which of the numbers stand for a mutant of their own.
    """

    genes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    condition: int
    members: NDArray[np.int64]
    number: NDArray[np.int64]
    rows: NDArray[np.bool_]
    new: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.genes)

    @cached_property
    def table(self) -> MutantTable:
        """The M mutants, as models take them."""
        condition = np.full(len(self), self.condition, np.int64)
        return MutantTable.from_matrix(self.genes, kind=self.kinds.reshape(-1), condition=condition)

    def take(self, rows: NDArray[np.int64]) -> Mutants:
        """Return the mutants of these rows of ``genes``."""
        return Mutants(
            self.genes[rows],
            self.kinds[rows],
            self.condition,
            self.members[rows],
            self.number[rows],
            self.rows,
            self.new,
        )
