"""`EvidenceProblem`: random relations and measured mutants of any number, for measurements of evidence.

Legend: n genes · k perturbed genes of a mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import gene_words, keys_of
from wildtype.nn.threads import loops
from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
from wildtype.seeds import generator


@dataclass(frozen=True)
class EvidenceProblem:
    """Random relations, measured mutants, and mutants that are looked up; each has a gene set of its own."""

    similarity: GeneSimilarity
    relations: list[Relation]
    measured: MutantTable
    queries: MutantTable

    @classmethod
    def draw(
        cls,
        genes: int,
        measured: int,
        queries: int,
        *,
        relations: int = 9,
        neighbours: int = 13,
        perturbed: int = 2,
        seed: int = 0,
    ) -> EvidenceProblem:
        """Draw relations in which every gene has the same number of neighbours, and sets of ``perturbed``
        genes.
        """
        draw = generator(seed, "bench evidence")
        rows = np.repeat(np.arange(genes), neighbours)
        drawn = []
        for number in range(relations):
            columns = (rows + draw.integers(1, genes, len(rows))) % genes
            drawn.append(Relation.from_edges(f"relation {number + 1}", rows, columns, genes, directed=True))
        names = GeneIndex([f"G{i:05d}" for i in range(genes)], organism="synthetic")
        similarity = GeneSimilarity.of(Organism("synthetic", names, GeneGraphs(drawn)))
        table = _distinct_sets(draw, genes, measured + queries, perturbed)
        row = np.arange(len(table))
        return cls(similarity, drawn, table.take(row[:measured]), table.take(row[measured:]))

    def index(self) -> EvidenceIndex:
        """Return a new index of what was measured."""
        return EvidenceIndex(self.similarity, self.measured, 1, run=loops)

    def lookups(self) -> dict[str, Callable[[], Any]]:
        """Return the timed calls: measured mutants one edit away, and whole tokens with similarities."""
        part, asked = self.index().part(), self.queries
        arrays = (asked.gene, asked.offsets, asked.condition)
        return {"lookup": lambda: part.one_edit(*arrays), "whole tokens": lambda: part.tokens_of(*arrays)}


def _distinct_sets(draw: np.random.Generator, genes: int, count: int, k: int) -> MutantTable:
    """Return so many different sets of k of n genes, in random order and with random values."""
    words, found = gene_words(genes), np.zeros((0, k), np.int64)
    while len(found) < count:
        more = draw.integers(genes, size=(count + count // 4 + 16, k))
        ordered = np.sort(more, axis=1)
        found = np.concatenate([found, more[(np.diff(ordered, axis=1) > 0).all(axis=1)]])
        offsets = np.arange(0, found.size + 1, k)
        _, first = np.unique(keys_of(found.reshape(-1), offsets, words), return_index=True)
        found = found[np.sort(first)]
    return MutantTable.from_matrix(found[:count], value=draw.standard_normal(count))
