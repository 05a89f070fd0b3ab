"""The screens of ``data.screens``: measurements of pairs by others, less those that a run must not see.

Another laboratory's measurement of a pair is evidence, also of a held-out pair: whoever asks about the pair
could look it up. Left out are rows that are the held-out measurement itself, under another name.

Legend: m rows of one screen, on the run's genes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Phenotype, Split
from wildtype.datasets.provenance import groups_of
from wildtype.errors import ConfigError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.reference import PARTS
from wildtype.experiments.seen_rows import of_sets, seen_rows
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TRAIN, CrossSides

Flags = NDArray[np.bool_]


def check_screens(screens: tuple[Dataset, ...], whole: Dataset) -> None:
    """Refuse what is no other screen of pairs; raises ``ConfigError``."""
    for other in screens:
        if other.name == whole.name:
            raise ConfigError(f"data.screens names {other.name!r}, the dataset of the run: leave it out")
        if other.grid is not None:
            raise ConfigError(
                f"data.screens names {other.name!r}, whose rows are the listed crosses of a grid: train on "
                f"it, and name screens with a value for every pair"
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
    gene that the split holds out.

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
    table = _pairs(other)
    mapping = other.organism.genes.mapping_to(whole.organism.genes)
    table = table.take(~table.holding(mapping[table.gene] < 0))
    table = replace(table, profile=None, profiles=None, weight=None).remap(mapping)
    hidden = np.zeros(len(table), bool)
    if _one_measurement(other, whole, whole.phenotypes):
        hidden |= _not_training(table, whole.table, part, sides)
    for test in external:
        if _one_measurement(other, test, test.phenotypes):
            rows = _on_genes(test, whole)
            hidden |= of_sets(table, rows) & ~seen_rows(whole.table, part, whole.grid, sides, table)
    if not unseen_genes:
        hidden |= table.holding(_held_out(whole, split, sides)[table.gene])
    return OtherScreen(other.name, PairMatrix.of(table.take(~hidden)))


def _one_measurement(other: Dataset, known: Dataset, phenotypes: Sequence[Phenotype]) -> bool:
    """Return whether a screen is of one study or provenance group with phenotypes of a dataset."""
    groups = {**known.provenance, **other.provenance}
    return bool(groups_of(phenotypes, groups) & groups_of([other.first_target()[1]], groups))


def _on_genes(test: Dataset, whole: Dataset) -> MutantTable:
    mapping = test.organism.genes.mapping_to(whole.organism.genes)
    rows = test.table.take(~test.table.holding(mapping[test.table.gene] < 0))
    return replace(rows, profile=None, profiles=None).remap(mapping)


def _not_training(
    table: MutantTable, whole: MutantTable, part: NDArray[np.uint8], sides: CrossSides | None
) -> Flags:
    if sides is not None:
        return np.asarray(sides.of_table(table) != TRAIN)
    return of_sets(
        table, whole.take(np.isin(part, [PARTS.index(name) for name in ("validation", "test", "hidden")]))
    )


def _held_out(whole: Dataset, split: Split, sides: CrossSides | None) -> Flags:
    """Return the genes [n] that the split holds out."""
    held = np.zeros(len(whole.organism.genes), bool)
    if sides is not None and sides.held is not None:
        held |= sides.held > 0
    held[[whole.organism.genes.find(name) for part in split.held_out_genes.values() for name in part]] = True
    return held
