"""How far attention rows are from the neighbours of a graph: exact, for all rows, in O(e d).

Legend: T tokens (rows and keys of one head) · d head width · e edges · R regularised rows · M sampled
non-edges.

Row i of a relation says where token i should look: Ã = A with rows divided by their sums, or by these + ε.
The orientation is row = source, column = target; pass `op.t()` for the other one. Rows without edges are not
regularised. α is normalised over the keys of the lse that is given: the inside keys alone, where edges lead
(CLS and appended genes have none); all of them (`valid_pairs.add_keys`); or the valid ones
(`valid_pairs.ValidPairs.lse`).

A mask R of valid pairs has two meanings. Either invalid keys leave the normaliser: then ``op`` is R ∘ A,
divided by the sums of what remains. Or terms are left out, Σ_j R_ij Ã_ij log(Ã_ij / α_ij) with α over all
keys: then ``op`` is R ∘ Ã, which is not divided again (``normalised``), and only edges matter, whatever R is
elsewhere.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from wildtype.errors import ShapeError
from wildtype.nn.shapes import expect_index, expect_shape
from wildtype.nn.sparse import GraphError, SparseOperator, promoted
from wildtype.nn.valid_pairs import TILE, ValidPairs, add_pairs

Reduction = Literal["mean", "sum"]


def graph_prior_kl(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    op: SparseOperator,
    *,
    scale: float,
    rows: Tensor | None = None,
    epsilon: float = 0.0,
    normalised: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean over regularised rows of KL(Ã_i ‖ α_i), in nats.

    Because log α_ij = s_ij − lse_i and Σ_j Ã_ij = ρ_i,

        KL_i = Σ_j Ã_ij log Ã_ij − scale · q_i·(Ã K)_i + ρ_i lse_i

    The first term is a constant of the graph, computed once and kept with `op`; (Ã K) is one sparse product.
    ρ_i is 1 without ε and a mask; with them this is no divergence of distributions, and may be negative.

    Parameters
    ----------
    q, k, lse
        [T, d], [T, d] and [T] of one head; lse over the inside keys, as `attention_with_lse` returns it.
    op
        Relation over the T tokens; its rows are divided by their sums (once, kept with `op`).
    scale
        The factor of the logits with which lse was computed.
    rows
        int64 sample of rows; those without edges do not count. Changes the mean, not the cost of the product.
    epsilon
        ε of Ã_ij = A_ij / (Σ_j A_ij + ε).
    normalised
        ``op`` is Ã already, with rows of any sum.
    reduction
        ``mean`` over the |I| rows with edges, or their ``sum``: |I| times the mean. Of a sample it is that,
        too: the sum over the sample, divided by the share of rows in it.

    Returns
    -------
    Scalar; 0 (attached to the graph) if a sample of `rows` holds no row with edges.

    Raises
    ------
    ShapeError
        Shapes do not agree.
    GraphError
        The relation has no edges, or weights that are not positive.
    """
    _check(q, k, lse, op)
    prior = op if normalised else op.row_normalised(epsilon)
    regularised = prior.rows_with_edges if rows is None else _with_edges(prior, rows)
    with torch.autocast(q.device.type, enabled=False):
        q, k, lse = promoted(q), promoted(k), promoted(lse)
        # Σ_j Ã_ij log α_ij = Σ_j Ã_ij (s_ij − lse_i) = scale · q_i · (Ã K)_i − ρ_i lse_i: the map α [T, T] is
        # never formed, and the gradient in lse goes through `attention_with_lse`.
        constant = prior.row_entropy_constant.to(lse.dtype)
        if normalised or epsilon:
            lse = prior.row_sums.to(lse.dtype) * lse
        divergence = constant - scale * (q * (prior @ k)).sum(-1) + lse
        mean = divergence.index_select(0, regularised).sum() / max(len(regularised), 1)
        return mean if reduction == "mean" else len(prior.rows_with_edges) * mean


