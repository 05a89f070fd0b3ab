"""Planted slow-downs, each of which a comparison of profiles must name as the strongest cause.

Every slow-down was once found in a training run. It is trained beside its base, which differs in nothing
else, on random mutants of a random organism. Of the two profiles, the strongest cause must be the phase in
which the slow-down was planted, for the right reason. Ten of them stand here, the others in
`planted_runtime`.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import torch
import typer
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torch.utils.data import DataLoader

from benchmarks.planted_runtime import RUNTIME
from benchmarks.plants import EDGES, FEW, GENES, MANY_GENES, ROWS, Plant, Ways
from wildtype.errors import ConfigError
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.difference_gnn.config import DifferenceGNNConfig
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.models.registry import reference_implementation
from wildtype.models.wrapper import ModelWrapper
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import CsrMasks, EdgeMasks, LoopMasks, Wiring
from wildtype.mutants.loader import MutantLoader
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import GeneIndex, Relation
from wildtype.phases import phase
from wildtype.profiling.compare import Gap, compare_profiles
from wildtype.profiling.operators import OperatorCounter
from wildtype.profiling.record import Workload, profile_record
from wildtype.profiling.synthetic_problem import ProblemSizes, distinct_pairs, synthetic_step
from wildtype.seeds import derive, generator
from wildtype.training.config import TrainingConfig
from wildtype.training.fit import fit_model
from wildtype.training.phase_recorder import PhaseRecorder

WARM_UP = 5


def bench_planted(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all by default.")
    ] = None,
    *,
    pairs: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    """Planted slow-downs, each of which `profile compare` must name as the strongest cause.

    Each is trained ``pairs`` times in turn with its base, and the fastest of each are compared.

    Returns
    -------
    dict
        ``rows``: per plant, how much longer an epoch takes, the strongest cause, its share, whether it is the
        one that was planted, and what is unattributed of a step, the larger of the two runs. ``found``: how
        many are. ``load``: of the machine, at the end.
    """
    if unknown := [name for name in names or () if name not in PLANTS]:
        raise ConfigError(f"nothing called {unknown[0]!r} can be planted: choose from {', '.join(PLANTS)}")
    rows = []
    for name in names or PLANTS:
        plant = PLANTS[name]
        runs = [(_profile("base", plant.base, seed), _profile(name, plant.slow, seed)) for _ in range(pairs)]
        # In turn, and the faster of each counts: other work on the machine only adds time.
        base, slow = (min(both, key=_step_seconds) for both in zip(*runs, strict=True))
        unattributed = max(base["unattributed"]["share"], slow["unattributed"]["share"])
        rows.append(_row(name, plant, compare_profiles(base, slow)[0]) | {"unattributed": unattributed})
    found = sum(row["found"] for row in rows)
    return {"rows": rows, "found": found, "planted": len(rows), "load": os.getloadavg()[0]}


def _step_seconds(record: dict[str, Any]) -> float:
    # Without what other jobs took, so that the choice is between runs and not between their neighbours.
    clocks = record["steady"]["phases"].values()
    return float(sum(clock["seconds"] - clock["delay"] for clock in clocks))


def _row(name: str, plant: Plant, gap: Gap) -> dict[str, Any]:
    cause = gap.causes[0] if gap.causes else None
    return {
        "planted": name,
        "ratio": gap.epoch["ratio"],
        "phase": "" if cause is None else cause.phase or "steps per epoch",
        "kind": "" if cause is None else cause.kind,
        "share": 0.0 if cause is None else cause.share,
        "unexplained": gap.unexplained["share"],
        "evidence": "" if cause is None else cause.evidence,
        "found": cause is not None
        and cause.phase in plant.phases
        and cause.kind in plant.kinds
        and plant.said in cause.evidence,
    }


def _profile(name: str, ways: Ways, seed: int) -> dict[str, Any]:
    """Train for some steps, and return their profile."""
    size = FEW if ways.graphs else ways.batch_size
    sizes = ProblemSizes(genes=ways.genes, relations=2, edges=EDGES, batch_size=2, perturbed=2)
    config: Any = CellTransformerConfig(width=32, layers=ways.layers, heads=4, features=False)
    if ways.graphs:
        config = DifferenceGNNConfig(width=32, layers=2)
    made = synthetic_step(config, sizes, seed=seed)
    draw = generator(seed, "planted")
    sets = np.stack([draw.choice(ways.genes, 2, replace=False) for _ in range(ROWS)])
    table = MutantTable.from_matrix(sets, value=draw.standard_normal(ROWS))
    model = ways.model(made.model)
    torch.manual_seed(derive(seed, "planted"))
    loader = (ways.loader or _loader)(table, size)
    counter = OperatorCounter()
    recorder = PhaseRecorder(warm_up=WARM_UP, inside=counter)
    training = TrainingConfig(
        epochs=1 + (WARM_UP + ways.steps) // len(loader),
        steps=WARM_UP + ways.steps,
        batch_size=size,
        patience=0,
        clip=ways.clip,
        device="cpu",
        threads=1,  # so that other work on the machine does little harm
    )
    with TemporaryDirectory() as folder, ways.around():
        fit_model(
            model,
            made.organism,
            table,
            table.take(np.arange(FEW)),
            training,
            folder=Path(folder),
            seed=seed,
            show=False,
            execution="training",
            recorder=recorder,
            callbacks=ways.callbacks,
            loader=loader,
        )
    if isinstance(loader, WorkerLoader):
        loader.close()
    parameters = sum(p.numel() for p in model.parameters())
    work = Workload(config.name, "random", ways.genes, 2, made.edges, parameters, size, len(loader))
    return profile_record(recorder, work, name=name, counts=counter.counts())


def _loader(table: MutantTable, size: int) -> MutantLoader:
    return MutantLoader(table, size, shuffle=True)


# ------------------------------------------------------------------------------------------------- loaders


class SleepyLoader(MutantLoader):
    """Sleeps while it collates a batch."""

    def __iter__(self) -> Iterator[MutantBatch]:
        """Serve an epoch."""
        for batch in super().__iter__():
            with phase("collate"):
                time.sleep(0.02)
            yield batch


class _SlowRows:
    """Rows that are slow to read, as from a distant disk."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> int:
        time.sleep(0.0002)
        return row


