"""A small dataset of gene pairs with effects that pairs share through their genes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wildtype.datasets import Dataset, Phenotype
from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex, Organism

Factory = Callable[..., Dataset]


def pairs_dataset(genes: int = 25, rows: int = 200, order: int = 2, conditions: int = 1) -> Dataset:
    """Make epsilon of random gene sets, first, and then the fitness of every single mutant."""
    rng, sd = np.random.default_rng(0), 0.05
    drawn = np.sort([rng.choice(genes, order, replace=False) for _ in range(4 * rows)], axis=1)
    sets = np.unique(drawn, axis=0)
    sets = rng.permutation(sets)[:rows]
    effect = rng.normal(0.0, 0.1, genes)
    truth = effect[sets].sum(1) + rng.normal(0.0, sd, len(sets))
    tables = [
        MutantTable.from_matrix(
            sets, value=truth, sd=np.full(len(sets), sd), condition=rng.integers(0, conditions, len(sets))
        ),
        MutantTable.from_sets(
            [[g] for g in range(genes)], value=1 + effect, phenotype=np.ones(genes, np.int64)
        ),
    ]
    phenotypes = (
        Phenotype("epsilon", source="toy:epsilon", min_order=2, strong=0.1),
        Phenotype("fitness", source="toy:fitness"),
    )
    organism = Organism("toy", GeneIndex([f"G{i:03d}" for i in range(genes)], organism="toy"))
    names = tuple(f"drug {c}" for c in range(conditions))
    return Dataset(
        "toy-pairs", organism, MutantTable.concatenate(tables), phenotypes, conditions=names, noise="as told"
    )


@pytest.fixture(scope="session")
def make_pairs() -> Factory:
    return pairs_dataset
