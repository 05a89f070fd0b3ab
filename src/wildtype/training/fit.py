"""`fit_model`: from a model and two tables to the weights that were best on validation."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from lightning.pytorch.utilities.exceptions import SIGTERMException

from wildtype.datasets.scaling import LabelScaler
from wildtype.errors import ConfigError
from wildtype.models.interface import Model, OrganismTensors, Output
from wildtype.mutants import MutantTable
from wildtype.mutants.loader import Batches, MutantLoader
from wildtype.training.config import EXECUTIONS, TrainingConfig
from wildtype.training.epoch_table import EpochTable
from wildtype.training.exchange import GradientExchange
from wildtype.training.local_processes import check_visible, idle_gpus
from wildtype.training.loggers import LOGS, RunLabels, closing_logs, make_loggers
from wildtype.training.micro_batches import for_this_rank
from wildtype.training.phase_hooks import PhaseHooks, PhaseProfiler, recorder_for
from wildtype.training.phase_recorder import PhaseRecorder
from wildtype.training.progress import Progress, TimedLoader
from wildtype.training.saved_weights import BestCheckpoint, Snapshots, restore_optimizer
from wildtype.training.task import FitTask
from wildtype.training.thread_count import threads_of_training
from wildtype.training.weights import TargetWeights
from wildtype.training.world import World, world

TERMINATED = 128 + 15
"""Exit code of a process that SIGTERM ended."""


@dataclass(frozen=True)
class FitReport:
    """What a fit did.

    Attributes
    ----------
    best_score : float or None
        Best validation Pearson (mean over phenotypes), None without an epoch; ``best_epoch`` counts from 1.
    epochs, steps : int
        Epochs and optimiser steps of the whole run.
    seconds : float
        Wall time of this process's part.
    mutants_per_second, loading_share : float
        Of the training steps, loading included.
    scores : tuple of float
        Validation Pearson after each epoch; none where nothing was trained.
    snapshots : tuple of int
        Epochs whose weights are kept in ``snapshots`` as members.
    """

    best_score: float | None
    best_epoch: int
    epochs: int
    steps: int
    seconds: float
    mutants_per_second: float
    loading_share: float
    scores: tuple[float, ...]
    snapshots: tuple[int, ...] = ()

    @classmethod
    def without_gradients(cls) -> FitReport:
        """Return the report of a model that has no gradient training."""
        return cls(None, 0, 0, 0, 0.0, 0.0, 0.0, ())


class _Restore(Callback):
    """Puts the optimiser's saved tensors back before the first step."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors = tensors

    def on_train_start(self, trainer: Trainer, pl_module: FitTask) -> None:
        restore_optimizer(trainer.optimizers[0], self.tensors)


class _FlushLogsOnError(Callback):
    """Writes what was logged before an error: the last steps may show its cause."""

    def on_exception(self, trainer: Trainer, pl_module: FitTask, exception: BaseException) -> None:
        with contextlib.suppress(Exception):  # the first error is the one to show
            pl_module.flush_log()


class _KeepSigterm(Callback):
    """Puts the program's handler of SIGTERM back, which Lightning replaces while it trains.

    Lightning's tells all processes by a broadcast, which waits for ever where the signal came since one of
    them is gone.
    """

    def __init__(self) -> None:
        self.handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self, trainer: Trainer, pl_module: FitTask) -> None:
        if callable(self.handler) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.handler)


class _NextEpoch(Callback):
    """Sets the epoch whose order the loader serves next."""

    def __init__(self, loader: Batches, keeper: BestCheckpoint) -> None:
        self.loader = loader
        self.keeper = keeper

    def on_train_epoch_end(self, trainer: Trainer, pl_module: FitTask) -> None:
        self.loader.set_epoch(self.keeper.epoch)