@contextmanager
def _crowded() -> Iterator[None]:
    """Suppress the warning about more processes than processors: these sleep most of the time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


class WorkerLoader:
    """Batches that worker processes collate.

    Parameters
    ----------
    table : MutantTable
        The rows.
    batch_size, workers : int
        Mutants per batch, and processes.
    """

    def __init__(self, table: MutantTable, batch_size: int, workers: int) -> None:
        rows = MutantBatch.from_table(table)
        with _crowded():
            self._loader: DataLoader[Any] = DataLoader(
                _SlowRows(len(table)),  # type: ignore[arg-type]
                batch_size=batch_size,
                num_workers=workers,
                collate_fn=lambda picked: rows.take(torch.tensor(picked)),
                persistent_workers=True,
                multiprocessing_context="fork",
            )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[MutantBatch]:
        with _crowded():
            return iter(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Nothing depends on the epoch."""

    def close(self) -> None:
        """End the processes."""
        self._loader._iterator = None


# -------------------------------------------------------------------------------------------------- models


class ReadsEverySample(ModelWrapper):
    """Reads every prediction as a number."""

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        found = super().forward(wild_type, mutants)
        columns = [found.mean.detach()[:, 0], mutants.value, mutants.sd, mutants.phenotype, mutants.condition]
        # Four times, which are as many columns as a model of more phenotypes has.
        self.seen = [tuple(cell.item() for cell in sample) for sample in zip(*columns * 4, strict=True)]
        return found


class Twice(ModelWrapper):
    """Runs the forward pass twice, and uses it once."""

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """As the inner model."""
        super().encode(organism, stream)
        return super().encode(organism, stream)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        super().forward(wild_type, mutants)
        return super().forward(wild_type, mutants)


class MakesMasks(ModelWrapper):
    """Makes the edge masks of every mutant of the batch, with one of the generators."""

    def __init__(self, inner: Model, make: Callable[[Wiring], EdgeMasks]) -> None:
        super().__init__(inner)
        draw = generator(0, "planted masks")
        genes = GeneIndex([f"G{i}" for i in range(GENES)])
        pairs = distinct_pairs(draw, GENES, EDGES)
        relation = Relation.from_edges("relation", *pairs, GENES, directed=True)
        self.masks = make(Wiring(CellGraph(genes, {"relation": relation})))
        self.memory: dict[str, Tensor] | None = None

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        with phase("representation"):
            self.masks.masks(mutants)
        return super().forward(wild_type, mutants)


