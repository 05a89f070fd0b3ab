"""Seconds, memory and disk of a training run, estimated from its first steps, and whether it fits.

`Probe` holds what a short run measured, `RunEstimate.from_probe` extends it to the run, and
`RunEstimate.problems` lists what does not fit. After the run, `estimate_errors` gives the relative errors.

What a run leaves on disk:

* the checkpoint: weights of every member, the organism, the known mutants;
* the resume state of every member: weights, best weights, two moments per weight; two of them while one is
  replaced;
* the logs: one row of CSV and one TensorBoard event per scalar and step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError

if TYPE_CHECKING:
    from wildtype.evidence.reference import ReferenceMeasurements
    from wildtype.models.interface import Model, OrganismTensors

WARM_UP = 3
"""First steps of a probe that do not count: caches are cold and kernels are compiled."""
TENSOR_HEADER = 68
"""Bytes of a tensor's entry in the header of a safetensors file, without its name: type, shape, offsets."""
EVENT_BYTES = 32
"""Bytes of a step in TensorBoard's file, without its scalars: frame, checksums, time, step."""
SCALAR_BYTES = 9
"""Bytes of one scalar of it, without its name."""
CSV_BYTES = 19.5
"""Bytes of one scalar in a row of CSV, with its comma: a float32 printed as a double."""
CSV_ROW_BYTES = 12
"""Bytes of the other columns of a row: epoch, step, and those of validation, which stay empty."""


@dataclass(frozen=True)
class Probe:
    """Measurements of the first steps of a run.

    Attributes
    ----------
    step_seconds : sequence of float
        Wall seconds of every training step in order, from waiting for the loader to the callbacks.
    steps_per_epoch : int
        Of the real run.
    memory_mib, held_mib : float
        Highest resident memory of the process, and what it held after the last step.
    checkpoint_bytes, resume_bytes : int
        Sizes of the files of weights; see `state_bytes`.
    scalars : tuple of str
        Names of what is logged at every step.
    validation_step_seconds : sequence of float
        Wall seconds of validation batches.
    validation_steps : int
        Validation batches per epoch of the real run.
    epoch_seconds : float
        What an epoch takes besides training steps and validation batches: the wild type for validation,
        saving the state.
    data_bytes : int
        What the checkpoint holds besides weights; see `data_bytes`.
    device_mib : float or None
        Highest memory on the GPU, where there is one; see `available_device_mib`.
    """

    step_seconds: Sequence[float]
    steps_per_epoch: int
    memory_mib: float
    held_mib: float
    checkpoint_bytes: int
    resume_bytes: int
    scalars: tuple[str, ...]
    validation_step_seconds: Sequence[float] = ()
    validation_steps: int = 0
    epoch_seconds: float = 0.0
    data_bytes: int = 0
    device_mib: float | None = None


