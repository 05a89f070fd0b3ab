"""Units that share a gene are unseen together, whatever a split is called."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.screened import PHENOTYPES
from wildtype.datasets import Dataset
from wildtype.datasets.cross_draws import cross_sides
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.folds import make_folds
from wildtype.datasets.plans import Plan, make_plan
from wildtype.datasets.splits import make_split
from wildtype.errors import SplitError
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TEST, TRAIN, ScreenGrid, pair_codes
from wildtype.organism import GeneIndex, Organism
from wildtype.organism.in_units import in_units

UNITS = 30


def dataset(*, sharing: bool = True) -> Dataset:
    """Return all pairs of 30 units; units 0 and 1, 2 and 3, … up to 18 and 19 share a gene."""
    genes = [f"g{i}" for i in range(2 * UNITS)]
    organism = Organism("tiny", GeneIndex(genes, organism="tiny"))
    own = {f"u{i}": [f"g{2 * i}", f"g{2 * i + 1}"] for i in range(UNITS)}
    if sharing:
        for i in range(0, 20, 2):
            own[f"u{i + 1}"] = [f"g{2 * i + 1}", f"g{2 * i + 3}"]
    made = in_units(organism, own)
    tokens = [made.genes.find(name) for name in own]
    pairs = [pair for pair in combinations(tokens, 2)]
    assert made.units is not None
    kept = ~made.units.overlapping(*np.array(pairs).T)
    pairs = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
    table = MutantTable.build(
        np.array(pairs).reshape(-1),
        2 * np.arange(len(pairs) + 1),
        value=np.arange(len(pairs), dtype=np.float32),
    )
    return Dataset("pairs", made, table, (Phenotype("gi"),), ("not stated",), ("gi",))


def shares(data: Dataset, first: int, second: int) -> bool:
    units = data.organism.units
    assert units is not None
    return bool(set(units.members(first)) & set(units.members(second)))


@pytest.mark.parametrize(("name", "expected"), [("unseen", {2}), ("one-unseen", {1}), ("any-unseen", {1, 2})])
def test_a_unit_is_unseen_only_if_no_training_unit_shares_a_gene(name: str, expected: set[int]) -> None:
    data = dataset()
    for seed in range(5):
        split = make_split(data, name, seed)
        trained = set(data.table.take(split.train).gene.tolist())
        for row in split.test:
            pair = data.table.take([row]).gene.tolist()
            unseen = [token for token in pair if not any(shares(data, token, other) for other in trained)]
            assert len(unseen) in expected
        assert split.check(data)["rows"]["test"] == len(split.test) > 0


def test_a_split_that_forgets_the_shared_genes_is_refused() -> None:
    apart = dataset(sharing=False)
    data = replace(apart, organism=dataset().organism)
    found = 0
    for seed in range(5):
        split = make_split(apart, "unseen", seed)
        given = {name: getattr(split, name) for name in ("train", "validation", "test")}
        forged = replace(make_split(data, "random", seed), name="unseen", held_out_genes=split.held_out_genes)
        try:
            replace(forged, dropped={"mixed": sum(split.dropped.values())}, **given).check(data)
        except SplitError as error:
            found += "leaks" in str(error)
    assert found


def test_folds_deal_units_that_share_a_gene_together() -> None:
    data = dataset()
    held = [split.held_out_genes["test"] for split in make_folds(data, "any-unseen", 3)]
    assert sorted(name for names in held for name in names) == sorted(
        data.organism.genes.names[token] for token in data.measured_genes()
    )
    fold_of = {data.organism.genes.find(name): fold for fold, names in enumerate(held) for name in names}
    for first, second in combinations(fold_of, 2):
        if shares(data, first, second):
            assert fold_of[first] == fold_of[second]


def plan(name: str, *, fold: int | None = None, folds: int | None = None, genes: int | None = None) -> Plan:
    return make_plan(name, None, None, fold, folds, None, None, genes)[0]


def screen(*, sharing: bool) -> Dataset:
    """Return a screen of the same units, each with each, that lists every other pair."""
    data = dataset(sharing=sharing)
    n, units = len(data.organism.genes), data.organism.units
    tokens, kind = data.measured_genes(), np.zeros(UNITS, np.uint8)
    assert units is not None
    first, second = (tokens[ends] for ends in np.triu_indices(UNITS))
    unknown = np.unique(pair_codes(*np.array([first, second])[:, units.overlapping(first, second)], n))
    grid = ScreenGrid(n, tokens, kind, tokens, kind, unknown)
    table = data.table.take(np.arange(0, len(data), 2))
    return Dataset("screen", data.organism, table, PHENOTYPES, ("epsilon",), grid=grid)


@pytest.mark.parametrize(("name", "expected"), [("unseen", {2}), ("one-unseen", {1}), ("any-unseen", {1, 2})])
def test_a_unit_of_a_grid_is_unseen_only_with_all_that_share_its_genes(name: str, expected: set[int]) -> None:
    data = screen(sharing=True)
    assert data.grid is not None
    crosses = np.stack([data.grid.strains[0][side] for side in np.nonzero(np.triu(data.grid.crosses()))], 1)
    table = MutantTable.from_matrix(crosses)
    for seed in range(5):
        sides = cross_sides(data, name, seed, plan(name))
        side = sides.of_table(table)
        trained = set(crosses[side == TRAIN].reshape(-1).tolist())
        assert (side == TEST).any()
        for pair in crosses[side == TEST].tolist():
            unseen = [token for token in pair if not any(shares(data, token, other) for other in trained)]
            assert len(unseen) in expected
        make_split(data, name, seed)  # checks its rows itself


def test_folds_of_a_grid_deal_units_that_share_a_gene_together() -> None:
    data = screen(sharing=True)
    held = [split.held_out_genes["test"] for split in make_folds(data, "any-unseen", 3)]
    names = data.organism.genes.names
    assert sorted(name for some in held for name in some) == sorted(names[i] for i in data.measured_genes())
    fold_of = {data.organism.genes.find(name): fold for fold, some in enumerate(held) for name in some}
    assert all(fold_of[a] == fold_of[b] for a, b in combinations(fold_of, 2) if shares(data, a, b))


def test_units_of_a_grid_that_share_nothing_are_drawn_like_genes() -> None:
    data = screen(sharing=False)
    genes = replace(data, organism=replace(data.organism, units=None))
    for drawn in (plan("unseen"), plan("unseen", genes=4), plan("unseen", fold=1, folds=4)):
        held = [cross_sides(one, "unseen", 0, drawn).held for one in (data, genes)]
        np.testing.assert_array_equal(*held)
