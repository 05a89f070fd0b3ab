"""What graph-regularised attention costs: plain attention, ours, and explicit maps, side by side.

Legend: N nodes · H heads · d head width · K relations · e directed edges in all.

The regularised layer is one attention layer of H heads with the prior of every relation: relation r sits on
head r modulo (H − 1), so that one head stays free and, with more relations than that, some heads carry two.
Timed is forward and backward to q, k and v of Σ out ∘ weight + Σ_r KL_r.

* plain: F.scaled_dot_product_attention, no prior;
* padded: the same on q, k, v padded with zeros to the width that ours hands to the kernel: the kernel is
  slow at some small widths, and against this one the price of lse and priors shows by itself;
* regularised: attention with lse, one sparse product per relation;
* explicit: the map [H, N, N] by matmul and softmax, every relation a dense [N, N] target.

Repeats of all are interleaved, so that the ratios hold when the machine drifts. Memory is measured in a
process of its own, above what imports take: graph, inputs, forward and backward of the regularised layer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from wildtype.profiling.machine import PeakMemory, machine, peak_in_fresh_process

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from wildtype.nn.sparse import SparseOperator

    Step = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Problem:
    """Sizes of a synthetic layer."""

    nodes: int
    heads: int
    width: int
    relations: int
    edges: int
    seed: int

    @property
    def scale(self) -> float:
        """1/√d."""
        return float(self.width**-0.5)

    def head_of(self, relation: int) -> int:
        """The head that carries a relation; the last head stays free if there is more than one."""
        return relation % max(self.heads - 1, 1)


def bench_attention(
    *,
    nodes: int = 6607,
    heads: int = 8,
    width: int = 8,
    relations: int = 9,
    edges: int = 2_500_000,
    repeats: int = 5,
    seed: int = 0,
    reference: bool = True,
) -> dict[str, Any]:
    """Time, memory and exactness of the regularised layer on a random graph.

    Parameters
    ----------
    nodes, heads, width, relations, edges
        N, H, d, K and e.
    repeats
        Timed repeats after one warm-up each; medians are reported.
    seed
        Of graph and inputs.
    reference
        Also run the explicit maps and compare: some 4 (4 H + K) N² bytes, about 7 GB at the defaults.

    Returns
    -------
    JSON-able: `problem`, `machine`, `edges_per_relation`, `repeats`, `seconds` (medians), `ratios`,
    `peak_mib` (of the regularised layer, above imports), and with `reference` also `difference`: of the loss
    and of the gradients to q, k and v, in float32 at full size and in float64 at small size.
    """
    import torch

    problem = Problem(nodes, heads, width, relations, edges, seed)
    operators, inputs = _operators(problem), _inputs(problem, torch.float32)
    steps: dict[str, Step] = {
        "plain": _plain(problem),
        "padded": _padded(problem),
        "regularised": _regularised(problem, operators),
    }
    if reference:
        steps["explicit"] = _explicit(problem, operators, torch.float32)
    seconds = _interleaved(steps, inputs, repeats)
    report: dict[str, Any] = {
        "problem": asdict(problem),
        "machine": machine(),
        "edges_per_relation": [op.nnz for op in operators],
        "repeats": repeats,
        "seconds": seconds,
        "ratios": {
            f"regularised_to_{name}": seconds["regularised"] / seconds[name] for name in ("plain", "padded")
        },
        "peak_mib": peak_in_fresh_process("benchmarks.attention", asdict(problem)),
    }
    if reference:
        report["ratios"]["explicit_to_regularised"] = seconds["explicit"] / seconds["regularised"]
        small = replace(problem, nodes=min(nodes, 256), edges=min(edges, 20_000))
        report["difference"] = {
            f"float32, {nodes} nodes": _difference(steps["regularised"], steps["explicit"], inputs),
            f"float64, {small.nodes} nodes": _difference_in_float64(small),
        }
    return report


def peak_above_import(settings: dict[str, Any]) -> float:
    """MiB of resident memory that the regularised layer adds to a fresh process after its imports."""
    import torch

    import wildtype.nn.attention
    import wildtype.nn.graph_prior  # noqa: F401

    problem = Problem(**settings)
    with PeakMemory() as memory:
        _value_and_gradients(_regularised(problem, _operators(problem)), _inputs(problem, torch.float32))
    return memory.peak - memory.before


def _operators(problem: Problem) -> list[SparseOperator]:
    """Random directed relations without repeated pairs or loops, normalised ahead of the first step."""
    import torch

    from wildtype.nn.sparse import SparseOperator

    generator = torch.Generator().manual_seed(problem.seed)
    operators = []
    for relation in range(problem.relations):
        share = problem.edges // problem.relations + (relation < problem.edges % problem.relations)
        pairs = torch.randint(problem.nodes**2, (share + share // 8 + 16,), generator=generator)
        pairs = torch.unique(pairs[pairs // problem.nodes != pairs % problem.nodes])
        pairs = pairs[torch.randperm(len(pairs), generator=generator)[:share]]
        op = SparseOperator.from_edges(pairs // problem.nodes, pairs % problem.nodes, problem.nodes)
        operators.append(op.row_normalised())
    return operators


def _inputs(problem: Problem, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v [1, H, N, d] that require gradients."""
    import torch

    generator = torch.Generator().manual_seed(problem.seed + 1)
    shape = (1, problem.heads, problem.nodes, problem.width)
    q, k, v = (torch.randn(shape, generator=generator).to(dtype).requires_grad_() for _ in range(3))
    return q, k, v


