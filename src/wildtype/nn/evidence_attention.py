"""Attention of a query over what was measured of others like it, with graph-biased logits and a null key.

Legend: ... any leading dimensions · t tokens · q queries · T tokens of all · f features of a token ·
c content width · h heads · w width of a head's value · p phenotypes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.errors import ShapeError
from wildtype.nn.dropout import Dropout
from wildtype.nn.evidence_kernels import pool_tokens
from wildtype.nn.ragged import check_offsets
from wildtype.nn.threads import loops

QUERIES = 512
"""Queries of one piece of work."""


class EvidenceAttention(nn.Module):
    """Pools tokens by attention whose logits are computed from the tokens' features.

    o_t = W_2 gelu(W_1 f_t + c_t), of which the first h entries are logits and the others values v_t. A
    null key of learned logit absorbs attention when no token is informative, so the sum of the weights
    measures the evidence. The result holds Σ_t a_t v_t, the measured values Σ_t a_t y_t themselves, and
    Σ_t a_t, head by head.

    Parameters
    ----------
    features, phenotypes : int
        f and p.
    heads, width, hidden : int
        h, w and the width of the hidden layer, which is also that of content.
    dropout : float
        In the hidden layer.
    """

    def __init__(
        self, features: int, phenotypes: int, *, heads: int, width: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.into = nn.Linear(features, hidden)
        self.out = nn.Sequential(nn.GELU(), Dropout(dropout), nn.Linear(hidden, heads * (1 + width)))
        self.null = nn.Parameter(torch.zeros(heads))
        self.width_out = heads * (width + phenotypes + 1)

    def forward(self, features: Tensor, value: Tensor, mask: Tensor, content: Tensor | None = None) -> Tensor:
        """Pool tokens [..., t, f] with measured values [..., t, p] to [..., h (w + p + 1)].

        Parameters
        ----------
        features, value : Tensor
            Of every token; values are 0 where nothing is known.
        mask : bool [..., t]
            True = a token; without any, the result is zero.
        content : Tensor, optional
            Added to the hidden layer [..., t, hidden]: what the genes exchanged have to say.

        Raises
        ------
        ShapeError
            If the shapes do not fit each other.
        """
        if features.shape[:-1] != mask.shape or value.shape[:-1] != mask.shape:
            raise ShapeError(
                f"features {list(features.shape)}, value {list(value.shape)} and mask {list(mask.shape)} "
                f"must agree in all but the last dimension"
            )
        inner = self.into(features)
        if content is not None:
            inner = inner + content
        out = self.out(inner)
        weights = self._weights(out, mask)
        values = out[..., self.heads :].unflatten(-1, (self.heads, self.width))
        pooled = torch.einsum("...th,...thw->...hw", weights, values).flatten(-2)
        measured = torch.einsum("...th,...tp->...hp", weights, value.to(weights.dtype)).flatten(-2)
        return torch.cat([pooled, measured, weights.sum(-2)], dim=-1)

    def pool(self, features: Tensor, value: Tensor, offsets: Tensor, content: Tensor | None = None) -> Tensor:
        """Pool the tokens of q queries to [q, h (w + p + 1)]: ``forward`` on a CPU, without gradients.

        Parameters
        ----------
        features, value : Tensor
            Of every token [T, f] and [T, p], those of the first query first; rows behind the last do nothing.
        offsets : int64 [q + 1]
            Where the tokens of each query begin.
        content : Tensor, optional
            [T, hidden].

        Raises
        ------
        ShapeError
            If the shapes do not fit each other.
        """
        check_offsets(offsets, min(int(offsets[-1]), len(features)))
        if len(value) != len(features):
            raise ShapeError(
                f"features {list(features.shape)} and value {list(value.shape)} must have as many tokens"
            )
        with torch.no_grad():
            inner = self.into(features)
            read = self.out(inner if content is None else inner + content)
            # Under autocast products are of half precision, for which compiled loops have no numbers.
            read = read if read.dtype == torch.float64 else read.float()
            pooled = torch.empty(len(offsets) - 1, self.width_out, dtype=read.dtype)
            arrays = [x.numpy() for x in (read, value.to(read).contiguous(), offsets, self.null.to(read))]

        def work(i: int) -> None:
            span = (i * QUERIES, min((i + 1) * QUERIES, len(pooled)))
            pool_tokens(*span, *arrays, self.width, pooled.numpy())

        loops(-(-len(pooled) // QUERIES), work)
        return pooled

    def weights(self, features: Tensor, mask: Tensor, content: Tensor | None = None) -> Tensor:
        """Return the weight of every token [..., t, h], as in ``forward``; the null key has the rest."""
        inner = self.into(features)
        return self._weights(self.out(inner if content is None else inner + content), mask)

    def _weights(self, out: Tensor, mask: Tensor) -> Tensor:
        # Padding has the weight exp(lowest) = 0; without any token, the null key has all of it.
        logits = out[..., : self.heads].masked_fill(~mask.unsqueeze(-1), torch.finfo(out.dtype).min)
        null = self.null.expand(*logits.shape[:-2], 1, self.heads)
        return torch.cat([null.to(logits.dtype), logits], dim=-2).softmax(dim=-2)[..., 1:, :]
