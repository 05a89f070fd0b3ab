"""What a graph layer costs when every mutant is a node mask on one graph, and when it is a graph of its own.

Legend: n nodes · e edges of all relations · b mutants per step · d width.

Timed is one layer, forward and backward: per relation a GIN, summed over relations; gradients of states and
weights; every mutant lacks two or three nodes. The MLP of a GIN costs the same in every formulation, so that
ratios fall as it grows: of one linear map by default.

* shared: one adjacency per relation, and masks of nodes (`MaskedRelationalGIN`);
* first: the same for states that all mutants share, as in the first layer of a model
(`MaskedGIN.first`): a row is computed again only where a mutant differs from the wild type;
* replicated: with torch_geometric, the edge list repeated for every mutant, messages gathered along edges,
multiplied by a mask of edges and added up at their targets. The masks are made beforehand, untimed;
* product, MLP: the two parts of "shared".

Repeats of all kinds are interleaved, and the shortest counts: other work on the machine only adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.measuring import Problem, Reference, chosen
from wildtype.nn.masked_layers import MaskedGIN, MaskedRelationalGIN
from wildtype.nn.message_passing import MutantRows, shared_propagate
from wildtype.nn.sparse import SparseOperator
from wildtype.profiling.machine import machine, take_turns
from wildtype.profiling.synthetic_problem import distinct_pairs
from wildtype.seeds import derive, generator

Step = Callable[[], list[Tensor]]  # the output [b, n, d], and gradients of states and weights
REPLICATED = 8  # mutants of one replicated batch at most: messages along its edges fill the memory


def bench_masked_gin(
    *,
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    mlp_layers: int = 1,
    batch_size: int = 8,
    repeats: int = 3,
    seed: int = 0,
    reference: Reference = True,
) -> dict[str, Any]:
    """A graph layer of many mutants as node masks on one graph, against one masked graph per mutant.

    Parameters
    ----------
    nodes, relations, edges : int
        Nodes n, relations, and directed edges e of all relations together, drawn at random.
    width : int
        d, of states and of the MLPs.
    mlp_layers : int
        Linear maps of every MLP, with a ReLU between them.
    batch_size : int
        Mutants b per step; of the replicated kind, eight at most.
    repeats : int
        Timed steps of each kind; the shortest counts.
    seed : int
        Of graphs, weights and mutants.
    reference : bool
        Also run the replicated kind, and compare the first mutants.
    """
    problem = chosen(locals(), "repeats", "reference")
    layers, operators, x_bnd, keep_nb = _setup(problem)
    few = min(REPLICATED, batch_size)
    upstream = torch.randn(x_bnd.shape, generator=torch.Generator().manual_seed(seed))
    kinds: dict[str, tuple[int, Step]] = {
        "shared": (batch_size, _shared(layers, operators, x_bnd, keep_nb, upstream)),
        "first": (batch_size, _first(layers, operators, x_bnd[0], keep_nb, upstream)),
        "product": (batch_size, _products(operators, x_bnd, keep_nb, upstream)),
        "MLP": (batch_size, _perceptrons(layers, x_bnd, upstream)),
    }
    if reference:
        masks, grads = keep_nb[:, :few], upstream[:few]
        kinds["replicated"] = (few, _replicated(layers, operators, x_bnd[:few], masks, grads))
    seconds = take_turns({name: run for name, (_, run) in kinds.items()}, repeats, summary=min)
    best = {name: seconds[name] / mutants for name, (mutants, _) in kinds.items()}
    report: dict[str, Any] = {
        "machine": machine(),
        "problem": problem | {"repeats": repeats},
        "mutants_per_step": {name: mutants for name, (mutants, _) in kinds.items()},
        "seconds_per_mutant": best,
    }
    if reference:
        report["ratios"] = {
            f"replicated_to_{kind}": best["replicated"] / best[kind] for kind in ("shared", "first")
        }
        # The first layer sees the same states in every mutant: its gradient is the sum over the copies.
        alike = x_bnd[:1].expand(few, -1, -1)
        plain = _replicated(layers, operators, alike, masks, grads)()
        plain[1] = plain[1].sum(0)
        report["difference"] = {
            "shared": _difference(
                _shared(layers, operators, x_bnd[:few], masks, grads)(), kinds["replicated"][1]()
            ),
            "first": _difference(_first(layers, operators, x_bnd[0], masks, grads)(), plain),
        }
    return report


def _setup(problem: Problem) -> tuple[list[MaskedGIN], list[SparseOperator], Tensor, Tensor]:
    n, d, mutants = problem["nodes"], problem["width"], problem["batch_size"]
    draw = generator(problem["seed"], "bench masked gin")
    torch.manual_seed(derive(problem["seed"], "bench masked gin"))
    operators = []
    for _ in range(problem["relations"]):
        source, target = distinct_pairs(draw, n, problem["edges"] // problem["relations"])
        operators.append(SparseOperator.from_edges(torch.from_numpy(source), torch.from_numpy(target), n))
    depth = problem["mlp_layers"]
    layers = []
    for _ in operators:
        maps = [nn.Sequential(nn.Linear(d, d), nn.ReLU()) for _ in range(depth - 1)]
        layers.append(MaskedGIN(nn.Sequential(*maps, nn.Linear(d, d))))
    keep = torch.ones(n, mutants, dtype=torch.bool)
    for mutant in range(mutants):
        keep[torch.from_numpy(draw.choice(n, 2 + mutant % 2, replace=False)), mutant] = False
    return layers, operators, torch.randn(mutants, n, d), keep


def _gradients(out: Tensor, upstream: Tensor, of: list[Tensor]) -> list[Tensor]:
    return [out.detach(), *torch.autograd.grad(out, of, upstream)]


def _weights(layers: list[MaskedGIN]) -> list[Tensor]:
    return [weight for layer in layers for weight in layer.parameters()]


def _shared(
    layers: list[MaskedGIN], operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor
) -> Step:
    layer = MaskedRelationalGIN(layers)

    def step() -> list[Tensor]:
        x = x_bnd.detach().requires_grad_()
        total = layer(operators, x.transpose(0, 1), keep)
        return _gradients(total.transpose(0, 1), upstream, [x, *_weights(layers)])

    return step


def _first(
    layers: list[MaskedGIN], operators: list[SparseOperator], x_nd: Tensor, keep: Tensor, upstream: Tensor
) -> Step:
    lacking = ~keep.T
    gene = lacking.nonzero()[:, 1].contiguous()
    offsets = torch.cat([gene.new_zeros(1), lacking.sum(1).cumsum(0)])

    def step() -> list[Tensor]:
        x = x_nd.detach().requires_grad_()
        parts = [layer.first(op, x, gene, offsets) for layer, op in zip(layers, operators, strict=True)]
        total = MutantRows.total(parts).stack()
        return _gradients(total.transpose(0, 1), upstream, [x, *_weights(layers)])

    return step


def _products(operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor) -> Step:
    def step() -> list[Tensor]:
        x = x_bnd.detach().requires_grad_()
        for op in operators:
            messages = shared_propagate(op, x.transpose(0, 1), keep)
            torch.autograd.grad(messages.transpose(0, 1), x, upstream)
        return []

    return step


def _perceptrons(layers: list[MaskedGIN], x_bnd: Tensor, upstream: Tensor) -> Step:
    def step() -> list[Tensor]:
        x = x_bnd.detach().requires_grad_()
        for layer in layers:
            torch.autograd.grad(layer.mlp(x), [x, *layer.mlp.parameters()], upstream)
        return []

    return step


def _replicated(
    layers: list[MaskedGIN], operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor
) -> Step:
    from torch_geometric.nn import MessagePassing

    class MaskedEdges(MessagePassing):
        """Sums of the neighbours' states along the edges that a mask keeps."""

        # torch_geometric looks annotations up in this module, which does not load torch.
        def forward(self, x: Any, edges: Any, mask: Any) -> Any:
            return self.propagate(edges, x=x, mask=mask)

        def message(self, x_j: Any, mask: Any) -> Any:
            return x_j * mask.unsqueeze(-1).to(x_j.dtype)

    mutants, n, width = x_bnd.shape
    kept = keep.T.reshape(-1)
    # A batch of graphs in torch_geometric is one graph of disjoint parts: node i of mutant m is m · n + i.
    shift = torch.arange(mutants).unsqueeze(1) * n
    sums = MaskedEdges(aggr="add")
    graphs = []
    for op in operators:
        target, source = ((shift + ends).flatten() for ends in op.edges())
        graphs.append((torch.stack([source, target]), kept[target] & kept[source]))

    def step() -> list[Tensor]:
        x = x_bnd.reshape(-1, width).detach().requires_grad_()
        total = torch.zeros_like(x)
        for layer, (edges, mask) in zip(layers, graphs, strict=True):
            total = total + layer.mlp((1 + layer.eps) * x + sums(x, edges, mask))
        total = total * kept.unsqueeze(-1)
        flat = _gradients(total, upstream.reshape(-1, width), [x, *_weights(layers)])
        return [result.reshape(x_bnd.shape) for result in flat[:2]] + flat[2:]

    return step


def _difference(ours: list[Tensor], plain: list[Tensor]) -> dict[str, float]:
    """Largest difference, of the largest number, in outputs and in gradients."""

    def relative(a: list[Tensor], b: list[Tensor]) -> float:
        return max(
            float((i - j).abs().max() / j.abs().max().clamp_min(1e-30)) for i, j in zip(a, b, strict=True)
        )

    return {
        "outputs, relative": relative(ours[:1], plain[:1]),
        "gradients, relative": relative(ours[1:], plain[1:]),
    }
