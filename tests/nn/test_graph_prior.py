"""Graph priors without a map against their definitions with one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ShapeError
from wildtype.nn.attention import attention_with_lse
from wildtype.nn.graph_prior import (
    graph_prior_bce,
    graph_prior_kl,
    graph_prior_kl_reference,
    lse_over_valid_pairs,
    sample_non_edges,
)
from wildtype.nn.sparse import GraphError, SparseOperator

F64 = torch.float64


@st.composite
def problems(draw):
    """Tokens with a few outside keys, and a weighted or plain directed relation over the inside ones."""
    tokens, width = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    outside = draw(st.sets(st.integers(0, tokens - 1), max_size=tokens - 1))
    inside = sorted(set(range(tokens)) - outside)
    node = st.sampled_from(inside)
    pairs = sorted(draw(st.sets(st.tuples(node, node), min_size=1, max_size=20)))
    weights = draw(st.none() | st.lists(st.floats(0.05, 5), min_size=len(pairs), max_size=len(pairs)))
    rows, cols = torch.tensor(pairs).T
    values = None if weights is None else torch.tensor(weights, dtype=F64)
    torch.manual_seed(draw(st.integers(0, 1000)))
    q, k = (torch.randn(tokens, width, dtype=F64, requires_grad=True) for _ in range(2))
    op = SparseOperator.from_edges(rows, cols, tokens, values)
    return q, k, op, torch.tensor(sorted(outside), dtype=torch.int64), torch.tensor(inside)


def lse_of(q, k, outside, scale):
    return attention_with_lse(q[None, None], k[None, None], k[None, None], scale=scale, outside=outside)[1][
        0, 0
    ]


@settings(max_examples=60, deadline=None)
@given(problem=problems(), scale=st.sampled_from([0.3, 1.0]), transposed=st.booleans())
def test_kl_equals_the_explicit_map(problem, scale, transposed):
    q, k, op, outside, inside = problem
    op = op.t() if transposed else op
    ours = graph_prior_kl(q, k, lse_of(q, k, outside, scale), op, scale=scale)
    plain = graph_prior_kl_reference(q, k, op, scale=scale, inside=inside)
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)
    for x, y in zip(torch.autograd.grad(ours, (q, k)), torch.autograd.grad(plain, (q, k)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(problem=problems(), data=st.data())
def test_row_sample_is_the_mean_over_sampled_rows_with_edges(problem, data):
    q, k, op, outside, inside = problem
    rows = torch.tensor(
        data.draw(st.lists(st.integers(0, len(q) - 1), min_size=1, max_size=6)), dtype=torch.int64
    )
    ours = graph_prior_kl(q, k, lse_of(q, k, outside, 1.0), op, scale=1.0, rows=rows)
    terms = []
    for row in rows.tolist():
        edge_rows, edge_cols = op.edges()
        own = edge_rows == row
        if own.any():
            one = SparseOperator.from_edges(edge_rows[own], edge_cols[own], len(q), op.values[own])
            terms.append(graph_prior_kl_reference(q, k, one, scale=1.0, inside=inside))
    expected = torch.stack(terms).mean() if terms else (q.sum() * 0)
    torch.testing.assert_close(ours, expected)
    torch.autograd.grad(ours, (q, k))


@settings(max_examples=40, deadline=None)
@given(problem=problems(), seed=st.integers(0, 100))
def test_bce_equals_the_explicit_map(problem, seed):
    q, k, op, outside, inside = problem
    rows, cols = op.edges()
    free = torch.zeros(len(q), len(q), dtype=torch.bool)
    free[:, inside] = True
    free[rows, cols] = False
    candidates = free.nonzero()
    picks = torch.randint(len(candidates), (5,)) if len(candidates) else torch.empty(0, dtype=torch.int64)
    negatives = candidates[picks].T.contiguous()
    alpha = torch.zeros(len(q), len(q), dtype=F64).index_copy(1, inside, (0.7 * q @ k[inside].T).softmax(-1))
    on_edges, on_negatives = alpha[rows, cols], alpha[negatives[0], negatives[1]]
    if (on_negatives > 1 - 1e-6).any():
        return  # the definition cancels there, ours does not: tested below
    plain = -torch.cat([on_edges.log(), (1 - on_negatives).log()]).mean()
    ours = graph_prior_bce(q, k, lse_of(q, k, outside, 0.7), op, negatives, scale=0.7)
    torch.testing.assert_close(ours, plain, rtol=1e-8, atol=1e-9)
    for x, y in zip(torch.autograd.grad(ours, (q, k)), torch.autograd.grad(plain, (q, k)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-3, 0.7, 30.0, 800.0])
def test_bce_is_finite_and_exact_for_any_alpha(gap):
    """One edge with logit 0 = lse, one negative with α = exp(−gap): loss is −log(1 − exp(−gap)) / 2."""
    q = torch.ones(2, 1, dtype=F64, requires_grad=True)
    k = torch.tensor([[0.0], [-gap]], dtype=F64, requires_grad=True)
    op = SparseOperator.from_edges([0], [0], 2)
    loss = graph_prior_bce(q, k, torch.zeros(2, dtype=F64), op, torch.tensor([[1], [1]]), scale=1.0)
    held = max(gap, torch.finfo(F64).eps)
    expected = -torch.special.log1p(-torch.tensor(-held, dtype=F64).exp()) if held > 1 else None
    if expected is None:
        expected = -(-torch.tensor(-held, dtype=F64).expm1()).log()
    torch.testing.assert_close(loss, expected / 2)
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, (q, k)))


def test_halves_are_computed_in_float32_inside_autocast():
    torch.manual_seed(0)
    q, k = torch.randn(2, 6, 4)
    op = SparseOperator.from_edges([0, 1, 2], [1, 2, 0], 6)
    lse = lse_of(q, k, None, 0.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = graph_prior_kl(q.bfloat16(), k.bfloat16(), lse, op, scale=0.5)
        exact = graph_prior_kl(q, k, lse, op, scale=0.5)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(exact, graph_prior_kl_reference(q, k, op, scale=0.5))
    torch.testing.assert_close(loss, exact, rtol=2e-2, atol=2e-2)


def test_uniform_attention_on_a_complete_graph_has_no_divergence():
    rows, cols = torch.ones(4, 4).nonzero().T
    zeros = torch.zeros(4, 3, dtype=F64)
    loss = graph_prior_kl(
        zeros,
        zeros,
        torch.full((4,), 4.0, dtype=F64).log(),
        SparseOperator.from_edges(rows, cols, 4),
        scale=1.0,
    )
    assert abs(float(loss)) < 1e-15


@settings(max_examples=30, deadline=None)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_sampled_pairs_are_no_edges(problem, seed):
    _, _, op, _, inside = problem
    rows, cols = op.edges()
    edges = set(zip(rows.tolist(), cols.tolist(), strict=True))
    allowed = {(i, j) for i in rows.tolist() for j in inside.tolist() if i != j} - edges
    if not allowed:
        with pytest.raises(GraphError, match="no non-edges to sample"):
            sample_non_edges(op, 3, torch.Generator().manual_seed(seed), among=inside)
        return
    drawn, again = (
        sample_non_edges(op, 40, torch.Generator().manual_seed(seed), among=inside) for _ in range(2)
    )
    assert torch.equal(drawn, again)
    assert drawn.shape == (2, 40)
    assert set(zip(*drawn.tolist(), strict=True)) <= allowed


def test_relations_that_cannot_be_a_prior_are_named():
    q = torch.ones(3, 2)
    empty = SparseOperator.from_edges([], [], 3, name="tflink")
    with pytest.raises(GraphError, match="'tflink' of 3 x 3 with 0 edges cannot be a prior"):
        graph_prior_kl(q, q, torch.ones(3), empty, scale=1.0)
    with pytest.raises(GraphError, match="'tflink'"):
        sample_non_edges(empty, 1, torch.Generator())
    signed = SparseOperator.from_edges([0], [1], 3, [-1.0], name="regulatory")
    with pytest.raises(GraphError, match=r"'regulatory'.*not positive"):
        graph_prior_kl(q, q, torch.ones(3), signed, scale=1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": torch.ones(3)}, r"q: received \[3\], expected \[T, d\]"),
        ({"k": torch.ones(3, 4)}, r"k: received \[3, 4\], expected \[3, 2\]"),
        ({"lse": torch.ones(4)}, r"lse: received \[4\], expected \[3\]"),
        ({"op": SparseOperator.from_edges([0], [0], 2)}, "op: received .* of 2 x 2 .* expected 3 x 3"),
        ({"rows": torch.tensor([3])}, "rows: received positions 3 to 3, expected 0 to 2"),
    ],
)
def test_wrong_shapes_are_named(change, message):
    good = {"q": torch.ones(3, 2), "k": torch.ones(3, 2), "lse": torch.ones(3)}
    good["op"] = SparseOperator.from_edges([0], [1], 3)
    with pytest.raises(ShapeError, match=message):
        graph_prior_kl(**{**good, **change}, scale=1.0)


def test_appended_token_leaves_old_rows_as_they_were() -> None:
    """Rows of old tokens have exactly the loss they had, given the same q and k, whatever is appended."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    edges = ([0, 0, 1, 3], [1, 2, 0, 4])
    old = graph_prior_kl(
        q[:5], k[:5], (q[:5] @ k[:5].T).logsumexp(-1), SparseOperator.from_edges(*edges, 5), scale=1.0
    )
    lse = (q @ k[:5].T).logsumexp(-1)
    new = graph_prior_kl(q, k, lse, SparseOperator.from_edges(*edges, 6), scale=1.0)
    torch.testing.assert_close(new, old, rtol=1e-12, atol=0)


