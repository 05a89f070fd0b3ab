from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.tiny import similar_genes, tiny_organism
from wildtype.models.interface import OrganismTensors
from wildtype.nn.sparse import SparseOperator
from wildtype.report.serving.neighbourhood import Neighbourhood, neighbourhood, relations_of


def relation(n: int, edges: Sequence[tuple[int, int, float]]) -> sparse.csr_array:
    both = [(a, b, w) for a, b, w in edges] + [(b, a, w) for a, b, w in edges]
    rows, columns, weights = zip(*both, strict=True)
    return sparse.coo_array((weights, (rows, columns)), shape=(n, n)).tocsr()


def test_the_strongest_neighbours_come_first() -> None:
    one = relation(6, [(0, 1, 0.5), (0, 2, 1.0), (0, 3, 0.2), (4, 5, 1.0)])
    two = relation(6, [(0, 3, 0.9), (2, 3, 1.0)])
    found = neighbourhood({"one": one, "two": two}, [0], shown=2)
    assert found.genes == (0, 3, 2)  # 0.2 + 0.9, then 1.0
    assert (found.perturbed, found.left_out) == (1, 1)
    edges = [(e.left, e.right, e.relation, e.weight) for e in found.edges]
    assert edges == [(0, 2, "one", 1.0), (0, 1, "two", 0.9), (0, 1, "one", 0.2), (1, 2, "two", 1.0)]


def test_genes_of_a_mutant_choose_in_turn() -> None:
    hub = [(0, i, 1.0) for i in range(2, 8)] + [(1, 8, 0.1), (1, 7, 0.1)]
    found = neighbourhood({"hub": relation(9, hub)}, [0, 1], shown=4)
    assert found.genes == (0, 1, 7, 8, 2, 3)  # 7 is shared; 8 is weak, and the best that is left to gene 1
    assert found.left_out == 3


def test_a_mutant_without_neighbours_and_a_checkpoint_without_relations() -> None:
    alone = relation(3, [(1, 2, 1.0)])
    assert neighbourhood({"alone": alone}, [0]) == Neighbourhood((0,), 1, (), 0)
    assert neighbourhood({}, [0, 2]) == Neighbourhood((0, 2), 2, (), 0)
    linked = neighbourhood({"alone": alone}, [1, 2])
    assert linked.genes == (1, 2)
    assert len(linked.edges) == 1


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0.1, 1)), min_size=1, max_size=30),
    st.sets(st.integers(0, 9), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_neighbours_are_neighbours(edges: list[tuple[int, int, float]], genes: set[int], shown: int) -> None:
    matrix = relation(10, [(a, b, w) for a, b, w in edges])
    found = neighbourhood({"any": matrix}, sorted(genes), shown)
    dense = matrix.toarray()
    near = {int(j) for g in genes for j in np.flatnonzero(dense[g])} - genes
    chosen = found.genes[found.perturbed :]
    assert set(chosen) <= near
    assert len(chosen) == len(set(chosen)) == min(shown, len(near))
    assert found.left_out == len(near) - len(chosen)
    for edge in found.edges:
        assert edge.left < edge.right
        assert edge.weight == dense[found.genes[edge.left], found.genes[edge.right]]


def test_relations_are_those_of_evidence_and_those_of_messages() -> None:
    graphs = tiny_organism().graphs
    similarity = similar_genes(24)
    directed = SparseOperator.from_edges(
        torch.tensor([0, 1]), torch.tensor([2, 1]), (24, 24), torch.tensor([0.5, -2.0]), name="own"
    )
    same = SparseOperator.from_edges(torch.tensor([0]), torch.tensor([1]), (24, 24), name="physical")
    found = relations_of(
        OrganismTensors(
            torch.zeros(24, 0), relations={"own": directed, "physical": same}, similarity=similarity
        )
    )
    assert list(found) == ["physical", "regulatory", "own"]
    np.testing.assert_array_equal(found["physical"].toarray(), graphs["physical"].adjacency.toarray())
    regulatory = graphs["regulatory"].adjacency.toarray()
    both = regulatory + regulatory.T
    np.testing.assert_allclose(found["regulatory"].toarray(), both / both.max(), rtol=1e-6)
    assert found["own"].toarray()[[0, 2, 1], [2, 0, 1]].tolist() == [0.25, 0.25, 1.0]
