"""Units that share a gene are unseen together, whatever a split is called."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from wildtype.datasets import Dataset
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.folds import make_folds
from wildtype.datasets.splits import make_split
from wildtype.errors import SplitError
from wildtype.mutants import MutantTable
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
