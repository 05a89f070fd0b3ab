"""Attention of B mutants over N genes whose values differ from the wild type's on a few rows per mutant.

Legend: B mutants · N genes · Σk perturbed genes of all mutants · d query/key width · dv value width ·
H heads.

Definition: β_b = softmax_i(scale · query_b·keys_i) over all genes, z_b = Σ_i β_bi φ_bi, where φ_bi is the
value of gene i in the state it has in mutant b. φ_bi differs from the default values_i only for i ∈ S_b, so
with delta = φ_bi − values_i on those rows

    z_b = Σ_i β_bi values_i + Σ_{i ∈ S_b} β_bi delta_bi

The first sum is ordinary attention of B queries over N shared keys and values; the second needs β on S_b
only, from the logit and the log-normaliser. Memory is O((B + N) d + Σk d): nothing of size [B, N, d] exists.

`own_reads` is the mean of what the genes of a mutant read with a query each, z_b = 1/k Σ_{a ∈ S_b} z_ba. As
keys are shared, what gene a reads of the wild type is the same in all mutants; the rest are terms of two
genes:

    z_b = 1/k Σ_{a ∈ S_b} (Σ_i β_ai values_i + Σ_{i ∈ S_b} β_ai delta_bi)

Where only the first M genes are shared, a mutant b attends to these and to its own perturbed genes among the
others: β_b is then a softmax over {1 … M} ∪ S_b, and the other genes have no part in b.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from wildtype.nn.attention import attention_with_lse
from wildtype.nn.ragged import check_offsets, pad_ragged, segment_ids, segment_mean, segment_sum, take_rows
from wildtype.nn.shapes import expect_index, expect_shape
from wildtype.nn.sparse import promoted


def perturbation_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    gene: Tensor,
    offsets: Tensor,
    delta: Tensor,
    *,
    scale: float = 1.0,
    shared: int | None = None,
    asks: Tensor | None = None,
) -> Tensor:
    """What each mutant reads from the genome, given the state of its perturbed genes.

    Parameters
    ----------
    query
        [B, d], or [H, B, d]; a bilinear form q_Sᵀ W h_i has its W inside the query. With ``asks`` [c, d] or
        [H, c, d], of c different queries.
    keys, values
        [N, d] and [N, dv], or [H, N, d] and [H, N, dv]: shared by all mutants, values in the default state.
    gene
        int64 [Σk], positions of the perturbed genes, mutant after mutant; no gene twice in one mutant.
    offsets
        int64 [B + 1]; mutant b owns rows offsets[b] to offsets[b + 1]; none is allowed.
    delta
        [Σk, dv], or [H, Σk, dv]: value in the mutant's state minus the default value.
    scale
        Factor of the logits; 1 because it, too, can live in the query.
    shared
        Number of first genes M that every mutant attends to; None: all. Later ones are attended to only by
        mutants that perturb them.
    asks
        int64 [B], the query of every mutant, where several ask the same; None: each has its own.

    Returns
    -------
    z, [B, dv] or [H, B, dv].

    Raises
    ------
    ShapeError
        Shapes do not agree, offsets do not fit, or there are no mutants or no genes.
    """
    heads = query.shape[:-2]
    expect_shape("query", query, *heads[:1], "B" if asks is None else "c", "d")
    expect_shape("keys", keys, *heads, "N", query.shape[-1])
    expect_shape("values", values, *heads, keys.shape[-2], "dv")
    expect_index("gene", gene, keys.shape[-2])
    expect_shape("delta", delta, *heads, len(gene), values.shape[-1])
    mutants = query.shape[-2] if asks is None else len(asks)
    if asks is not None:
        expect_index("asks", asks, query.shape[-2])
    expect_shape("offsets", offsets, mutants + 1)
    check_offsets(offsets, len(gene))
    if not heads:
        query, keys, values, delta = (x.unsqueeze(0) for x in (query, keys, values, delta))
        found = perturbation_attention(
            query, keys, values, gene, offsets, delta, scale=scale, shared=shared, asks=asks
        )
        return found.squeeze(0)

    m = keys.shape[-2] if shared is None else shared
    common, lse = attention_with_lse(
        *(x.unsqueeze(0) for x in (query, keys[..., :m, :], values[..., :m, :])), scale=scale
    )
    owner = segment_ids(offsets)  # the mutant of every perturbed gene
    if asks is None:
        query_khd = take_rows(promoted(query).transpose(0, 1), owner)
        common_hbd, lse_bh = promoted(common.squeeze(0)), lse.squeeze(0).T
    else:
        query_khd = take_rows(promoted(query).transpose(0, 1), asks[owner])
        common_hbd = take_rows(promoted(common.squeeze(0)).transpose(0, 1), asks).transpose(0, 1)
        lse_bh = take_rows(lse.squeeze(0).T, asks)
    keys_khd = take_rows(promoted(keys).transpose(0, 1), gene)
    logit_kh = scale * (query_khd * keys_khd).sum(-1)
    delta_khd = promoted(delta).transpose(0, 1)
    alone = gene >= m
    if bool(alone.any()):
        # Of the genes that are not shared, each mutant has its own in its normaliser, and with their value.
        over_kh = (logit_kh - take_rows(lse_bh, owner)).masked_fill(~alone[:, None], -torch.inf)
        # The largest is taken out before exp, as in any log-sum-exp; a shared gene stands for 0 here.
        top_bh = pad_ragged(over_kh.detach().clamp(min=0), offsets)[0].amax(1)
        more_bh = segment_sum((over_kh - take_rows(top_bh, owner)).exp(), offsets)
        more_bh = top_bh + (more_bh + (-top_bh).exp()).log()
        common_hbd = common_hbd * (-more_bh).exp().T.unsqueeze(-1)
        lse_bh = lse_bh + more_bh
        own_khd = take_rows(promoted(values).transpose(0, 1), gene)
        delta_khd = torch.where(alone[:, None, None], delta_khd + own_khd, delta_khd)
    lse_kh = take_rows(lse_bh, owner)
    # β_bi = exp(s_bi − lse_b) on the perturbed genes alone: lse holds the sum over all N genes, so that the
    # other weights are not needed again.
    beta_kh = (logit_kh - lse_kh).exp()
    own_bhd = segment_sum(beta_kh.unsqueeze(-1) * delta_khd, offsets)
    return (common_hbd + own_bhd.transpose(0, 1)).to(values.dtype)


def own_reads(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    gene: Tensor,
    offsets: Tensor,
    delta: Tensor,
    *,
    asks: Tensor,
    shared: int | None = None,
) -> Tensor:
    """The mean over the perturbed genes of a mutant of what each reads from the genome by its own query.

    Parameters
    ----------
    query
        [H, c, d], of c different genes with what is done to them, the scale of logits included.
    keys, values, gene, offsets, delta, shared
        As in `perturbation_attention`, with heads.
    asks
        int64 [Σk], the query of every perturbed gene.

    Returns
    -------
    z, [H, B, dv]; 0 for a mutant without perturbed genes. O((c + N) d + Σk² d) memory.

    Raises
    ------
    ShapeError
        As in `perturbation_attention`.
    """
    expect_shape("asks", asks, len(gene))
    check_offsets(offsets, len(gene))
    if not len(gene):
        return values.new_zeros(len(values), len(offsets) - 1, values.shape[-1])
    owner = segment_ids(offsets)
    # Every perturbed gene asks about all genes of its mutant: the row of each, mutant after mutant.
    ends = F.pad(offsets.diff()[owner].cumsum(0), (1, 0))
    asking = segment_ids(ends)
    told = torch.arange(len(asking), device=gene.device) - (ends[:-1] - offsets[owner])[asking]
    z = perturbation_attention(
        query,
        keys,
        values,
        gene[told],
        ends,
        take_rows(delta.transpose(0, 1), told).transpose(0, 1),
        shared=shared,
        asks=asks,
    )
    return segment_mean(z.transpose(0, 1), offsets).transpose(0, 1)


def perturbation_attention_reference(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    gene: Tensor,
    offsets: Tensor,
    delta: Tensor,
    *,
    scale: float = 1.0,
) -> Tensor:
    """The definition for one head, with every mutant's own values [B, N, dv]."""
    beta = (scale * query @ keys.T).softmax(-1)
    owner = segment_ids(offsets)
    own_values = values.expand(len(query), *values.shape).index_put((owner, gene), delta, accumulate=True)
    return torch.einsum("bn,bnd->bd", beta, own_values)
