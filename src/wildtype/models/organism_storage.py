"""What a model sees of an organism, as named tensors on disk: features, relations and metabolism.

    features                        float32 [n, f]
    relation/NAME/{rows,cols}       int32 [e]
    metabolism/PART/{rows,cols}     int32 [e], and values float32 [e]

Priors are left out: only training needs them. Shapes stand beside, in the checkpoint's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from wildtype.models.interface import MetabolismTensors, OrganismTensors
from wildtype.nn.sparse import SparseOperator

PARTS = tuple(part.name for part in fields(MetabolismTensors))


def to_tensors(organism: OrganismTensors) -> tuple[dict[str, Tensor], dict[str, tuple[int, int]]]:
    """Return the tensors to store, and the shape of every operator among them."""
    tensors = {"features": organism.features.contiguous()}
    shapes: dict[str, tuple[int, int]] = {}
    operators = {f"relation/{name}": op for name, op in organism.relations.items()}
    if organism.metabolism is not None:
        operators |= {f"metabolism/{part}": getattr(organism.metabolism, part) for part in PARTS}
    for name, op in operators.items():
        rows, cols = op.edges()
        tensors[f"{name}/rows"], tensors[f"{name}/cols"] = rows.int(), cols.int()
        if name.startswith("metabolism/"):
            tensors[f"{name}/values"] = op.values.float().clone()
        shapes[name] = op.shape
    return tensors, shapes


def from_tensors(tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, int]]) -> OrganismTensors:
    """Rebuild what ``to_tensors`` took apart; raises ``KeyError`` or ``ShapeError`` if parts do not fit."""

    def operator(name: str) -> SparseOperator:
        rows, cols = tensors[f"{name}/rows"].long(), tensors[f"{name}/cols"].long()
        values = tensors.get(f"{name}/values")
        shape = (int(shapes[name][0]), int(shapes[name][1]))
        return SparseOperator.from_edges(rows, cols, shape, values, name=name.partition("/")[2])

    names = list(shapes)
    metabolic = [name for name in names if name.startswith("metabolism/")]
    return OrganismTensors(
        torch.as_tensor(tensors["features"]),
        relations={name.partition("/")[2]: operator(name) for name in names if name.startswith("relation/")},
        metabolism=(
            MetabolismTensors(**{part: operator(f"metabolism/{part}") for part in PARTS})
            if metabolic
            else None
        ),
    )
