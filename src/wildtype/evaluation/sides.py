"""What the sides of a split have in common, counted again on the rows that a checkpoint keeps.

A split is checked when it is drawn (`phenotypes.splits`); a finished run can be asked again, without its
dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wildtype.datasets.draws import count_genes
from wildtype.evidence.reference import PARTS, ReferenceMeasurements

SIDES = PARTS[:3]


@dataclass(frozen=True)
class Sides:
    """Training, validation and test rows of a finished run.

    Attributes
    ----------
    rows, gene_sets : mapping of str to int
        By side.
    on_two_sides : int
        Different gene sets that have rows on more than one side.
    unseen : mapping of str to mapping of int to int
        Of validation and test: rows by the number of their genes that no training row has.
    """

    rows: Mapping[str, int]
    gene_sets: Mapping[str, int]
    on_two_sides: int
    unseen: Mapping[str, Mapping[int, int]]


def count_sides(known: ReferenceMeasurements) -> Sides:
    """Count rows, gene sets and unseen genes of the sides."""
    table, part = known.table, known.part
    sets = {name: np.unique(table.set_id[part == i]) for i, name in enumerate(SIDES)}
    every = np.concatenate(list(sets.values()))
    new = np.ones(len(known.essential), bool)
    new[table.take(part == PARTS.index("train")).gene] = False
    unseen = {}
    for i, name in enumerate(SIDES[1:], 1):
        values, counts = np.unique(count_genes(table.take(part == i), new), return_counts=True)
        unseen[name] = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Sides(
        rows={name: int((part == i).sum()) for i, name in enumerate(SIDES)},
        gene_sets={name: int(found.size) for name, found in sets.items()},
        on_two_sides=int((np.unique(every, return_counts=True)[1] > 1).sum()),
        unseen=unseen,
    )
