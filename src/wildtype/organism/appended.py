"""`Appended`: which genes were added to an organism's own, and what is known of their relations.

Of a gene that is new to an organism most relations are not known, so its pairs count in no prior unless
they are listed here as valid: related (an edge) or known not to be (no edge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def _none() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Appended:
    """Appended genes of an organism.

    Attributes
    ----------
    genes : int64 [a]
        Their positions, ascending; mostly none.
    valid : mapping of str to int64 [2, M]
        Per relation, source and target of the pairs of which it is known whether they are related, each with
        an appended gene at one end or both; none stands twice.
    """

    genes: NDArray[np.int64] = field(default_factory=_none)
    valid: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.genes)

    def restrict(self, positions: NDArray[np.int64]) -> Appended:
        """Return the same for the genes at ``positions`` [M], by their new positions."""
        if not len(self):
            return self
        largest = max(int(x.max(initial=0)) for x in (positions, self.genes, *self.valid.values()))
        new = np.full(largest + 1, -1, np.int64)
        new[positions] = np.arange(len(positions))
        genes = new[self.genes]
        valid = {name: new[pairs] for name, pairs in self.valid.items()}
        return Appended(
            np.sort(genes[genes >= 0]), {name: pairs[:, (pairs >= 0).all(0)] for name, pairs in valid.items()}
        )