def test_valid_pairs_equal_their_definition_with_gradients() -> None:
    """One explicit softmax per row over exactly the valid entries, against lse extended by listed pairs."""
    generator = torch.Generator().manual_seed(1)
    tokens, outside, scale = 7, torch.tensor([0, 5, 6]), 0.7
    inside = torch.tensor([1, 2, 3, 4])
    pairs = torch.tensor(
        [[1, 1, 5, 5, 3], [5, 6, 2, 6, 5]]
    )  # token 6 has no row of its own, token 0 (CLS) has none
    rows, cols = [1, 1, 2, 5, 5, 3], [5, 2, 3, 2, 6, 4]
    weights = torch.tensor([2.0, 1.0, 1.0, 3.0, 1.0, 1.0], dtype=torch.float64)
    op = SparseOperator.from_edges(rows, cols, tokens, weights)
    q, k = (
        torch.randn(tokens, 3, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(2)
    )

    valid = torch.zeros(tokens, tokens, dtype=torch.bool)
    valid[inside[:, None], inside[None, :]] = True
    valid[pairs[0], pairs[1]] = True
    logits = (scale * q @ k.T).masked_fill(~valid, -torch.inf)
    regularised = op.rows_with_edges
    target = (op @ torch.eye(tokens, dtype=torch.float64))[regularised]
    target = target / target.sum(-1, keepdim=True)
    log_alpha = logits[regularised].log_softmax(-1).masked_fill(~valid[regularised], 0.0)
    expected = (torch.xlogy(target, target) - target * log_alpha).sum(-1).mean()
    expected.backward()
    gradients = [x.grad.clone() for x in (q, k) if x.grad is not None]
    q.grad = k.grad = None

    lse = (scale * q @ k[inside].T).logsumexp(-1)
    extended = lse_over_valid_pairs(q, k, lse, pairs, outside, scale=scale)
    loss = graph_prior_kl(q, k, extended, op, scale=scale)
    loss.backward()
    torch.testing.assert_close(loss, expected)
    for computed, defined in zip((q.grad, k.grad), gradients, strict=True):
        torch.testing.assert_close(computed, defined)


def test_valid_pairs_hold_where_the_outside_key_has_nearly_all_the_mass() -> None:
    q = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    k = torch.tensor([[500.0], [0.0]], dtype=torch.float64)
    lse = torch.tensor([0.0, 0.0], dtype=torch.float64)
    extended = lse_over_valid_pairs(q, k, lse, torch.tensor([[1], [0]]), torch.tensor([0]), scale=1.0)
    torch.testing.assert_close(extended[1], torch.tensor(500.0, dtype=torch.float64))
    assert extended[0] == -torch.inf


def test_pair_of_two_inside_tokens_is_refused() -> None:
    x = torch.zeros(3, 2)
    with pytest.raises(ShapeError, match="two inside tokens"):
        lse_over_valid_pairs(x, x, torch.zeros(3), torch.tensor([[0], [1]]), torch.tensor([2]), scale=1.0)
