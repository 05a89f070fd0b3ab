"""`Forest`: a sum of regression trees as arrays, evaluated by compiled loops.

Legend: b rows · f features · t trees · v nodes of all trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isnan
from typing import Any

import torch
from torch import Tensor, nn

from wildtype.errors import ShapeError

Tree = tuple[Tensor, Tensor, Tensor, Tensor]
"""Feature (−1: a leaf), children [·, 2] (within the tree), threshold or the leaf's value, and whether what is
not a number goes left, of every node; the first node is the root."""


@cache
def _compiled() -> Callable[..., None]:
    """Return the loop over trees and rows, compiled by numba and kept on disk."""
    # numba is slow to import: not before trees are evaluated.
    from wildtype.compiled import njit

    @njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
    def add_trees(
        x: Any, feature: Any, child: Any, split: Any, missing_left: Any, root: Any, out: Any
    ) -> None:
        # Tree by tree: its nodes stay in the cache while all rows pass it, and every row adds its trees in
        # the same order, so that the sum does not depend on the batch.
        for t in range(len(root)):
            for i in range(len(x)):
                node = root[t]
                while feature[node] >= 0:
                    value = x[i, feature[node]]
                    left = missing_left[node] if isnan(value) else value <= split[node]
                    node = child[node, 0] if left else child[node, 1]
                out[i] += split[node]

    return add_trees  # type: ignore[no-any-return]


class Forest(nn.Module):
    """Trees in buffers, so that a checkpoint holds them; without gradients.

    An empty one, as made by the constructor, takes the sizes of the buffers that are loaded into it.

    Attributes
    ----------
    feature : int64 [v]
        Column that a node asks about; −1: it is a leaf.
    child : int64 [v, 2]
        Where to go if the value is at most the threshold, and if it is above.
    split : float64 [v]
        Threshold, or the value of a leaf.
    missing_left : bool [v]
        Where NaN goes.
    root : int64 [t]
    start : float64 []
        What the trees' values are added to.
    """

    feature: Tensor
    child: Tensor
    split: Tensor
    missing_left: Tensor
    root: Tensor
    start: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("feature", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("child", torch.zeros(0, 2, dtype=torch.int64))
        self.register_buffer("split", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("missing_left", torch.zeros(0, dtype=torch.bool))
        self.register_buffer("root", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("start", torch.zeros((), dtype=torch.float64))

    @classmethod
    def of(cls, trees: Sequence[Tree], start: float = 0.0) -> Forest:
        """Return the forest of some trees."""
        out = cls()
        out.start = torch.tensor(start, dtype=torch.float64)
        if not trees:
            return out
        feature, child, split, missing = (torch.cat(column) for column in zip(*trees, strict=True))
        sizes = torch.tensor([len(tree[0]) for tree in trees])
        out.root = sizes.cumsum(0) - sizes
        out.feature, out.split, out.missing_left = feature.long(), split.double(), missing.bool()
        out.child = child.long() + out.root.repeat_interleave(sizes)[:, None]
        return out

    def __len__(self) -> int:
        return len(self.root)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of all trees [b] for features [b, f], on the CPU; O(b · t · depth).

        Raises
        ------
        ShapeError
            If a tree asks for a column that x does not have.
        """
        wanted = int(self.feature.max()) + 1 if len(self) else 0
        if x.ndim != 2 or x.shape[1] < wanted:
            raise ShapeError(f"x: received {list(x.shape)}, expected [b, f] with at least {wanted} columns")
        out = torch.full((len(x),), self.start.item(), dtype=torch.float64)
        parts = (x.contiguous(), self.feature, self.child, self.split, self.missing_left, self.root)
        _compiled()(*(part.cpu().numpy() for part in parts), out.numpy())
        return out

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)


def load_sizes(module: nn.Module, state: Mapping[str, Any], prefix: str) -> None:
    """Give the buffers of a module the sizes of those that are about to be loaded into it."""
    for name, buffer in list(module.named_buffers()):
        if (stored := state.get(prefix + name)) is not None:
            setattr(module, name, buffer.new_zeros(stored.shape))
