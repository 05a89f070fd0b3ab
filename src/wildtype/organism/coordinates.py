"""`Coordinates`: where genes lie on the chromosomes, by which genetic linkage between two loci is judged.

Legend: n genes · k pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Places of n genes.

    Attributes
    ----------
    chromosome : int64 [n]
        Numbers from 1, those of the nucleus first; of yeast, 1 to 16, 17 the mitochondrion's and 18 the
        2-micron plasmid. 0 where it is not known.
    start, end : float64 [n]
        First and last base of the gene in kb, start <= end whatever the strand; NaN where not known.
    strand : int8 [n]
        1 forward, -1 reverse, 0 where not known.
    source : str
        Where they come from.
    """

    chromosome: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    strand: NDArray[np.int8]
    source: str = ""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Genes with a place [n]."""
        return self.chromosome > 0

    def take(self, positions: NDArray[np.int64]) -> Coordinates:
        """Return the places of some genes."""
        return Coordinates(
            self.chromosome[positions],
            self.start[positions],
            self.end[positions],
            self.strand[positions],
            self.source,
        )

    def extended(self, count: int) -> Coordinates:
        """Return the places with ``count`` more genes at the end, whose places are not known."""
        chromosome, strand = (np.append(x, np.zeros(count, x.dtype)) for x in (self.chromosome, self.strand))
        start, end = (np.append(x, np.full(count, np.nan)) for x in (self.start, self.end))
        return Coordinates(chromosome, start, end, strand, self.source)

    def distance(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gap between pairs of genes in kb [k]: 0 if they overlap, infinite if they lie on
        different chromosomes, NaN if a place is not known.
        """
        gap = np.maximum(self.start[first] - self.end[second], self.start[second] - self.end[first])
        apart = np.where(self.chromosome[first] == self.chromosome[second], np.maximum(gap, 0.0), np.inf)
        return np.where(self.known[first] & self.known[second], apart, np.nan)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything as arrays, for storage."""
        return {
            "chromosome": self.chromosome,
            "start": self.start,
            "end": self.end,
            "strand": self.strand,
            "source": np.array(self.source),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> Coordinates:
        """Return what ``to_arrays`` gave."""
        columns = {name: arrays[name] for name in ("chromosome", "start", "end", "strand")}
        return cls(**columns, source=str(arrays["source"]))  # type: ignore[arg-type]