def graph_prior_bce(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    op: SparseOperator,
    negatives: Tensor,
    *,
    scale: float,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean binary cross-entropy of α on edges (target 1) and sampled non-edges (target 0), in nats.

    With α_ij = exp(s_ij − lse_i): −[Σ_edges log α_ij + Σ_negatives log(1 − α_ij)] / (e + M). The sum over
    edges is one sparse product with the unweighted relation; only the negatives are gathered: O((e + M) d)
    time, O(T d + M d) memory. log(1 − α) is computed as log1p(−exp x) or log(−expm1 x), x = log α, so that
    neither end cancels; x is held below −ε of its dtype, where the loss is finite.

    Parameters
    ----------
    q, k, lse, op, scale
        As in `graph_prior_kl`; edge weights are ignored.
    negatives
        int64 [2, M]: rows and columns of sampled non-edges (see `sample_non_edges`).
    reduction
        ``mean`` over the e + M pairs, or their ``sum``.

    Raises
    ------
    ShapeError
        Shapes do not agree.
    GraphError
        The relation has no edges.
    """
    _check(q, k, lse, op)
    expect_shape("negatives", negatives, 2, "M")
    source, target = negatives
    with torch.autocast(q.device.type, enabled=False):
        q, k, lse = promoted(q), promoted(k), promoted(lse)
        pattern = op.pattern()
        # Σ_edges q_i · k_j = Σ_i q_i · Σ_{j ~ i} k_j: one sparse product instead of e gathered pairs.
        edge_logits = scale * (q * (pattern @ k)).sum()
        log_alpha_edges = edge_logits - (pattern.row_counts * lse).sum()
        products = F.embedding(source, q) * F.embedding(target, k)
        log_alpha = scale * products.sum(-1) - F.embedding(source, lse.unsqueeze(-1)).squeeze(-1)
        total = -(log_alpha_edges + _log_one_minus_exp(log_alpha).sum())
        return total / (op.nnz + len(source)) if reduction == "mean" else total


def graph_prior_bce_all(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    op: SparseOperator,
    *,
    scale: float,
    keys: Tensor,
    valid: ValidPairs | None = None,
    rows: Tensor | None = None,
    epsilon: float = 0.0,
    normalised: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Binary cross-entropy of α against Ã on all valid pairs, per regularised row, in nats.

        −Σ_j R_ij [Ã_ij log α_ij + (1 − Ã_ij) log(1 − α_ij)],  j over ``keys``

    The definition, for reference and for small organisms: O(rows · keys) time; memory of one tile of rows,
    whose logits are computed again in the backward pass. `graph_prior_bce` samples non-edges instead.

    Parameters
    ----------
    q, k, lse, op, scale, rows, epsilon, normalised, reduction
        As in `graph_prior_kl`; lse over all keys in whose normaliser they are.
    keys
        int64, the tokens that pairs lead to (the genes); no edge leads to another one.
    valid
        R; all pairs when left out.

    Raises
    ------
    ShapeError
        Shapes do not agree.
    GraphError
        The relation has no edges, or weights that are not positive.
    """
    _check(q, k, lse, op)
    expect_index("keys", keys, len(k))
    prior = op if normalised else op.row_normalised(epsilon)
    regularised = prior.rows_with_edges if rows is None else _with_edges(prior, rows)

    def tile(at: Tensor, q: Tensor, k: Tensor, lse: Tensor) -> Tensor:
        which, columns, values = prior.entries(at)
        target = q.new_zeros(len(at), len(k))
        target[which, columns] = values.to(target.dtype)
        target = target[:, keys]
        log_alpha = scale * F.embedding(at, q) @ F.embedding(keys, k).T - F.embedding(at, lse[:, None])
        known = torch.ones_like(target, dtype=torch.bool)
        if valid is not None:
            known = valid.holds(at[:, None].expand(-1, len(keys)), keys.expand(len(at), -1))
        # Invalid keys may have α above 1, where they left the normaliser: they are taken out before the log.
        log_alpha = log_alpha.masked_fill(~known, -math.log(2))
        loss = target * log_alpha + (1 - target) * _log_one_minus_exp(log_alpha)
        return -loss.masked_fill(~known, 0.0).sum()

    with torch.autocast(q.device.type, enabled=False):
        q, k, lse = promoted(q), promoted(k), promoted(lse)
        total = (q * 0).sum()  # attached to the graph where a sample holds no row with edges
        for at in torch.split(regularised, TILE):
            found = checkpoint(tile, at, q, k, lse, use_reentrant=False)
            assert isinstance(found, Tensor)
            total = total + found
        mean = total / max(len(regularised), 1)
        return mean if reduction == "mean" else len(prior.rows_with_edges) * mean


def graph_prior_bce_sampled(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    op: SparseOperator,
    negatives: Tensor,
    non_edges: int,
    *,
    scale: float,
    epsilon: float = 0.0,
    normalised: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """An unbiased estimate of `graph_prior_bce_all` from all edges and a sample of the non-edges.

        −Σ_edges [Ã log α + (1 − Ã) log(1 − α)] − (P / M) Σ_sample log(1 − α)

    O((e + M) d) time and memory.

    Parameters
    ----------
    q, k, lse, op, scale, epsilon, normalised, reduction
        As in `graph_prior_bce_all`.
    negatives, non_edges
        int64 [2, M], drawn uniformly from P non-edges (`sample_non_edges` and `count_non_edges` with ``own``:
        a token with itself is a pair like any other).

    Raises
    ------
    ShapeError
        Shapes do not agree.
    GraphError
        The relation has no edges, or weights that are not positive.
    """
    _check(q, k, lse, op)
    expect_shape("negatives", negatives, 2, "M")
    prior = op if normalised else op.row_normalised(epsilon)
    with torch.autocast(q.device.type, enabled=False):
        q, k, lse = promoted(q), promoted(k), promoted(lse)

        def log_alpha(rows: Tensor, columns: Tensor) -> Tensor:
            logits = scale * (F.embedding(rows, q) * F.embedding(columns, k)).sum(-1)
            return logits - F.embedding(rows, lse[:, None])[:, 0]

        target, of_edges = prior.values.to(lse.dtype), log_alpha(*prior.edges())
        edges = (target * of_edges + (1 - target) * _log_one_minus_exp(of_edges)).sum()
        # Every sampled pair stands for P / M non-edges: its inverse probability of being drawn.
        others = _log_one_minus_exp(log_alpha(*negatives)).sum() * (non_edges / max(negatives.shape[1], 1))
        total = -(edges + others)
        return total / len(prior.rows_with_edges) if reduction == "mean" else total


def sample_non_edges(
    op: SparseOperator,
    count: int,
    generator: torch.Generator,
    *,
    among: Tensor | None = None,
    valid: ValidPairs | None = None,
    own: bool = False,
) -> Tensor:
    """Pairs (i, j) that are no edge, i a row with edges, drawn uniformly with replacement.

    Parameters
    ----------
    op
        Square relation.
    count
        How many.
    generator
        Source of randomness, on the device of `op`.
    among
        int64 candidate columns (the inside keys); all columns when left out.
    valid
        R: pairs that nobody tested are no non-edges; all pairs are valid when left out.
    own
        Whether i may be j.

    Returns
    -------
    int64 [2, count].

    Raises
    ------
    GraphError
        The relation has no edges, or no non-edges to draw from.
    """
    width, rows = op.shape[1], op.rows_with_edges
    taken, candidates, pool = _non_edges(op, among, valid, own)
    if not _number_of(op, taken, candidates, pool):
        raise GraphError(f"{op!r} has no non-edges to sample: every candidate pair is an edge")
    if pool is not None:
        drawn = pool[torch.randint(len(pool), (count,), generator=generator, device=op.device)]
        return torch.stack([drawn // width, drawn % width])
    # Rejection keeps the draw uniform over non-edges; graphs are sparse, so that few draws are rejected.
    drawn = taken.new_empty(0)
    while len(drawn) < count:
        size = (count,)
        i = rows[torch.randint(len(rows), size, generator=generator, device=op.device)]
        j = candidates[torch.randint(len(candidates), size, generator=generator, device=op.device)]
        pairs = i * width + j
        drawn = torch.cat([drawn, pairs[~torch.isin(pairs, taken)]])
    drawn = drawn[:count]
    return torch.stack([drawn // width, drawn % width])


def count_non_edges(
    op: SparseOperator, *, among: Tensor | None = None, valid: ValidPairs | None = None, own: bool = False
) -> int:
    """Return from how many pairs `sample_non_edges` draws."""
    return _number_of(op, *_non_edges(op, among, valid, own))


def _non_edges(
    op: SparseOperator, among: Tensor | None, valid: ValidPairs | None, own: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return pairs of rows with edges that are no non-edges, and candidate columns; or all non-edges.

    Pairs are numbers i · T + j. Where tested pairs are listed, the third holds the non-edges among them.
    """
    _expect_edges(op)
    rows, width = op.rows_with_edges, op.shape[1]
    candidates = torch.arange(width, device=op.device) if among is None else torch.unique(among)
    expect_index("among", candidates, width)
    edge_rows, edge_cols = op.edges()
    taken = edge_rows * width + edge_cols
    if not own:
        taken = torch.cat([taken, rows * width + rows])
    if valid is not None and valid.form == "among":
        candidates = candidates[torch.isin(candidates, valid.listed)]
    elif valid is not None and valid.form == "untested":
        taken = torch.cat([taken, valid.listed[torch.isin(valid.listed // width, rows)]])
    taken = torch.unique(taken)
    if valid is None or valid.form != "tested":
        return taken, candidates, None
    pool = valid.listed[torch.isin(valid.listed // width, rows) & ~torch.isin(valid.listed, taken)]
    return taken, candidates, pool[torch.isin(pool % width, candidates)]


def _number_of(op: SparseOperator, taken: Tensor, candidates: Tensor, pool: Tensor | None) -> int:
    if pool is not None:
        return len(pool)
    blocked = int(torch.isin(taken % op.shape[1], candidates).sum())
    return len(op.rows_with_edges) * len(candidates) - blocked


def lse_over_valid_pairs(
    q: Tensor, k: Tensor, lse: Tensor, pairs: Tensor, outside: Tensor, *, scale: float
) -> Tensor:
    """Extend lse by listed pairs, where only some relations of the outside tokens are known.

    A token appended to the genome is an outside key: it is no part of lse, and rows of old tokens keep the
    prior they had. Relations of it that are known are valid pairs; they join the rows they belong to:

        lse'_i = log(exp lse_i + Σ_{(i, c) listed} exp s_ic)     for an inside row i
        lse'_c = log Σ_{(c, j) listed} exp s_cj                  for an outside row c: its listed pairs only

    Parameters
    ----------
    q, k, lse
        [T, d], [T, d] and [T] of one head; lse over the inside keys.
    pairs
        int64 [2, M]: rows and keys of valid pairs, each with an outside token at one end or both, none twice.
    outside
        int64 tokens left out of lse.
    scale
        The factor of the logits with which lse was computed.

    Returns
    -------
    lse' [T]; −inf in outside rows without a listed pair, which must have no edges in the prior.

    Raises
    ------
    ShapeError
        Shapes do not agree, or a pair has both ends inside.
    """
    expect_shape("pairs", pairs, 2, "M")
    is_outside = torch.zeros(len(lse), dtype=torch.bool, device=lse.device)
    is_outside[outside] = True
    rows, keys = pairs
    if not bool((is_outside[rows] | is_outside[keys]).all()):
        raise ShapeError(
            "pairs: received a pair of two inside tokens, which lse holds already; list only others"
        )
    with torch.autocast(q.device.type, enabled=False):
        q, k = promoted(q), promoted(k)
        return add_pairs(q, k, lse.masked_fill(is_outside, -math.inf), pairs, scale=scale)


def graph_prior_kl_reference(
    q: Tensor, k: Tensor, op: SparseOperator, *, scale: float, inside: Tensor | None = None
) -> Tensor:
    """The definition, explicit and dense: mean over rows with edges of Σ_j Ã_ij log(Ã_ij / α_ij).

    `inside` holds the int64 key positions over which α is normalised; all keys when left out. O(T²) memory.
    """
    keys = torch.arange(len(k), device=k.device) if inside is None else inside
    dense = op @ torch.eye(len(k), dtype=k.dtype, device=k.device)
    rows = op.rows_with_edges
    target = (dense / dense.sum(-1, keepdim=True))[rows][:, keys]
    log_alpha = (scale * q @ k[keys].T).log_softmax(-1)[rows]
    return (torch.xlogy(target, target) - target * log_alpha).sum(-1).mean()


def _check(q: Tensor, k: Tensor, lse: Tensor, op: SparseOperator) -> None:
    expect_shape("q", q, "T", "d")
    expect_shape("k", k, *q.shape)
    expect_shape("lse", lse, len(q))
    if op.shape != (len(q), len(q)):
        raise ShapeError(f"op: received {op!r}, expected {len(q)} x {len(q)} for q {list(q.shape)}")
    _expect_edges(op)


def _expect_edges(op: SparseOperator) -> None:
    if not op.nnz:
        raise GraphError(f"{op!r} cannot be a prior: take it out of the priors or give it edges")


def _with_edges(op: SparseOperator, rows: Tensor) -> Tensor:
    expect_index("rows", rows, op.shape[0])
    return rows[op.row_counts[rows] > 0]


def _log_one_minus_exp(x: Tensor) -> Tensor:
    """log(1 − exp x) for x < 0; both branches are evaluated where they are finite, so gradients are too."""
    # Near 0, 1 − exp x cancels and expm1 does not; far from 0, log1p(−exp x) keeps the small exp x. Each
    # branch sees arguments of its own side: `where` would multiply the other's infinite derivative by 0,
    # which is nan.
    x = x.clamp(max=-torch.finfo(x.dtype).eps)
    near, far = x.clamp(min=-math.log(2)), x.clamp(max=-math.log(2))
    return torch.where(x > -math.log(2), (-near.expm1()).log(), (-far.exp()).log1p())
