"""GraphSAGE: a linear map of the neighbours' mean and one of the node's own state.

Legend: n nodes · d width.
"""

from __future__ import annotations

from torch import Tensor, nn

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
        # `pattern` drops the edge weights, as published; clamp keeps genes without neighbours at 0.
        return self.update(x, op.pattern() @ x / op.row_counts.clamp(min=1).unsqueeze(1))

    def update(self, x: Tensor, mean: Tensor) -> Tensor:
        """Own states and the means of the neighbours' states, [..., d] each -> [..., d]."""
        updated: Tensor = self.neighbours(mean) + self.own(x)
        return updated
