"""How much memory the tensors of a batch take, whatever it is made of."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import torch


def tensor_bytes(value: Any) -> int:
    """Return the bytes of all distinct tensors in a batch, however nested.

    A tensor that stands twice counts once; one that is expanded counts its storage, one that is a view of a
    larger storage counts its own part.
    """
    found: dict[tuple[int, int, tuple[int, ...]], int] = {}
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, torch.Tensor):
            storage = item.untyped_storage()
            key = (storage.data_ptr(), int(item.storage_offset()), tuple(item.shape))
            found[key] = min(item.numel() * item.element_size(), storage.nbytes())
        elif hasattr(item, "stores"):  # torch_geometric's data
            rest += [entry for store in item.stores for entry in store.values()]
        elif is_dataclass(item) and not isinstance(item, type):
            rest += [getattr(item, field.name) for field in fields(item)]
        elif isinstance(item, list | tuple):
            rest += item
    return sum(found.values())
