"""Scalars per mutant whose gradients are taken in the forward pass, while their states are in memory.

Legend: b mutants · i shared inputs · o own inputs.

A mutant's states are large (n genes, every relation, every layer) and its output is one number y_b. A
backward pass through all mutants either keeps all their states or computes them twice. But the gradient that
will reach y_b is one number g_b, and dL/dθ = Σ_b g_b dy_b/dθ: so each mutant's dy_b/dθ is taken right after
y_b, its states are dropped, and the backward pass only scales and sums. That keeps b times the size of what
is shared (weights, wild type), and computes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wildtype.nn.threads import each


def scalars(
    run: Callable[[int, Sequence[Tensor], Sequence[Tensor]], Tensor],
    shared: Sequence[Tensor],
    parameters: Sequence[Tensor],
    own: Sequence[Tensor],
    bounds: Sequence[Sequence[int]],
    *,
    together: bool = True,
) -> Tensor:
    """Return y [b], y_b = run(b, shared, own inputs of b), with gradients taken at once.

    Parameters
    ----------
    run
        Computes one scalar tensor from the mutant's number, the shared inputs and its own.
    shared
        Inputs of every mutant.
    parameters
        Leaves that ``run`` uses beside its arguments.
    own
        Tensors of which mutant b owns rows ``bounds[o][b]`` to ``bounds[o][b + 1]``.
    bounds
        b + 1 positions per own tensor.
    together
        Whether mutants may be computed beside each other, each in one thread.

    Notes
    -----
    A second derivative is not available. Inputs and parameters that need no gradient get none.
    """
    wanted = [p for p in parameters if p.requires_grad]
    out: Tensor = _Scalars.apply(run, together, len(shared), len(wanted), bounds, *shared, *wanted, *own)  # type: ignore[no-untyped-call]
    return out


class _Scalars(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: Callable[[int, Sequence[Tensor], Sequence[Tensor]], Tensor],
        together: bool,
        n_shared: int,
        n_parameters: int,
        bounds: Sequence[Sequence[int]],
        *inputs: Tensor,
    ) -> Tensor:
        needed = ctx.needs_input_grad[5:]
        count = len(bounds[0]) - 1
        # Detached: the graph of each y_b ends at these leaves, so it is freed as soon as its gradient is
        # taken.
        leaves = [x.detach().requires_grad_(need) for x, need in zip(inputs[:n_shared], needed, strict=False)]
        parameters = inputs[n_shared : n_shared + n_parameters]
        first_own = n_shared + n_parameters
        common = [*leaves, *parameters]
        ctx.needed = [i for i in range(first_own) if needed[i]]
        # One row per mutant, allocated before the threads start: each writes only its rows, so no lock is
        # needed and the order of threads does not matter.
        ctx.common_grads = [common[i].new_empty(count, common[i].numel()) for i in ctx.needed]
        ctx.own_grads = [
            torch.empty_like(x) if need else None
            for x, need in zip(inputs[first_own:], needed[first_own:], strict=True)
        ]
        ctx.bounds, ctx.shapes, ctx.first_own = bounds, [x.shape for x in common], first_own
        values: list[Tensor] = [inputs[0]] * count

        def one(b: int) -> None:
            cuts = [slice(at[b], at[b + 1]) for at in bounds]
            own = [
                x[cut].detach().requires_grad_(need)
                for x, cut, need in zip(inputs[first_own:], cuts, needed[first_own:], strict=True)
            ]
            # Autograd turns recording off inside a Function's forward; dy_b/dθ is taken here all the same.
            with torch.enable_grad():
                value = run(b, leaves, own)
            values[b] = value.detach()
            with_grad = [x for x in own if x.requires_grad]
            grads = torch.autograd.grad(
                value, [*(common[i] for i in ctx.needed), *with_grad], allow_unused=True
            )
            # None: y_b does not depend on this input. Gradients of own inputs follow those of the shared
            # ones.
            for stored, grad in zip(ctx.common_grads, grads, strict=False):
                stored[b] = 0.0 if grad is None else grad.reshape(-1)
            rest = iter(grads[len(ctx.needed) :])
            for own_grad, cut in zip(ctx.own_grads, cuts, strict=True):
                if own_grad is not None:
                    grad = next(rest)
                    own_grad[cut] = 0.0 if grad is None else grad

        each(count, one, together=together)
        return torch.stack(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        common: list[Tensor | None] = [None] * ctx.first_own
        for i, stored in zip(ctx.needed, ctx.common_grads, strict=True):
            # dL/dθ = Σ_b g_b dy_b/dθ, one product of [b] with [b, size of θ].
            common[i] = (grad.to(stored.dtype) @ stored).view(ctx.shapes[i])
        own: list[Tensor | None] = []
        for stored, at in zip(ctx.own_grads, ctx.bounds, strict=True):
            if stored is None:
                own.append(None)
                continue
            counts = torch.tensor(at, device=grad.device).diff()
            # Rows of own inputs reach one mutant only: g_b scales each of its rows.
            scale = torch.repeat_interleave(grad.to(stored.dtype), counts)
            own.append(stored * scale.view(-1, *[1] * (stored.ndim - 1)))
        return None, None, None, None, None, *common, *own
