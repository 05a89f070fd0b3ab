"""A tiny screen: query strains crossed with array strains, and a list of its significant crosses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.tiny import tiny_organism
from wildtype.datasets import Dataset, Phenotype
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.grid import ScreenGrid, pair_codes
from wildtype.mutants.selection import Selection

PHENOTYPES = (
    Phenotype("epsilon", unit="fitness", source="tiny:epsilon", min_order=2, of_cross="effect"),
    Phenotype("negative", source="tiny:epsilon", min_order=2, form="class", of_cross="negative"),
    Phenotype("positive", source="tiny:epsilon", min_order=2, form="class", of_cross="positive"),
    Phenotype("epsilon_listed", unit="fitness", source="tiny:epsilon", min_order=2, of_cross="listed"),
)


def tiny_grid(n: int = 24) -> ScreenGrid:
    """Return a grid with genes 0 … 2n/3 as queries and n/4 … n as arrays, gene 3 also as a hypomorph."""
    query = np.sort(np.append(np.arange(2 * n // 3), 3))
    kind = np.zeros(len(query), np.uint8)
    kind[4] = Kind.REDUCED
    array = np.arange(n // 4, n)
    linked = pair_codes(np.arange(n - 1), np.arange(1, n), n)
    return ScreenGrid(n, query, kind, array, np.zeros(len(array), np.uint8), np.unique(linked))


def strain_crosses(grid: ScreenGrid) -> MutantTable:
    """Return one row per known cross of the grid, without values."""
    gene, kind = grid.strains
    left, right = np.nonzero(np.triu(grid.crosses()))
    genes = np.stack([gene[left], gene[right]], 1)
    return MutantTable.from_matrix(genes, kind=np.stack([kind[left], kind[right]], 1).reshape(-1))


def with_cut_offs(dataset: Dataset, cut: float = 0.08, sd: float = 0.05) -> Dataset:
    """Return the dataset with its cut-offs, and with the sd of crosses that are not listed."""
    rules = (None, Selection(negative=-cut), Selection(positive=cut), Selection(-cut, cut, None, -0.01, sd))
    told = [replace(p, selection=rule) for p, rule in zip(dataset.phenotypes, rules, strict=True)]
    return replace(dataset, phenotypes=tuple(told))


def screened_dataset(n: int = 24, seed: int = 0, cut: float = 0.08) -> Dataset:
    """Return a dataset with the crosses of the grid whose size is above the cut, some 2 of 5."""
    draw = np.random.default_rng(seed)
    grid, organism = tiny_grid(n), tiny_organism(n, seed)
    table = strain_crosses(grid)
    weight = draw.normal(size=(n, 2))
    effect = 0.1 * weight[table.matrix(2)].prod(1).sum(1)
    rows = np.flatnonzero(np.abs(effect) > cut)
    listed = table.take(rows)
    return Dataset(
        name="tiny-screen",
        organism=organism,
        table=MutantTable.build(
            listed.gene, listed.offsets, kind=listed.kind, value=effect[rows], sd=np.full(len(rows), 0.02)
        ),
        phenotypes=PHENOTYPES,
        targets=("epsilon", "negative", "positive", "epsilon_listed"),
        grid=grid,
    )
