"""Gene embeddings from gene networks: a graph neural network and a reconstruction per network, then one
embedding of all.

Legend: n genes · d width · r networks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wildtype.nn.reconstruction import reconstruction_loss
from wildtype.nn.sparse import SparseOperator


class GraphSage(nn.Module):
    """W_neighbours · (mean of the neighbours' states) + b + W_self · (own state): [n, d] -> [n, d].

    Every neighbour counts alike, whatever the weight of its edge; the mean of no neighbours is 0. Source:
    Hamilton, Ying & Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(width, width)
        self.own = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, op: SparseOperator) -> Tensor:
        """Pass messages along op [n, n]: row i receives from its columns."""
        mean = op.pattern() @ x / op.row_counts.clamp(min=1).unsqueeze(1)
        updated: Tensor = self.neighbours(mean) + self.own(x)
        return updated


class GeneNetwork(nn.Module):
    """One network: two layers of message passing, and a linear layer that tells every gene's neighbours.

    Parameters
    ----------
    genes, width : int
        n and d.
    zeros : float
        Weight of pairs without an edge in the reconstruction.
    """

    def __init__(self, genes: int, width: int, zeros: float) -> None:
        super().__init__()
        self.zeros = zeros
        self.first, self.second = GraphSage(width), GraphSage(width)
        self.reconstruct = nn.Linear(width, genes)

    def forward(self, x: Tensor, op: SparseOperator) -> Tensor:
        """States [n, d] of the genes in this network, from their embeddings x [n, d]."""
        states: Tensor = self.second(self.first(x, op).relu(), op).relu()
        return states

    def loss(self, states: Tensor, op: SparseOperator) -> Tensor:
        """Mean squared error of the reconstructed adjacency over all n² pairs, zeros at their weight."""
        layer = self.reconstruct
        return reconstruction_loss(states, layer.weight, layer.bias, op, zeros=self.zeros)


class MetaEmbedding(nn.Module):
    """Weighted mean of a gene's states in all networks; how much a state counts is read off the state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 1))

    def forward(self, states: Tensor) -> Tensor:
        """States [r, n, d] -> [n, d]."""
        shares = self.score(states).softmax(0)
        return torch.sum(shares * states, 0)
