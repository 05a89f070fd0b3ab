"""A training step of any model on a random organism of any size, for measurements.

Legend: n genes · f features per gene · e edges of all relations · b mutants · k perturbed genes per mutant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.profiling.machine import PeakMemory, PeakOnDevice, peak_in_fresh_process

if TYPE_CHECKING:
    import torch

    from wildtype.models.interface import Model, OrganismTensors, WildType
    from wildtype.mutants.batch import MutantBatch

DENSEST = 0.1
"""Largest share of all ordered pairs that may be edges of one relation: repeated draws are dropped, which in
denser graphs leaves too few.
"""
CLIP = 1.0
"""Largest gradient norm, as in the training settings."""
WARM_UP_GENES = 40


@dataclass(frozen=True)
class ProblemSizes:
    """Sizes of an organism and a batch.

    Attributes
    ----------
    genes, relations, edges : int
        n, gene graphs, and directed edges e of all of them together.
    batch_size, perturbed : int
        Mutants b per step, and deleted genes k of each.
    features : int
        f, where the model's settings ask for features.
    """

    AXES: ClassVar[tuple[str, ...]] = ("batch_size", "genes", "edges", "perturbed")

    genes: int = 1000
    relations: int = 4
    edges: int = 40_000
    batch_size: int = 64
    perturbed: int = 3
    features: int = 32

    def check(self, config: Any) -> None:
        """Refuse sizes that cannot be drawn, or that the model cannot process with these settings.

        Raises
        ------
        ConfigError
            Naming the size and the remedy.
        """
        check_positive(self, but=("features",))
        if self.features < 0:
            raise ConfigError(f"features={self.features}: it must be at least 0")
        check_edges(self.genes, self.relations, self.edges)
        from wildtype.models.registry import model_class, require_gradients

        require_gradients(config.name, "a profile")
        model = model_class(config.name)
        least = model.least_perturbed
        if not least <= self.perturbed <= self.genes:
            raise ConfigError(
                f"perturbed={self.perturbed}: for the model {config.name} it must be between {least} and "
                f"genes={self.genes}"
            )
        if "metabolism" in model.needed(config):
            raise ConfigError("model.metabolism=true: a random organism has no metabolism, set it false")
        named = model.named_relations(config)
        if len(named) > self.relations:
            raise ConfigError(
                f"relations={self.relations}, but the model's settings name {len(named)}: take at least that"
            )


def check_positive(sizes: Any, but: Sequence[str] = ()) -> None:
    """Refuse sizes below 1, but for some: raises ``ConfigError``."""
    for name, value in asdict(sizes).items():
        if name not in but and value < 1:
            raise ConfigError(f"{name}={value}: it must be at least 1")


def check_edges(genes: int, relations: int, edges: int) -> None:
    """Refuse edges that cannot be drawn: raises ``ConfigError``."""
    if edges < relations:
        raise ConfigError(f"edges={edges} leaves some of relations={relations} without any: take more edges")
    most = int(DENSEST * genes * (genes - 1)) * relations
    if edges > most:
        raise ConfigError(
            f"edges={edges} are too many for relations={relations} over genes={genes}, of which a tenth of "
            f"all pairs may be edges: take at most {most} edges, or more genes"
        )


@dataclass(slots=True)
class SyntheticStep:
    """A model, its tensors of a random organism, and one batch; every step does the same work.

    Attributes
    ----------
    sizes : ProblemSizes
        The requested sizes.
    wild_type : WildType or None
        Encoded, without its gradient, where the model does that once per epoch.
    edges : int
        Directed edges e that were drawn, of all relations.
    parameters : int
        Numbers that the model learns.
    loss : str
        As in the training settings.
    bf16 : bool
        Whether the forward pass runs under autocast to bfloat16.
    """

    sizes: ProblemSizes
    model: Model
    organism: OrganismTensors
    batch: MutantBatch
    optimizer: torch.optim.Optimizer
    stream: torch.Generator
    wild_type: WildType | None
    edges: int
    parameters: int
    loss: str
    bf16: bool

    def step(self) -> torch.Tensor:
        """Do a training step and return its loss, without waiting for a GPU.

        The wild type is not encoded again if the model does that once per epoch.
        """
        import torch

        from wildtype.training.objective import objective

        device = self.batch.offsets.device.type
        self.optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=self.bf16):
            wild_type = self.wild_type or self.model.encode(self.organism, self.stream)
            prediction = self.model(wild_type, self.batch)
            total = objective(prediction, wild_type, self.batch, loss=self.loss).total
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return total.detach()


@dataclass(frozen=True)
class Trial:
    """One point of an axis, built and ready to be timed.

    Attributes
    ----------
    seconds : callable
        Does the same step again and returns how long it took, seconds.
    edges, parameters : int
        What was built.
    peak_mib : float or None
        Memory that it takes, MiB; None where that was not measured.
    """

    seconds: Callable[[], float]
    edges: int
    parameters: int
    peak_mib: float | None = None


S = TypeVar("S")
Measure = Callable[[S], Trial]


def synthetic_step(
    config: Any,
    sizes: ProblemSizes,
    *,
    seed: int = 0,
    loss: str = "squared",
    device: str = "cpu",
    bf16: bool = False,
) -> SyntheticStep:
    """Draw an organism, a model and a batch.

    The learning rate is 0 and the model is in its first epoch, in which it computes all its losses.

    Parameters
    ----------
    config : dataclass
        Settings of a model, as in `models.registry.make_model`. Relations that they name are drawn, too.
    sizes : ProblemSizes
        How large everything is.
    seed : int
        Of graphs, features, weights and mutants.
    loss, device, bf16
        As in the training settings.

    Raises
    ------
    ConfigError
        If sizes or settings do not fit.
    """
    import torch

    from wildtype.models.interface import organism_tensors
    from wildtype.models.registry import make_model, model_class
    from wildtype.mutants import MutantTable
    from wildtype.mutants.batch import MutantBatch
    from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
    from wildtype.seeds import derive, generator

    sizes.check(config)
    draw = generator(seed, "synthetic step")
    n, share, rest = sizes.genes, *divmod(sizes.edges, sizes.relations)
    kind = model_class(config.name)
    named = kind.named_relations(config)
    names = [*named, *(f"relation {i}" for i in range(sizes.relations - len(named)))]
    graphs = GeneGraphs(
        Relation.from_edges(name, *distinct_pairs(draw, n, share + (i < rest)), n, directed=True)
        for i, name in enumerate(names)
    )
    organism = Organism("random", GeneIndex([f"G{i}" for i in range(n)]), graphs)
    f = sizes.features if "features" in kind.needed(config) else 0
    features = torch.from_numpy(draw.standard_normal((n, f), dtype="float32"))
    torch.manual_seed(derive(seed, "synthetic step"))
    model = make_model(config, genes=n, features=f, phenotypes=1, relations=names).to(device)
    sets = np.stack([draw.choice(n, sizes.perturbed, replace=False) for _ in range(sizes.batch_size)])
    table = MutantTable.from_matrix(sets, value=draw.standard_normal(len(sets)))
    tensors = organism_tensors(model, organism, features).to(device)
    with torch.no_grad():
        wild_type = model.encode(tensors) if model.encode_per_epoch else None
    return SyntheticStep(
        sizes=sizes,
        model=model,
        organism=tensors,
        batch=MutantBatch.from_table(table).to(device),
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.0),
        stream=torch.Generator().manual_seed(derive(seed, "prior")),
        wild_type=wild_type,
        edges=sum(relation.nnz for relation in graphs.values()),
        parameters=sum(p.numel() for p in model.parameters()),
        loss=loss,
        bf16=bf16,
    )


def distinct_pairs(draw: np.random.Generator, n: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ends, [count] each, of distinct edges without loops between n nodes, in random order."""
    # An eighth more than needed: what repeats and loops take away is less in graphs up to DENSEST.
    pairs = np.unique(draw.integers(0, n * n, count + count // 8 + 16))
    pairs = pairs[pairs // n != pairs % n]
    pairs = draw.permutation(pairs)[:count]
    return pairs // n, pairs % n


def training_steps(
    config: Any,
    *,
    seed: int = 0,
    loss: str = "squared",
    device: str = "cpu",
    bf16: bool = False,
    memory: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Measure[ProblemSizes]:
    """Return a function that measures training steps of a model on random organisms.

    Parameters
    ----------
    config, seed, loss, device, bf16
        As in `synthetic_step`.
    memory : bool
        Also measure every point's peak memory on a CPU, once and in a new process, which takes some seconds.
        On a GPU it is always measured.
    clock : callable
        Gives the time, seconds.
    """

    @cache
    def peak(sizes: ProblemSizes) -> float:
        arguments = asdict(config), asdict(sizes), seed, bf16
        return peak_in_fresh_process("wildtype.profiling.synthetic_problem", *arguments)

    def measure(sizes: ProblemSizes) -> Trial:
        import torch

        from wildtype.nn.devices import waits_for

        place = torch.device(device)
        wait, on_gpu = waits_for(place), place.type != "cpu"
        with PeakOnDevice(place) if on_gpu else nullcontext() as held:
            made = synthetic_step(config, sizes, seed=seed, loss=loss, device=device, bf16=bf16)
            made.step()  # compiles kernels and makes the optimizer's moments, which later steps do not
        if held is not None:
            peak_mib: float | None = held.peak - held.before
        else:
            peak_mib = peak(sizes) if memory else None

        def now() -> float:
            wait()
            return clock()

        def seconds() -> float:
            start = now()
            made.step()
            return now() - start

        return Trial(seconds, made.edges, made.parameters, peak_mib)

    return measure


def peak_above_import(settings: dict[str, Any], sizes: dict[str, int], seed: int, bf16: bool) -> float:
    """Return the MiB that an organism, a model and two steps on the CPU add to this process, which has done
    the same in the smallest size before, so that compiled kernels and late imports are there already.

    Parameters
    ----------
    settings, sizes : dict
        Of a model and of `ProblemSizes`, as plain values.
    seed, bf16
        As in `synthetic_step`.
    """
    from wildtype.models.registry import settings_of_model

    config = settings_of_model(settings["name"], settings)
    wanted = ProblemSizes(**sizes)
    genes = min(wanted.genes, max(wanted.perturbed, WARM_UP_GENES))
    # Compiled kernels and late imports of the first step belong to no size, so a tiny step comes before.
    smallest = replace(wanted, genes=genes, edges=wanted.relations, batch_size=1)
    synthetic_step(config, smallest, seed=seed, bf16=bf16).step()
    with PeakMemory() as memory:
        made = synthetic_step(config, wanted, seed=seed, bf16=bf16)
        made.step()
        made.step()  # the first one made the moments, so only the second has everything beside them
    return memory.peak - memory.before
