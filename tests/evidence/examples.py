"""Small tables of measured mutants, and comparisons of tokens, for the tests of evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from tests.tiny import similar_genes
from wildtype.evidence.learned_kernel import ComputedKernel, LearnedKernel
from wildtype.evidence.lookup import EvidenceSizes
from wildtype.evidence.pair_columns import Neighbours
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable
from wildtype.mutants.evidence_tokens import EvidenceTokens

GENES = 14
SIMILARITY = similar_genes(GENES)
MANY = EvidenceSizes(tokens=500, two=60, neighbours=4, replacements=13)


def measured(rng: np.random.Generator, rows: int, conditions: int = 1, phenotypes: int = 1) -> MutantTable:
    sets = [rng.choice(GENES, rng.integers(1, 4), replace=False) for _ in range(rows)]
    return MutantTable.from_sets(
        sets,
        condition=rng.integers(0, conditions, rows),
        phenotype=rng.integers(0, phenotypes, rows),
        value=rng.normal(size=rows),
    )


def sets_of(table: MutantTable) -> list[frozenset[int]]:
    spans = zip(table.offsets[:-1], table.offsets[1:], strict=True)
    return [frozenset(table.gene[a:b].tolist()) for a, b in spans]


def tensors(tokens: EvidenceTokens) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    tokens.map(lambda x: found.append(x) or x)  # type: ignore[func-returns-value]
    return found


def same(one: EvidenceTokens, other: EvidenceTokens) -> bool:
    """Whether they say the same, whatever numbers the measurements have that it was looked up in."""
    nameless = (replace(x, genes=replace(x.genes, part=torch.zeros(0))) for x in (one, other))
    return all(map(torch.equal, *map(tensors, nameless)))


def computed(learned: LearnedKernel, similarity: GeneSimilarity) -> ComputedKernel:
    """Return a learned kernel of all genes with all."""
    return ComputedKernel.of(learned, similarity, np.arange(similarity.genes))


def neighbours_of(similarity: GeneSimilarity, matrix: PairMatrix, learned: LearnedKernel) -> Neighbours:
    """Return the neighbours of every gene among those of a matrix."""
    return Neighbours.of(similarity, np.unique(matrix.gene), computed(learned, similarity))
