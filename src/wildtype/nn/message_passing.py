"""Messages of many mutants over one shared graph: deletions and subgraphs are node masks.

Legend: N nodes · B mutants · d width · e edges · keep [N, B], True = present.

Deleting nodes removes rows and columns of the adjacency: A_b = D_b A D_b with D_b = diag(keep_b). So for any
message that is linear in the source state, the messages of mutant b are keep_b ∘ (A (keep_b ∘ X_b)), and all
mutants share one A, which is multiplied once. No edge list and no edge mask per mutant.

Fastest is the layout with one mutant after the other, [B, N, d], seen as [N, B, d] through a transpose: a
mutant's states then fit the near caches.

In the first layer all mutants share X, and A (keep_b ∘ X) = A X − A[:, S_b] X[S_b] for the deleted nodes S_b:
one product for the batch, and corrections of the few nodes next to S_b. A node further away holds what it
holds in the wild type, so that its row needs computing only once (`MutantRows`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wildtype.errors import ShapeError
from wildtype.nn.ragged import check_offsets, segment_ids, take_rows
from wildtype.nn.shapes import expect_index, expect_shape
from wildtype.nn.sparse import SparseOperator


def shared_propagate(op: SparseOperator, x: Tensor, keep: Tensor) -> Tensor:
    """Compute keep ∘ (A (keep ∘ x)), the messages in every mutant's induced subgraph, differentiable in x.

    Parameters
    ----------
    op
        A [N, N]; row i receives from the columns of row i.
    x
        [N, B, d], laid out so or, faster, as the transposed view of [B, N, d]. What deleted nodes hold does
        not matter, not even nan.
    keep
        bool [N, B], True = present.

    Returns
    -------
    [N, B, d], zero at deleted nodes, laid out as x on a CPU in float32.

    Raises
    ------
    ShapeError
        Shapes do not agree, x is not floating point, or keep is not bool.
    """
    expect_shape("x", x, op.shape[1], "B", "d")
    _check_mask(op, keep, x.shape[1])
    if not x.is_floating_point():
        raise ShapeError(f"x: received dtype {x.dtype}, expected a floating dtype")
    return op.within(keep, x)


@dataclass(frozen=True, slots=True)
class MutantRows:
    """One row per node and mutant [N, B, d], most of them the wild type's.

    Attributes
    ----------
    shared : Tensor [N, d]
        Rows of the wild type.
    changed : Tensor int64 [D]
        b · N + i, rising: nodes that mutant b has and whose rows differ, or may differ, from the wild type's.
    own : Tensor [D, d]
        These rows.
    deleted : Tensor int64 [Σk]
        b · N + i of the nodes that mutant b lacks; their rows are zero.
    mutants : int
        B.
    """

    shared: Tensor
    changed: Tensor
    own: Tensor
    deleted: Tensor
    mutants: int

    @property
    def node(self) -> Tensor:
        """The node of each changed row, int64 [D]."""
        return self.changed % max(len(self.shared), 1)

    def stack(self) -> Tensor:
        """All rows, [N, B, d] as the transposed view of [B, N, d]."""
        nodes, width = self.shared.shape
        out = self.shared.repeat(self.mutants, 1)
        places = torch.cat([self.changed, self.deleted])
        rows = torch.cat([self.own, self.own.new_zeros(len(self.deleted), width)])
        return out.index_copy_(0, places, rows).reshape(self.mutants, nodes, width).transpose(0, 1)


def first_layer_rows(
    op: SparseOperator, x: Tensor, gene: Tensor, offsets: Tensor, *, shared: Tensor | None = None
) -> MutantRows:
    """Messages of states that all mutants share, computed where a mutant differs from the wild type.

    Parameters
    ----------
    op
        A [N, N].
    x
        [N, d], of all mutants; must be finite, since deleted states are subtracted, not left out.
    gene
        int64 [Σk], the nodes that mutants lack, mutant after mutant; none twice in one mutant.
    offsets
        int64 [B + 1]; mutant b lacks gene[offsets[b] : offsets[b + 1]]; none is allowed.
    shared
        A x [N, d], if it is at hand.

    Returns
    -------
    Messages [N, B, d] as `MutantRows`, differentiable in x. Own rows are those of kept nodes with an edge
    from a deleted one.

    Raises
    ------
    ShapeError
        Shapes do not agree, offsets do not fit, or a mutant lacks a node twice.
    """
    expect_shape("x", x, op.shape[0], "d")
    expect_index("gene", gene, op.shape[1])
    check_offsets(offsets, len(gene))
    if op.shape[0] != op.shape[1]:
        raise ShapeError(f"op: received {op!r}, expected a square operator")
    nodes, mutants = len(x), len(offsets) - 1
    deleted = segment_ids(offsets) * nodes + gene
    seen, times = torch.unique(deleted, return_counts=True)
    if len(seen) < len(deleted):
        twice = int(seen[times > 1][0])
        raise ShapeError(
            f"gene: received node {twice % nodes} more than once in mutant {twice // nodes}, expected once"
        )
    which, rows, values = op.t().entries(gene)
    place = (deleted - gene)[which] + rows
    kept = ~torch.isin(place, seen)
    which, place, values = which[kept], place[kept], values[kept]
    changed, at = torch.unique(place, return_inverse=True)
    shared = op @ x if shared is None else shared
    lost = take_rows(x, gene[which]) * values.unsqueeze(-1).to(x.dtype)
    own = take_rows(shared, changed % max(nodes, 1)).index_add(0, at, -lost)
    return MutantRows(shared, changed, own, deleted, mutants)


def first_layer_propagate(op: SparseOperator, x: Tensor, gene: Tensor, offsets: Tensor) -> Tensor:
    """`shared_propagate` of one x [N, d] for all mutants, given by the nodes that they lack.

    Arguments and errors are those of `first_layer_rows`; the cost is one product, one copy of the result per
    mutant, and the degrees of the nodes that are lacking.

    Returns
    -------
    [N, B, d] as the transposed view of [B, N, d], zero at deleted nodes.
    """
    return first_layer_rows(op, x, gene, offsets).stack()


def shared_propagate_reference(op: SparseOperator, x: Tensor, keep: Tensor) -> Tensor:
    """The definition: for each mutant, the dense adjacency of its induced subgraph times its kept states."""
    adjacency = op @ torch.eye(len(x), dtype=x.dtype, device=x.device)
    out = torch.zeros_like(x)
    for mutant in range(x.shape[1]):
        kept = keep[:, mutant].nonzero().flatten()
        out[kept, mutant] = adjacency[kept][:, kept] @ x[kept, mutant]
    return out


def _check_mask(op: SparseOperator, keep: Tensor, mutants: int | str) -> None:
    expect_shape("keep", keep, op.shape[0], mutants)
    if keep.dtype != torch.bool or op.shape[0] != op.shape[1]:
        raise ShapeError(f"keep: received {keep.dtype} for {op!r}, expected torch.bool and a square operator")
