"""What a model sees of an organism, as named tensors on disk: features, relations and metabolism.

    features                        float32 [n, f]
    relation/NAME/{rows,cols}       int32 [e]
    metabolism/PART/{rows,cols}     int32 [e], and values float32 [e]
    similarity/FIELD                the arrays of `GeneSimilarity`; its names as JSON in uint8 [bytes]

Priors are left out: only training needs them. Shapes stand beside, in the checkpoint's record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.interface import MetabolismTensors, OrganismTensors
from wildtype.nn.sparse import SparseOperator

SIMILARITY = "similarity/"
NAMES = ("relations", "parts", "trait_names")
ARRAYS = ("unit", "cuts", "indptr", "indices", "data", "scale", "traits")
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
    if organism.similarity is not None:
        tensors |= _similarity_tensors(organism.similarity)
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
        similarity=_similarity(tensors) if f"{SIMILARITY}names" in tensors else None,
    )


def _similarity_tensors(similarity: GeneSimilarity) -> dict[str, Tensor]:
    lists = {name: getattr(similarity, name) for name in NAMES}
    names = json.dumps(lists).encode()
    out = {"names": torch.frombuffer(bytearray(names), dtype=torch.uint8)}
    out |= {name: torch.from_numpy(getattr(similarity, name)) for name in ARRAYS}
    return {f"{SIMILARITY}{name}": tensor for name, tensor in out.items()}


def _similarity(tensors: Mapping[str, Tensor]) -> GeneSimilarity:
    names = json.loads(bytes(tensors[f"{SIMILARITY}names"].tolist()))
    parts: dict[str, Any] = {name: tuple(names[name]) for name in NAMES}
    parts |= {name: tensors[f"{SIMILARITY}{name}"].numpy() for name in ARRAYS}
    return GeneSimilarity(**parts)
