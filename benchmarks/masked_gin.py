"""What a graph layer costs when every mutant is a node mask on one graph, and when it is a graph of its own.

Legend: n nodes · e edges of all relations · b mutants per step · d width.

Timed is one layer of the difference GNN, forward and backward: per relation a GIN, summed over relations;
gradients of states and weights; every mutant lacks two or three nodes. The MLP of a GIN costs the same in
every formulation, so that ratios fall as it grows: of one linear map by default.

* shared: one adjacency per relation, and masks of nodes (`RelationLayer`); one mutant per thread, its
gradients taken right after its states, as in training;
* first: the same for states that all mutants share, as in the first layer of the model (`changed_rows`): a
row is computed again only where a mutant differs from the wild type;
* replicated: with torch_geometric, the edge list repeated for every mutant, messages gathered along edges,
multiplied by a mask of edges and added up at their targets. The masks are made beforehand, untimed;
* product, MLP: the two parts of "shared".

Repeats of all kinds are interleaved, and the shortest counts: other work on the machine only adds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch import Tensor

from benchmarks.measuring import Problem, Reference, chosen
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.difference_gnn.fused import Buffers
from wildtype.models.difference_gnn.layers import RelationLayer, changed_rows, encode_first_layer
from wildtype.nn.message_passing import shared_propagate
from wildtype.nn.sparse import SparseOperator
from wildtype.nn.threads import each
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
        Linear maps of every MLP, with a GELU between them; LayerNorm and GELU follow.
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
    layer, operators, x_bnd, keep_nb = _setup(problem)
    few = min(REPLICATED, batch_size)
    upstream = torch.randn(x_bnd.shape, generator=torch.Generator().manual_seed(seed))
    kinds: dict[str, tuple[int, Step]] = {
        "shared": (batch_size, _shared(layer, operators, x_bnd, keep_nb, upstream)),
        "first": (batch_size, _first(layer, operators, x_bnd[0], keep_nb, upstream)),
        "product": (batch_size, _products(operators, x_bnd, keep_nb, upstream)),
        "MLP": (batch_size, _perceptrons(layer, x_bnd, upstream)),
    }
    if reference:
        masks, grads = keep_nb[:, :few], upstream[:few]
        kinds["replicated"] = (few, _replicated(layer, operators, x_bnd[:few], masks, grads))
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
        plain = _replicated(layer, operators, alike, masks, grads)()
        plain[1] = plain[1].sum(0)
        report["difference"] = {
            "shared": _difference(
                _shared(layer, operators, x_bnd[:few], masks, grads)(), kinds["replicated"][1]()
            ),
            "first": _difference(_first(layer, operators, x_bnd[0], masks, grads)(), plain),
        }
    return report


def _setup(problem: Problem) -> tuple[RelationLayer, list[SparseOperator], Tensor, Tensor]:
    n, d, mutants = problem["nodes"], problem["width"], problem["batch_size"]
    draw = generator(problem["seed"], "bench masked gin")
    torch.manual_seed(derive(problem["seed"], "bench masked gin"))
    operators = []
    for _ in range(problem["relations"]):
        source, target = distinct_pairs(draw, n, problem["edges"] // problem["relations"])
        operators.append(SparseOperator.from_edges(torch.from_numpy(source), torch.from_numpy(target), n))
    config = DifferenceGNNConfig(width=d, gin_layers=problem["mlp_layers"], aggregation_norm=False)
    layer = RelationLayer(config, len(operators))
    keep = torch.ones(n, mutants, dtype=torch.bool)
    for mutant in range(mutants):
        keep[torch.from_numpy(draw.choice(n, 2 + mutant % 2, replace=False)), mutant] = False
    return layer, operators, torch.randn(mutants, n, d), keep


def _gradients(out: Tensor, upstream: Tensor, of: list[Tensor]) -> list[Tensor]:
    return [out.detach(), *torch.autograd.grad(out, of, upstream)]


def _shared(
    layer: RelationLayer, operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor
) -> Step:
    weights, lacking = list(layer.parameters()), ~keep.T.unsqueeze(-1)
    out, of_x = torch.empty_like(x_bnd), torch.empty_like(x_bnd)
    buffers: dict[int, Buffers] = defaultdict(Buffers)

    def step() -> list[Tensor]:
        grads: list[list[Tensor]] = [[] for _ in x_bnd]

        def one(b: int) -> None:
            # Threads of a pool begin with gradients off or on as they please.
            with torch.enable_grad(), buffers[get_ident()]:
                x = x_bnd[b].detach().requires_grad_()
                present = x.masked_fill(lacking[b], 0.0)
                states = layer(present[None], operators)[0].masked_fill(lacking[b], 0.0)
                out[b], of_x[b], *grads[b] = _gradients(states, upstream[b], [x, *weights])

        each(len(x_bnd), one)
        return [out, of_x, *(torch.stack(of_weight).sum(0) for of_weight in zip(*grads, strict=True))]

    return step


def _first(
    layer: RelationLayer, operators: list[SparseOperator], x_nd: Tensor, keep: Tensor, upstream: Tensor
) -> Step:
    lacking = ~keep.T
    gene = lacking.nonzero()[:, 1].contiguous()
    offsets = torch.cat([gene.new_zeros(1), lacking.sum(1).cumsum(0)])

    def step() -> list[Tensor]:
        x = x_nd.detach().requires_grad_()
        first = encode_first_layer(layer, x, operators)
        changed = changed_rows(layer, first, operators, gene, offsets)
        rows = first.output.repeat(len(lacking), 1).index_copy(0, changed.keys, changed.states)
        states = rows.view(*lacking.shape, -1).masked_fill(lacking[..., None], 0.0)
        return _gradients(states, upstream, [x, *layer.parameters()])

    return step


def _products(operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor) -> Step:
    def step() -> list[Tensor]:
        x = x_bnd.detach().requires_grad_()
        for op in operators:
            messages = shared_propagate(op, x.transpose(0, 1), keep)
            torch.autograd.grad(messages.transpose(0, 1), x, upstream)
        return []

    return step


def _perceptrons(layer: RelationLayer, x_bnd: Tensor, upstream: Tensor) -> Step:
    def step() -> list[Tensor]:
        x = x_bnd.detach().requires_grad_()
        for gin in layer.gins:
            torch.autograd.grad(gin(x, x), [x, *gin.parameters()], upstream)
        return []

    return step


def _replicated(
    layer: RelationLayer, operators: list[SparseOperator], x_bnd: Tensor, keep: Tensor, upstream: Tensor
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
        states = [gin(x, sums(x, *graph)) for gin, graph in zip(layer.gins, graphs, strict=True)]
        total = layer.aggregate(states) * kept.unsqueeze(-1)
        flat = _gradients(total, upstream.reshape(-1, width), [x, *layer.parameters()])
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
