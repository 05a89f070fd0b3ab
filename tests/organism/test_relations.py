from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.organism import GeneGraphs, Relation

EDGES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0.125, 4.0, width=32)), max_size=30
)


@given(EDGES, st.booleans())
@settings(deadline=None)
def test_adjacency_equals_its_definition(edges: list[tuple[int, int, float]], directed: bool) -> None:
    rows, cols, weights = (list(x) for x in zip(*edges, strict=True)) if edges else ([], [], [])
    relation = Relation.from_edges("r", rows, cols, 6, weights, directed=directed)
    dense = np.zeros((6, 6), np.float32)
    for i, j, w in edges:
        if i != j:
            dense[i, j] = max(dense[i, j], w)
            if not directed:
                dense[j, i] = max(dense[j, i], dense[i, j])
                dense[i, j] = dense[j, i]
    np.testing.assert_array_equal(relation.adjacency.toarray(), dense)
    np.testing.assert_array_equal(relation.transpose.toarray(), dense.T)
    assert relation.edges + sum(relation.dropped.values()) == len(edges)
    assert relation.regularised_rows == int((dense > 0).any(1).sum())


def test_unknown_relation_is_an_error() -> None:
    graphs = GeneGraphs([Relation.from_edges("physical", [0], [1], 3, directed=False)])
    with pytest.raises(DatasetError, match="no relation 'phisical'; did you mean physical"):
        graphs["phisical"]


@pytest.mark.parametrize(
    ("rows", "cols", "weights", "message"),
    [
        ([0], [3], None, "outside"),
        ([0], [1], [0.0], "positive"),
        ([0], [1], [float("nan")], "positive"),
        ([0], [], None, "differ"),
    ],
)
def test_bad_edges_are_refused(
    rows: list[int], cols: list[int], weights: list[float] | None, message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        Relation.from_edges("r", rows, cols, 3, weights, directed=True)


def test_restriction_is_the_induced_graph() -> None:
    relation = Relation.from_edges("r", [0, 1, 2], [1, 2, 0], 4, [1.0, 2.0, 3.0], directed=True)
    sub = relation.restrict(np.array([2, 1]))
    np.testing.assert_array_equal(sub.adjacency.toarray(), [[0, 0], [2, 0]])


def test_hash_sees_weights() -> None:
    a = GeneGraphs([Relation.from_edges("r", [0], [1], 2, [1.0], directed=True)])
    b = GeneGraphs([Relation.from_edges("r", [0], [1], 2, [2.0], directed=True)])
    assert a.sha256 != b.sha256
