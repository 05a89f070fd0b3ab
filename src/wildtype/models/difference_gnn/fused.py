"""`RelationGIN` as one step with its own backward pass: the same formula, fewer passes over memory.

Legend: m rows · d width · L linear maps.

Used where it applies: float32 on a CPU, GELU, no dropout and no autocast. `gelu` alone serves everything
else that is made of GELUs. Both are held to torch's operations by the tests.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def gelu(x: Tensor) -> Tensor:
    """X Φ(x), as `torch.nn.functional.gelu`; float32 on a CPU by a compiled loop."""
    if not compiled(x):
        return F.gelu(x)
    out: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
    return out


def compiled(x: Tensor) -> bool:
    """Whether the compiled loops can work on a tensor."""
    return x.dtype == torch.float32 and x.device.type == "cpu"


def gin(
    x: Tensor, message: Tensor, epsilon: Tensor, linears: Sequence[nn.Module], norm: nn.LayerNorm
) -> Tensor:
    """GELU(LN(MLP((1 + ε) x + message))), a GELU after every linear map but the last; all [..., d]."""
    weights = [p for linear in linears for p in (linear.weight, linear.bias)]
    out: Tensor = _Gin.apply(x, message, epsilon, norm.weight, norm.bias, norm.eps, *weights)  # type: ignore[no-untyped-call]
    return out


class Buffers:
    """Memory for one mutant's states that the next mutant writes over: fresh memory costs as much as a pass.

    Inside ``with buffers:`` the k-th array that this thread asks for is the k-th one of the last time.
    Whoever enters must be done with the states of the last time, gradients included.
    """

    def __init__(self) -> None:
        self._arrays: list[Tensor] = []
        self._next = 0

    def __enter__(self) -> None:
        self._next = 0
        _of_thread.buffers = self

    def __exit__(self, *error: object) -> None:
        _of_thread.buffers = None

    def array(self, like: Tensor) -> Tensor:
        """Return memory of a tensor's shape, holding anything."""
        at, self._next = self._next, self._next + 1
        if at < len(self._arrays) and self._arrays[at].shape == like.shape:
            return self._arrays[at]
        array = torch.empty_like(like)
        self._arrays[at : at + 1] = [array]
        return array


# Per thread: mutants run beside each other, and each writes over the memory of its thread alone.
_of_thread = threading.local()


def _empty_like(x: Tensor) -> Tensor:
    buffers: Buffers | None = getattr(_of_thread, "buffers", None)
    return torch.empty_like(x) if buffers is None else buffers.array(x)


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        from wildtype.models.difference_gnn.kernels import gelu as loop

        flat = x.contiguous().view(-1, x.shape[-1])
        # The slope is saved instead of x: the backward pass is then one product.
        out, slope = torch.empty_like(flat), torch.empty_like(flat)
        loop(*_arrays(flat, flat.new_zeros(flat.shape[1]), out, slope))
        ctx.save_for_backward(slope.view_as(x))
        return out.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        product: Tensor = grad * slope
        return product


class _Gin(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        message: Tensor,
        epsilon: Tensor,
        scale: Tensor,
        shift: Tensor,
        eps: float,
        *weights: Tensor,
    ) -> Tensor:
        from wildtype.models.difference_gnn.kernels import gelu as loop
        from wildtype.models.difference_gnn.kernels import norm_gelu

        flat = message.contiguous().view(-1, x.shape[-1])
        alpha = 1 + float(epsilon)
        # (1 + ε) x + message in one pass.
        h = torch.add(flat, x.reshape(flat.shape), alpha=alpha, out=_empty_like(flat))
        inputs, slopes = [h], []
        for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            # Without the bias: the loop that applies the GELU adds it, which saves a pass over memory.
            before = h @ weight.t()
            h, slope = _empty_like(before), _empty_like(before)
            loop(*_arrays(before, bias, h, slope))
            inputs.append(h)
            slopes.append(slope)
        before = h @ weights[-2].t()
        out, slope, normal = (_empty_like(before) for _ in range(3))
        inverse_sd = before.new_empty(len(before))
        norm_gelu(*_arrays(before, weights[-1], scale, shift), eps, *_arrays(out, slope, normal, inverse_sd))
        # Slopes belong to the GELUs between linear maps, one fewer than the inputs; `backward` splits by
        # this.
        ctx.save_for_backward(x, scale, normal, slope, inverse_sd, *inputs, *slopes, *weights[::2])
        ctx.linears, ctx.alpha = len(inputs), alpha
        return out.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from wildtype.models.difference_gnn.kernels import norm_gelu_backward

        x, scale, normal, slope, inverse_sd, *rest = ctx.saved_tensors
        count = ctx.linears
        inputs, slopes, weights = rest[:count], rest[count : 2 * count - 1], rest[2 * count - 1 :]
        flat = grad.contiguous().view_as(normal)
        g = torch.empty_like(normal)
        grad_scale, grad_shift = torch.zeros_like(scale), torch.zeros_like(scale)
        norm_gelu_backward(*_arrays(flat, slope, normal, inverse_sd, scale, g, grad_scale, grad_shift))
        of_weights: list[Tensor] = []
        for i in reversed(range(count)):
            # For h W^T + b: dW = g^T h, db = Σ_rows g, dh = g W; then the slope of the GELU that made h.
            of_weights = [g.t() @ inputs[i], g.sum(0), *of_weights]
            g = g @ weights[i]
            if i:
                g.mul_(slopes[i - 1])
        # The input was (1 + ε) x + message: dε = ⟨g, x⟩, dx = (1 + ε) g, dmessage = g.
        of_epsilon = torch.dot(g.view(-1), x.reshape(-1)) if ctx.needs_input_grad[2] else None
        g = g.view_as(x)
        of_x = g * ctx.alpha if ctx.needs_input_grad[0] else None
        return of_x, g, of_epsilon, grad_scale, grad_shift, None, *of_weights


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().numpy() for tensor in tensors]
