"""Pre-training: the encoder tells hidden feature blocks and edges of genes from the rest of the wild type.

No mutant is read. A step hides blocks of features of genes at random, as if the genes lacked them. From the
states that the encoder gives to genes, a linear layer tells the values of the hidden blocks, which may be
phenotypes of single deletions; and, per relation, a bilinear form tells edges from pairs that are none, at
genes whose position in that relation is hidden. Graph priors act as in training. What tells them is left
behind when training begins.

Hiding attributes and edges of nodes to learn a graph encoder: Hu et al., Strategies for Pre-training Graph
Neural Networks (ICLR 2020); the bilinear form: Nickel et al., RESCAL (ICML 2011).

Legend: n genes · f columns of the features · k blocks of them · d width · r width of the bilinear form.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wildtype.errors import DivergedError
from wildtype.models.cell_transformer.config import PretrainingConfig, PriorHead
from wildtype.models.cell_transformer.encoder import Encoder
from wildtype.models.interface import OrganismTensors
from wildtype.nn.graph_prior import sample_non_edges
from wildtype.nn.sparse import SparseOperator
from wildtype.organism.features import BlockScaling
from wildtype.organism.graph_features import SPECTRAL
from wildtype.seeds import derive

HELD_OUT = 0.05
"""Of the blocks of genes that have a value: never told in a step, they show what was learned."""
EDGES = 2048
"""Drawn per relation and step, and as many pairs that are no edge."""
RANK = 32
"""Width of the bilinear form of a relation."""
WARM_UP = 0.05
"""Share of the steps in which the learning rate rises."""
CLIP = 1.0
TIMED = 3
"""Steps after which is said how long all of them take."""


class FeatureBlocks:
    """Which columns of the features belong to which block, and how a gene looks without one.

    Attributes
    ----------
    names : tuple of str
        Of the k blocks.
    block : int64 [f]
        Of every column.
    value : bool [f]
        Whether a column is a value; else it marks that a gene lacks the block.
    present : bool [n, k]
        Whether a gene has a value of a block.
    """

    def __init__(self, blocks: Sequence[BlockScaling], features: Tensor) -> None:
        sizes = torch.tensor([len(block.inputs) for block in blocks], dtype=torch.int64)
        marked = torch.tensor([block.missing for block in blocks], dtype=torch.bool)
        ends = sizes.cumsum(0)
        device = features.device
        self.names = tuple(block.name for block in blocks)
        self.block = torch.repeat_interleave(torch.arange(len(blocks)), sizes).to(device)
        value = torch.ones(len(self.block), dtype=torch.bool)
        value[ends[marked] - 1] = False
        self.value = value.to(device)
        self.present = torch.ones(len(features), len(blocks), dtype=torch.bool, device=device)
        self.present[:, marked.to(device)] = features[:, (ends[marked] - 1).to(device)] == 0
        # A block whose columns do not vary has no values to tell.
        self.present &= torch.bincount(self.block[self.value], minlength=len(blocks)) > 0

    def without(self, features: Tensor, hidden: Tensor) -> Tensor:
        """Return features [n, f] less the hidden blocks [n, k]: as a gene that has none of their values."""
        return torch.where(hidden[:, self.block], (~self.value).to(features), features)

    def errors(self, told: Tensor, features: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean squared error of each block [k] over the cells [n, k] asked, and of telling 0."""
        cells = asked[:, self.block] & self.value
        k = len(self.names)

        def means(squares: Tensor) -> Tensor:
            of_column = torch.where(cells, squares, 0.0).sum(0)
            total = squares.new_zeros(k).index_add(0, self.block, of_column)
            return total / squares.new_zeros(k).index_add(0, self.block, cells.sum(0).to(squares)).clamp(1)

        return means((told - features).square()), means(features.square())


class Decoders(nn.Module):
    """What tells feature columns and edges from the states of genes; only pre-training has it."""

    def __init__(self, width: int, features: int, relations: Sequence[str]) -> None:
        super().__init__()
        self.features = nn.Linear(width, features)
        self.places = {name: i for i, name in enumerate(relations)}
        self.source = nn.ModuleList(nn.Linear(width, RANK) for _ in relations)
        self.target = nn.ModuleList(nn.Linear(width, RANK) for _ in relations)
        self.rate = nn.Parameter(torch.zeros(len(relations)))  # log odds of a pair whose form says nothing

    def edges(self, states: Tensor, relation: str, pairs: Tensor) -> Tensor:
        """Return the log odds of pairs [2, m] of genes of being an edge."""
        i = self.places[relation]
        q, k = self.source[i](states), self.target[i](states)
        # The gradient of q[i] is summed in any order by several threads; that of index_select is not.
        form: Tensor = (q.index_select(0, pairs[0]) * k.index_select(0, pairs[1])).sum(1)
        return form / math.sqrt(RANK) + self.rate[i]


