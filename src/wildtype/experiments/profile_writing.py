"""`ProfileWriting`: a callback that writes a run's profile while it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from wildtype.experiments.data import RunData
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.interface import Model, OrganismTensors
from wildtype.profiling.machine import high_water
from wildtype.profiling.operators import OperatorCounter
from wildtype.profiling.processes import of_processes
from wildtype.profiling.record import RecordWriter, Workload
from wildtype.training.exchange import SYNC
from wildtype.training.fit import accelerator
from wildtype.training.phase_hooks import recorder_for
from wildtype.training.world import World

WARM_UP = 5
"""Steps that do not count; half of the steps in a run of fewer than twice as many."""


class ProfileWriting(Callback):
    """Makes the recorder of a run, and writes its findings every few seconds and at the end.

    Parameters
    ----------
    config, data, model, tensors
        The run.
    target : Path
        The file.
    watch : bool
        Also watch memory by phase and count operators, during the warm-up, since both slow a step.
    warm_up : int, optional
        Steps that do not count; by default as in `WARM_UP`.
    name : str
        Of the profile; by default that of its folder.
    """

    def __init__(
        self,
        config: TrainConfig,
        data: RunData,
        model: Model,
        tensors: OrganismTensors,
        target: Path,
        *,
        watch: bool = False,
        warm_up: int | None = None,
        name: str = "",
    ) -> None:
        rows, size = data.mutants("train"), config.training.batch_size
        per_epoch = -(-rows // size)
        steps = per_epoch * config.training.epochs
        steps = min(steps, config.training.steps or steps)
        graphs = data.dataset.organism.graphs
        self.counter = OperatorCounter() if watch else None
        gpu = accelerator(config.training) == "gpu"
        self.recorder = recorder_for(
            "cuda" if gpu else "cpu",
            warm_up=min(WARM_UP, steps // 2) if warm_up is None else warm_up,
            high_water=(_gpu_high_water if gpu else high_water) if watch else None,
            inside=self.counter,
        )
        self.writer = RecordWriter(
            target,
            self.recorder,
            Workload(
                model=config.model.name,
                dataset=data.dataset.name,
                genes=tensors.genes,
                relations=len(graphs),
                edges=sum(relation.nnz for relation in graphs.values()),
                parameters=sum(p.numel() for p in model.parameters()),
                batch_size=min(size, rows),
                steps_per_epoch=per_epoch,
            ),
            name=name or target.parent.name,
            execution=config.execution,
        )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write a first record: a run that is killed at once leaves one, too."""
        self.writer.write(complete=False)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *args: Any) -> None:
        """Write the record if the last writing is some seconds ago."""
        self.writer.step()

    def done(self, processes: World | None = None) -> dict[str, Any]:
        """Write the complete record, and return it; all ``processes`` must ask, if they are named."""
        counts = self.counter.counts() if self.counter is not None and self.counter.operators else None
        found = None
        if processes is not None and processes.size > 1:
            found = of_processes(processes.gathered(self.recorder.phase_seconds(SYNC)))
        return self.writer.write(complete=True, counts=counts, processes=found)


def _gpu_high_water() -> float:
    import torch

    # Reset on every call, so that the next call reports the peak of the phase in between.
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.reset_peak_memory_stats()
    return float(peak)