def accelerator(config: TrainingConfig) -> str:
    """Return where training takes place, ``gpu`` or ``cpu``; raises ``ConfigError`` if it cannot there."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "training.device=cuda, but no CUDA device is visible: use device=cpu or device=auto"
        )
    if config.device == "cpu" or not torch.cuda.is_available():
        return "cpu"
    check_visible(world())
    return "gpu"


def fit_model(
    model: Model,
    organism: OrganismTensors,
    train: MutantTable,
    validation: MutantTable,
    config: TrainingConfig,
    *,
    folder: Path,
    seed: int = 0,
    fingerprint: str = "",
    resume: bool = False,
    show: bool = True,
    execution: str = "training",
    recorder: PhaseRecorder | None = None,
    callbacks: Sequence[Callback] = (),
    loader: Batches | None = None,
    validation_loader: Batches | None = None,
    outputs: Sequence[Output] = (),
    scaler: LabelScaler | None = None,
    labels: RunLabels | None = None,
    loggers: list[Logger] | None = None,
) -> FitReport:
    """Fit ``model`` in place to scaled labels; it ends with the weights that scored best on ``validation``.

    Logs go to ``folder/logs`` (see `training.loggers`), the resume state to ``folder/resume``, snapshots to
    ``folder/snapshots`` (see ``training.snapshots``).

    Parameters
    ----------
    model, organism, train, validation, config
        Model, organism as it sees it, rows to train on and to validate on, and settings.
    folder : Path
        Run directory.
    seed : int
        Root of all random draws.
    fingerprint : str
        Hash of settings and data; a resume state with another one is refused.
    resume, show : bool
        Whether to continue from the resume state, and whether to draw a progress bar.
    execution : str
        One of ``EXECUTIONS``. All but ``training`` run less of every step, to measure what its parts cost;
        nothing is validated then, and the model is not trained.
    recorder : PhaseRecorder, optional
        Listens to the phases of every step; one is made otherwise.
    callbacks : sequence of Callback
        Further ones.
    loader, validation_loader : Batches, optional
        Serve the training and validation rows instead of a `MutantLoader`.
    outputs : sequence of Output
        The phenotypes; empty: all are regression targets.
    scaler : LabelScaler, optional
        How labels were scaled; errors are logged in those units without.
    labels : RunLabels, optional
        What Weights & Biases shows of the run.
    loggers : list of Logger, optional
        Takes up the loggers, which the caller then closes; they are closed here without.

    Raises
    ------
    ConfigError
        If settings make no sense here.
    DatasetError
        If rows are to be weighed and have no p-values, or no sd.
    CheckpointError
        If the state to resume is missing, damaged or of another run.
    DivergedError
        If a loss or weight is not finite.
    """
    config.check()
    if execution not in EXECUTIONS:
        raise ConfigError(f"execution={execution!r}: choose {', '.join(EXECUTIONS)}")
    place = accelerator(config)
    trains = execution == "training"
    processes = world()
    if place == "gpu" and (idle := idle_gpus(processes)):
        warnings.warn(idle, stacklevel=2)
    if loader is None:
        loader = for_this_rank(MutantLoader(train, config.batch_size, shuffle=True, seed=seed))
    if validation_loader is None:
        validation_loader = for_this_rank(MutantLoader(validation, config.batch_size))
    timed = TimedLoader(loader)
    if recorder is None:
        recorder = recorder_for("cuda" if place == "gpu" else "cpu")
    keeper = BestCheckpoint(
        folder / "resume", config.patience if trains and not config.snapshots else 0, fingerprint
    )
    outputs = Output.of(outputs or int(max(train.phenotype.max(), validation.phenotype.max())) + 1)
    weights = TargetWeights.fit(train, outputs, weighting=config.weighting, balance=config.balance)
    steps = config.epochs * len(loader)
    steps = min(steps, config.steps or steps)
    task = FitTask(model, organism, config, steps, seed, weights, execution, outputs, processes, scaler)
    # In this order at the end of an epoch: snapshots are on disk before the epoch is recorded as finished,
    # and the loader learns the next epoch from a record that counts this one.
    hooks: list[Callback] = [PhaseHooks(recorder), Snapshots(folder, config), keeper]
    hooks += [_NextEpoch(loader, keeper), _FlushLogsOnError(), _KeepSigterm()]
    if resume:
        hooks.append(_Restore(keeper.resume(task)))
        loader.set_epoch(keeper.epoch)
    progress = Progress(timed, keeper, config.epochs, show and processes.is_rank_zero, processes.size)
    hooks += [progress, *callbacks]
    start = time.perf_counter()
    if keeper.epoch < config.epochs and not keeper.stopped:
        threads = threads_of_training(
            config, model, organism.genes, processes=processes.local, accelerated=place == "gpu"
        )
        logs: list[Logger] = []
        if processes.is_rank_zero:
            logs = make_loggers(folder, config, labels, resumed=keeper.epoch)
            task.epochs = EpochTable(folder / LOGS)
            task.epochs.begin(keeper.epoch)
        if loggers is not None:
            loggers.extend(logs)
        with (
            _threads(threads),
            recorder.listening(),
            warnings.catch_warnings(),
            nullcontext() if loggers is not None else closing_logs(logs),
        ):
            # Lightning advises on data-loading workers; batches here are slices of arrays and need none.
            warnings.filterwarnings("ignore", module="lightning.*")
            logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
            trainer = Trainer(
                accelerator=place,
                devices=processes.local,
                num_nodes=processes.size // processes.local,
                strategy="auto"
                if processes.size == 1
                else GradientExchange(place, backward=execution != "forward"),
                plugins=[_environment(processes)],
                precision="bf16-mixed" if in_bfloat16(config, place) else "32-true",
                max_epochs=config.epochs - keeper.epoch,
                gradient_clip_val=config.clip or None,
                callbacks=hooks,
                profiler=PhaseProfiler(recorder, hooks),
                limit_val_batches=1.0 if trains else 0,
                logger=logs or False,
                log_every_n_steps=1,
                deterministic=config.deterministic,
                num_sanity_val_steps=0,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                use_distributed_sampler=False,
            )
            with _stops(trainer):
                trainer.fit(task, timed, validation_loader)
    recorder.finish()
    if trains:
        model.load_state_dict(keeper.best)
    model.cpu().eval()
    return FitReport(
        best_score=keeper.best_score,
        best_epoch=keeper.best_epoch,
        epochs=keeper.epoch,
        steps=task.step,
        seconds=time.perf_counter() - start,
        mutants_per_second=progress.throughput,
        loading_share=progress.loading_share,
        scores=tuple(keeper.scores) if trains else (),
        snapshots=tuple(config.snapshot_epochs) if trains else (),
    )


def _environment(processes: World) -> ClusterEnvironment:
    """Return how Lightning finds the other processes.

    Left to itself, Lightning takes every Slurm job for one of several processes, and handles its signals.
    """
    if processes.started_by == "srun":
        return SLURMEnvironment(auto_requeue=False)
    return TorchElasticEnvironment() if processes.started_by else LightningEnvironment()


@contextlib.contextmanager
def _stops(trainer: Trainer) -> Iterator[None]:
    """Restore the exit code of a stop: Lightning turns Ctrl-C into 1 and a termination into success."""
    try:
        yield
    except SIGTERMException:
        raise SystemExit(TERMINATED) from None
    except SystemExit as end:
        # SIGTERM leaves Lightning in the same state, with the code of its handler.
        if trainer.interrupted and end.code != TERMINATED:
            raise KeyboardInterrupt from None
        raise


def in_bfloat16(config: TrainingConfig, place: str) -> bool:
    """Whether training computes in bfloat16 where it takes place."""
    return config.precision == "bf16" or (config.precision == "auto" and place == "gpu")


class _threads:
    """Sets the number of CPU threads during training."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        self.before = torch.get_num_threads()
        self.was_deterministic = torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(self.wanted)

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self.before)
        torch.use_deterministic_algorithms(self.was_deterministic)