def pretrain(
    encoder: Encoder,
    config: PretrainingConfig,
    organism: OrganismTensors,
    blocks: Sequence[BlockScaling],
    relations: dict[str, SparseOperator],
    heads: dict[str, PriorHead],
    seed: int,
    log: Callable[[str], None],
) -> None:
    """Pre-train an encoder, and log how long that takes and what was learned.

    Parameters
    ----------
    encoder, organism
        On one device.
    config : PretrainingConfig
    blocks : sequence of BlockScaling
        The columns of the features, in their order.
    relations : dict of str to SparseOperator [n, n]
        Whose edges are told; in memory of the CPU, where pairs are drawn.
    heads : dict of str to PriorHead
        Which weigh the graph priors of ``organism``.
    seed : int
        Of all draws.
    log : callable
        Given lines.

    Raises
    ------
    DivergedError
        If a loss is not finite.
    """
    features = organism.features
    stream = torch.Generator().manual_seed(derive(seed, "pre-training"))
    torch.manual_seed(derive(seed, "dropout of pre-training"))
    table = FeatureBlocks(blocks, features)
    kept = _drawn(table.present, HELD_OUT, stream)
    told = {name: op for name, op in relations.items() if op.nnz and config.edges}
    decoders = Decoders(len(encoder.cls), features.shape[1], tuple(told)).to(features)
    parameters = [*encoder.parameters(), *decoders.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, config.steps))
    encoder.train()
    edge_loss = torch.zeros(())
    begun = time.perf_counter()
    for step in range(config.steps):
        if step == TIMED:
            each = (time.perf_counter() - begun) / TIMED
            log(f"pre-training takes about {config.steps * each:,.0f} s ({config.steps:,} of {each:.2f} s)")
        hidden = _drawn(torch.ones_like(table.present), config.hidden, stream)
        seen = organism.with_features(table.without(features, hidden))
        _, states, priors, _ = encoder(seen, stream)
        error, _ = table.errors(decoders.features(states), features, hidden & table.present & ~kept)
        edge_losses = [
            F.binary_cross_entropy_with_logits(decoders.edges(states, name, pairs), label.to(states))
            for name, pairs, label in _pairs(told, table, hidden, stream)
        ]
        edge_loss = torch.stack(edge_losses).mean() if edge_losses else states.new_zeros(())
        loss: Tensor = error.mean() + config.edges * edge_loss
        for name, prior in priors.items():
            loss = loss + heads[name].weight * prior
        if not bool(loss.isfinite()):
            raise DivergedError(
                f"pre-training diverged at step {step + 1}: the loss is {float(loss.detach())}; lower "
                f"model.pretraining.learning_rate={config.learning_rate:g}"
            )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
        schedule.step()
    encoder.eval()
    with torch.no_grad():
        _, states, _, _ = encoder(organism.with_features(table.without(features, kept)).without_priors())
        error, of_zero = table.errors(decoders.features(states), features, kept)
    encoder.train()
    found = _sentence(config.steps, table, error, of_zero, float(edge_loss.detach()) if told else None)
    log(f"{found}; {time.perf_counter() - begun:.1f} s")


def _drawn(among: Tensor, share: float, stream: torch.Generator) -> Tensor:
    """Return which cells [n, k] of those are drawn; on the CPU, so that every device draws the same."""
    return among & (torch.rand(among.shape, generator=stream) < share).to(among.device)


def _pairs(
    relations: dict[str, SparseOperator], table: FeatureBlocks, hidden: Tensor, stream: torch.Generator
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the pairs [2, m] of a step by relation, a position of one end hidden, and which are edges."""
    for name, op in relations.items():
        edges = torch.stack(op.edges())[:, torch.randint(op.nnz, (EDGES,), generator=stream)]
        pairs = torch.cat([edges, sample_non_edges(op, EDGES, stream)], dim=1).to(hidden.device)
        label = torch.arange(pairs.shape[1], device=hidden.device) < EDGES
        if (block := f"{SPECTRAL}{name}") in table.names:
            place = hidden[:, table.names.index(block)]
            asked = place[pairs[0]] | place[pairs[1]]
            pairs, label = pairs[:, asked], label[asked]
        if pairs.shape[1]:
            yield name, pairs, label


def _rate(step: int, steps: int) -> float:
    """Return the share of the learning rate: a line upwards, then half a cosine."""
    warm_up = max(1, round(WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


def _sentence(
    steps: int, table: FeatureBlocks, error: Tensor, of_zero: Tensor, edge_loss: float | None
) -> str:
    share = [
        f"{name} {float(1 - e / z):.2f}"
        for name, e, z in zip(table.names, error, of_zero, strict=True)
        if float(z) > 0
    ]
    edges = "" if edge_loss is None else f"; edges {edge_loss:.3f} nats, where guessing has {math.log(2):.3f}"
    return (
        f"pre-training, {steps} steps: explained variance of feature blocks of genes that were never told: "
        f"{', '.join(share) or 'none was held out'}{edges}"
    )
