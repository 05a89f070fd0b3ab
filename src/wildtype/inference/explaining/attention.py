"""What an attention head attends to, in blocks of rows: the [n, n] map is never held at once.

Legend: n genes · t = n + 1 tokens (CLS first) · d width of a head · b rows of a block · r rows · m edges of a
row · e edges.

α_ij is normalised over the genes without CLS, as in graph priors. Where genes are ranked for a row, the gene
of the row is no candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.errors import ConfigError
from wildtype.models.explainable import ExplainableModel
from wildtype.models.interface import CLS, Model, OrganismTensors

ENTRIES = 1 << 22
"""Logits of a block: 32 MiB of float64."""
Ints = NDArray[np.int64]


def logit_blocks(q: Tensor, k: Tensor, rows: Ints, block: int | None = None) -> Iterator[tuple[Ints, Tensor]]:
    """Yield rows and their logits [b, n] for all genes, of the head with queries and keys [t, d]."""
    scale, step = q.shape[-1] ** -0.5, block or max(ENTRIES // max(len(k) - 1, 1), 1)
    queries, keys = q[CLS + 1 :].double(), k[CLS + 1 :].double()
    for start in range(0, len(rows), step):
        own = rows[start : start + step]
        yield own, scale * queries[torch.from_numpy(own)] @ keys.T


@dataclass(frozen=True)
class Recovery:
    """How well the rows of a head recover the neighbours in a relation; means over rows.

    Attributes
    ----------
    average_precision : float
        Of all other genes ranked by attention.
    recall : float
        Recall at degree: in a row with m neighbours, their share among the m most attended other genes.
    mass : float
        Share of the attention on neighbours.
    """

    average_precision: float
    recall: float
    mass: float


def recoveries(
    q: Tensor, k: Tensor, graphs: Sequence[Any], rows: Ints, block: int | None = None
) -> list[Recovery]:
    """Return how well a head recovers the edges of each graph.

    A neighbour has the worst rank among its ties, so ties never help.

    Parameters
    ----------
    q, k
        [t, d] of the head.
    graphs
        csr [n, n] of any number of graphs, weights ignored; each of the rows has edges in all of them.
    rows
        int64 [r], the rows to average over.
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
        # -inf on the diagonal: the gene of a row ranks last and is found by no search.
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
    # `searchsorted` (left) counts logits below the neighbour's; so n minus it is the number at or above: its
    # worst rank among ties. The same count among the row's neighbours is the number of hits down to that
    # rank, and average precision is the mean over neighbours of hits / rank.
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


@torch.no_grad()
def attention_rows(
    model: Model, organism: OrganismTensors, rows: Ints, layer: int, head: int
) -> NDArray[Any]:
    """Return the attention α [r, n], float32, of some genes to all genes, in one head of the encoder.

    Raises
    ------
    ConfigError
        If the model has no attention between genes, or no such layer or head.
    """
    name = model.config.name
    if not isinstance(model, ExplainableModel):
        raise ConfigError(f"a {name} has no attention between genes")
    places = model.attention_heads
    if not places:
        raise ConfigError(
            f"this {name} has no attention between genes: it has no encoder layers (model.layers=0)"
        )
    layers, heads = (max(place) + 1 for place in zip(*places, strict=True))
    for what, value, count in (("layer", layer, layers), ("head", head, heads)):
        if not 0 <= value < count:
            raise ConfigError(f"{what}={value}: the model has {count}, counted from 0")
    q, k = next(islice(model.queries_and_keys(organism), layer, None))
    found = [logits.softmax(-1).float().numpy() for _, logits in logit_blocks(q[head], k[head], rows)]
    return np.concatenate(found) if found else np.zeros((0, len(k[head]) - 1), np.float32)
