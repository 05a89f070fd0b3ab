"""`MaskedRelationalGIN` with its own backward pass: the same formula, in an order that spares memory traffic.

Legend: N nodes · B mutants · R relations · d width · e width of the result · α_r = 1 + ε_r.

For MLPs of linear maps with ReLUs between them, W_1 … W_K, and one mutant after the other:

* the first map commutes with the messages, W (α x + A x) = α (W x) + A (W x), so that states are mapped first
  and neighbours are added straight into where they are needed; no message is stored;
* the last maps of all relations add up in one array; with K = 1 the messages do so themselves, and α needs
  one map in all: Σ_r α_r W_r x = (Σ_r α_r W_r) x;
* gradients of the first map need no messages either: with u_r = α_r g_r + A_rᵀ g_r they are u_rᵀ x for the
  weights and Σ_r u_r W_r for the states. With K = 1 nothing but the input is kept for the backward pass.

What every mutant writes over again is allocated once per call: fresh memory costs as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import shares


def linear_maps(mlp: nn.Module) -> list[nn.Linear]:
    """Return the maps of an MLP that the fused layer computes; none for any other module.

    These are one linear map, or a sequence of linear maps with a ReLU between each two, all with a bias, of
    which the first does not widen the states: else messages would cost more after it than before.
    """
    parts = [part for part in mlp.modules() if not isinstance(part, nn.Sequential)]
    maps = [part for part in parts[::2] if type(part) is nn.Linear and part.bias is not None]
    between = [part for part in parts[1::2] if type(part) is nn.ReLU]
    fits = len(maps) + len(between) == len(parts) and len(parts) % 2 == 1
    return maps if fits and maps[0].out_features <= maps[0].in_features else []


def fused_relational_gin(
    ops: Sequence[SparseOperator],
    x: Tensor,
    gone: Tensor,
    epsilons: Sequence[Tensor],
    maps: Sequence[Sequence[nn.Linear]],
) -> Tensor:
    """Σ_r MLP_r((1 + ε_r) x + A_r x) in every mutant's induced subgraph.

    Parameters
    ----------
    ops : R operators [N, N]
    x : Tensor [B, N, d]
        float32 or float64, as the weights are; any strides.
    gone : Tensor bool [B, N]
        True = deleted; what x holds there does not matter.
    epsilons : R scalars
    maps : R times K linear maps
        From `linear_maps`, all relations of the same K.

    Returns
    -------
    Tensor [B, N, e], zero at deleted nodes; differentiable once in x, ε and weights.
    """
    weights = [p for relation in maps for linear in relation for p in (linear.weight, linear.bias)]
    out: Tensor = _RelationalGIN.apply(list(ops), len(maps[0]), gone, x, *epsilons, *weights)  # type: ignore[no-untyped-call]
    return out


class _RelationalGIN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, ops: list[SparseOperator], depth: int, gone: Tensor, x: Tensor, *parameters: Tensor
    ) -> Tensor:
        layer = _Layer.of(ops, depth, parameters)
        lacking = [row.nonzero().flatten() for row in gone]
        last_bias = reduce(torch.add, [biases[-1] for biases in layer.biases])
        whole = reduce(torch.add, [alpha * weights[0] for _, alpha, weights, _ in layer.relations()])
        out = x.new_empty(*x.shape[:2], len(last_bias))
        hidden: list[list[Tensor]] = [[] for _ in lacking]  # per relation and map but the last, past its ReLU

        def several(begin: int, end: int) -> None:
            states, mapped = x.new_empty(x.shape[1:]), x.new_empty(x.shape[1], len(layer.weights[0][0]))
            for b in range(begin, end):
                states.copy_(x[b]).index_fill_(0, lacking[b], 0.0)
                if depth == 1:
                    torch.addmm(last_bias, states, whole.t(), out=out[b])
                else:
                    out[b] = last_bias
                for op, alpha, weights, biases in layer.relations():
                    torch.mm(states, weights[0].t(), out=mapped)
                    if depth == 1:
                        op.add_product(mapped, out[b])
                        continue
                    h = torch.addcmul(biases[0], mapped, alpha)
                    op.add_product(mapped, h)
                    hidden[b].append(h.relu_())
                    for weight, bias in zip(weights[1:-1], biases[1:-1], strict=True):
                        h = torch.addmm(bias, h, weight.t()).relu_()
                        hidden[b].append(h)
                    out[b].addmm_(h, weights[-1].t())
                out[b].index_fill_(0, lacking[b], 0.0)

        shares(len(x), several, together=x.device.type == "cpu")
        ctx.save_for_backward(x, *parameters, *(h for of_mutant in hidden for h in of_mutant))
        ctx.ops, ctx.depth, ctx.lacking = ops, depth, lacking
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ops, depth = ctx.ops, ctx.depth
        x, *saved = ctx.saved_tensors
        count, steps = len(ops) * (1 + 2 * depth), len(ops) * (depth - 1)
        parameters, hidden = saved[:count], saved[count:]
        layer = _Layer.of(ops, depth, parameters)
        of_x = torch.zeros_like(x, memory_format=torch.contiguous_format) if ctx.needs_input_grad[3] else None
        found: dict[int, list[Tensor]] = {}  # by the first mutant of a share

        def several(begin: int, end: int) -> None:
            found[begin] = [torch.zeros_like(parameter) for parameter in parameters]
            into = _Layer.of(ops, depth, found[begin])
            widths = x.shape[2], grad.shape[2], len(layer.weights[0][0])
            states, received, u = (x.new_empty(x.shape[1], width) for width in widths)
            of_hidden = [x.new_empty(x.shape[1], len(weight)) for weight in layer.weights[0][:-1]]
            for b in range(begin, end):
                states.copy_(x[b]).index_fill_(0, ctx.lacking[b], 0.0)
                received.copy_(grad[b]).index_fill_(0, ctx.lacking[b], 0.0)
                of_last_bias, pairs = received.sum(0), received.t() @ states
                for r, (op, alpha, weights, _) in enumerate(layer.relations()):
                    into.biases[r][-1].add_(of_last_bias)
                    h, g = hidden[b * steps + r * (depth - 1) :], received
                    for k in reversed(range(1, depth)):
                        into.weights[r][k].addmm_(g.t(), h[k - 1])
                        g = torch.mm(g, weights[k], out=of_hidden[k - 1])
                        torch.ops.aten.threshold_backward(g, h[k - 1], 0, grad_input=g)
                        into.biases[r][k - 1].add_(g.sum(0))
                    if depth > 1:
                        pairs = g.t() @ states
                    into.epsilons[r].add_(torch.dot(pairs.view(-1), weights[0].reshape(-1)))
                    torch.mul(g, alpha, out=u)
                    op.t().add_product(g, u)
                    into.weights[r][0].addmm_(u.t(), states)
                    if of_x is not None:
                        of_x[b].addmm_(u, weights[0])
                if of_x is not None:
                    of_x[b].index_fill_(0, ctx.lacking[b], 0.0)

        shares(len(x), several, together=x.device.type == "cpu")
        of_shares = [found[begin] for begin in sorted(found)]
        return None, None, None, of_x, *(reduce(torch.add, parts) for parts in zip(*of_shares, strict=True))


class _Layer(NamedTuple):
    """Parameters by relation; `weights` and `biases` hold those of K maps each."""

    ops: Sequence[SparseOperator]
    epsilons: Sequence[Tensor]
    weights: list[Sequence[Tensor]]
    biases: list[Sequence[Tensor]]

    @classmethod
    def of(cls, ops: Sequence[SparseOperator], depth: int, parameters: Sequence[Tensor]) -> _Layer:
        """Sort every ε, then weight and bias of every relation's maps."""
        maps = [parameters[len(ops) + 2 * depth * r :][: 2 * depth] for r in range(len(ops))]
        return cls(ops, parameters[: len(ops)], [each[::2] for each in maps], [each[1::2] for each in maps])

    @property
    def alphas(self) -> list[Tensor]:
        return [1 + epsilon for epsilon in self.epsilons]

    def relations(self) -> Iterator[tuple[SparseOperator, Tensor, Sequence[Tensor], Sequence[Tensor]]]:
        """Operator, α, weights and biases of every relation."""
        return zip(self.ops, self.alphas, self.weights, self.biases, strict=True)
