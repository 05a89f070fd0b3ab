"""`Forest`: a sum of regression trees as arrays, evaluated by compiled loops.

Legend: b rows · f features · t trees · v nodes of all trees · o forests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from wildtype.errors import ShapeError

if TYPE_CHECKING:
    from wildtype.nn.quantised_trees import QuantisedTrees

Tree = tuple[Tensor, Tensor, Tensor, Tensor]
"""Feature (−1: a leaf), children [·, 2] (within the tree), threshold or the leaf's value, and whether what is
not a number goes left, of every node; the first node is the root."""


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
        self._alone = ForestSums([self])

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
        return self._alone(x)[:, 0]

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)


class ForestSums:
    """Evaluates several forests over the same columns together: each column is searched once for all of them.

    Parameters
    ----------
    forests : sequence of Forest
        The o forests. Where one changes, what was made of them is made anew.
    """

    def __init__(self, forests: Sequence[Forest]) -> None:
        self.forests = tuple(forests)
        self._made: QuantisedTrees | None = None
        self._of: list[tuple[Tensor, int]] = []

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Return the sum of every forest [b, o] for features [b, f], on the CPU; errors as ``Forest``'s."""
        trees = self._trees()
        wanted = int(trees.column.max(initial=-1)) + 1
        if x.ndim != 2 or x.shape[1] < wanted:
            raise ShapeError(f"x: received {list(x.shape)}, expected [b, f] with at least {wanted} columns")
        return torch.from_numpy(trees(x.cpu().numpy()))

    def _trees(self) -> QuantisedTrees:
        buffers = [[f.feature, f.child, f.split, f.missing_left, f.root, f.start] for f in self.forests]
        # Buffers are replaced where sizes change and written to where a checkpoint is loaded.
        now = [(buffer, buffer._version) for each in buffers for buffer in each]
        same = len(now) == len(self._of) and all(
            a is b and i == j for (a, i), (b, j) in zip(now, self._of, strict=True)
        )
        if self._made is None or not same:
            # numba is slow to import: not before trees are evaluated.
            from wildtype.nn.quantised_trees import QuantisedTrees

            arrays = [tuple(buffer.cpu().numpy() for buffer in each[:-1]) for each in buffers]
            starts = [float(each[-1]) for each in buffers]
            self._made, self._of = QuantisedTrees(list(zip(arrays, starts, strict=True))), now
        return self._made


def load_sizes(module: nn.Module, state: Mapping[str, Any], prefix: str) -> None:
    """Give the buffers of a module the sizes of those that are about to be loaded into it."""
    for name, buffer in list(module.named_buffers()):
        if (stored := state.get(prefix + name)) is not None:
            setattr(module, name, buffer.new_zeros(stored.shape))