@dataclass(frozen=True)
class RunEstimate:
    """A prediction for a whole run, and the limits of the machine.

    Attributes
    ----------
    seconds_per_step : float
        Mean wall seconds of a training step.
    seconds_per_step_interval : (float, float)
        95 % interval of that mean, as if steps were independent.
    steps_per_epoch, epochs, members : int
        Of the run; epochs are the most there can be, members those of an ensemble, one after the other.
    validation_seconds, epoch_seconds : float
        Per epoch: validation batches, and what else an epoch takes once.
    memory_mib, memory_available_mib : float
        Highest resident memory of the process, and what it may hold; see `available_memory_mib`.
    disk_bytes, disk_peak_bytes, disk_free_bytes : int
        What the run leaves in its folder, the most it holds there on the way, and what the disk has left.
    threads : int
        CPU threads of the run.
    device_mib, device_available_mib : float or None
        The same as memory, on the GPU.
    """

    seconds_per_step: float
    seconds_per_step_interval: tuple[float, float]
    steps_per_epoch: int
    epochs: int
    members: int
    validation_seconds: float
    epoch_seconds: float
    memory_mib: float
    memory_available_mib: float
    disk_bytes: int
    disk_peak_bytes: int
    disk_free_bytes: int
    threads: int
    device_mib: float | None = None
    device_available_mib: float | None = None

    @property
    def seconds_per_epoch(self) -> float:
        """Training, validation, and what an epoch takes once."""
        return self.steps_per_epoch * self.seconds_per_step + self.validation_seconds + self.epoch_seconds

    @property
    def seconds_per_epoch_interval(self) -> tuple[float, float]:
        """95 % interval, from that of the steps alone."""
        low, high = (
            self.seconds_per_epoch + self.steps_per_epoch * (end - self.seconds_per_step)
            for end in self.seconds_per_step_interval
        )
        return low, high

    @property
    def total_seconds(self) -> float:
        """All epochs of all members; less, where training stops early."""
        return self.members * self.epochs * self.seconds_per_epoch

    @classmethod
    def from_probe(
        cls,
        probe: Probe,
        *,
        epochs: int,
        memory_available_mib: float,
        disk_free_bytes: int,
        threads: int,
        members: int = 1,
        device_available_mib: float | None = None,
        warm_up: int = WARM_UP,
    ) -> RunEstimate:
        """Extend a probe to the whole run.

        Memory is the larger of two moments: a step, with a copy of the best weights beside it; and the end
        of an epoch, when nothing of a step is left but the whole state is copied in order to be written.

        Parameters
        ----------
        probe : Probe
            What was measured.
        epochs, members : int
            Most epochs of the run, and models that it trains one after the other.
        memory_available_mib, disk_free_bytes, threads, device_available_mib
            As in `RunEstimate`.
        warm_up : int
            First steps of the probe not to count.

        Raises
        ------
        ConfigError
            If the probe has fewer than two steps besides those, or no validation batch although the run has
            some.
        """
        timed = list(probe.step_seconds)[warm_up:]
        if len(timed) < 2:
            raise ConfigError(
                f"a probe of {len(probe.step_seconds)} steps, of which the first {warm_up} do not count, "
                f"tells too little: probe at least {warm_up + 2} steps"
            )
        if probe.validation_steps and not probe.validation_step_seconds:
            raise ConfigError(
                f"the run validates on {probe.validation_steps} batches per epoch and the probe timed none: "
                "let it run one at least"
            )
        mean, interval = mean_with_interval(timed)
        # Two moments compete for the peak: a step with a copy of the best weights beside it, and the end of
        # an epoch, when a step's activations are gone but the whole state is copied to be written.
        batches = probe.validation_step_seconds
        validation = probe.validation_steps * sum(batches) / len(batches) if batches else 0.0
        best = probe.checkpoint_bytes / 2**20
        others = (members - 1) * best  # earlier members stay in memory
        step, saving = probe.memory_mib + best, probe.held_mib + best + probe.resume_bytes / 2**20
        logs = log_bytes_per_step(probe.scalars) * probe.steps_per_epoch * epochs
        trained = math.ceil(members * (probe.resume_bytes + logs))
        disk = trained + members * probe.checkpoint_bytes + probe.data_bytes
        return cls(
            seconds_per_step=mean,
            seconds_per_step_interval=interval,
            steps_per_epoch=probe.steps_per_epoch,
            epochs=epochs,
            members=members,
            validation_seconds=validation,
            epoch_seconds=probe.epoch_seconds,
            memory_mib=max(step, saving) + others,
            memory_available_mib=memory_available_mib,
            disk_bytes=disk,
            disk_peak_bytes=max(disk, trained + probe.resume_bytes),  # the checkpoint is written last
            disk_free_bytes=disk_free_bytes,
            threads=threads,
            device_mib=probe.device_mib,
            device_available_mib=device_available_mib,
        )

    def problems(self) -> list[str]:
        """Return what does not fit, a sentence each; empty if the run fits."""
        smaller = "lower training.batch_size, make the model smaller"
        disk, free = self.disk_peak_bytes / 2**20, self.disk_free_bytes / 2**20
        needs = (
            (self.memory_mib, self.memory_available_mib, "memory", f"{smaller}, or take a larger machine"),
            (self.device_mib, self.device_available_mib, "GPU memory", f"{smaller}, or take a larger GPU"),
            (disk, free, "disk", "free some space, or choose another run.folder"),
        )
        return [
            f"the run would take {needed:,.1f} MiB of {what} and may have {limit:,.1f} MiB: {remedy}"
            for needed, limit, what, remedy in needs
            if needed is not None and limit is not None and needed > limit
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, with what follows from the fields."""
        return asdict(self) | {
            "seconds_per_epoch": self.seconds_per_epoch,
            "seconds_per_epoch_interval": self.seconds_per_epoch_interval,
            "total_seconds": self.total_seconds,
            "problems": self.problems(),
        }


COMPARED = ("seconds_per_epoch", "memory_mib", "disk_bytes", "device_mib")
"""Quantities that `estimate_errors` compares."""


def estimate_errors(estimate: RunEstimate, measured: Mapping[str, float | None]) -> dict[str, float]:
    """Return predicted / measured - 1 of everything that was measured and predicted.

    Parameters
    ----------
    estimate : RunEstimate
        Made before the run.
    measured : dict
        Any of ``COMPARED``; None or 0: not measured.

    Raises
    ------
    ConfigError
        If a name is none of them.
    """
    errors = {}
    for name, value in measured.items():
        if name not in COMPARED:
            raise ConfigError(f"an estimate says nothing about {name!r}; it knows: {', '.join(COMPARED)}")
        predicted = getattr(estimate, name)
        if value and predicted is not None:
            errors[name] = predicted / value - 1
    return errors


def mean_with_interval(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the mean of at least two values, and its 95 % interval: mean ± t(0.975, n − 1) · s / √n."""
    import numpy as np
    from scipy import stats

    x = np.asarray(values, dtype=float)
    mean = float(x.mean())
    error = float(x.std(ddof=1)) / math.sqrt(len(x))
    half = float(stats.t.ppf(0.975, len(x) - 1)) * error
    return mean, (max(mean - half, 0.0), mean + half)


def log_bytes_per_step(scalars: Iterable[str]) -> float:
    """Return the bytes that a step adds to the logs: TensorBoard's file, which also logs the epoch, and CSV.

    Parameters
    ----------
    scalars : iterable of str
        Names of what is logged at every step.
    """
    names = list(scalars)
    events = EVENT_BYTES + sum(SCALAR_BYTES + len(name.encode()) for name in [*names, "epoch"])
    return events + CSV_BYTES * len(names) + CSV_ROW_BYTES


def state_bytes(model: Model) -> tuple[int, int]:
    """Return the sizes of the files of a model's weights, and of its resume state."""
    weights = [(name, x.numel() * x.element_size()) for name, x in model.state_dict().items()]
    # AdamW (Loshchilov & Hutter, 2019) keeps two moments of every learned weight and a counter per tensor.
    learned = [p.numel() * p.element_size() for p in model.parameters() if p.requires_grad]
    moments = [
        (f"optimizer/{i}/{part}", size)
        for i, whole in enumerate(learned)
        for part, size in (("exp_avg", whole), ("exp_avg_sq", whole), ("step", 4))
    ]
    copies = [(f"{part}/{name}", size) for part in ("model", "best") for name, size in weights]
    return _file_bytes(weights), _file_bytes([*copies, *moments])


def data_bytes(organism: OrganismTensors, known: ReferenceMeasurements) -> int:
    """Return the bytes of a checkpoint besides weights: the model's organism and the known mutants."""
    from wildtype.models.organism_tensors import to_tensors
    from wildtype.mutants.table import COLUMNS, OPTIONAL

    tensors, _ = to_tensors(organism.without_priors())
    seen = _file_bytes([(name, x.numel() * x.element_size()) for name, x in tensors.items()])
    columns = [getattr(known.table, name) for name in (*COLUMNS, *OPTIONAL)]
    columns += [known.part, known.single_fitness, known.single_fitness_sd, known.essential, known.metabolic]
    columns.append(known.single_fitness_kind)
    if known.grid is not None and known.sides is not None:
        columns += [*known.grid.to_arrays().values(), *known.sides.to_arrays().values()]
    if known.sampled is not None:
        columns += [known.sampled_part, *known.sampled.columns((*COLUMNS, *OPTIONAL)).values()]
    columns += [] if known.coordinates is None else known.coordinates.to_arrays().values()
    return seen + sum(int(column.nbytes) for column in columns if column is not None)


def folder_bytes(folder: str | Path) -> int:
    """Return the size of all files in a folder and below."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _file_bytes(tensors: Sequence[tuple[str, int]]) -> int:
    """Return the size of a safetensors file of tensors of given names and bytes."""
    return sum(size + len(name) + TENSOR_HEADER for name, size in tensors)
