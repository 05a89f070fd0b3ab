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

Memory is measured in a new process, above what imports take: graph, inputs, forward and backward of the
regularised layer.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div, pad

from benchmarks.measuring import Reference, chosen
from wildtype.nn.attention import padded_width
from wildtype.nn.devices import device_named, waits_for
from wildtype.nn.sparse import SparseOperator
from wildtype.profiling.machine import machine, peak_in_fresh_process, peak_memory, take_turns
from wildtype.profiling.speed import (
    AttentionProblem,
    AttentionStep,
    Inputs,
    plain_attention,
    readout,
    regularised_attention,
    value_and_gradients,
)


def bench_attention(
    *,
    nodes: int = 6607,
    heads: int = 8,
    width: int = 8,
    relations: int = 9,
    edges: int = 2_500_000,
    repeats: int = 5,
    seed: int = 0,
    device: str = "cpu",
    reference: Reference = True,
) -> dict[str, Any]:
    """Graph-regularised attention, forward and backward, against plain attention and explicit maps.

    Parameters
    ----------
    nodes, heads, width, relations, edges
        N, H, d, K and e.
    repeats
        Timed repeats after one warm-up each; medians are reported.
    seed
        Of graph and inputs.
    device
        ``cpu``, ``cuda`` or ``cuda:1``.
    reference
        Also run the explicit maps and compare: some 4 (4 H + K) N² bytes, about 7 GB at the defaults.

    Returns
    -------
    JSON-able: `problem`, `machine`, `edges_per_relation`, `repeats`, `seconds` (medians), `ratios`,
    `peak_mib` (of the regularised layer, above imports), and with `reference` also `difference`: of the loss
    and of the gradients to q, k and v, in float32 at full size and in float64 at small size.
    """
    problem = AttentionProblem(**chosen(locals(), "repeats", "device", "reference"))
    place = device_named(device)
    operators, inputs = [op.to(place) for op in problem.operators()], problem.inputs(device=place)
    steps = {
        "plain": plain_attention(problem),
        "padded": _padded(problem),
        "regularised": regularised_attention(problem, operators),
    }
    if reference:
        steps["explicit"] = _explicit(problem, operators, torch.float32)
    seconds = take_turns(
        {name: partial(value_and_gradients, steps[name], inputs) for name in steps},
        repeats,
        synchronise=waits_for(place),
    )
    ratios = {
        f"regularised_to_{name}": seconds["regularised"] / seconds[name] for name in ("plain", "padded")
    }
    report: dict[str, Any] = {
        "problem": asdict(problem),
        "machine": machine(),
        "device": device,
        "edges_per_relation": [op.nnz for op in operators],
        "repeats": repeats,
        "seconds": seconds,
        "ratios": ratios,
        "peak_mib": peak_in_fresh_process("benchmarks.attention", asdict(problem), device),
    }
    if reference:
        ratios["explicit_to_regularised"] = seconds["explicit"] / seconds["regularised"]
        small = replace(problem, nodes=min(nodes, 256), edges=min(edges, 20_000))
        report["difference"] = {
            f"float32, {nodes} nodes": _difference(steps["regularised"], steps["explicit"], inputs),
            f"float64, {small.nodes} nodes": _difference_in_float64(small),
        }
    return report


def peak_above_import(settings: dict[str, Any], device: str) -> float:
    """MiB of memory that the regularised layer adds to a fresh process after its imports."""
    problem, place = AttentionProblem(**settings), device_named(device)
    with peak_memory(place) as memory:
        operators = [op.to(place) for op in problem.operators()]
        value_and_gradients(regularised_attention(problem, operators), problem.inputs(device=place))
    return memory.peak - memory.before


def _padded(problem: AttentionProblem) -> AttentionStep:
    attend, width = plain_attention(problem), problem.width
    gap = (0, padded_width(width, width) - width)
    return lambda q, k, v: attend(pad(q, gap), pad(k, gap), pad(v, gap))


def _explicit(
    problem: AttentionProblem, operators: list[SparseOperator], dtype: torch.dtype
) -> AttentionStep:
    targets = []
    for op in operators:
        targets.append(torch.zeros(op.shape, dtype=dtype, device=op.device))
        targets[-1][op.edges()] = op.values.to(dtype)

    def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        log_alpha = (problem.scale * q @ k.transpose(-1, -2)).log_softmax(-1)
        loss = readout(log_alpha.exp() @ v)
        log_alpha_per_head = log_alpha[0].unbind()
        for relation, (op, target) in enumerate(zip(operators, targets, strict=True)):
            # KL(A_i || α_i) summed over rows with edges, and their mean, as graph_prior_kl defines it.
            divergence = kl_div(log_alpha_per_head[problem.head_of(relation)], target, reduction="sum")
            loss = loss + divergence / len(op.rows_with_edges)
        return loss

    return step


def _difference(ours: AttentionStep, explicit: AttentionStep, inputs: Inputs) -> dict[str, dict[str, float]]:
    """Largest absolute difference, and that relative to the largest entry of the explicit result."""
    pairs = zip(value_and_gradients(ours, inputs), value_and_gradients(explicit, inputs), strict=True)
    report = {}
    for name, (x, y) in zip(("loss", "grad_q", "grad_k", "grad_v"), pairs, strict=True):
        absolute = float((x - y).abs().max())
        report[name] = {"absolute": absolute, "relative": absolute / float(y.abs().max())}
    return report


def _difference_in_float64(problem: AttentionProblem) -> dict[str, dict[str, float]]:
    operators = problem.operators()
    ours, explicit = regularised_attention(problem, operators), _explicit(problem, operators, torch.float64)
    return _difference(ours, explicit, problem.inputs(torch.float64))
