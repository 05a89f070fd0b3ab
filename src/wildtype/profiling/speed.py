"""Four short measurements of a machine: attention, a training step, evidence lookup and a screen.

`machine_speed` runs them at small sizes for `wildtype doctor --speed`. The problems are functions of their
sizes, and the benchmarks of the repository draw the same problems at full size.

Legend: n genes · H heads · d head width · K relations · e directed edges of all of them · c candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.inference.predictor import Predictor
from wildtype.inference.screening.constraints import Constraints
from wildtype.inference.screening.designs import Combinations
from wildtype.inference.screening.stream import Screen, ScreenWorker
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.interface import organism_tensors
from wildtype.models.registry import DEFAULT_MODEL, make_model, settings_of_model
from wildtype.mutants import Kind, MutantTable
from wildtype.nn.attention import attention_with_lse
from wildtype.nn.devices import device_named, waits_for
from wildtype.nn.graph_prior import graph_prior_kl
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
from wildtype.profiling.evidence_problem import EvidenceProblem
from wildtype.profiling.machine import machine, take_turns
from wildtype.profiling.synthetic_problem import ProblemSizes, distinct_pairs, synthetic_step
from wildtype.seeds import derive, generator

Inputs = tuple[Tensor, Tensor, Tensor]
AttentionStep = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class SpeedSizes:
    """Sizes of the four measurements; the defaults take about ten seconds on two cores.

    Attributes
    ----------
    nodes, edges : int
        Tokens of the attention layer, and edges of its nine graph priors.
    genes, batch_size : int
        Of the training step, and of the screen.
    measured, queries : int
        Measured pairs and looked-up pairs of the evidence.
    candidates : int
        Of the screen of all their triples.
    repeats : int
        Timed calls of each.
    """

    nodes: int = 2000
    edges: int = 250_000
    genes: int = 1000
    batch_size: int = 256
    measured: int = 20_000
    queries: int = 2000
    candidates: int = 100
    repeats: int = 2


def machine_speed(
    device: str = "cpu",
    *,
    sizes: SpeedSizes | None = None,
    seed: int = 0,
    log: Callable[[str], object] = lambda name: None,
) -> dict[str, Any]:
    """Return what attention, a training step, evidence lookup and a screen take on this machine.

    Parameters
    ----------
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``, for attention and the training step; evidence and screens are
        computed on the CPU.
    sizes : SpeedSizes, optional
        The defaults unless given.
    seed : int
        Random seed of all problems.
    log : callable
        Receives the name of each measurement before it begins.

    Returns
    -------
    JSON-able: ``machine``, ``device``, ``sizes``; ``attention`` (``seconds`` and ``ratios``), ``step``
    (``seconds_per_step`` and ``mutants_per_second``), ``evidence`` (``queries_per_second``) and ``screen``
    (``mutants_per_second``).

    Raises
    ------
    ConfigError
        If there is no such device.
    """
    place = device_named(device)
    sizes = sizes or SpeedSizes()
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "attention": lambda: _attention_speed(sizes, place, seed),
        "step": lambda: _step_speed(sizes, place, seed),
        "evidence": lambda: _evidence_speed(sizes, seed),
        "screen": lambda: _screen_speed(sizes, seed),
    }
    found = {}
    for name, measure in measures.items():
        log(name)
        found[name] = measure()
    return {"machine": machine(), "device": str(place), "sizes": asdict(sizes), **found}


# ----------------------------------------------------------------------------------------------- attention


@dataclass(frozen=True)
class AttentionProblem:
    """One attention layer of H heads over n tokens, and a graph prior for each of K relations."""

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

    def operators(self) -> list[SparseOperator]:
        """Random directed relations without repeated pairs or loops, normalised ahead of the first step."""
        stream = torch.Generator().manual_seed(self.seed)
        operators = []
        for relation in range(self.relations):
            share = self.edges // self.relations + (relation < self.edges % self.relations)
            pairs = torch.randint(self.nodes**2, (share + share // 8 + 16,), generator=stream)
            pairs = torch.unique(pairs[pairs // self.nodes != pairs % self.nodes])
            pairs = pairs[torch.randperm(len(pairs), generator=stream)[:share]]
            op = SparseOperator.from_edges(pairs // self.nodes, pairs % self.nodes, self.nodes)
            operators.append(op.row_normalised())
        return operators

    def inputs(self, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Inputs:
        """q, k and v [1, H, n, d] that require gradients."""
        stream = torch.Generator().manual_seed(self.seed + 1)
        shape = (1, self.heads, self.nodes, self.width)
        # Drawn in float32 on the CPU and moved, so that every device and precision has the same numbers.
        q, k, v = (torch.randn(shape, generator=stream).to(device, dtype).requires_grad_() for _ in range(3))
        return q, k, v


def readout(out: Tensor) -> Tensor:
    """Return a scalar with a different gradient in every entry, of the order of the priors."""
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).reshape(out.shape)
    return (out * weight).sum()


def plain_attention(problem: AttentionProblem) -> AttentionStep:
    """Return torch's attention without priors."""
    return lambda q, k, v: readout(scaled_dot_product_attention(q, k, v, scale=problem.scale))


