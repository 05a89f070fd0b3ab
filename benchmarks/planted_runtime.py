"""Eleven slow-downs of the runtime: what is slow is not the model's arithmetic, but what goes on around it.

The garbage collector, the allocator, objects of Python, logging, checkpoints, work done again, copies, wider
numbers, too many threads and a slow disk. Half of them lie in no phase that the code marks.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from benchmarks.plants import Plant, Ways
from wildtype.models.interface import Model, OrganismTensors, Prediction, WildType
from wildtype.models.wrapper import ModelWrapper
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import MutantLoader
from wildtype.phases import phase
from wildtype.training.task import FitTask

HELD = 150_000
"""Small objects that a program holds; a full collection looks at all of them."""
KEPT = 100_000
"""Small objects that one step keeps for the next."""
TEMPORARY = 6_000_000
"""Numbers of a temporary tensor (23 MiB), larger than what the allocator keeps for the next one."""
AGAIN = 4
"""How often the wild type is encoded again."""
THREADS = 8 * (os.cpu_count() or 1)
CHUNK, CHUNK_SECONDS = 4096, 0.004
"""Bytes that the slow disk serves at once, and how long each takes."""


# ----------------------------------------------------------------------------------- around the training step


@contextmanager
def _in_every_step(work: Callable[[FitTask], object]) -> Iterator[None]:
    """Call ``work`` at the beginning of every training step, outside of all phases."""
    real = FitTask.training_step

    def training_step(self: FitTask, batch: MutantBatch, batch_idx: int) -> Any:
        work(self)
        return real(self, batch, batch_idx)

    with patch.object(FitTask, "training_step", training_step):
        yield


@contextmanager
def collects_every_step() -> Iterator[None]:
    """Collect garbage in every step, as programs do that once ran out of memory."""
    held = [[number] for number in range(HELD)]

    def collects(task: FitTask) -> None:
        gc.collect()

    with _in_every_step(collects):
        yield
    del held


@contextmanager
def collects_all_the_time() -> Iterator[None]:
    """Let the collector run after every few new objects, and keep many of them until the next step."""
    before = gc.get_threshold()

    def makes_lists(task: FitTask) -> None:
        kept[:] = [[number] for number in range(KEPT)]

    kept: list[list[int]] = []
    # Python puts a full collection off until a quarter of the old objects are new: none may be old. It counts
    # them when a full collection ends, and freezing alone leaves that number as it was.
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(50, 2, 2)
    try:
        with _in_every_step(makes_lists):
            yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def logs_every_row() -> Iterator[None]:
    """Write a line per mutant of a batch to a log file."""
    log = logging.getLogger("planted")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    with TemporaryDirectory() as folder:
        handler = logging.FileHandler(Path(folder) / "rows.log")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        log.addHandler(handler)

        def writes_rows(task: FitTask) -> None:
            for row in range(512):
                log.debug("step %d: row %d of %d", task.step, row, 512)

        try:
            with _in_every_step(writes_rows):
                yield
        finally:
            log.removeHandler(handler)
            handler.close()


# -------------------------------------------------------------------------------------------------- callbacks


class SavesEveryStep(Callback):
    """Writes weights and the optimiser's state after every step, and waits until the disk has them."""

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *arguments: Any) -> None:
        """Save."""
        with TemporaryDirectory() as folder:
            self.saves(Path(folder), pl_module)

    def saves(self, folder: Path, task: LightningModule) -> None:
        """Write five files."""
        state = {"model": task.state_dict(), "optimizer": task.optimizers().state_dict()}
        for number in range(5):
            with open(folder / f"{number}.pt", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())


class ManyThreads(Callback):
    """Takes many threads per core, as a library does that was told of a larger machine."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Set their number."""
        torch.set_num_threads(THREADS)


# ---------------------------------------------------------------------------------------------------- loaders


@dataclass
class _Perturbation:
    gene: str
    kind: str
    dose: float


class ObjectLoader(MutantLoader):
    """Makes an object of Python for every perturbation of a batch, and a tensor of their genes."""

    def __iter__(self) -> Iterator[MutantBatch]:
        """Serve an epoch."""
        for batch in super().__iter__():
            with phase("collate"):
                yield replace(batch, gene=self.from_objects(batch))

    def from_objects(self, batch: MutantBatch) -> Tensor:
        """Return the genes of a batch, by way of objects."""
        genes = batch.gene.tolist()
        for _ in range(20):  # as many fields as a record of a real screen has more than these
            made = [_Perturbation(f"G{gene:05d}", "absent", 1.0) for gene in genes]
        return torch.tensor([int(one.gene[1:]) for one in made])


