"""Monitors of over-smoothing against their definitions, pair by pair and edge by edge."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from wildtype.errors import ShapeError
from wildtype.nn import oversmoothing as module
from wildtype.nn.oversmoothing import (
    dirichlet_energy,
    effective_rank,
    mean_cosine,
    numerical_rank,
    oversmoothing,
    pair_energy,
    watched,
)
from wildtype.nn.sparse import SparseOperator

F64 = torch.float64


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 999))
def test_cosine_is_the_mean_over_all_pairs(n, d, seed):
    torch.manual_seed(seed)
    x = torch.randn(n, d, dtype=F64)
    x[seed % n] = 0.0
    pairs = [float(cosine_similarity(x[i], x[j], dim=0)) for i in range(n) for j in range(n) if i != j]
    assert mean_cosine(x) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@given(st.integers(1, 6), st.integers(0, 20), st.integers(0, 999))
def test_energy_is_the_mean_over_edges(n, edges, seed):
    torch.manual_seed(seed)
    x = torch.randn(n, 3, dtype=F64)
    pairs = torch.randint(0, n * n, (edges,)).unique()
    weights = torch.rand(len(pairs), dtype=F64)
    op = SparseOperator.from_edges(pairs // n, pairs % n, n, weights)
    terms = [
        0.5 * float(w) * float((x[p // n] - x[p % n]).pow(2).sum())
        for p, w in zip(pairs.tolist(), weights, strict=True)
    ]
    assert dirichlet_energy(x, op) == pytest.approx(sum(terms) / max(len(terms), 1), abs=1e-12)


def test_energy_in_chunks(monkeypatch):
    op = SparseOperator.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2], 4)
    x = torch.randn(4, 2)
    whole = dirichlet_energy(x, op)
    monkeypatch.setattr(module, "_CHUNK", 2)
    assert dirichlet_energy(x, op) == pytest.approx(whole)


def test_energy_of_some_edges_is_close_to_that_of_all():
    torch.manual_seed(0)
    x = torch.randn(200, 8)
    op = SparseOperator.from_edges(torch.randint(0, 200, (4000,)), torch.randint(0, 200, (4000,)), 200)
    whole = dirichlet_energy(x, op)
    assert dirichlet_energy(x, op, 500) == pytest.approx(whole, rel=0.1)
    assert dirichlet_energy(x, op, 500) != whole
    assert dirichlet_energy(x, op, op.nnz) == whole


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 999))
def test_energy_of_pairs_is_the_mean_over_all_pairs(n, d, seed):
    torch.manual_seed(seed)
    x = torch.randn(n, d, dtype=F64) + 10
    terms = [0.5 * float((x[i] - x[j]).pow(2).sum()) for i in range(n) for j in range(n) if i != j]
    assert pair_energy(x) == pytest.approx(sum(terms) / len(terms), abs=1e-12)
    complete = SparseOperator.from_edges(*(1 - torch.eye(n)).nonzero().t(), n)
    assert pair_energy(x) == pytest.approx(dirichlet_energy(x, complete), abs=1e-12)
    assert math.isnan(pair_energy(x[:1]))


def test_what_an_epoch_logs():
    torch.manual_seed(0)
    x, op = torch.randn(4, 2), SparseOperator.from_edges([0, 1], [1, 2], 4)
    empty = SparseOperator.from_edges([], [], 4)
    found = watched({"table": x, "layer 1": torch.ones(4, 2)}, {"a": op, "b": empty})
    assert found == pytest.approx(
        {
            "cosine/table": mean_cosine(x),
            "energy/table": dirichlet_energy(x, op),
            "cosine/layer_1": 1.0,
            "energy/layer_1": 0.0,
        }
    )
    assert watched({"x": x}, {"b": empty})["energy/x"] == pair_energy(x)
    assert watched({}, {"a": op}) == {}


def test_ranks():
    torch.manual_seed(0)
    assert effective_rank(torch.ones(50, 4) * 0.1) == 0
    assert numerical_rank(torch.ones(50, 4) * 0.1) == 0
    line = torch.randn(50, 1) @ torch.randn(1, 4) + 3.0
    assert numerical_rank(line) == 1
    assert effective_rank(line) == pytest.approx(1, abs=1e-3)
    plus_minus = torch.cat([torch.eye(4), -torch.eye(4)])
    assert effective_rank(plus_minus) == pytest.approx(4)
    assert numerical_rank(plus_minus) == 4
    values = torch.linalg.svdvals(plus_minus[:5].double() - plus_minus[:5].double().mean(0))
    shares = (values / values.sum())[values > 1e-9]
    expected = math.exp(-sum(float(s) * math.log(float(s)) for s in shares))
    assert effective_rank(plus_minus[:5]) == pytest.approx(expected)


def test_equal_states_are_smooth():
    x = torch.ones(5, 3)
    assert mean_cosine(x) == pytest.approx(1)
    assert dirichlet_energy(x, SparseOperator.from_edges([0, 1], [1, 2], 5)) == 0


def test_nothing_and_almost_nothing():
    assert math.isnan(mean_cosine(torch.ones(1, 3)))
    assert effective_rank(torch.ones(0, 3)) == 0
    assert numerical_rank(torch.ones(0, 3)) == 0
    assert dirichlet_energy(torch.ones(2, 3), SparseOperator.from_edges([], [], 2)) == 0


def test_a_table_per_layer():
    op = SparseOperator.from_edges([0, 1], [1, 0], 3)
    table = oversmoothing({"input": torch.eye(3), "output": torch.ones(3, 3)}, {"physical": op})
    assert [row["layer"] for row in table] == ["input", "output"]
    assert [row["energy/physical"] for row in table] == [1.0, 0.0]
    assert [row["numerical_rank"] for row in table] == [2, 0]
    assert [row["mean_cosine"] for row in table] == pytest.approx([0.0, 1.0])


def test_wrong_shapes_are_named():
    with pytest.raises(ShapeError, match=r"x: received \[2, 3\], expected \[3, d\]"):
        dirichlet_energy(torch.ones(2, 3), SparseOperator.from_edges([], [], 3))
