"""Rows of a run from the list and the grid of a screen: listed crosses, and a sample of the others.

A screen of five million crosses lists some 200,000 of them. Validation and test rows are drawn from all
crosses of their side, so that they hold as many listed ones as the screen does. Training rows are all listed
training crosses and some unlisted ones, weighted to their true number.

Legend: m rows · c known crosses of the grid · l listed crosses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.cross_draws import cross_sides, draft_of_crosses, grid_of
from wildtype.datasets.dataset import Dataset
from wildtype.datasets.dataset_record import DatasetRecord, Phenotype
from wildtype.datasets.draws import PARTS
from wildtype.datasets.plans import Plan, canonical_name, make_plan
from wildtype.datasets.splits import Split, split_of
from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TEST, TRAIN, VALIDATION, CrossSides, ScreenGrid, contains
from wildtype.seeds import generator

Ints = NDArray[np.int64]
Counts = dict[str, dict[str, int]]

UNLISTED, MOST = 3.0, 60_000
"""Unlisted training rows per listed one, and validation or test crosses at most, by default."""


@dataclass(frozen=True, eq=False)
class CrossSplit:
    """A split of the crosses of a grid: what `Split` is for rows.

    Attributes
    ----------
    name : str
        Full name of the split.
    seed : int
        Seed it was drawn with.
    sides : CrossSides
        The side of every cross.
    plan : Plan
        Fractions and options of the draw.
    options : dict of str to float or str
        The options to store.
    """

    name: str
    seed: int
    sides: CrossSides
    plan: Plan
    options: dict[str, float | str]


def split_crosses(
    dataset: DatasetRecord,
    name: str = "random",
    seed: int = 0,
    *,
    validation: float | None = None,
    test: float | None = None,
    fold: int | None = None,
    folds: int | None = None,
    order: int | None = None,
    by: str | None = None,
    genes: int | None = None,
    up_to: int | None = None,
    among: str | None = None,
    hidden: Ints | None = None,
) -> CrossSplit:
    """Draw a split over all crosses of a dataset's grid.

    Parameters
    ----------
    dataset, name, seed
        As in `datasets.splits.make_split`, as are the fractions and options.
    hidden : int64 [h], optional
        ``pair_codes`` of crosses that are on no side.

    Raises
    ------
    DatasetError
        If the dataset has no grid.
    SplitError
        If the split cannot be drawn over crosses, or an option does not fit it.
    """
    name = canonical_name(name)
    plan, options = make_plan(name, validation, test, fold, folds, order, by, genes, up_to, among)
    return CrossSplit(name, seed, cross_sides(dataset, name, seed, plan, hidden), plan, options)


def expand(
    dataset: Dataset,
    phenotypes: Sequence[str],
    drawn: CrossSplit,
    *,
    unlisted: float = UNLISTED,
    most: int = MOST,
    most_listed: int | None = None,
) -> tuple[Dataset, Split, Counts]:
    """Return the dataset of a run with rows of listed and unlisted crosses, its split, and counts of crosses.

    Sampled crosses get a row of every phenotype that is of crosses: the effect (0 where it is not listed),
    whether it is listed as negative and as positive (0 or 1), and, where it is listed, its listed value.
    Listed values, which know no natural rate, are tested on all listed crosses of the test side.
    A phenotype with cut-offs (`Phenotype.selection`) takes crosses between them for not listed.
    Rows of other phenotypes stay on the side of their cross.

    Parameters
    ----------
    dataset : Dataset
        With a grid; its table holds listed crosses.
    phenotypes : sequence of str
        Phenotypes of the run.
    drawn : CrossSplit
        The side of every cross.
    unlisted : float
        Unlisted training rows per listed one; each stands for (unlisted crosses) / (rows of them).
    most : int
        Crosses at most, listed and unlisted ones alike, of validation and of test; and listed ones of test.
    most_listed : int, optional
        Listed training crosses at most, drawn at random; each stands for (listed crosses) / (rows of them).

    Raises
    ------
    DatasetError
        If the list is not of one condition, has no phenotype ``effect``, or lists a cross twice.
    SplitError
        If a side is empty, or a rule of the split is broken.
    """
    grid = grid_of(dataset)
    listed = _listed(dataset, grid)
    sampled = _Sample.draw(grid, listed, drawn, unlisted, (most, most_listed))
    tables = []
    for number, name in enumerate(phenotypes):
        of = dataset.phenotype_index(name)
        phenotype = dataset.phenotypes[of]
        if phenotype.of_cross:
            table = _rows(grid, listed, sampled, phenotype)
        else:
            table = dataset.table.take(dataset.table.phenotype == of)
            # A cross on no side has no row of any phenotype: its fitness would tell its epsilon.
            table = table.take(np.isin(drawn.sides.of_table(table), (TRAIN, VALIDATION, TEST)))
        tables.append(replace(table, phenotype=np.full(len(table), number, np.int64)))
    run = replace(
        dataset,
        table=MutantTable.concatenate(tables),
        phenotypes=tuple(dataset.phenotypes[dataset.phenotype_index(name)] for name in phenotypes),
        targets=tuple(phenotypes),
    )
    draft = draft_of_crosses(run, drawn.sides)
    return run, split_of(run, drawn.name, drawn.seed, drawn.plan, drawn.options, draft), sampled.counts


def effect_phenotype(dataset: DatasetRecord) -> int:
    """Return the phenotype whose rows are the listed crosses; raises ``DatasetError`` if it is not one."""
    found = [i for i, p in enumerate(dataset.phenotypes) if p.of_cross == "effect"]
    if len(found) != 1:
        raise DatasetError(
            f"dataset {dataset.name!r} has a grid and {len(found)} phenotypes with of_cross 'effect', "
            f"expected 1"
        )
    return found[0]


@dataclass(frozen=True, eq=False)
class _Listed:
    """Codes [l] of the listed crosses, ascending, and the row of the table that each has."""

    codes: Ints
    rows: Ints
    table: MutantTable

    def find(self, codes: Ints) -> tuple[NDArray[np.bool_], Ints]:
        """Return which codes [m] are listed, and the rows of those that are."""
        there = contains(self.codes, codes)
        return there, self.rows[np.searchsorted(self.codes, codes[there])]


def _listed(dataset: Dataset, grid: ScreenGrid) -> _Listed:
    table = dataset.table.take(dataset.table.phenotype == effect_phenotype(dataset))
    codes = grid.cross_codes(table)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    if (codes[1:] == codes[:-1]).any() or table.condition.any():
        raise DatasetError(
            f"dataset {dataset.name!r} has a grid and lists a cross twice or in another condition than "
            f"{dataset.conditions[0]!r}: a list has one row per cross"
        )
    return _Listed(codes, order, table)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Crosses of a run: codes [m], ascending, and how many crosses each stands for.

    ``tested`` are codes of further listed crosses of the test side, ascending. ``counts`` has, by side, all
    its ``crosses``, those of them that are ``listed``, and those ``sampled``.
    """

    codes: Ints
    weight: NDArray[np.float32]
    tested: Ints
    counts: Counts

    @classmethod
    def draw(
        cls,
        grid: ScreenGrid,
        listed: _Listed,
        drawn: CrossSplit,
        unlisted: float,
        limits: tuple[int, int | None],
    ) -> _Sample:
        most, most_listed = limits
        codes, side = _known_crosses(grid, drawn.sides)
        counts: Counts = {}
        chosen, weights = [], []
        for number, part in enumerate(PARTS):
            of_side = codes[side == number]
            there = contains(listed.codes, of_side)
            # Streams by side: how many crosses one side lists changes no draw of another.
            rng = generator(drawn.seed, f"crosses/{part}")
            if number == TRAIN:
                all_listed, others = of_side[there], of_side[~there]
                kept = _some(all_listed, most_listed or len(all_listed), rng)
                some = _some(others, max(round(unlisted * len(kept)), 1), rng)
                # The inverse sampling fraction (Horvitz & Thompson 1952): Σ w y estimates the sum over all.
                scales = [len(all_listed) / max(len(kept), 1), len(others) / max(len(some), 1)]
                taken = np.concatenate([kept, some])
                weight = np.repeat(scales, [len(kept), len(some)])
            else:
                # Drawn without a look at the list, so that listed crosses keep their natural rate.
                taken = _some(of_side, most, rng)
                weight = np.ones(len(taken))
            if number == TEST:
                more = np.setdiff1d(of_side[there], taken, assume_unique=True)
                drawn_already = int(there.sum()) - len(more)
                tested = _some(more, max(most - drawn_already, 0), rng)
            chosen.append(taken)
            weights.append(weight.astype(np.float32))
            counts[part] = {"crosses": len(of_side), "listed": int(there.sum()), "sampled": len(taken)}
        off = codes[side >= len(PARTS)]
        counts["dropped"] = {
            "crosses": len(off),
            "listed": int(contains(listed.codes, off).sum()),
            "sampled": 0,
        }
        every, weight = np.concatenate(chosen), np.concatenate(weights)
        order = np.argsort(every, kind="stable")
        return cls(every[order], weight[order], tested, counts)


