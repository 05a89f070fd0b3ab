"""`profile`: some steps of a training run, cut short after each part, timed, traced, or by pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from wildtype.datasets import Dataset
from wildtype.errors import ConfigError
from wildtype.experiments.data import RunData, prepare
from wildtype.experiments.folder import MARK
from wildtype.experiments.profile_writing import ProfileWriting
from wildtype.experiments.representations import accuracy_by_representation, reads_representations
from wildtype.experiments.run import Log
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, loaders
from wildtype.files import write_json
from wildtype.models.interface import Output
from wildtype.models.registry import reference_implementation, require_gradients
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.loader import Batches
from wildtype.phases import BETWEEN, COLLECTOR, listening, phase
from wildtype.profiling.pipelines import measure_pipelines
from wildtype.profiling.python_lines import LineReport, time_lines
from wildtype.profiling.record import FILE
from wildtype.profiling.trace import Window, nvtx_listener, trace
from wildtype.profiling.trace_analysis import TraceReport
from wildtype.training.config import Execution
from wildtype.training.fit import accelerator, fit_model, in_bfloat16
from wildtype.training.task import FitTask
from wildtype.training.weights import TargetWeights
from wildtype.training.world import require_single_process, world

MODES: tuple[Execution, ...] = ("data_only", "forward", "forward_backward", "training")
"""Each does the work of the one before, and more."""
PARTS = {
    "data": ("wait for loader", "fetch", "representation", "collate"),
    "transfer": ("host to device",),
    "model": ("encode wild type", "graph prior", "head", "loss", "backward", "optimizer"),
    "sync": ("gradient sync",),
    "logging and callbacks": ("logging", "callbacks"),
    "between phases and collector": (BETWEEN, COLLECTOR),
}


def profile_run(
    config: TrainConfig,
    *,
    steps: int = 50,
    modes: tuple[Execution, ...] = MODES,
    reference: bool = False,
    folder: Path | None = None,
    dataset: Dataset | None = None,
    log: Log = lambda text: None,
) -> dict[str, Any]:
    """Run some steps of a configuration in every mode, and attribute their differences.

    Of several processes, the first writes; records are of its time, and say of all how long they exchange
    gradients and wait for the slowest.

    Parameters
    ----------
    config
        Settings of `wildtype train`.
    steps
        Timed steps of each mode, beside those that warm up.
    modes
        Some of ``MODES``.
    reference
        Run the model's reference implementation; see `reference_implementation`.
    folder
        For one file per mode, and ``profile.json``, that of the last; nothing is kept if there is none.
    dataset
        Instead of the one that the settings name.
    log
        Receives a line per mode.

    Returns
    -------
    dict
        ``modes``: a profile record each. ``added``: seconds per step that each mode has more than the one
        before it, and by phase. ``parts``: seconds per step of the last mode spent on data, transfer, model,
        sync, and logging and callbacks, and their shares; ``unattributed`` among them.
    """
    check_counts(steps=steps)
    require_gradients(config.model.name, "a profile")
    data = prepare(config, dataset)
    folder = _of_first_process(folder)
    if folder is not None:
        # If this run is killed, an older profile must not be taken for its result.
        (folder / FILE).unlink(missing_ok=True)
    records: dict[str, dict[str, Any]] = {}
    for mode in modes:
        log(f"{mode}: {steps} steps")
        of_mode = replace(config, execution=mode)
        records[mode] = _steps(of_mode, data, steps, folder, f"profile-{mode}.json", reference=reference)
    last = records[modes[-1]]
    if folder is not None:
        write_json(folder / FILE, last)
    return {"modes": records, "added": _added(records), "parts": _parts(last)}


def profile_step(
    config: TrainConfig, *, steps: int = 50, folder: Path | None = None, dataset: Dataset | None = None
) -> dict[str, Any]:
    """Time whole training steps on one batch that stays the same; returns its profile record.

    Besides, ``mutants_per_second`` and ``perturbed_genes`` of the batch.
    """
    check_counts(steps=steps)
    require_gradients(config.model.name, "a profile")
    data = prepare(config, dataset)
    folder = _of_first_process(folder)
    _, tensors = build(config, data, config.seed)
    loader = _Fixed(loaders(config, data, tensors, config.seed, shuffle=False).train)
    record = _steps(config, data, steps, folder, FILE, loader)
    served = world().gathered((len(loader.batch), len(loader.batch.gene)))
    mutants, genes = (sum(counts) for counts in zip(*served, strict=True))
    return record | {
        "mutants_per_second": mutants / record["seconds_per_step"]["mean"],
        "perturbed_genes": genes,
    }


def profile_trace(
    config: TrainConfig,
    window: Window,
    *,
    target: Path,
    dataset: Dataset | None = None,
    shapes: bool = False,
    stacks: bool = False,
) -> TraceReport:
    """Trace a window of training steps, in a plain loop of one process; errors as in `trace`.

    ``training.trace_step`` traces a step of a training itself, and of several processes.
    """
    require_gradients(config.model.name, "a trace")
    require_single_process(
        "`wildtype profile trace` (`wildtype train training.trace_step=N` traces each process)"
    )
    data = prepare(config, dataset)
    loop = TrainingLoop(config, data)
    epochs = config.training.epochs
    return trace(
        loop.step,
        window,
        target=target,
        name=f"{config.model.name} on {data.dataset.name}",
        steps_available=config.training.steps or epochs * len(loop.loader),
        shapes=shapes,
        stacks=stacks,
    )


def profile_python_lines(
    config: TrainConfig, *, batches: int = 50, dataset: Dataset | None = None
) -> LineReport:
    """Time the Python lines of the data pipeline, over some batches."""
    data = prepare(config, dataset)
    _, tensors = build(config, data, config.seed)
    loader = loaders(config, data, tensors, config.seed).train

    def run() -> None:
        served = epoch = 0
        while served < batches:
            epoch += 1
            loader.set_epoch(epoch)
            for _ in loader:
                served += 1
                if served == batches:
                    break

    return time_lines(run)


def profile_pipelines(
    config: TrainConfig,
    others: Sequence[TrainConfig],
    *,
    batches: int = 20,
    seconds: float = 1.0,
    reference: bool = True,
    train_steps: int = 20,
    train_reference: bool = False,
    dataset: Dataset | None = None,
) -> dict[str, Any]:
    """Measure five representations on a dataset's mutants, and training steps of models on the same batches.

    Parameters
    ----------
    config, others
        Settings of the first model, which name the dataset, and of further models.
    batches
        Timed steps of each model.
    seconds
        Time limit of each pipeline.
    reference
        Also time the batches of torch_geometric.
    train_steps
        Steps for which models that read a representation are trained on each of the five; 0: none.
    train_reference
        Also train their reference implementations.
    dataset
        Instead of the one that the settings name.

    Returns
    -------
    dict
        As `measure_pipelines`, and ``models``: per model and pipeline, seconds of a training step without its
        data, of the data, and the share of the data in both. ``accuracy``: a `RepresentationAccuracy` per
        model that reads representations, representation and path.
    """
    check_counts(batches=batches, seconds=seconds)
    if train_steps < 0:
        raise ConfigError(f"train_steps={train_steps}: give 0 (no training) or more")
    for each in (config, *others):
        require_gradients(each.model.name, "a profile")
    data = prepare(config, dataset)
    size = min(config.training.batch_size, len(data.split.train))
    graph = CellGraph.of(data.dataset.organism, metabolism=False)
    report = measure_pipelines(
        graph, data.scaled("train"), batch_size=size, seconds=seconds, seed=config.seed, reference=reference
    )
    report["problem"]["dataset"] = data.dataset.name
    models = []
    for each in (config, *others):
        record = profile_step(each, steps=batches, dataset=dataset)
        model = record["seconds_per_step"]["mean"] - _parts(record)["data"]["seconds"]
        for row in report["rows"]:
            made = 1 / row["iterations_per_second"]
            models.append(
                {
                    "model": each.model.name,
                    "pipeline": row["name"],
                    "path": row["path"],
                    "model_seconds": model,
                    "data_seconds": made,
                    "data_share": made / (made + model),
                }
            )
    paths = ("fast", "reference") if train_reference else ("fast",)
    accuracy = [
        asdict(row)
        for each in (config, *others)
        if train_steps and reads_representations(each)
        for row in accuracy_by_representation(each, prepare(each, dataset), steps=train_steps, paths=paths)
    ]
    return report | {"models": models, "accuracy": accuracy}


class TrainingLoop:
    """Training steps of a configuration one at a time, in the same phases as a run, but without Lightning.

    A trace of a plain loop shows the model and its data; Lightning's hooks would be most of its events.

    Parameters
    ----------
    config, data
        Settings and data of the run.
    """

    def __init__(self, config: TrainConfig, data: RunData) -> None:
        training, train, place = config.training, data.scaled("train"), accelerator(config.training)
        self.device = torch.device("cuda" if place == "gpu" else "cpu")
        self.bfloat16 = in_bfloat16(training, place)
        model, tensors = build(config, data, config.seed)
        self.loader, self.epoch = loaders(config, data, tensors, config.seed).train, 0
        outputs = Output.of([p.to_json() for p in data.dataset.phenotypes])
        weights = TargetWeights.fit(train, outputs, weighting=training.weighting, balance=training.balance)
        model, tensors = model.to(self.device).train(), tensors.to(self.device)
        self.task = FitTask(
            model, tensors, training, 1, config.seed, weights.to(self.device), outputs=outputs
        )
        self.task.on_train_epoch_start()
        self.optimizer = self.task.configure_optimizers()
        self._batches: Iterator[MutantBatch] = iter(())

    def step(self) -> None:
        """Train on the next batch."""
        task, training = self.task, self.task.config
        with phase("wait for loader"):
            batch = next(self._batches, None)
            if batch is None:
                self.epoch += 1
                self.loader.set_epoch(self.epoch)
                self._batches = iter(self.loader)
                batch = next(self._batches)
        with phase("host to device"):
            batch = batch.to(self.device, non_blocking=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16):
            total = task.objective(batch).total
        with phase("optimizer"):
            self.optimizer.zero_grad()
        with phase("backward"):
            total.backward()
        with phase("optimizer"):
            if training.clip:
                torch.nn.utils.clip_grad_norm_(task.model.parameters(), training.clip)
            self.optimizer.step()
        task.step += 1


def check_counts(**counts: float) -> None:
    """Refuse numbers of steps, batches or seconds that are not positive; raises ``ConfigError``."""
    for name, value in counts.items():
        if value <= 0:
            raise ConfigError(f"{name}={value}: it must be positive")


def profile_folder(name: str) -> Path | None:
    """Return the folder of profiles, or None; raises ``ConfigError`` if it holds a training run."""
    folder = Path(name) if name else None
    if folder is not None and (folder / MARK).is_file():
        raise ConfigError(
            f"{name!r} holds a training run, with a profile of its own: choose another --folder"
        )
    return folder


def chosen_modes(names: str) -> tuple[Execution, ...]:
    """Return modes named with commas, in the order of ``MODES``; raises ``ConfigError``."""
    named = [word.strip() for word in names.split(",") if word.strip()]
    unknown = [word for word in named if word not in MODES]
    if unknown or not named:
        raise ConfigError(f"modes={names!r}: {', '.join(unknown) or 'none'}; known: {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in named)


class _Fixed:
    """Serves the first batch in every step."""

    def __init__(self, loader: Batches) -> None:
        self.batch: MutantBatch = next(iter(loader))
        self.steps = len(loader)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[MutantBatch]:
        for _ in range(self.steps):
            with phase("fetch"):
                batch = self.batch
            yield batch

    def set_epoch(self, epoch: int) -> None:
        """Nothing depends on the epoch."""


def _steps(
    config: TrainConfig,
    data: RunData,
    steps: int,
    folder: Path | None,
    name: str,
    loader: Batches | None = None,
    *,
    reference: bool = False,
) -> dict[str, Any]:
    model, tensors = build(config, data, config.seed)
    if reference:
        model = reference_implementation(model)
    warm_up = 5  # kernels are compiled, caches are cold, and operators are counted in these steps
    per_epoch = -(-data.mutants("train") // config.training.batch_size)
    training = replace(
        config.training, steps=steps + warm_up, epochs=-(-(steps + warm_up) // per_epoch), patience=0
    )
    config = replace(config, training=training)
    ranges = nvtx_listener()  # external profilers of a GPU see phases as ranges
    with TemporaryDirectory() as scratch, listening(ranges) if ranges else nullcontext():
        target = Path(scratch) / name if folder is None else folder / name
        label = (config.model.name if folder is None else folder.name) + (", reference" if reference else "")
        label += "" if config.execution == "training" else f" ({config.execution})"
        writing = ProfileWriting(
            config, data, model, tensors, target, watch=True, warm_up=warm_up, name=label
        )
        batches = loaders(config, data, tensors, config.seed)
        fit_model(
            model,
            tensors,
            data.scaled("train"),
            data.scaled("validation"),
            training,
            folder=Path(scratch),
            seed=config.seed,
            show=False,
            execution=config.execution,
            recorder=writing.recorder,
            callbacks=[writing],
            loader=loader or batches.train,
            validation_loader=batches.validation,
            outputs=Output.of([p.to_json() for p in data.dataset.phenotypes]),
        )
        return writing.done(world())


def _of_first_process(folder: Path | None) -> Path | None:
    """Return the folder of profiles in the first of several processes, which writes for all of them."""
    return folder if world().is_rank_zero else None


def _added(records: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    rows, before = [], None
    for mode, record in records.items():
        seconds = record["seconds_per_step"]["mean"]
        row: dict[str, Any] = {"mode": mode, "seconds_per_step": seconds}
        if before is not None:
            row["added"] = seconds - before["seconds_per_step"]["mean"]
            row["by_phase"] = {
                name: value["mean"] - before["phases"].get(name, {"mean": 0.0})["mean"]
                for name, value in record["phases"].items()
            }
        rows.append(row)
        before = record
    return rows


def _parts(record: dict[str, Any]) -> dict[str, dict[str, float]]:
    seconds = {
        part: sum(record["phases"].get(name, {"mean": 0.0})["mean"] for name in names)
        for part, names in PARTS.items()
    } | {"unattributed": record["unattributed"]["mean"]}
    whole = record["seconds_per_step"]["mean"]
    return {part: {"seconds": value, "share": value / whole} for part, value in seconds.items()}
