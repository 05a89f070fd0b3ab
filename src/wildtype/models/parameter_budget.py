"""How many parameters may be made inside a block: those of a file of weights, or those that memory holds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from wildtype.errors import ConfigError

FACTORIES = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})
MOST_TENSORS = 20_000
"""Of a model that is trained: more than a thousand encoder layers."""
BYTES_IN_TRAINING = 16
"""Of one parameter in float32: itself, its gradient and Adam's two means."""


class _TooLarge(ValueError):
    pass


class _Sizes(TorchFunctionMode):
    """Refuses tensors of more entries before they are made: a parameter is filled before it is registered."""

    def __init__(self, entries: int, limit: str) -> None:
        super().__init__()
        self.entries, self.limit = entries, limit

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
                raise _TooLarge(
                    f"the settings describe a tensor of the shape {list(size)}, larger than {self.limit}"
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
    limit = f"the {tensors:,} tensors with {entries:,} numbers of model.safetensors"
    # Twice, since a module may be made and then replaced by another.
    with _limited(2 * tensors + 100, 2 * entries + 1_000_000, limit):
        yield


@contextmanager
def within_memory() -> Iterator[None]:
    """Refuse parameters that this machine's memory can't hold in training, and more than 20,000 tensors.

    Raises
    ------
    ConfigError
        When the first parameter beyond is made.
    """
    entries = psutil.virtual_memory().total // BYTES_IN_TRAINING
    limit = f"{MOST_TENSORS:,} tensors with {entries:,} numbers, the most that memory holds in training"
    try:
        with _limited(MOST_TENSORS, entries, limit):
            yield
    except _TooLarge as error:
        raise ConfigError(f"{error}: make the widths or the number of layers smaller (model.…)") from None


@contextmanager
def _limited(tensors: int, entries: int, limit: str) -> Iterator[None]:
    left, me = [tensors, entries], threading.get_ident()

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
            raise _TooLarge(f"the settings describe a larger model than {limit}")

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Sizes(left[1], limit):
            yield
    finally:
        hook.remove()
