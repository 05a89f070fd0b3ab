"""Small planted organisms: modules of genes, two relations, and labels with a known cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from wildtype.mutants import MutantTable
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex, Organism, Relation

GENES, MODULES = 40, 8


@dataclass
class World:
    """An organism and all its pairs: label = additive effects + module × module effects + noise."""

    organism: Organism
    fitness: NDArray[np.float32]
    pairs: MutantTable
    additive: NDArray[np.float64]
    between: NDArray[np.float64]

    def split(self, seed: int = 0) -> tuple[MutantTable, MutantTable, MutantTable]:
        """Random 70/15/15 split of the pairs."""
        order = np.random.default_rng(seed).permutation(len(self.pairs))
        a, b = int(0.7 * len(order)), int(0.85 * len(order))
        return tuple(self.pairs.take(np.sort(part)) for part in (order[:a], order[a:b], order[b:]))  # type: ignore[return-value]

    def label(self, table: MutantTable) -> NDArray[np.float64]:
        """Planted labels of any table, without noise: sums over genes and over pairs."""
        out = np.bincount(table.row, self.additive[table.gene], minlength=len(table))
        module = np.arange(GENES) % MODULES
        for row, genes in enumerate(table.sets()):
            out[row] += sum(self.between[module[a], module[b]] for a in genes for b in genes if a < b)
        return out


def make_world(additive: float, between: float, noise: float = 0.05) -> World:
    rng = np.random.default_rng(7)
    module = np.arange(GENES) % MODULES
    left, right = np.triu_indices(GENES, 1)
    same = module[left] == module[right]
    other = rng.random(len(left)) < 0.05
    relations = [
        Relation.from_edges("complex", left[same], right[same], GENES, directed=False),
        Relation.from_edges(
            "regulation", left[other], right[other], GENES, rng.random(other.sum()) + 0.1, directed=True
        ),
    ]
    values = rng.normal(size=(GENES, 5)).astype(np.float32)
    values[3] = np.nan
    features = GeneFeatures(
        [
            FeatureBlock("profile", values, tuple("abcde")),
            FeatureBlock("length", rng.random((GENES, 1)).astype(np.float32), ("length",)),
        ]
    )
    organism = Organism(
        "toy",
        GeneIndex([f"g{i}" for i in range(GENES)]),
        GeneGraphs(relations),
        features,
        essential=np.arange(GENES) % 9 == 0,
    )
    effects = additive * rng.normal(size=GENES)
    matrix = between * rng.normal(size=(MODULES, MODULES))
    world = World(
        organism,
        (1 + 0.1 * effects).astype(np.float32),
        MutantTable.from_matrix(np.stack([left, right], axis=1)),
        effects,
        (matrix + matrix.T) / 2,
    )
    value = world.label(world.pairs) + noise * rng.normal(size=len(world.pairs))
    world.pairs = MutantTable.from_matrix(np.stack([left, right], axis=1), value=value)
    return world


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(additive=1.0, between=1.0)


@pytest.fixture(scope="session")
def additive_world() -> World:
    return make_world(additive=1.0, between=0.0)


@pytest.fixture(scope="session")
def module_world() -> World:
    return make_world(additive=0.0, between=1.0)
