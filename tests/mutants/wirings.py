"""Small wirings for tests of masks: directed, undirected and empty relations, isolated genes, metabolism."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism import GeneIndex, Metabolism, Relation


def small_graph(n: int = 12, seed: int = 0, *, metabolism: bool = True, rule: str = "gpr") -> CellGraph:
    """Return three relations over n genes, of which the last is isolated, and a network of five reactions."""
    draw = np.random.default_rng(seed)
    genes = GeneIndex([f"G{i:02d}" for i in range(n)])
    ends = draw.integers(0, max(n - 1, 1), (4, 3 * n))
    relations = {
        "physical": Relation.from_edges("physical", ends[0], ends[1], n, directed=False),
        "regulatory": Relation.from_edges("regulatory", ends[2], ends[3], n, directed=True),
        "none": Relation.from_edges("none", [], [], n, directed=True),
    }
    return CellGraph(genes, relations, network(genes) if metabolism else None, rule)


def network(genes: GeneIndex) -> Metabolism:
    """Return five reactions and three metabolites; the rules know a gene that the index lacks."""
    a, b, c = (genes.names[i % len(genes)] for i in range(3))
    rules = [a, f"{a} or {b}", f"{b} and {c}", "", f"({a} and absent-gene) or {c}"]
    stoichiometry = np.array([[-1, 1, 0, 0, -2], [1, 0, -1, 0, 0], [0, -1, 1, 1, 0]], float)
    return Metabolism.build(
        [f"R{i}" for i in range(5)],
        ["m0", "m1", "m2"],
        sparse.csr_array(stoichiometry),
        np.zeros(5),
        np.full(5, 1000.0),
        np.eye(1, 5).reshape(-1),
        rules,
    )


def small_table(mutants: int, n: int = 12, seed: int = 0, largest: int = 5) -> MutantTable:
    """Return mutants of 0 to ``largest`` genes, of all kinds; the last loses every gene."""
    draw = np.random.default_rng(seed)
    sets = [draw.choice(n, draw.integers(0, min(largest, n) + 1), replace=False) for _ in range(mutants - 1)]
    sets.append(np.arange(n))
    kind = draw.choice([0, 0, 0, *map(int, Kind)], sum(map(len, sets)))
    kind[-n:] = Kind.ABSENT
    return MutantTable.from_sets(sets, kind=kind)
