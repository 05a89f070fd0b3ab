"""A pretended GPU, for machines without one: its tensors do not meet those of the CPU, nor become arrays.

Most of what goes wrong on a GPU alone is a tensor that was made on the CPU, or a path that nobody took. Here
tensors of ``cuda`` compute on the CPU, say that they are on ``cuda``, and complain as a GPU's do. Kernels of
CUDA, halves and speed need a GPU all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("cuda", 0)
READ = (Tensor.numpy, Tensor.__array__, Tensor.data_ptr)
PLACED = (Tensor.to, Tensor.cpu)


class OnGpu(Tensor):
    """A tensor of the pretended GPU. Its memory is the CPU's."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class _Pretended(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:
            return GPU if isinstance(args[0], OnGpu) else func(*args)
        if func == Tensor.is_cuda.__get__:
            return isinstance(args[0], OnGpu)
        # Sparse tensors have no subclasses: they are on both devices.
        given = [x for x in tree_flatten((args, kwargs))[0] if _is_dense(x)]
        there = any(isinstance(x, OnGpu) for x in given)
        if there and func in READ:
            raise TypeError("a tensor on the GPU cannot be read as an array: copy it to the CPU first")
        if func in PLACED:
            to, args, kwargs = _where(func, args, kwargs)
            there = there if to is None else to.type == "cuda"
        # A number of the CPU may meet tensors of a GPU.
        elif there and any(x.dim() and not isinstance(x, OnGpu) for x in given):
            raise RuntimeError(f"{func.__name__} of tensors on two devices")
        elif (asked := kwargs.get("device")) is not None and torch.device(asked).type == "cuda":
            there, kwargs = True, kwargs | {"device": "cpu"}
        kind = OnGpu if there else Tensor
        found = func(*args, **kwargs)
        # What changes a tensor in place returns that tensor itself, which stays a leaf of autograd.
        return tree_map(lambda x: x.as_subclass(kind) if _is_of_other(x, kind) else x, found)


def _is_of_other(x: Any, kind: type[Tensor]) -> bool:
    return _is_dense(x) and isinstance(x, OnGpu) != (kind is OnGpu)


def _is_dense(x: Any) -> bool:
    return isinstance(x, Tensor) and x.layout == torch.strided


def _where(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device | None, tuple[Any, ...], dict[str, Any]]:
    """Return where a tensor is to go (None: it stays), and the arguments without that."""
    if func is Tensor.cpu:
        return torch.device("cpu"), args, kwargs
    named = [kwargs.pop("device", None), *args[1:]]
    kept: list[Any] = [args[0]]
    to = None
    for x in named:
        if isinstance(x, str | torch.device):
            to = torch.device(x)
        elif isinstance(x, Tensor):
            to, kwargs["dtype"] = (GPU if isinstance(x, OnGpu) else torch.device("cpu")), x.dtype
        elif x is not None:
            kept.append(x)
    return to, tuple(kept), kwargs


def _module_to(module: nn.Module, device: Any) -> nn.Module:
    for each in module.modules():
        for name, x in each._parameters.items():
            if x is not None:
                each._parameters[name] = x.detach().to(device).requires_grad_(x.requires_grad)  # type: ignore[assignment]
        for name, x in each._buffers.items():
            if x is not None:
                each._buffers[name] = x.to(device)
    return module


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Let torch have a device ``cuda`` in this thread."""
    with (
        mock.patch.object(nn.Module, "to", _module_to),
        mock.patch.object(torch.cuda, "device_count", return_value=1),
        mock.patch.object(torch.cuda, "synchronize"),
        _Pretended(),
    ):
        yield
