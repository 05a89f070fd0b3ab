"""Messages of many mutants over one shared graph: deletions and subgraphs are node masks.

Legend: N nodes · B mutants · d width · e edges · keep [N, B], True = present.

Deleting nodes removes rows and columns of the adjacency: A_b = D_b A D_b with D_b = diag(keep_b). So for any
message that is linear in the source state, the messages of mutant b are keep_b ∘ (A (keep_b ∘ X_b)), and all
mutants share one A: X is stacked as [N, B·d] and multiplied once. No edge list and no edge mask per mutant.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wildtype.errors import ShapeError
from wildtype.nn.shapes import expect_shape
from wildtype.nn.sparse import SparseOperator


def shared_propagate(op: SparseOperator, x: Tensor, keep: Tensor) -> Tensor:
    """Compute keep ∘ (A (keep ∘ x)), the messages in every mutant's induced subgraph, differentiable in x.

    Parameters
    ----------
    op
        A [N, N]; row i receives from the columns of row i.
    x
        [N, B, d]; what deleted nodes hold does not matter, not even nan.
    keep
        bool [N, B], True = present.

    Returns
    -------
    [N, B, d], zero at deleted nodes.

    Raises
    ------
    ShapeError
        Shapes do not agree, or keep is not bool.
    """
    expect_shape("x", x, "N", "B", "d")
    _check_mask(op, keep, x.shape[1])
    gone = ~keep.unsqueeze(-1)
    return (op @ x.masked_fill(gone, 0.0)).masked_fill(gone, 0.0)


def kept_degrees(op: SparseOperator, keep: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Compute keep ∘ (A keep) [N, B], the (weighted) degrees in induced subgraphs; ShapeError as above."""
    _check_mask(op, keep, "B")
    return (op @ keep.to(dtype)).masked_fill(~keep, 0.0)


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
