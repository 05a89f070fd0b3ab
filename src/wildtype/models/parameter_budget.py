"""How many parameters may be made inside a block: those that a file of weights holds, and no more."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

FACTORIES = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})


class _Sizes(TorchFunctionMode):
    """Refuses tensors of more entries before they are made: a parameter is filled before it is registered."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self.entries = entries

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in FACTORIES:
            given = (kwargs or {}).get("size", args)
            size = given[0] if given and isinstance(given[0], tuple | list) else given
            if math.prod(n for n in size if isinstance(n, int)) > self.entries:
                raise ValueError(
                    f"the settings describe a tensor of the shape {list(size)}, larger than all weights"
                )
        return func(*args, **(kwargs or {}))


@contextmanager
def within(tensors: int, entries: int) -> Iterator[None]:
    """Refuse parameters far beyond so many tensors and so many entries of all of them together.

    Raises
    ------
    ValueError
        When the first parameter beyond is made.
    """
    # Twice, since a module may be made and then replaced by another.
    left, me = [2 * tensors + 100, 2 * entries + 1_000_000], threading.get_ident()

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if (
            threading.get_ident() != me
            or parameter is None
            or isinstance(parameter, nn.UninitializedParameter)
        ):
            return
        left[0] -= 1
        left[1] -= parameter.numel()
        if min(left) < 0:
            raise ValueError(
                f"the settings describe a larger model than the {tensors:,} tensors with {entries:,} numbers "
                "of model.safetensors"
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Sizes(left[1]):
            yield
    finally:
        hook.remove()
