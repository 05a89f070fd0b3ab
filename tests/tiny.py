"""A tiny organism with a planted rule, small enough to train on in seconds; shared by tests of several
rooms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wildtype.datasets import Dataset, Phenotype
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import (
    Coordinates,
    FeatureBlock,
    GeneFeatures,
    GeneGraphs,
    GeneIndex,
    Organism,
    Relation,
)

NAMES = ("SGS1", "SRS2", "CDC28", "CLN2", "PDR5")
"""Standard names of the first genes of `little_yeast`."""


def tiny_organism(n: int = 24, seed: int = 0) -> Organism:
    draw = np.random.default_rng(seed)
    names = [f"G{i:03d}" for i in range(n)]
    ends = [draw.integers(0, n, count) for count in (3 * n, 3 * n, 2 * n, 2 * n)]
    weights = draw.random(2 * n) + 0.1
    graphs = GeneGraphs(
        [
            Relation.from_edges("physical", ends[0], ends[1], n, directed=False),
            Relation.from_edges("regulatory", ends[2], ends[3], n, weights, directed=True),
        ]
    )
    features = GeneFeatures(
        [FeatureBlock("shape", draw.normal(size=(n, 3)).astype(np.float32), ("a", "b", "c"))]
    )
    essential = np.zeros(n, bool)
    essential[-1] = True
    standard = {name: f"abc{i}" for i, name in enumerate(names)}
    start = np.arange(n) * 10.0
    start[5] = np.nan
    chromosome = np.where(np.isnan(start), 0, 1 + np.arange(n) // 12)
    return Organism(
        "tiny",
        GeneIndex(
            names,
            standard,
            organism="tiny",
            descriptions={n: f"makes the protein of {n}" for n in names[:-1]},
        ),
        graphs,
        features,
        essential=essential,
        coordinates=Coordinates(chromosome, start, start + 1, np.ones(n, np.int8), "tiny"),
    )


def little_yeast() -> Organism:
    """Return the tiny organism, some of whose genes have names of yeast's."""
    tiny = tiny_organism()
    names = list(tiny.genes.names)
    return replace(
        tiny, name="yeast", genes=GeneIndex(names, dict(zip(names, NAMES, strict=False)), organism="yeast")
    )


def same_places(one: Organism, other: Organism) -> bool:
    """Whether the genes of two organisms lie at the same places."""
    a, b = ({} if x.coordinates is None else x.coordinates.to_arrays() for x in (one, other))
    return a.keys() == b.keys() and all(
        np.array_equal(a[k], b[k], equal_nan=k in ("start", "end")) for k in a
    )


def tiny_dataset(n: int = 24, seed: int = 0) -> Dataset:
    """All singles (fitness) and all pairs (fitness and epsilon) of a tiny organism."""
    draw = np.random.default_rng(seed)
    organism = tiny_organism(n, seed)
    single = draw.uniform(0.5, 1.0, n)
    pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
    weight = draw.normal(size=n)
    epsilon = 0.1 * weight[pairs].prod(1)
    fitness = single[pairs].prod(1) + epsilon
    kind = np.where(organism.essential[pairs], Kind.REDUCED, Kind.ABSENT)  # type: ignore[index]
    rows = [
        MutantTable.from_matrix(np.arange(n)[:, None], value=single, phenotype=np.zeros(n)),
        MutantTable.from_matrix(pairs, value=fitness, phenotype=np.zeros(len(pairs)), kind=kind.reshape(-1)),
        MutantTable.from_matrix(pairs, value=epsilon, phenotype=np.ones(len(pairs)), kind=kind.reshape(-1)),
    ]
    return Dataset(
        name="tiny-growth",
        organism=organism,
        table=MutantTable.concatenate(rows),
        phenotypes=(
            Phenotype("fitness", source="tiny:fitness"),
            Phenotype("epsilon", unit="fitness", source="tiny:epsilon", min_order=2),
        ),
        targets=("epsilon",),
        single_fitness=single.astype(np.float32),
        single_fitness_sd=np.full(n, 0.01, np.float32),
        single_fitness_source="tiny:single-fitness",
    )


def mixed_dataset(n: int = 24) -> Dataset:
    """All pairs of a tiny organism: fitness, a call, two traits of one vector, and a number per gene."""
    draw = np.random.default_rng(0)
    pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
    weight = draw.normal(size=(n, 4))
    hidden = weight[pairs].sum(1)
    m = len(pairs)
    columns = [hidden[:, 0], (hidden[:, 1] > 1).astype(float), hidden[:, 2], hidden[:, 0] * 5 + 90]
    rows = [
        MutantTable.from_matrix(pairs, value=value, sd=np.full(m, 0.1), phenotype=np.full(m, p))
        for p, value in enumerate(columns)
    ]
    profiles = (hidden @ draw.normal(size=(4, n))).astype(np.float32)
    profiles[draw.random(profiles.shape) < 0.1] = np.nan
    rows.append(
        MutantTable.from_matrix(pairs, phenotype=np.full(m, 4), profile=np.arange(m), profiles=profiles)
    )
    return Dataset(
        name="tiny-mixed",
        organism=tiny_organism(n),
        table=MutantTable.concatenate(rows),
        phenotypes=(
            Phenotype("fitness"), Phenotype("call", form="class"), Phenotype("size", group="shape"),
            Phenotype("round", group="shape"), Phenotype("mRNA", form="gene", unit="log2 ratio"),
        ),
        targets=("fitness", "call", "size", "round", "mRNA"),
    )  # fmt: skip


def similar_genes(n: int, seed: int = 0) -> GeneSimilarity:
    """Return the likeness of the genes of a tiny organism."""
    return GeneSimilarity.of(tiny_organism(n, seed))