def _some(codes: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Return so many of ascending codes at random, ascending; all of them where there are no more."""
    if count >= len(codes):
        return codes
    return np.sort(rng.choice(codes, count, replace=False, shuffle=False))


def _known_crosses(grid: ScreenGrid, sides: CrossSides) -> tuple[Ints, NDArray[np.int8]]:
    """Return the codes [c] of all known crosses of the grid, ascending, and their sides."""
    gene = grid.strains[0]
    codes, side = [], []
    for left, right in _blocks(np.triu(grid.crosses())):
        codes.append(left * len(gene) + right)
        side.append(sides.of(gene[left], gene[right]))
    return np.concatenate(codes), np.concatenate(side)


def _blocks(crossed: NDArray[np.bool_]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the strains of all crosses by blocks of strains; all at once would take 100 bytes per cross."""
    for start in range(0, len(crossed), 512):
        left, right = np.nonzero(crossed[start : start + 512])
        yield left + start, right


def _rows(grid: ScreenGrid, listed: _Listed, sampled: _Sample, phenotype: Phenotype) -> MutantTable:
    """Return the rows of one phenotype of sampled crosses, phenotype 0."""
    there, rows = listed.find(sampled.codes)
    crosses = listed.table.take(rows)
    met = phenotype.listed(crosses)
    if phenotype.of_cross == "listed":
        drawn = replace(crosses.take(met), weight=sampled.weight[there][met])
        further = listed.table.take(listed.find(sampled.tested)[1])
        further = further.take(phenotype.listed(further))
        return MutantTable.concatenate([drawn, replace(further, weight=None)])
    gene, kind = grid.strains
    # The smaller number of a strain is that of the smaller gene: rows ascend as tables require.
    ends = np.stack(np.divmod(sampled.codes, len(gene)), 1)
    value = np.zeros(len(there), np.float32)
    sd, p = np.full(len(there), np.nan, np.float32), None
    if phenotype.of_cross == "effect":
        value[there] = crosses.value
        sd[there] = crosses.sd
        if crosses.p is not None:
            p = np.full(len(there), np.nan, np.float32)
            p[there] = crosses.p
    else:
        value[there] = met
    return MutantTable.from_matrix(
        gene[ends], kind=kind[ends].reshape(-1), value=value, sd=sd, p=p, weight=sampled.weight
    )
