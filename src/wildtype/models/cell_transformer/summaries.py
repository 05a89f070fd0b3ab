"""`SetSummary`: one vector per set of perturbed genes, from the states of these genes.

Legend: b sets · k genes of the largest · Σk their sum · d width.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from wildtype.nn.ragged import pad_ragged, segment_ids, segment_mean, segment_sum
from wildtype.nn.set_attention import SetAttention, SetEmbeddings

ATTENTIVE = ("set_attention", "set_attention_concat", "partners")


class SetSummary(nn.Module):
    """One vector [b, d] per set from the states of its genes [Σk, d].

    ``sum`` and ``mean`` are over the genes of a set. ``product`` is the mean over pairs of elementwise
    products, by the factorisation-machine identity (Rendle 2010). Three have self-excluding attention within
    the set (Hyper-SAGNN, Zhang, Zou & Ma 2020), with dynamic embeddings d_i and static ones e_i of genes:

        set_attention           mean_i W (d_i − e_i)²
        set_attention_concat    mean_i W [d_i ‖ e_i]
        partners                mean_i d_i, which is 0 for one gene

    Parameters
    ----------
    how : str
        Name of the summary.
    width : int
        d.
    project : bool
        Pass the states through a linear map first.
    """

    def __init__(self, how: str, width: int, *, project: bool = True) -> None:
        super().__init__()
        self.how = how
        self.project: nn.Module = nn.Linear(width, width) if project else nn.Identity()
        self.attention = SetAttention(width, heads=1, exclude_self=True) if how in ATTENTIVE else None
        self.pool = None
        if how == "set_attention":
            self.pool = nn.Linear(width, width, bias=False)
        elif how == "set_attention_concat":
            self.pool = nn.Linear(2 * width, width, bias=False)

    def unused_parameters(self) -> Iterator[nn.Parameter]:
        """Yield what describes a gene alone, where the summary is of genes among others only."""
        if self.how == "partners" and self.attention is not None:
            yield from self.attention.static.parameters()

    def forward(self, u: Tensor, offsets: Tensor) -> Tensor:
        """Summarise u [Σk, d] to b sets [b, d]."""
        u = self.project(u)
        if self.how == "sum":
            return segment_sum(u, offsets)
        if self.how == "mean":
            return segment_mean(u, offsets)
        count = (offsets[1:] - offsets[:-1]).to(u.dtype)[:, None]
        if self.how == "product":
            total = segment_sum(u, offsets)
            pairs: Tensor = (total**2 - segment_sum(u**2, offsets)) / (count * (count - 1)).clamp(min=1)
            return pairs
        return self.pooled(self._embedded(u, offsets)[0]).sum(1) / count.clamp(min=1)

    def by_gene(self, u: Tensor, offsets: Tensor) -> Tensor:
        """Return the share [Σk, d] of every gene in the summary of its set; each has half of its pairs."""
        u = self.project(u)
        owner = segment_ids(offsets)
        count = (offsets[1:] - offsets[:-1]).to(u.dtype)[owner, None]
        if self.how == "sum":
            return u
        if self.how == "mean":
            return u / count
        if self.how == "product":
            # u_i Σ_{j≠i} u_j: over all genes of a set every pair occurs twice, once at either end.
            partners = segment_sum(u, offsets)[owner] - u
            return u * partners / (count * (count - 1)).clamp(min=1)
        embedded, mask = self._embedded(u, offsets)
        return self.pooled(embedded)[mask] / count

    def pooled(self, embedded: SetEmbeddings) -> Tensor:
        """Return what each gene adds [b, k, d] to the mean over its set; 0 in the gaps."""
        if self.pool is None:
            return embedded.dynamic
        # No map has a bias: gaps, whose embeddings are zero, add nothing.
        if self.how == "set_attention":
            found: Tensor = self.pool((embedded.dynamic - embedded.static) ** 2)
            return found
        found = self.pool(torch.cat([embedded.dynamic, embedded.static], -1))
        return found

    def _embedded(self, u: Tensor, offsets: Tensor) -> tuple[SetEmbeddings, Tensor]:
        assert self.attention is not None
        padded, mask = pad_ragged(u, offsets)
        embedded: SetEmbeddings = self.attention(padded, mask)
        return embedded, mask
