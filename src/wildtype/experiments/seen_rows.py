"""Which rows of another dataset a run may see, in training or in validation.

Legend: m rows of the other dataset, on the run's genes · M rows of the run's whole dataset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.reference import PARTS
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TRAIN, VALIDATION, CrossSides, ScreenGrid
from wildtype.mutants.ragged import offsets_of, ragged_ranks

Flags = NDArray[np.bool_]


def seen_rows(
    whole: MutantTable,
    part: NDArray[np.uint8],
    grid: ScreenGrid | None,
    sides: CrossSides | None,
    table: MutantTable,
) -> Flags:
    """Return which rows [m] a run may see: training or validation crosses, or gene sets of such rows.

    With a grid, a cross is seen whether it is listed or not, and whatever its strains: a strain says much
    about another strain of the same gene. Validation counts: models are chosen and calibrated by it.

    Parameters
    ----------
    whole : MutantTable
        All M rows of the run's dataset.
    part : uint8 [M]
        Position in ``PARTS`` of each.
    grid, sides : ScreenGrid and CrossSides, or None
        Of a run on a grid.
    table : MutantTable
        The m rows.
    """
    if grid is not None and sides is not None:
        rows = whole.take(np.isin(sides.of_table(whole), (TRAIN, VALIDATION)))
        out = of_sets(table, rows)
        pairs = np.flatnonzero(table.order == 2)
        left, right = table.take(pairs).matrix(2).T
        on_side = np.isin(sides.of(left, right), (TRAIN, VALIDATION))
        out[pairs] |= grid.crossed_genes(left, right) & on_side
        return out
    train, validation, _, unused, *_ = range(len(PARTS))
    fitted = (part == train) | (part == validation)
    held = np.unique(whole.set_id[~fitted & (part != unused)])
    # Evidence may hold another phenotype of any mutant that is not held out.
    looked_up = (part == unused) & ~np.isin(whole.set_id, held)
    return of_sets(table, whole.take(fitted | looked_up))


def of_sets(table: MutantTable, among: MutantTable) -> Flags:
    """Return which rows [m] have the gene set of another row, whatever kinds and conditions."""
    gene = np.concatenate([among.gene, table.gene])
    rank = ragged_ranks([gene], offsets_of(np.concatenate([among.order, table.order])))
    return np.isin(rank[len(among) :], rank[: len(among)])
