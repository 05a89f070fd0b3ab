"""What an attention head looks at, in blocks of rows: no map of all pairs is ever made.

Legend: n genes · t = n + 1 tokens (CLS first) · d width of a head · b rows of a block · m edges of a row ·
e edges.

α_ij is normalised over the genes, as graph priors see it: CLS is left out. A row is asked for other genes, so
its own is no candidate where genes are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.models.interface import CLS

ENTRIES = 1 << 22
"""Scores of a block: 32 MiB of float64."""
Ints = NDArray[np.int64]


def rows_per_block(n: int) -> int:
    """Return how many rows of n genes are looked at together."""
    return max(ENTRIES // max(n, 1), 1)


def logit_blocks(q: Tensor, k: Tensor, rows: Ints, block: int | None = None) -> Iterator[tuple[Ints, Tensor]]:
    """Yield rows and their logits [b, n] for all genes, of the head with queries and keys [t, d]."""
    scale, step = q.shape[-1] ** -0.5, block or rows_per_block(len(k) - 1)
    queries, keys = q[CLS + 1 :].double(), k[CLS + 1 :].double()
    for start in range(0, len(rows), step):
        own = rows[start : start + step]
        yield own, scale * queries[torch.from_numpy(own)] @ keys.T


def attention_blocks(
    q: Tensor, k: Tensor, rows: Ints, block: int | None = None
) -> Iterator[tuple[Ints, Tensor]]:
    """Yield rows and their attention α [b, n] over all genes; arguments as in ``logit_blocks``."""
    for own, logits in logit_blocks(q, k, rows, block):
        yield own, logits.softmax(-1)


@dataclass(frozen=True)
class Recovery:
    """How well a head's rows find the neighbours of a relation; means over the rows asked.

    Attributes
    ----------
    average_precision : float
        Of all other genes ranked by attention.
    recall : float
        Recall at degree: of the m most attended other genes of a row with m neighbours, the share that are
        neighbours.
    mass : float
        Share of the attention that lies on neighbours.
    """

    average_precision: float
    recall: float
    mass: float


def recoveries(
    q: Tensor, k: Tensor, graphs: Sequence[Any], rows: Ints, block: int | None = None
) -> list[Recovery]:
    """Return how well a head finds the edges of each graph.

    A neighbour counts at the last place of those it is tied with, so that ties never help.

    Parameters
    ----------
    q, k
        [t, d] of the head.
    graphs
        csr [n, n] of any number of graphs, weights ignored; each row asked has edges in all of them.
    rows
        int64 [r], the rows asked.
    block
        Rows at a time.

    Returns
    -------
    One per graph; the rows are ranked once for all. O(b n) memory, O(r n log n) time.
    """
    total = np.zeros((len(graphs), 3))
    for own, logits in logit_blocks(q, k, rows, block):
        normaliser = logits.logsumexp(-1, keepdim=True)
        place = torch.arange(len(own)), torch.from_numpy(own)
        ranked = logits.index_put(place, logits.new_tensor(-torch.inf)).sort(-1).values
        for i, graph in enumerate(graphs):
            total[i] += _block(logits, normaliser, ranked, *_padded(graph, own))
    return [Recovery(*(float(x) for x in row)) for row in total / max(len(rows), 1)]


def _block(
    logits: Tensor, normaliser: Tensor, ranked: Tensor, neighbour: Tensor, there: Tensor
) -> NDArray[np.float64]:
    """Return the sums over a block's rows of the three numbers of ``Recovery``."""
    score = logits.gather(1, neighbour).masked_fill(~there, -torch.inf)
    degree = there.sum(1, keepdim=True)
    rank = ranked.shape[1] - torch.searchsorted(ranked, score)
    found = score.shape[1] - torch.searchsorted(score.sort(-1).values, score)
    precision = torch.where(there, found.double() / rank, 0.0).sum(1) / degree[:, 0]
    recall = (there & (rank <= degree)).sum(1).double() / degree[:, 0]
    mass = (score - normaliser).exp().sum(1)
    return np.array([float(x.sum()) for x in (precision, recall, mass)])


def _padded(graph: Any, rows: Ints) -> tuple[Tensor, Tensor]:
    """Return the neighbours [b, m] of rows of a csr graph, and where there is one."""
    starts, counts = graph.indptr[rows], np.diff(graph.indptr)[rows]
    place = np.arange(counts.max(initial=1))
    there = place < counts[:, None]
    at = np.where(there, starts[:, None] + place, 0)
    return torch.from_numpy(graph.indices[at].astype(np.int64)), torch.from_numpy(there)


def most_attended(q: Tensor, k: Tensor, count: int, block: int | None = None) -> Ints:
    """Return the ``count`` other genes [n, count] that every gene attends to most, best first."""
    n = len(k) - 1
    out = np.empty((n, count), np.int64)
    for own, logits in logit_blocks(q, k, np.arange(n), block):
        logits[torch.arange(len(own)), torch.from_numpy(own)] = -torch.inf
        out[own] = logits.topk(count, dim=-1).indices.numpy()
    return out
