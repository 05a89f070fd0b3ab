"""Small cells and random mutants for the tests of representations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism import (
    FeatureBlock,
    GeneFeatures,
    GeneGraphs,
    GeneIndex,
    Metabolism,
    Organism,
    Relation,
)

RULES = (
    "", "G00", "G01 and G02", "G01 or G02", "(G03 and G04) or (G05 and FOREIGN)", "G03 and (G04 or G06)",
    "FOREIGN", "G00 and G01 and G02", "G05 or G06 or G07",
)  # fmt: skip


def metabolism() -> Metabolism:
    """Nine reactions of four metabolites; one rule is empty, one gene is in no gene index."""
    draw = np.random.default_rng(1)
    dense = draw.integers(-2, 3, (4, len(RULES))).astype(float)
    return Metabolism.build(
        [f"R{i}" for i in range(len(RULES))],
        [f"m{i}_c" for i in range(4)],
        sparse.csr_array(dense),
        np.zeros(len(RULES)),
        np.full(len(RULES), 10.0),
        np.eye(1, len(RULES)).reshape(-1),
        RULES,
    )


def organism(n: int = 12, seed: int = 0, density: float = 1.0) -> Organism:
    """Two undirected relations, a directed weighted and an empty one; the last gene is isolated."""
    draw = np.random.default_rng(seed)

    def relation(name: str, *, directed: bool, weighted: bool = False, share: float = 1.0) -> Relation:
        count = int(density * share * n)
        ends = draw.integers(0, max(n - 1, 1), (2, count))
        weights = draw.random(count) + 0.1 if weighted else None
        return Relation.from_edges(name, *ends, n, weights, directed=directed, source="drawn")

    graphs = [
        relation("physical", directed=False),
        relation("reaction", directed=False, share=0.5),
        relation("regulatory", directed=True, weighted=True),
        relation("empty", directed=True, share=0.0),
    ]
    features = GeneFeatures(
        [FeatureBlock("shape", draw.normal(size=(n, 3)).astype(np.float32), ("a", "b", "c"))]
    )
    names = [f"G{i:02d}" for i in range(n)]
    return Organism(
        "small", GeneIndex(names, organism="small"), GeneGraphs(graphs), features, metabolism=metabolism()
    )


def cell(n: int = 12, seed: int = 0, *, density: float = 1.0, rule: str = "gpr") -> CellGraph:
    """All relations of ``organism``, the empty one too, and its metabolism."""
    whole = organism(n, seed, density)
    return CellGraph.of(whole, list(whole.graphs), metabolism=True, rule=rule)


def batch_of(mutants: list[dict[int, Kind]]) -> MutantBatch:
    """One mutant per dict of gene position to kind."""
    kinds = [kind for m in mutants for _, kind in sorted(m.items())]
    table = MutantTable.from_sets(
        [sorted(m) for m in mutants], kind=np.array(kinds, np.uint8), value=np.arange(len(mutants))
    )
    return MutantBatch.from_table(table)


def mutants(n: int, largest: int = 4, count: int = 6) -> Any:
    """Strategy: lists of mutants of n genes, from none perturbed to all."""
    kinds = st.sampled_from(list(Kind))
    few = st.dictionaries(st.integers(0, n - 1), kinds, max_size=min(largest, n))
    every = st.lists(kinds, min_size=n, max_size=n).map(lambda k: dict(enumerate(k)))
    return st.lists(few | every, min_size=1, max_size=count)