def regularised_attention(problem: AttentionProblem, operators: list[SparseOperator]) -> AttentionStep:
    """Return attention with its log-normaliser and the KL of every relation's prior: out + Σ_r KL_r."""

    def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, lse = attention_with_lse(q, k, v, scale=problem.scale)
        loss = readout(out)
        heads = list(zip(q[0], k[0], lse[0], strict=True))
        for relation, op in enumerate(operators):
            loss = loss + graph_prior_kl(*heads[problem.head_of(relation)], op, scale=problem.scale)
        return loss

    return step


def value_and_gradients(step: AttentionStep, inputs: Inputs) -> list[Tensor]:
    """Return the loss of a forward pass and its gradients in q, k and v."""
    loss = step(*inputs)
    return [loss.detach(), *torch.autograd.grad(loss, inputs)]


def _attention_speed(sizes: SpeedSizes, device: torch.device, seed: int) -> dict[str, Any]:
    problem = AttentionProblem(sizes.nodes, 8, 16, 9, sizes.edges, seed)
    operators = [op.to(device) for op in problem.operators()]
    inputs = problem.inputs(device=device)
    steps = {"plain": plain_attention(problem), "regularised": regularised_attention(problem, operators)}
    seconds = take_turns(
        {name: partial(value_and_gradients, step, inputs) for name, step in steps.items()},
        sizes.repeats,
        synchronise=waits_for(device),
    )
    # The ratio of two formulations in one run says more than either time: the machine's load cancels in it.
    return {"seconds": seconds, "ratios": {"regularised_to_plain": seconds["regularised"] / seconds["plain"]}}


def _step_speed(sizes: SpeedSizes, device: torch.device, seed: int) -> dict[str, float]:
    sized = {"width": 64, "layers": 2, "heads": 8, "features": False, "dropout": 0.0}
    config = settings_of_model(DEFAULT_MODEL, sized)
    drawn = ProblemSizes(sizes.genes, relations=4, edges=20 * sizes.genes, batch_size=sizes.batch_size)
    made = synthetic_step(config, drawn, seed=seed, device=str(device))
    seconds = take_turns({"step": made.step}, sizes.repeats, synchronise=waits_for(device))["step"]
    return {"seconds_per_step": seconds, "mutants_per_second": sizes.batch_size / seconds}


# ------------------------------------------------------------------------------------------------ evidence


def _evidence_speed(sizes: SpeedSizes, seed: int) -> dict[str, Any]:
    problem = EvidenceProblem.draw(sizes.genes, sizes.measured, sizes.queries, seed=seed)
    seconds = take_turns(problem.lookups(), sizes.repeats)
    return {"queries_per_second": {name: sizes.queries / value for name, value in seconds.items()}}


