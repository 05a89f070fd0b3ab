"""A factory of small datasets with random genes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from wildtype.datasets import Dataset, Phenotype
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex
from wildtype.organism.organism import Organism

Factory = Callable[..., Dataset]


def dataset_of_sets(
    sets: Sequence[Sequence[int]], genes: int, *, value: np.ndarray | None = None, **columns: object
) -> Dataset:
    """Make a dataset of the given gene sets over ``genes`` genes; labels are 0.1 × row unless given."""
    numbers = 0.1 * np.arange(len(sets)) if value is None else value
    table = MutantTable.from_sets(sets, value=numbers, **columns)
    conditions = tuple(f"condition {c}" for c in range(int(table.condition.max()) + 1))
    phenotypes = tuple(
        Phenotype(f"phenotype {p}", source=f"study:{p}") for p in range(int(table.phenotype.max()) + 1)
    )
    organism = Organism("toy", GeneIndex([f"G{i:03d}" for i in range(genes)], organism="toy"))
    return Dataset("toy", organism, table, phenotypes, conditions=conditions)


def random_dataset(seed: int, genes: int, rows: int, orders: Sequence[int] = (1, 2, 3)) -> Dataset:
    """Make a dataset of random sets, some of them repeated, of several orders, kinds and conditions."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(genes, size=rng.choice(orders), replace=False) for _ in range(rows)]
    sets += [sets[i] for i in rng.integers(0, rows, rows // 4)]
    total = sum(len(s) for s in sets)
    return dataset_of_sets(
        sets,
        genes,
        value=rng.normal(size=len(sets)),
        kind=rng.choice([int(Kind.ABSENT), int(Kind.REDUCED)], total),
        condition=rng.integers(0, 2, len(sets)),
        phenotype=rng.integers(0, 2, len(sets)),
    )


@pytest.fixture(scope="session")
def make_dataset() -> Factory:
    return dataset_of_sets


@pytest.fixture(scope="session")
def make_random_dataset() -> Factory:
    return random_dataset
