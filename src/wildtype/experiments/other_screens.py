"""The screens of ``data.screens``: measurements of pairs by others, less those that a run must not see.

Another laboratory's measurement of a pair is evidence, also of a held-out pair: whoever asks about the pair
could look it up. Left out are rows that are the held-out measurement itself, under another name. Of a screen
with a grid, a cross that is not listed is a measurement, too: a visible 0.

Legend: m rows of one screen, on the run's n genes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Split
from wildtype.datasets.provenance import groups_of
from wildtype.errors import ConfigError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.reference import PARTS
from wildtype.experiments.seen_rows import seen_rows
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TRAIN, CrossSides, VisibleCrosses, contains, pair_codes

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


def check_screens(screens: tuple[Dataset, ...], whole: Dataset) -> None:
    """Refuse what is no other screen of pairs; raises ``ConfigError``."""
    for other in screens:
        if other.name == whole.name:
            raise ConfigError(f"data.screens names {other.name!r}, the dataset of the run: leave it out")
        if other.grid is not None and whole.grid is not None and _one_measurement(other, whole):
            raise ConfigError(
                f"data.screens names {other.name!r}, another list of the crosses of {whole.name!r}, the "
                f"dataset of the run: leave it out"
            )
        if other.first_target()[1].form != "scalar" or not len(_pairs(other)):
            raise ConfigError(
                f"data.screens names {other.name!r}, which has no number per pair of genes: leave it out"
            )


def _pairs(other: Dataset) -> MutantTable:
    table = other.table
    measured = (table.phenotype == other.first_target()[0]) & np.isfinite(table.value)
    return table.take(measured & (table.order == 2))


def visible_screen(
    other: Dataset,
    whole: Dataset,
    part: NDArray[np.uint8],
    split: Split,
    sides: CrossSides | None,
    external: tuple[Dataset, ...],
    *,
    unseen_genes: bool,
) -> OtherScreen:
    """Return what a run may see of another screen.

    Left out are rows with genes outside the run's index; of the run's provenance group, all pairs that are
    not training ones; pairs that stand in an external test of the same group and are tested; and pairs with a
    gene that the split holds out. Of a grid, their crosses are unknown, listed or not.

    Parameters
    ----------
    other : Dataset
        The screen.
    whole : Dataset
        That of the run.
    part : uint8 [M]
        Part of the split of its rows.
    split, sides : Split, CrossSides or None
        Of the run.
    external : tuple of Dataset
        External tests of the run.
    unseen_genes : bool
        Whether pairs with a gene that the split holds out are seen: it is then new to the run's screen alone.
    """
    mapping, n = other.organism.genes.mapping_to(whole.organism.genes), len(whole.organism.genes)
    table = _pairs(other)
    table = table.take(~table.holding(mapping[table.gene] < 0))
    table = replace(table, profile=None, profiles=None, weight=None).remap(mapping)
    hidden = np.zeros(0, np.int64)
    if _one_measurement(other, whole):
        hidden = np.union1d(hidden, _not_training(table, whole, part, sides))
    for test in external:
        if _one_measurement(other, test):
            rows = _on_genes(test, whole)
            rows = rows.take(~seen_rows(whole.table, part, whole.grid, sides, rows))
            hidden = np.union1d(hidden, _codes(rows, n))
    held = _held_out(whole, split, sides) & (not unseen_genes)
    visible = table.take(~contains(hidden, _codes(table, n)) & ~table.holding(held[table.gene]))
    crosses = None
    if other.grid is not None:
        every = CrossSides(np.zeros(n, np.uint64), validation=0.0, test=0.0, hidden=hidden)
        crosses = VisibleCrosses(other.grid.remap(mapping, n), every, visible)
    return OtherScreen(other.name, PairMatrix.of(visible, crosses)).without(held)


def _one_measurement(other: Dataset, known: Dataset) -> bool:
    """Return whether a screen is of one study or provenance group with phenotypes of a dataset."""
    groups = {**known.provenance, **other.provenance}
    return bool(groups_of(known.phenotypes, groups) & groups_of([other.first_target()[1]], groups))


def _on_genes(test: Dataset, whole: Dataset) -> MutantTable:
    mapping = test.organism.genes.mapping_to(whole.organism.genes)
    rows = test.table.take(~test.table.holding(mapping[test.table.gene] < 0))
    return replace(rows, profile=None, profiles=None).remap(mapping)


def _codes(table: MutantTable, n: int) -> Ints:
    """Return the ``pair_codes`` [m] of the rows of a table that are pairs."""
    left, right = table.take(table.order == 2).matrix(2).T
    return pair_codes(left, right, n)


def _not_training(
    table: MutantTable, whole: Dataset, part: NDArray[np.uint8], sides: CrossSides | None
) -> Ints:
    """Return codes of pairs that are no training rows of the run: of ``table`` by their side, or all."""
    n = len(whole.organism.genes)
    if sides is not None:
        return _codes(table.take(sides.of_table(table) != TRAIN), n)
    held = [PARTS.index(name) for name in ("validation", "test", "hidden")]
    return _codes(whole.table.take(np.isin(part, held)), n)


def _held_out(whole: Dataset, split: Split, sides: CrossSides | None) -> Flags:
    """Return the genes [n] that the split holds out."""
    held = np.zeros(len(whole.organism.genes), bool)
    if sides is not None and sides.held is not None:
        held |= sides.held > 0
    held[[whole.organism.genes.find(name) for part in split.held_out_genes.values() for name in part]] = True
    return held
