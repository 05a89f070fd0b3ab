"""Sides of the crosses of a screen, drawn before anyone looks at what the screen lists.

Legend: m rows · n genes · g genes of the grid's strains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.draws import DROPPED, Draft, count_genes, drawn_as_one
from wildtype.datasets.plans import Plan
from wildtype.errors import DatasetError, SplitError
from wildtype.mutants.grid import (
    CROSS_RULES,
    TEST,
    TRAIN,
    VALIDATION,
    CrossSides,
    ScreenGrid,
    contains,
    gene_hashes,
    pair_codes,
    uniform,
)
from wildtype.seeds import derive

Ints = NDArray[np.int64]


def grid_of(dataset: DatasetRecord) -> ScreenGrid:
    """Return the grid of a dataset; raises ``DatasetError`` where it has none."""
    if dataset.grid is None:
        raise DatasetError(f"dataset {dataset.name!r} has no grid of crosses: choose one that has")
    return dataset.grid


def cross_sides(
    dataset: DatasetRecord, name: str, seed: int, plan: Plan, hidden: Ints | None = None
) -> CrossSides:
    """Return the side of every cross of a dataset's grid; no value and no listing is read.

    * ``random``: each cross by a hash of the names of both genes and the seed.
    * Splits of genes: the genes of the grid's strains in the order of a hash of their names and the seed; the
      first are held out for test, the next for validation. A held-out gene takes every cross of it along.

    Parameters
    ----------
    dataset : DatasetRecord
        With a grid.
    name : str
        ``random``, ``one-unseen``, ``unseen`` or ``any-unseen``.
    seed : int
        Seed of the draw.
    plan : Plan
        Fractions, fold, number of genes.
    hidden : int64 [h], optional
        ``pair_codes`` of crosses that are on no side.

    Raises
    ------
    SplitError
        If the split cannot be drawn over crosses, or leaves no gene for training.
    """
    grid = grid_of(dataset)
    if name not in CROSS_RULES:
        raise SplitError(
            f"split {name!r} cannot be drawn over the crosses of dataset {dataset.name!r}, listed or not: "
            f"choose {', '.join(CROSS_RULES[:-1])} or {CROSS_RULES[-1]}"
        )
    if plan.among is not None:
        raise SplitError(
            f"among={plan.among} cannot be drawn over the crosses of dataset {dataset.name!r}, "
            "listed or not: leave it out"
        )
    word = gene_hashes(dataset.organism.genes.names, seed)
    codes = np.zeros(0, np.int64) if hidden is None else np.unique(hidden)
    held = None if name == "random" else _held_genes(dataset, grid, word, plan)
    return CrossSides(word, name, plan.validation, plan.test, held, codes, plan.fold, plan.folds)


def _held_genes(
    dataset: DatasetRecord, grid: ScreenGrid, word: NDArray[np.uint64], plan: Plan
) -> NDArray[np.uint8]:
    """Return the side [n] that each gene is held out for; 0 for all others.

    Units that share a gene are one group, and counts of genes are rounded up to whole groups.
    """
    genes = np.unique(grid.strains[0])
    ranked = genes[np.argsort(word[genes], kind="stable")]
    # A group has the rank of its first gene, so that no order of genes matters.
    _, first, group = np.unique(drawn_as_one(dataset)[ranked], return_index=True, return_inverse=True)
    order = np.argsort(first)
    size = np.bincount(group)
    if plan.folds:
        # Every folds-th gene is in the fold, so that the folds hold each gene once; then those of the next.
        turn = (np.arange(order.size) - plan.fold) % plan.folds
        order, tests = order[np.argsort(turn, kind="stable")], int((turn == 0).sum())
    elif plan.genes is None:
        tests = _whole(size[order], max(round(plan.test * genes.size), 1))
    else:
        tests = _whole(size[order], plan.genes)
    end = tests + _whole(size[order[tests:]], max(round(plan.validation * genes.size), 1))
    if not tests or end >= order.size:
        raise SplitError(
            f"dataset {dataset.name!r} has crosses of {genes.size:,} genes: {plan} leave none for training "
            f"or test, change either"
        )
    side = np.zeros(order.size, np.uint8)
    side[order[:tests]], side[order[tests:end]] = TEST, VALIDATION
    held = np.zeros(len(word), np.uint8)
    held[ranked] = side[group]
    return held


def _whole(size: Ints, wanted: int) -> int:
    """Return how many groups, of ``size`` [g] genes, hold at least so many genes; more than all if none."""
    return int(np.searchsorted(np.cumsum(size), wanted)) + 1 if wanted else 0


def draft_of_crosses(dataset: DatasetRecord, sides: CrossSides) -> Draft:
    """Return the rows of a dataset, pairs of genes, each on the side of its cross."""
    table, names = dataset.table, dataset.organism.genes.names
    gene = table.matrix(2)
    side = sides.of_table(table)
    draft = Draft(np.zeros(len(table), np.int8))
    hidden = contains(sides.hidden, pair_codes(gene[:, 0], gene[:, 1], len(names)))
    draft.drop(hidden, "hidden cross")
    draft.drop(side == DROPPED, "held-out and other genes mixed")
    draft.side[:] = side
    if sides.held is not None:
        for code, part in ((VALIDATION, "validation"), (TEST, "test")):
            draft.held_out_genes[part] = tuple(names[i] for i in np.flatnonzero(sides.held == code))
    if sides.rule == "one-unseen" and sides.held is not None:
        # A seen gene without a training row would be a second unseen gene of its rows.
        seen = np.zeros(len(names), bool)
        seen[table.take(draft.side == TRAIN).gene] = True
        draft.drop(count_genes(table, ~seen & (sides.held == 0)) > 0, "another gene has no training row")
    return draft


def hidden_crosses(dataset: DatasetRecord, other: DatasetRecord, fraction: float) -> Ints:
    """Return ``pair_codes`` [h] of a fraction of the pairs of genes that another dataset measured.

    All rows of two genes count, and all crosses of its grid, where it has one. The fraction is chosen by a
    hash of the names of both genes: never by a value, and alike for every seed of a run.

    Raises
    ------
    DatasetError
        If the other dataset is of another organism, or measured no pair.
    """
    genes = dataset.organism.genes
    if other.organism.name != dataset.organism.name:
        raise DatasetError(
            f"dataset {other.name!r} is of {other.organism.name}, not of {dataset.organism.name}: its pairs "
            f"cannot be hidden from dataset {dataset.name!r}"
        )
    pairs = [other.table.take(other.table.order == 2).matrix(2)]
    if other.grid is not None:
        gene = other.grid.strains[0]
        pairs.append(np.stack([gene[side] for side in np.nonzero(np.triu(other.grid.crosses()))], 1))
    both = np.concatenate(pairs)
    if not len(both):
        raise DatasetError(f"dataset {other.name!r} has no pair of genes to hide: leave it out of split.hide")
    both = other.organism.genes.mapping_to(genes)[both]
    both = both[(both >= 0).all(1)]
    codes = np.unique(pair_codes(both[:, 0], both[:, 1], len(genes)))
    # A seed of its own: with that of the split, the pairs hidden would be those of its test side.
    word = gene_hashes(genes.names, derive(0, "hidden crosses"))
    return codes[uniform(word[codes // len(genes)], word[codes % len(genes)]) < fraction]
