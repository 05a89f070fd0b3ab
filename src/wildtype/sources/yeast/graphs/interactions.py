"""Curated interactions of two kinds in one file: physical ones, and genetic ones that no model may look at.

Legend: m rows of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.text import GeneNames, add_counts, count_reasons
from wildtype.sources.yeast.names import match_pairs

PHYSICAL, GENETIC = "physical", "genetic"
LEAKS = (
    "genetic interactions are what the interaction datasets measure: as an input graph this relation leaks "
    "their labels, so it is never one by default"
)


@dataclass(frozen=True, eq=False)
class Interactions:
    """The rows of one file.

    Attributes
    ----------
    file, source, version : str
        File name; who gives it out; its version.
    first, second : GeneNames
        The genes of every row [m].
    kind : str [m]
        ``physical`` or ``genetic``.
    dropped : dict of str to bool [m]
        Rows that are not looked at, by reason.
    """

    file: str
    source: str
    version: str
    first: GeneNames
    second: GeneNames
    kind: NDArray[np.str_]
    dropped: Mapping[str, NDArray[np.bool_]]

    def relation(self, name: str, kind: str, genes: GeneIndex) -> tuple[Relation, ReadReport]:
        """Return the undirected, unweighted relation ``name`` of one kind: a pair is one edge however often
        it was reported.
        """
        left = np.ones(len(self.kind), bool)
        masks: dict[str, NDArray[np.bool_]] = {}
        other = GENETIC if kind == PHYSICAL else PHYSICAL
        for reason, mask in {**self.dropped, f"{other} interaction": self.kind == other}.items():
            masks[reason] = left & mask
            left &= ~mask
        first, second = (GeneNames(e.position[left], e.renamed[left]) for e in (self.first, self.second))
        kept, dropped, renamed = match_pairs(first, second)
        relation = Relation.from_edges(
            name,
            first.position[kept],
            second.position[kept],
            len(genes),
            directed=False,
            source=self.source,
            version=self.version,
            note=LEAKS if kind == GENETIC else "a pair that several publications report is one edge",
            dropped=add_counts(count_reasons(masks), dropped),
        )
        return relation, ReadReport(self.file, name, len(left), relation.edges, relation.dropped, renamed)

    def both(self, prefix: str, genes: GeneIndex) -> list[tuple[Relation, ReadReport]]:
        """Return ``<prefix>_physical`` and ``<prefix>_genetic``."""
        return [self.relation(f"{prefix}_{kind}", kind, genes) for kind in (PHYSICAL, GENETIC)]