class _SlowFile:
    """A file that serves few bytes at a time, and takes long for each, as over a network."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "rb")  # noqa: SIM115

    def read_slowly(self, size: int) -> bytes:
        """Return some bytes from the beginning."""
        self.file.seek(0)
        parts = []
        for _ in range(-(-size // CHUNK)):
            time.sleep(CHUNK_SECONDS)
            parts.append(self.file.read(CHUNK))
        return b"".join(parts)[:size]


class DiskLoader(MutantLoader):
    """Reads the genes of every batch from a file on a slow disk, in no phase of its own."""

    def __init__(self, table: MutantTable, batch_size: int) -> None:
        super().__init__(table, batch_size, shuffle=True)
        self.folder = TemporaryDirectory()
        path = Path(self.folder.name) / "rows"
        path.write_bytes(bytes(4 * CHUNK))
        self.disk = _SlowFile(path)

    def __iter__(self) -> Iterator[MutantBatch]:
        """Serve an epoch."""
        for batch in super().__iter__():
            self.disk.read_slowly(4 * CHUNK)
            yield batch


# ----------------------------------------------------------------------------------------------------- models


class AllocatesAnew(ModelWrapper):
    """Fills large temporary tensors in every step, whose pages the system must hand out each time."""

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        self.fills_temporaries()
        return super().forward(wild_type, mutants)

    def fills_temporaries(self) -> None:
        """Make and drop them."""
        for _ in range(4):
            torch.empty(TEMPORARY).zero_()


class EncodesAgain(ModelWrapper):
    """Encodes the wild type anew for every part of a batch."""

    organism: OrganismTensors

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """As the inner model."""
        self.organism = organism
        return super().encode(organism, stream)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        for _ in range(AGAIN):
            with torch.no_grad(), phase("encode wild type"):
                super().encode(self.organism)
        return super().forward(wild_type, mutants)


class CopiesStates(ModelWrapper):
    """Copies the states of the genes from place to place before they are used."""

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model."""
        return super().forward(self.copies(wild_type), mutants)

    def copies(self, wild_type: WildType) -> WildType:
        """Return the wild type, copied to and fro."""
        genes = wild_type.genes
        for _ in range(400):
            genes = genes.clone()
            genes = genes.to("cpu", copy=True)
        return replace(wild_type, genes=genes)


class InFloat64(ModelWrapper):
    """Computes in float64, since a number of NumPy made it so."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        inner.double()

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """As the inner model, of features in float64."""
        wide = replace(organism, features=organism.features.double())
        return super().encode(wide, stream)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """As the inner model; the loss is that of float32."""
        found = super().forward(wild_type, mutants)
        return replace(found, mean=found.mean.float())


NO_PHASE = frozenset({"between phases"})
RUNTIME: dict[str, Plant] = {
    "gc.collect in every step": Plant(
        Ways(),
        Ways(around=collects_every_step),
        frozenset({"garbage collector"}),
        frozenset({"garbage collector"}),
        "in collects",
    ),
    "a collector that never rests": Plant(
        Ways(),
        Ways(around=collects_all_the_time),
        frozenset({"garbage collector"}),
        frozenset({"garbage collector"}),
    ),
    "temporaries allocated anew": Plant(
        Ways(),
        Ways(model=AllocatesAnew),
        frozenset({"head"}),
        frozenset({"allocation", "larger operands"}),
        "fills_temporaries",
    ),
    "an object per perturbation": Plant(
        Ways(), Ways(loader=ObjectLoader), frozenset({"collate"}), frozenset({"python"}), "from_objects"
    ),
    "a log line per row": Plant(
        Ways(), Ways(around=logs_every_row), NO_PHASE, frozenset({"python"}), "writes_rows"
    ),
    "a checkpoint after every step": Plant(
        Ways(),
        Ways(callbacks=[SavesEveryStep()]),
        frozenset({"callbacks"}),
        frozenset({"python", "waiting"}),
        "in saves",
    ),
    "the wild type encoded again": Plant(
        Ways(),
        Ways(model=EncodesAgain),
        frozenset({"encode wild type"}),
        frozenset({"repeated", "more operators"}),
    ),
    "copies to and fro": Plant(
        Ways(layers=0, steps=60),
        Ways(layers=0, model=CopiesStates, steps=60),
        frozenset({"head"}),
        frozenset({"copies"}),
        "in copies",
    ),
    "float64": Plant(
        Ways(layers=2),
        Ways(layers=2, model=InFloat64),
        frozenset({"encode wild type", "backward", "head", None}),
        frozenset({"float64"}),
    ),
    "more threads than cores": Plant(
        Ways(layers=2),
        Ways(layers=2, callbacks=[ManyThreads()]),
        frozenset({None}),
        frozenset({"threads"}),
        f"{THREADS} threads",
    ),
    "a slow disk": Plant(
        Ways(), Ways(loader=DiskLoader), frozenset({"wait for loader"}), frozenset({"waiting"}), "read_slowly"
    ),
}
"""By name."""