def _readout(out: Tensor) -> Tensor:
    """A scalar with a different gradient in every entry, of the order of the priors."""
    import torch

    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    return (out * weight).sum()


def _plain(problem: Problem) -> Step:
    from torch.nn.functional import scaled_dot_product_attention

    return lambda q, k, v: _readout(scaled_dot_product_attention(q, k, v, scale=problem.scale))


def _padded(problem: Problem) -> Step:
    from torch.nn.functional import pad

    from wildtype.nn.attention import padded_width

    attend, width = _plain(problem), problem.width
    gap = (0, padded_width(width, width) - width)

    def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(pad(q, gap), pad(k, gap), pad(v, gap))

    return step


def _regularised(problem: Problem, operators: list[SparseOperator]) -> Step:
    from wildtype.nn.attention import attention_with_lse
    from wildtype.nn.graph_prior import graph_prior_kl

    def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, lse = attention_with_lse(q, k, v, scale=problem.scale)
        loss = _readout(out)
        heads = list(zip(q[0], k[0], lse[0], strict=True))
        for relation, op in enumerate(operators):
            loss = loss + graph_prior_kl(*heads[problem.head_of(relation)], op, scale=problem.scale)
        return loss

    return step


def _explicit(problem: Problem, operators: list[SparseOperator], dtype: torch.dtype) -> Step:
    from torch import zeros
    from torch.nn.functional import kl_div

    targets = []
    for op in operators:
        targets.append(zeros(op.shape, dtype=dtype))
        targets[-1][op.edges()] = op.values.to(dtype)

    def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        log_alpha = (problem.scale * q @ k.transpose(-1, -2)).log_softmax(-1)
        loss = _readout(log_alpha.exp() @ v)
        log_alpha_per_head = log_alpha[0].unbind()
        for relation, (op, target) in enumerate(zip(operators, targets, strict=True)):
            divergence = kl_div(log_alpha_per_head[problem.head_of(relation)], target, reduction="sum")
            loss = loss + divergence / len(op.rows_with_edges)
        return loss

    return step


def _value_and_gradients(step: Step, inputs: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
    import torch

    loss = step(*inputs)
    return [loss.detach(), *torch.autograd.grad(loss, inputs)]


def _interleaved(
    steps: dict[str, Step], inputs: tuple[Tensor, Tensor, Tensor], repeats: int
) -> dict[str, float]:
    """Median seconds of forward and backward, after one warm-up each."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            _value_and_gradients(step, inputs)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def _difference(
    ours: Step, explicit: Step, inputs: tuple[Tensor, Tensor, Tensor]
) -> dict[str, dict[str, float]]:
    """Largest absolute difference, and that relative to the largest entry of the explicit result."""
    pairs = zip(_value_and_gradients(ours, inputs), _value_and_gradients(explicit, inputs), strict=True)
    report = {}
    for name, (x, y) in zip(("loss", "grad_q", "grad_k", "grad_v"), pairs, strict=True):
        absolute = float((x - y).abs().max())
        report[name] = {"absolute": absolute, "relative": absolute / float(y.abs().max())}
    return report


def _difference_in_float64(problem: Problem) -> dict[str, dict[str, float]]:
    import torch

    operators = _operators(problem)
    ours, explicit = _regularised(problem, operators), _explicit(problem, operators, torch.float64)
    return _difference(ours, explicit, _inputs(problem, torch.float64))
