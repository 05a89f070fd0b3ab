"""Graph layers of many mutants over one shared graph: deleted nodes send nothing, receive nothing, stay zero.

Legend: N nodes · B mutants · d width · e width of the result · keep [N, B], True = present.

Both sides of a layer are masked: the messages, because deleted nodes are not there, and the result, because
a bias would revive them. States [N, B, d] are taken in either layout (see `message_passing`) and returned in
the same one. ``first`` is a layer on states that all mutants share: it computes a row of the wild type once,
and again only for the mutants in which it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import torch
from torch import Tensor, nn

from wildtype.errors import ShapeError
from wildtype.nn.fused_relational_gin import fused_relational_gin, linear_maps
from wildtype.nn.message_passing import MutantRows, first_layer_rows, kept_degrees, shared_propagate
from wildtype.nn.shapes import expect_shape
from wildtype.nn.sparse import SparseOperator


class MaskedGIN(nn.Module):
    """h' = MLP((1 + ε) h + A h) in every mutant's induced subgraph, ε trainable (Xu et al., 2019, eq. 4.1).

    Parameters
    ----------
    mlp : nn.Module
        From [..., d] to [..., e], row by row.
    eps : float
        ε at the start.
    """

    def __init__(self, mlp: nn.Module, eps: float = 0.0) -> None:
        super().__init__()
        self.mlp = mlp
        self.eps = nn.Parameter(torch.tensor(float(eps)))

    def forward(self, op: SparseOperator, x: Tensor, keep: Tensor) -> Tensor:
        """States x [N, B, d] -> [N, B, e]; ShapeError as in `shared_propagate`."""
        messages = shared_propagate(op, x, keep)
        return _update(self.update, x, messages, keep)

    def first(self, op: SparseOperator, x: Tensor, gene: Tensor, offsets: Tensor) -> MutantRows:
        """Shared states x [N, d] and deleted nodes -> [N, B, e]; as in `first_layer_rows`."""
        return first_layer_rows(op, x, gene, offsets).update(self.update, x)

    def update(self, x: Tensor, messages: Tensor) -> Tensor:
        """MLP((1 + ε) x + messages)."""
        result: Tensor = self.mlp(torch.addcmul(messages, x, 1 + self.eps))
        return result


class MaskedRelationalGIN(nn.Module):
    """Σ_r MLP_r((1 + ε_r) h + A_r h) in every mutant's induced subgraph: a `MaskedGIN` per relation, summed.

    Equal to the sum of its parts, but states and result are masked once, not once per relation. Parts of
    linear maps and ReLUs of the same shapes go by `fused_relational_gin`, the others by the plain formula.

    Parameters
    ----------
    parts : sequence of MaskedGIN
        One per relation.
    """

    def __init__(self, parts: Sequence[MaskedGIN]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, ops: Sequence[SparseOperator], x: Tensor, keep: Tensor) -> Tensor:
        """States x [N, B, d] -> [N, B, e], as the transposed view of [B, N, e]; one operator per relation.

        Raises
        ------
        ShapeError
            As in `shared_propagate`, or if there is another number of operators than of parts.
        """
        if len(ops) != len(self.parts) or not ops:
            raise ShapeError(f"ops: received {len(ops)} operators, expected {len(self.parts)}, at least one")
        expect_shape("x", x, ops[0].shape[1], "B", "d")
        expect_shape("keep", keep, *x.shape[:2])
        parts = [part for part in self.parts if isinstance(part, MaskedGIN)]
        maps = self._fused_maps(x)
        if maps:
            out = fused_relational_gin(ops, x.transpose(0, 1), ~keep.T, [part.eps for part in parts], maps)
            return out.transpose(0, 1)
        gone = (~keep).T.unsqueeze(-1)
        # Deleted nodes that hold zero send nothing; what they receive is cleared at the end.
        states = x.transpose(0, 1).masked_fill(gone, 0.0)
        results: list[Tensor] = []
        for part, op in zip(parts, ops, strict=True):
            results.append(part.update(states, (op @ states.transpose(0, 1)).transpose(0, 1)))
        return reduce(torch.add, results).masked_fill(gone, 0.0).transpose(0, 1)

    def _fused_maps(self, x: Tensor) -> list[list[nn.Linear]]:
        """The linear maps of every part, if all have the same shapes and the dtype of x; else none."""
        maps = [linear_maps(part.mlp) for part in self.parts if isinstance(part, MaskedGIN)]
        alike = (
            len({tuple(linear.weight.shape for linear in each) for each in maps}) == 1
            and all(p.dtype == x.dtype for p in self.parameters())
            and x.dtype in (torch.float32, torch.float64)
            and not torch.is_autocast_enabled(x.device.type)
        )
        return maps if alike and all(maps) else []


class MaskedSAGE(nn.Module):
    """h' = W_root h + W_nbr mean(h of kept neighbours) + b; the mean over none is 0 (Hamilton et al., 2017).

    With weights on edges it is the weighted mean; they must be positive.

    Parameters
    ----------
    width, out : int
        d and e.
    """

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.root = nn.Linear(width, out)
        self.neighbours = nn.Linear(width, out, bias=False)

    def forward(self, op: SparseOperator, x: Tensor, keep: Tensor) -> Tensor:
        """States x [N, B, d] -> [N, B, e]; ShapeError as in `shared_propagate`."""
        messages = shared_propagate(op, x, keep)
        degrees = kept_degrees(op, keep, dtype=x.dtype).unsqueeze(-1)
        return _update(self.update, x, _mean(messages, degrees), keep)

    def first(self, op: SparseOperator, x: Tensor, gene: Tensor, offsets: Tensor) -> MutantRows:
        """Shared states x [N, d] and deleted nodes -> [N, B, e]; as in `first_layer_rows`."""
        ones = x.new_ones(len(x), 1)
        sums = first_layer_rows(op, torch.cat([x, ones], 1), gene, offsets)
        # Weights that were added and subtracted need not leave zero; their numbers do.
        counts = first_layer_rows(op.pattern(), ones, gene, offsets)
        both = MutantRows(
            torch.cat([sums.shared, counts.shared], 1),
            sums.changed,
            torch.cat([sums.own, counts.own], 1),
            sums.deleted,
            sums.mutants,
        )

        def update(own: Tensor, rows: Tensor) -> Tensor:
            messages, degrees, count = rows[:, :-2], rows[:, -2:-1], rows[:, -1:]
            none = count == 0
            return self.update(own, _mean(messages.masked_fill(none, 0.0), degrees.masked_fill(none, 0.0)))

        return both.update(update, x)

    def update(self, x: Tensor, mean: Tensor) -> Tensor:
        """W_root x + W_nbr mean + b."""
        result: Tensor = self.root(x) + self.neighbours(mean)
        return result


def _mean(summed: Tensor, degrees: Tensor) -> Tensor:
    return summed / degrees.masked_fill(degrees == 0, 1.0)


def _update(update: Callable[[Tensor, Tensor], Tensor], x: Tensor, messages: Tensor, keep: Tensor) -> Tensor:
    if x.transpose(0, 1).is_contiguous():  # one mutant after the other: nothing below needs a copy
        x, messages, keep = (states.transpose(0, 1) for states in (x, messages, keep))
        return _masked(update, x, messages, keep).transpose(0, 1)
    return _masked(update, x, messages, keep)


def _masked(update: Callable[[Tensor, Tensor], Tensor], x: Tensor, messages: Tensor, keep: Tensor) -> Tensor:
    gone = ~keep.unsqueeze(-1)
    # Deleted states are masked first: a nan there would pass into the gradients of the weights.
    return update(x.masked_fill(gone, 0.0), messages).masked_fill(gone, 0.0)
