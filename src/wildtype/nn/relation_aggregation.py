"""Several states of a node, one per relation, become one: sum, mean, attention, or learned pairs.

Legend: R relations · P = R (R + 1) / 2 unordered pairs of them, self pairs too · d width · b bottleneck ·
m rows (nodes of any number of mutants) · h heads.

States come as R tensors [..., d]: nothing of size [..., R, d] is needed but for attention. Rows are taken in
chunks, so that what a chunk needs stays in the cache, and beyond KEPT_ROWS chunks are computed again in the
backward pass instead of being kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from wildtype.errors import ShapeError

Activation = Callable[[Tensor], Tensor]
CHUNK = 1024
KEPT_ROWS = 32_768


class SumAggregation(nn.Module):
    """Σ_r x_r, or its mean."""

    def __init__(self, *, mean: bool) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """R times [..., d] -> [..., d]."""
        total = states[0]
        for state in states[1:]:
            total = total + state
        return total / len(states) if self.mean else total


class AttentionAggregation(nn.Module):
    """Multi-head self-attention of a node's R states (each plus its relation's embedding), then their mean.

    The mean is taken early: the output map is linear, and so are the attended values in their weights, so
    that only the mean weight of every value is needed.

    Source: Vaswani et al., "Attention is all you need", NIPS 2017; the maps are those of
    ``torch.nn.MultiheadAttention``.
    """

    def __init__(self, relations: int, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ShapeError(f"heads: received {heads}, expected a divisor of the width {width}")
        self.heads = heads
        self.relation = nn.Parameter(0.02 * torch.randn(relations, width))
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        for linear in (self.query, self.key, self.value, self.output):
            _kaiming(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """R times [..., d] -> [..., d]."""
        return _in_chunks(self._rows, states)

    def _rows(self, *states: Tensor) -> Tensor:
        x = torch.stack(states, 1) + self.relation
        m, relations, d = x.shape
        q, k, v = (
            linear(x).view(m, relations, self.heads, d // self.heads).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        # mean_r (Σ_s a_rs v_s) = Σ_s (mean_r a_rs) v_s: one weight per value instead of R attended states.
        weights = (q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5).softmax(-1).mean(-2, keepdim=True)
        out: Tensor = self.output((weights @ v).reshape(m, d))
        return out


class PairwiseAggregation(nn.Module):
    """A softmax over options: what each pair of relations says together, and the mean over relations.

    For a pair p = (r, s), r ≤ s, with its own maps, and the scorer that all options share:

        option_p = O_p h_p + o_p,    h_p = act(H_p [x_r ‖ x_s] + c_p)
        score_p  = u · act(W option_p + w) + u₀
        y = Σ_p softmax_p(score) option_p          p over the P pairs, and the mean state

    No option is written down. With the halves H_p = [L_p ‖ Q_p], h_p = act(L_p x_r + Q_p x_s + c_p); the
    scorer reads W option_p = (W O_p) h_p + W o_p through a b × b map; and Σ_p α_p option_p is one product of
    the weighted h_p [m, P b] with the stacked O [P b, d]. Equal to `pairwise_reference`.
    """

    def __init__(self, relations: int, width: int, bottleneck: int, activation: Activation) -> None:
        super().__init__()
        self.pairs = [(r, s) for r in range(relations) for s in range(r, relations)]
        p, d, b = len(self.pairs), width, bottleneck
        self.activation = activation
        self.hidden_weight = nn.Parameter(torch.empty(p, b, 2 * d))
        self.hidden_bias = nn.Parameter(torch.zeros(p, b))
        self.option_weight = nn.Parameter(torch.empty(p, d, b))
        self.option_bias = nn.Parameter(torch.zeros(p, d))
        self.score_hidden = nn.Linear(d, b)
        self.score = nn.Linear(b, 1)
        for weights in (self.hidden_weight, self.option_weight):
            for weight in weights:
                _kaiming(weight)
        for linear in (self.score_hidden, self.score):
            _kaiming(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """R times [..., d] -> [..., d]."""
        p, d, b = self.option_weight.shape
        # (W O_p) [b, b] once per call: the scorer then reads h_p and never the d-wide option.
        composed = self.option_weight.transpose(1, 2) @ self.score_hidden.weight.t()
        shift = self.score_hidden(self.option_bias).unsqueeze(1)
        stacked = self.option_weight.transpose(1, 2).reshape(p * b, d)

        def rows(*x: Tensor) -> Tensor:
            hidden = self.activation(_pair_inputs(self.pairs, self.hidden_weight, self.hidden_bias, x))
            identity = torch.stack(x).mean(0)
            inner = self.activation(torch.baddbmm(shift, hidden.transpose(0, 1), composed))
            weights = torch.cat(
                [
                    self.score(inner).squeeze(-1),
                    self.score(self.activation(self.score_hidden(identity))).reshape(1, -1),
                ]
            ).softmax(0)
            of_pairs = weights[:p].t()
            mixed = (hidden * of_pairs.unsqueeze(-1)).reshape(-1, p * b) @ stacked
            return torch.addcmul(mixed + of_pairs @ self.option_bias, weights[p].unsqueeze(-1), identity)

        return _in_chunks(rows, states)


class _PairInputs(torch.autograd.Function):
    """R times x [m, d] -> H_p [x_r ‖ x_s] + c_p of every pair, [m, P, b], written once, in place."""

    @staticmethod
    def forward(
        ctx: Any, pairs: list[tuple[int, int]], weight: Tensor, bias: Tensor, *states: Tensor
    ) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(weight, *states)
        d = states[0].shape[1]
        out = states[0].new_empty(len(states[0]), *bias.shape)
        for p, (r, s) in enumerate(pairs):
            left, right = weight[p, :, :d].t(), weight[p, :, d:].t()
            if r == s:
                # L x_r + Q x_r = (L + Q) x_r: one product for a pair of a relation with itself.
                torch.addmm(bias[p], states[r], left + right, out=out[:, p])
            else:
                torch.addmm(bias[p], states[r], left, out=out[:, p])
                out[:, p].addmm_(states[s], right)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *states = ctx.saved_tensors
        d = weight.shape[2] // 2
        weight_grad = torch.empty_like(weight)
        state_grads = [torch.zeros_like(x) for x in states]
        for p, (r, s) in enumerate(ctx.pairs):
            of_pair, left, right = grad[:, p], weight[p, :, :d], weight[p, :, d:]
            torch.mm(of_pair.t(), states[r], out=weight_grad[p, :, :d])
            if r == s:
                weight_grad[p, :, d:] = weight_grad[p, :, :d]
                state_grads[r].addmm_(of_pair, left + right)
            else:
                torch.mm(of_pair.t(), states[s], out=weight_grad[p, :, d:])
                state_grads[r].addmm_(of_pair, left)
                state_grads[s].addmm_(of_pair, right)
        return None, weight_grad, grad.sum(0), *state_grads


def _pair_inputs(
    pairs: list[tuple[int, int]], weight: Tensor, bias: Tensor, states: Sequence[Tensor]
) -> Tensor:
    with torch.autocast(weight.device.type, enabled=False):  # written in place, so autocast cannot cast
        alike = [state.to(weight.dtype) for state in states]
        out: Tensor = _PairInputs.apply(pairs, weight, bias, *alike)  # type: ignore[no-untyped-call]
    return out


def pairwise_reference(layer: PairwiseAggregation, states: Sequence[Tensor]) -> Tensor:
    """The definition: every option of every row, [m, P + 1, d], scored and summed."""
    options = []
    for p, (r, s) in enumerate(layer.pairs):
        joined = torch.cat([states[r], states[s]], -1)
        hidden = layer.activation(nn.functional.linear(joined, layer.hidden_weight[p], layer.hidden_bias[p]))
        options.append(nn.functional.linear(hidden, layer.option_weight[p], layer.option_bias[p]))
    options.append(torch.stack(list(states)).mean(0))
    stacked = torch.stack(options, -2)
    weights = layer.score(layer.activation(layer.score_hidden(stacked))).softmax(-2)
    out: Tensor = (weights * stacked).sum(-2)
    return out


def attention_reference(layer: AttentionAggregation, states: Sequence[Tensor]) -> Tensor:
    """The definition, by torch's own layer: attention over the relations of every row, then the mean."""
    x = torch.stack(list(states), -2) + layer.relation
    maps = (layer.query, layer.key, layer.value)
    flat = x.reshape(-1, *x.shape[-2:]).transpose(0, 1)
    out, _ = nn.functional.multi_head_attention_forward(
        flat,
        flat,
        flat,
        x.shape[-1],
        layer.heads,
        torch.cat([linear.weight for linear in maps]),
        torch.cat([linear.bias for linear in maps]),
        None,
        None,
        False,
        0.0,
        layer.output.weight,
        layer.output.bias,
        need_weights=False,
    )
    return out.mean(0).reshape(*x.shape[:-2], x.shape[-1])


