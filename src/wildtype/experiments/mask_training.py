"""Training from edge masks: made for every batch, or stored before training; the same losses either way.

A reference implementation multiplies its messages by masks of the edges that a mutant keeps. Whether they are
computed with the batch or read from disk, packed to bits or a byte each, they are the same masks, so that
every loss is the same to the last bit. What differs is time and bytes, which are measured here, beside the
same training without any edge mask, over a shared adjacency.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from wildtype.datasets import Dataset
from wildtype.errors import ConfigError
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build
from wildtype.experiments.start import Log
from wildtype.models.registry import reference_implementation
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import CsrMasks, Wiring
from wildtype.mutants.precomputed import PrecomputedMasks, stored_arrays, write_masks
from wildtype.profiling.machine import machine
from wildtype.profiling.pipelines import tensor_bytes
from wildtype.seeds import derive
from wildtype.training.task import FitTask

GENERATED, SHARED = "made per batch", "none: shared adjacency"
LAYOUTS = ("bits", "uint8")
Masks = Mapping[str, Tensor]


@runtime_checkable
class TakesMasks(Protocol):
    """A reference implementation whose edges and masks can be given."""

    def given(self, edges: Mapping[str, Tensor], masks: Masks) -> AbstractContextManager[None]:
        """Within the block, batches have these edges int64 [2, e] and masks bool [b, e]."""


@dataclass(frozen=True)
class MaskTraining:
    """A training from one source of masks.

    Attributes
    ----------
    masks : str
        Made per batch; a layout of stored ones; or none.
    write_seconds, disk_bytes : float, int
        To store the masks of all mutants that are served; 0 where none are stored.
    batch_bytes : int
        Of the masks of a batch in memory.
    masks_ms, step_ms : float
        Medians over steps: to make or read the masks of a batch, and a training step with that.
    first_loss, last_loss : float
        Of the first and of the last step.
    largest_difference : float
        From the losses with masks made per batch, over all steps.
    """

    masks: str
    write_seconds: float
    disk_bytes: int
    batch_bytes: int
    masks_ms: float
    step_ms: float
    first_loss: float
    last_loss: float
    largest_difference: float


def train_from_masks(
    config: TrainConfig,
    *,
    steps: int = 10,
    layouts: Sequence[str] = LAYOUTS,
    folder: Path | None = None,
    dataset: Dataset | None = None,
    log: Log = lambda text: None,
) -> dict[str, Any]:
    """Train from every source of masks, from equal weights on equal batches, in one thread.

    Parameters
    ----------
    config
        Settings of a model whose reference implementation takes masks.
    steps
        Training steps of each.
    layouts
        Layouts of stored masks.
    folder
        Where masks are stored while they are used; a temporary one by default.
    dataset
        Instead of the one that the settings name.
    log
        Receives a line per source.

    Returns
    -------
    dict
        ``rows``: a `MaskTraining` per source; ``equal``: whether all losses from masks are the same to the
        last bit; ``problem`` and ``machine``.

    Raises
    ------
    ConfigError
        If the model has no reference implementation that takes masks, or its mutants are no deletions from
        the wild type's graph.
    """
    if steps < 1:
        raise ConfigError(f"steps={steps}: it must be positive")
    data = prepare(config, dataset)
    model, _ = build(config, data, config.seed)
    if not isinstance(reference_implementation(model), TakesMasks):
        raise ConfigError(
            f"model={config.model.name} has no reference that takes edge masks: choose a model of one graph "
            "per mutant"
        )
    if config.model.representation != "lazy_subgraph":
        raise ConfigError(
            f"model.representation={config.model.representation}: stored masks are those of lazy_subgraph"
        )
    graph = CellGraph.of(data.dataset.organism, model.relations, metabolism="metabolism" in model.needs)
    wiring = Wiring(graph, removes=config.model.removes)
    edges = {name: ends.positions for name, ends in wiring.ends.items()}
    table, batches = _served(config, data, steps)
    whole = MutantBatch.from_table(table)
    generator = CsrMasks(wiring)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums of several threads may be added in another order every time
    rows: list[MaskTraining] = []
    losses: dict[str, list[float]] = {}

    def run(
        name: str, masks: Callable[[Tensor], Masks] | None, written: tuple[float, int] = (0.0, 0)
    ) -> None:
        log(f"masks {name}: {steps} steps")
        found = _train(config, data, edges, whole, batches, masks)
        losses[name] = found.losses
        gaps = [abs(a - b) for a, b in zip(found.losses, losses[GENERATED], strict=True)]
        rows.append(
            MaskTraining(
                name,
                *written,
                found.batch_bytes,
                1000 * median(found.mask_seconds),
                1000 * median(found.step_seconds),
                found.losses[0],
                found.losses[-1],
                max(gaps),
            )
        )

    try:
        run(GENERATED, lambda at: generator.masks(whole.take(at)))
        with TemporaryDirectory() if folder is None else nullcontext(folder) as room:
            for layout in layouts:
                target = Path(room) / layout
                start = time.perf_counter()
                write_masks(graph, table, target, layout, removes=config.model.removes)
                seconds = time.perf_counter() - start
                stored = PrecomputedMasks.open(target, graph, table)
                size = sum(array.bytes for array in stored_arrays(wiring, table, layout))
                run(layout, partial(_stored, stored), (seconds, size))
        run(SHARED, None)
    finally:
        torch.set_num_threads(threads)
    return {
        "rows": [asdict(row) for row in rows],
        "equal": all(losses[name] == losses[GENERATED] for name in layouts),
        "problem": {
            "dataset": data.dataset.name, "mutants": len(table), "genes": graph.n,
            "edges": sum(wiring.edges.values()), "batch_size": len(batches[0]), "steps": steps,
        },
        "machine": machine(),
    }  # fmt: skip


def _stored(masks: PrecomputedMasks, rows: Tensor) -> Masks:
    return masks.masks(rows.numpy())


def _served(config: TrainConfig, data: RunData, steps: int) -> tuple[MutantTable, list[Tensor]]:
    """Return the training mutants that so many steps serve, and the rows of every batch."""
    table, size = data.scaled("train"), config.training.batch_size
    stream = torch.Generator().manual_seed(derive(config.seed, "masks"))
    drawn = torch.randperm(len(table), generator=stream)[: steps * size]
    batches: list[Tensor] = []
    while len(batches) < steps:
        order = torch.randperm(len(drawn), generator=stream)
        batches += list(order.split(size))
    return table.take(drawn.numpy()), batches[:steps]


@dataclass
class _Trained:
    losses: list[float]
    mask_seconds: list[float]
    step_seconds: list[float]
    batch_bytes: int = 0


def _train(
    config: TrainConfig,
    data: RunData,
    edges: Mapping[str, Tensor],
    whole: MutantBatch,
    batches: Sequence[Tensor],
    masks: Callable[[Tensor], Masks] | None,
) -> _Trained:
    """Train a new model on the rows of every batch; without ``masks`` over the shared adjacency."""
    model, organism = build(config, data, config.seed)
    made = model if masks is None else reference_implementation(model)
    task = FitTask(made.train(), organism, config.training, len(batches), config.seed)
    optimizer, found = task.configure_optimizers(), _Trained([], [], [])
    for step, rows in enumerate(batches):
        torch.manual_seed(derive(config.seed, "step", step))  # of dropout
        start = time.perf_counter()
        given: AbstractContextManager[None] = nullcontext()
        batch = whole.take(rows)
        if masks is not None and isinstance(made, TakesMasks):
            of_batch = masks(rows)
            found.batch_bytes = max(found.batch_bytes, tensor_bytes(list(of_batch.values())))
            given = made.given(edges, of_batch)
        found.mask_seconds.append(time.perf_counter() - start)
        optimizer.zero_grad()
        with given:
            loss = task.objective(batch).total
            loss.backward()
        optimizer.step()
        found.losses.append(float(loss.detach()))
        found.step_seconds.append(time.perf_counter() - start)
    return found
