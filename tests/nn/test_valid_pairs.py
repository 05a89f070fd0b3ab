"""Normalisers over valid pairs against the dense map, and losses that a mask changes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.test_graph_prior import lse_of
from wildtype.errors import ShapeError
from wildtype.nn import valid_pairs
from wildtype.nn.graph_prior import (
    count_non_edges,
    graph_prior_bce,
    graph_prior_bce_all,
    graph_prior_bce_sampled,
    graph_prior_kl,
    sample_non_edges,
)
from wildtype.nn.sparse import GraphError, SparseOperator
from wildtype.nn.valid_pairs import ValidPairs, add_keys

F64 = torch.float64


@st.composite
def masked(draw):
    """Queries, keys, R dense [T, T] and as `ValidPairs`; token 0 and perhaps others are outside."""
    tokens, width = draw(st.integers(2, 8)), draw(st.integers(1, 5))
    outside = sorted({0, *draw(st.sets(st.integers(0, tokens - 1), max_size=tokens - 2))})
    outside = outside[: tokens - 1]
    torch.manual_seed(draw(st.integers(0, 1000)))
    q, k = (torch.randn(tokens, width, dtype=F64, requires_grad=True) for _ in range(2))
    form = draw(st.sampled_from(["among", "tested", "untested"]))
    chosen = torch.rand(tokens, tokens) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    if form == "among":
        some = chosen[0].nonzero()[:, 0]
        dense = torch.zeros(tokens, tokens, dtype=torch.bool)
        dense[some[:, None], some] = True
        valid = ValidPairs.among(some, tokens)
    else:
        dense = chosen if form == "tested" else ~chosen
        valid = ValidPairs.of_pairs(chosen.nonzero().T, tokens, tested=form == "tested")
    return q, k, dense, valid, torch.tensor(outside)


@settings(max_examples=80, deadline=None)
@given(problem=masked(), scale=st.sampled_from([0.3, 30.0]))
def test_lse_over_valid_keys_is_that_of_the_map(problem, scale):
    q, k, dense, valid, outside = problem
    rows, keys = torch.meshgrid(torch.arange(len(q)), torch.arange(len(q)), indexing="ij")
    torch.testing.assert_close(valid.holds(rows, keys), dense)
    inside = torch.ones(len(q), dtype=torch.bool)
    inside[outside] = False
    ours = valid.lse(q, k, lse_of(q, k, outside, scale), outside, scale=scale)
    there = (dense & inside).any(1) & inside  # rows of outside tokens are no rows of a prior
    assert (ours[inside & ~there] == -torch.inf).all()
    plain = (scale * q @ k.T).masked_fill(~(dense & inside), -torch.inf)[there].logsumexp(1)
    torch.testing.assert_close(ours[there], plain, rtol=1e-9, atol=1e-9)
    if there.any():
        weight = torch.arange(1.0, 1 + int(there.sum()), dtype=F64)
        ours_g, plain_g = (torch.autograd.grad(weight @ x, (q, k)) for x in (ours[there], plain))
        for a, b in zip(ours_g, plain_g, strict=True):
            assert torch.isfinite(a).all()
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


def test_affected_rows_in_tiles_are_the_same(monkeypatch):
    q, k = (torch.randn(9, 3, dtype=F64) for _ in range(2))
    valid = ValidPairs.of_pairs(torch.randint(9, (2, 20)), 9, tested=False)
    outside = torch.tensor([0])
    whole = valid.lse(q, k, lse_of(q, k, outside, 1.0), outside, scale=1.0)
    monkeypatch.setattr(valid_pairs, "TILE", 2)
    torch.testing.assert_close(valid.lse(q, k, lse_of(q, k, outside, 1.0), outside, scale=1.0), whole)


def test_a_key_that_holds_nearly_all_the_mass_can_leave():
    """The difference of two normalisers would be log 0 here."""
    q, k = torch.tensor([[1.0], [1.0], [1.0]]), torch.tensor([[80.0], [0.0], [0.5]])
    valid = ValidPairs.of_pairs(torch.tensor([[1], [0]]), 3, tested=False)
    lse = (q @ k.T).logsumexp(1)
    found = valid.lse(q, k, lse, torch.tensor([], dtype=torch.int64), scale=1.0)
    torch.testing.assert_close(found[1], torch.tensor([0.0, 0.5]).logsumexp(0))


def test_keys_are_added_to_every_row():
    q, k = (torch.randn(6, 3, dtype=F64) for _ in range(2))
    outside = torch.tensor([0, 4])
    torch.testing.assert_close(
        add_keys(q, k, lse_of(q, k, outside, 0.5), outside, scale=0.5), (0.5 * q @ k.T).logsumexp(1)
    )


def problem(seed=0):
    torch.manual_seed(seed)
    q, k = (torch.randn(8, 3, dtype=F64, requires_grad=True) for _ in range(2))
    edges = torch.tensor([[1, 1, 2, 4, 4, 5, 7], [2, 5, 7, 1, 6, 3, 7]])
    op = SparseOperator.from_edges(*edges, 8, torch.rand(7, dtype=F64) + 0.1)
    return q, k, op, torch.tensor([0])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("terms", [False, True])
def test_bce_over_all_valid_pairs_is_its_definition(terms, reduction):
    q, k, op, outside = problem()
    valid = ValidPairs.among(torch.tensor([1, 2, 4, 5, 6]), 8)
    dense = valid.holds(*torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij"))
    lse = lse_of(q, k, outside, 0.7)
    if terms:
        given, of = valid.edges_of(op.row_normalised(0.5)), {"normalised": True}
    else:
        given, of, lse = valid.edges_of(op), {"epsilon": 0.5}, valid.lse(q, k, lse, outside, scale=0.7)
    ours = graph_prior_bce_all(
        q, k, lse, given, scale=0.7, keys=torch.arange(1, 8), valid=valid, reduction=reduction, **of
    )
    a = op @ torch.eye(8, dtype=F64)
    if not terms:
        a = a * dense
    target = (a / (a.sum(1, keepdim=True) + 0.5))[:, 1:]
    rows, known = (target * dense[:, 1:]).sum(1) > 0, dense[:, 1:]
    keys = known if not terms else torch.ones_like(known)
    log_alpha = (0.7 * q @ k[1:].T)[rows].masked_fill(~keys[rows], -torch.inf).log_softmax(1)
    alpha = log_alpha.exp()
    terms_of = target[rows] * log_alpha.clamp(min=-1e9) + (1 - target[rows]) * (1 - alpha).log()
    plain = -terms_of[known[rows]].sum() / (int(rows.sum()) if reduction == "mean" else 1)
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)
    for x, y in zip(torch.autograd.grad(ours, (q, k)), torch.autograd.grad(plain, (q, k)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", ["all", "among", "tested", "untested"])
def test_the_sampled_bce_is_unbiased(form):
    """It is linear in the sample: with every non-edge drawn once, it is its own expectation."""
    q, k, op, outside = problem()
    genes, valid = torch.arange(1, 8), None
    if form == "among":
        valid = ValidPairs.among(torch.tensor([1, 2, 4, 5, 6]), 8)
    elif form != "all":
        listed = torch.tensor([[1, 1, 1, 2, 4, 5, 5], [2, 3, 6, 7, 1, 3, 5]])
        valid = ValidPairs.of_pairs(listed, 8, tested=form == "tested")
    op = op.row_normalised(1e-8) if valid is None else valid.edges_of(op.row_normalised(1e-8))
    rows, keys = (x.flatten() for x in torch.meshgrid(op.rows_with_edges, genes, indexing="ij"))
    edges = {tuple(p) for p in torch.stack(op.edges()).T.tolist()}
    known = torch.ones_like(rows, dtype=torch.bool) if valid is None else valid.holds(rows, keys)
    every = [p for p in torch.stack([rows, keys]).T[known].tolist() if tuple(p) not in edges]
    assert count_non_edges(op, among=genes, valid=valid, own=True) == len(every)
    drawn = sample_non_edges(op, 300, torch.Generator().manual_seed(0), among=genes, valid=valid, own=True)
    assert {tuple(p) for p in drawn.T.tolist()} == set(map(tuple, every))
    of = {"scale": 0.7, "normalised": True}
    for reduction in ("mean", "sum"):
        fresh = [lse_of(q, k, outside, 0.7) for _ in range(2)]  # a graph is gone once it had its gradient
        ours = graph_prior_bce_sampled(
            q, k, fresh[0], op, torch.tensor(every).T, len(every), reduction=reduction, **of
        )
        plain = graph_prior_bce_all(q, k, fresh[1], op, keys=genes, valid=valid, reduction=reduction, **of)
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)
        for x, y in zip(torch.autograd.grad(ours, (q, k)), torch.autograd.grad(plain, (q, k)), strict=True):
            torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-10)


def test_sums_are_means_times_the_number_of_rows_or_pairs():
    q, k, op, outside = problem()
    lse = lse_of(q, k, outside, 1.0)
    for rows in (None, torch.tensor([1, 4, 7])):
        mean, total = (
            graph_prior_kl(q, k, lse, op, scale=1.0, rows=rows, reduction=how) for how in ("mean", "sum")
        )
        torch.testing.assert_close(total, 5 * mean)  # of a sample, the sum is divided by its share of rows
    parts = [graph_prior_kl(q, k, lse, op, scale=1.0, rows=torch.tensor([i])) for i in (1, 2, 4, 5, 7)]
    torch.testing.assert_close(graph_prior_kl(q, k, lse, op, scale=1.0, reduction="sum"), sum(parts))
    negatives = torch.tensor([[1, 2], [3, 4]])
    mean, total = (
        graph_prior_bce(q, k, lse, op, negatives, scale=1.0, reduction=how) for how in ("mean", "sum")
    )
    torch.testing.assert_close(total, 9 * mean)


@pytest.mark.parametrize("form", ["among", "tested", "untested"])
def test_negatives_are_valid_pairs(form):
    _, _, op, _ = problem()
    listed = torch.tensor([[1, 1, 1, 2, 4, 5, 5], [2, 3, 6, 7, 1, 3, 1]])
    valid = ValidPairs.of_pairs(listed, 8, tested=form == "tested")
    if form == "among":
        valid = ValidPairs.among(torch.tensor([1, 2, 5, 6]), 8)
    op = valid.edges_of(op)
    drawn = sample_non_edges(op, 200, torch.Generator().manual_seed(0), among=torch.arange(1, 8), valid=valid)
    assert drawn.shape == (2, 200)
    assert valid.holds(*drawn).all()
    pairs = {tuple(p) for p in drawn.T.tolist()}
    assert not pairs & {tuple(p) for p in torch.stack(op.edges()).T.tolist()}
    rows, keys = (x.flatten() for x in torch.meshgrid(op.rows_with_edges, torch.arange(1, 8), indexing="ij"))
    every = {
        (i, j)
        for i, j, ok in zip(rows.tolist(), keys.tolist(), valid.holds(rows, keys), strict=True)
        if ok and i != j
    }
    assert pairs == every - {tuple(p) for p in torch.stack(op.edges()).T.tolist()}


def test_nothing_to_draw_is_an_error():
    edges = torch.tensor([[1], [2]])
    op, valid = SparseOperator.from_edges(*edges, 3), ValidPairs.of_pairs(edges, 3, tested=True)
    with pytest.raises(GraphError, match="no non-edges"):
        sample_non_edges(op, 1, torch.Generator(), valid=valid)


def test_pairs_outside_of_the_tokens_are_refused():
    with pytest.raises(ShapeError, match="tested"):
        ValidPairs.among(torch.tensor([3]), 3)
    with pytest.raises(ShapeError, match="pairs"):
        ValidPairs.of_pairs(torch.tensor([[0], [5]]), 3, tested=True)