# -------------------------------------------------------------------------------------------------- screen


def random_relations(nodes: int, relations: int, edges: int, draw: np.random.Generator) -> GeneGraphs:
    """Return K random directed relations of n genes, of e edges in all."""
    return GeneGraphs(
        Relation.from_edges(
            f"relation {i}", *distinct_pairs(draw, nodes, edges // relations), nodes, directed=True
        )
        for i in range(relations)
    )


def random_organism(nodes: int, relations: int, edges: int, draw: np.random.Generator) -> Organism:
    """Return n genes and K random directed relations of e edges in all."""
    names = GeneIndex([f"G{i:05d}" for i in range(nodes)], organism="synthetic")
    return Organism("synthetic", names, random_relations(nodes, relations, edges, draw))


def screen_of(gene: NDArray[np.int64], order: int) -> Screen:
    """Return the screen of all sets of ``order`` of the candidate genes, for the 100 lowest and highest."""
    return Screen(
        Combinations(len(gene), order),
        gene,
        np.zeros(len(gene), np.uint8),
        np.full(len(Kind), np.nan, np.float32),
        Constraints(),
        outputs=(0,),
        directions=("low", "high"),
        keep=100,
    )


def random_predictor(
    organism: Organism, head: Mapping[str, Any], width: int, seed: int, *, measured: int = 20_000
) -> Predictor:
    """Return the default model with random weights, and random measured pairs for its additive model.

    ``head`` holds the settings of its head.
    """
    n = len(organism.genes)
    similarity = GeneSimilarity.of(organism)
    torch.manual_seed(derive(seed, "bench screen"))
    sized = {"width": width, "layers": 1, "features": False, "head": dict(head), "evidence": {"tokens": 0}}
    model = make_model(
        settings_of_model(DEFAULT_MODEL, sized),
        genes=n,
        features=0,
        phenotypes=1,
        relations=list(organism.graphs)[:7],
        channels=len(similarity.channels),
        traits=len(similarity.trait_names),
    )
    # As if trained on triples: larger sets would be taken for the largest that it was trained on.
    model.get_buffer("head.largest_order").fill_(3)
    draw = generator(seed, "measured pairs")
    pairs = MutantTable.from_matrix(
        [draw.choice(n, 2, replace=False) for _ in range(measured)], value=draw.normal(size=measured)
    )
    unknown = np.full(n, np.nan, np.float32)
    known = ReferenceMeasurements(
        ("tau",), pairs, np.zeros(len(pairs), np.uint8), unknown, unknown, np.zeros(n, bool)
    )
    return Predictor(
        Checkpoint(
            model=model.eval(),
            genes=organism.genes,
            organism=organism_tensors(model, organism, torch.zeros(n, 0), similarity, priors=False),
            phenotypes=[{"name": "tau", "unit": "", "min_order": 1}],
            conditions=["reference"],
            mean=np.zeros(1),
            sd=np.ones(1),
            relations=list(organism.graphs),
            known=known,
        )
    )


def _screen_speed(sizes: SpeedSizes, seed: int) -> dict[str, float]:
    draw = generator(seed, "bench screen")
    organism = random_organism(sizes.genes, 4, 20 * sizes.genes, draw)
    gene = np.sort(draw.choice(sizes.genes, sizes.candidates, replace=False)).astype(np.int64)
    head = {"summary": "own_reads", "heads": 4, "direct": ["sum", "product"]}
    predictor = random_predictor(organism, head, 64, seed, measured=1000)
    worker = ScreenWorker(predictor.core, screen_of(gene, 3))
    scored = worker(0).asked
    seconds = take_turns({"piece": lambda: worker(0)}, sizes.repeats)["piece"]
    return {"mutants_per_second": scored / seconds}