def make_aggregation(
    name: str, relations: int, width: int, *, bottleneck: int, heads: int, activation: Activation
) -> nn.Module:
    """Return the aggregation called sum, mean, attention or pairwise; ShapeError for another name."""
    if name in ("sum", "mean"):
        return SumAggregation(mean=name == "mean")
    if name == "attention":
        return AttentionAggregation(relations, width, heads)
    if name == "pairwise":
        return PairwiseAggregation(relations, width, bottleneck, activation)
    raise ShapeError(f"aggregation: received {name!r}, expected sum, mean, attention or pairwise")


def _in_chunks(rows: Callable[..., Tensor], states: Sequence[Tensor]) -> Tensor:
    """Apply a map of rows to R times [..., d], a chunk of rows at a time."""
    flat = [state.reshape(-1, state.shape[-1]) for state in states]
    m = len(flat[0])
    # Recomputing costs a second forward pass and saves P b numbers per row until the backward pass.
    again = m > KEPT_ROWS and torch.is_grad_enabled()
    chunks = zip(*(torch.split(x, CHUNK) for x in flat), strict=True)
    out = [checkpoint(rows, *chunk, use_reentrant=False) if again else rows(*chunk) for chunk in chunks]
    return torch.cat(out).view_as(states[0])


def _kaiming(weight: Tensor) -> None:
    nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")