class Neighbours(ModelWrapper):
    """Adds to its loss how much the states of genes differ from the mean over their neighbours."""

    def __init__(self, inner: Model, dense: bool) -> None:
        super().__init__(inner)
        self.dense = dense
        pairs = distinct_pairs(generator(0, "planted"), MANY_GENES, EDGES)
        self.rows, self.cols = (torch.from_numpy(ends) for ends in pairs)
        self.op = SparseOperator.from_edges(self.rows, self.cols, MANY_GENES)
        self.degree = torch.bincount(self.rows, minlength=MANY_GENES).clamp(min=1).unsqueeze(1)

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """As the inner model."""
        found = super().encode(organism, stream)
        with phase("graph prior"):
            if self.dense:
                adjacency = torch.zeros(MANY_GENES, MANY_GENES)
                adjacency[self.rows, self.cols] = 1.0
                near = (adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)) @ found.genes
            else:
                near = (self.op @ found.genes) / self.degree
            loss = (found.genes - near).square().mean()
        return replace(found, losses=found.losses | {"near": loss}, weights={**found.weights, "near": 0.01})


# ----------------------------------------------------------------------------------------------- callbacks


class PlotsEveryStep(Callback):
    """Draws a figure after every step."""

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *arguments: Any) -> None:
        """Draw and save a figure."""
        from io import BytesIO

        from matplotlib.figure import Figure

        axes = (figure := Figure()).subplots()
        axes.plot(range(10))
        figure.savefig(BytesIO(), format="png")


class ClipsAndLooks(Callback):
    """Clips gradients by hand, reading the norm of each."""

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Clip to a norm of 1."""
        grads = [p.grad for p in pl_module.parameters() if p.grad is not None]
        for _ in range(40):  # as many as a deep model has more parameters than this one
            norms = [grad.norm().item() for grad in grads]
        scale = min(1.0, 1.0 / (sum(norm**2 for norm in norms) ** 0.5 + 1e-6))
        for grad in grads:
            grad.mul_(scale)


FORWARD = frozenset({"encode wild type", "graph prior", "head"})
PLANTS: dict[str, Plant] = {
    "sleep in collate": Plant(
        Ways(), Ways(loader=SleepyLoader), frozenset({"collate"}), frozenset({"waiting"})
    ),
    ".item() per sample": Plant(
        Ways(layers=0, steps=60),
        Ways(layers=0, model=ReadsEverySample, steps=60),
        frozenset({"head"}),
        frozenset({"scalar reads"}),
    ),
    "doubled forward": Plant(Ways(), Ways(model=Twice), FORWARD, frozenset({"repeated"})),
    "tiny batch": Plant(
        Ways(), Ways(batch_size=FEW, steps=120), frozenset({None}), frozenset({"steps"})
    ),
    "per-sample Python mask loop": Plant(
        Ways(model=lambda model: MakesMasks(model, CsrMasks)),
        Ways(model=lambda model: MakesMasks(model, LoopMasks)),
        frozenset({"representation"}),
        frozenset({"more operators"}),
    ),
    "replicated edge lists": Plant(
        Ways(graphs=True),
        Ways(graphs=True, model=reference_implementation),
        frozenset({"head", "backward"}),
        frozenset({"more operators", "larger operands"}),
    ),
    "too few loader workers": Plant(
        Ways(loader=lambda table, size: WorkerLoader(table, size, 12)),
        Ways(loader=lambda table, size: WorkerLoader(table, size, 1)),
        frozenset({"wait for loader"}),
        frozenset({"waiting"}),
    ),
    "plotting every step": Plant(
        Ways(steps=72),
        Ways(callbacks=[PlotsEveryStep()], steps=72),
        frozenset({"callbacks"}),
        frozenset({"python", "waiting"}),
    ),
    "gradient clipping that syncs": Plant(
        Ways(), Ways(callbacks=[ClipsAndLooks()], clip=0.0), frozenset({"optimizer"}),
        frozenset({"scalar reads"}),
    ),
    "dense adjacency rebuilt each step": Plant(
        Ways(model=lambda model: Neighbours(model, dense=False), genes=MANY_GENES, layers=0),
        Ways(model=lambda model: Neighbours(model, dense=True), genes=MANY_GENES, layers=0),
        frozenset({"graph prior"}),
        frozenset({"larger operands", "more operators"}),
    ),
}  # fmt: skip
PLANTS |= RUNTIME
