"""What a training run will take, from a few of its steps: seconds, memory and disk, and whether it fits.

Before a run: `Probe` holds what a short one measured, `Estimate.from_probe` extends it to the whole run, and
`Estimate.problems` says what does not fit. After it, `compare` gives the error of the prediction.

What a run leaves on disk:

* the checkpoint: weights of every member, the organism, the known mutants;
* the resume state of every member: weights, best weights, two moments per weight; two of them while one is
  replaced;
* the logs: one row of CSV and one TensorBoard event per scalar and step.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import ConfigError
from wildtype.profiling.memory import _resident

if TYPE_CHECKING:
    from wildtype.evidence.reference import ReferenceMeasurements
    from wildtype.models.interface import Model, OrganismTensors

WARM_UP = 3
"""First steps of a probe that are not counted: caches are cold and kernels are compiled."""
TENSOR_HEADER = 68
"""Bytes of a tensor's entry in the header of a safetensors file, without its name: type, shape, offsets."""
EVENT_BYTES = 39
"""Bytes of one scalar in TensorBoard's file, without its name: frame, checksums, time, step, value."""
CSV_BYTES = 19.5
"""Bytes of one scalar in a row of CSV, with its comma: a float32 printed as a double."""
CSV_ROW_BYTES = 12
"""Bytes of the other columns of a row: epoch, step, and those of validation, which stay empty."""


@dataclass(frozen=True)
class Probe:
    """What the first few steps of a run measured.

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
class Estimate:
    """A prediction for a whole run, and what the machine has.

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
    ) -> Estimate:
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
            As in `Estimate`.
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
        batches = probe.validation_step_seconds
        validation = probe.validation_steps * sum(batches) / len(batches) if batches else 0.0
        best = probe.checkpoint_bytes / 2**20
        others = (members - 1) * best  # the members trained before stay in memory
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
            disk_peak_bytes=max(disk, trained + probe.resume_bytes),  # the checkpoint comes last
            disk_free_bytes=disk_free_bytes,
            threads=threads,
            device_mib=probe.device_mib,
            device_available_mib=device_available_mib,
        )

    def problems(self) -> list[str]:
        """Return why the run will not fit, one sentence each; empty where it does."""
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
"""What can be told to `compare`."""


def compare(estimate: Estimate, measured: Mapping[str, float | None]) -> dict[str, float]:
    """Return predicted / measured - 1 of everything that was measured and predicted.

    Parameters
    ----------
    estimate : Estimate
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
    """Return the mean of at least two values, and its 95 % interval by Student's t."""
    import numpy as np
    from scipy import stats

    x = np.asarray(values, dtype=float)
    mean = float(x.mean())
    error = float(x.std(ddof=1)) / math.sqrt(len(x))
    half = float(stats.t.ppf(0.975, len(x) - 1)) * error
    return mean, (max(mean - half, 0.0), mean + half)


def log_bytes_per_step(scalars: Iterable[str]) -> float:
    """Return what the logs grow by with every step: TensorBoard's file, which logs the epoch too, and CSV.

    Parameters
    ----------
    scalars : iterable of str
        Names of what is logged at every step.
    """
    names = list(scalars)
    events = sum(EVENT_BYTES + len(name.encode()) for name in [*names, "epoch"])
    return events + CSV_BYTES * len(names) + CSV_ROW_BYTES


def state_bytes(model: Model) -> tuple[int, int]:
    """Return the sizes of the files of a model's weights, and of its resume state."""
    weights = [(name, x.numel() * x.element_size()) for name, x in model.state_dict().items()]
    learned = [p.numel() * p.element_size() for p in model.parameters() if p.requires_grad]
    moments = [
        (f"optimizer/{i}/{part}", size)
        for i, whole in enumerate(learned)
        for part, size in (("exp_avg", whole), ("exp_avg_sq", whole), ("step", 4))
    ]
    copies = [(f"{part}/{name}", size) for part in ("model", "best") for name, size in weights]
    return _file_bytes(weights), _file_bytes([*copies, *moments])


def data_bytes(organism: OrganismTensors, known: ReferenceMeasurements) -> int:
    """Return what a checkpoint holds besides weights: the organism as a model sees it, the known mutants."""
    from wildtype.models.organism_storage import to_tensors
    from wildtype.mutants.table import COLUMNS, OPTIONAL

    tensors, _ = to_tensors(organism.without_priors())
    seen = _file_bytes([(name, x.numel() * x.element_size()) for name, x in tensors.items()])
    columns = [getattr(known.table, name) for name in (*COLUMNS, *OPTIONAL)]
    columns += [known.part, known.single_fitness, known.single_fitness_sd, known.essential, known.metabolic]
    columns += [] if known.coordinates is None else known.coordinates.to_arrays().values()
    return seen + sum(int(column.nbytes) for column in columns if column is not None)


def folder_bytes(folder: str | Path) -> int:
    """Return the size of all files in a folder and below."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def free_disk(folder: str | Path, *, usage: Callable[[Path], Any] = shutil.disk_usage) -> int:
    """Return the bytes left for a folder that need not exist yet; a quota is not seen."""
    path = Path(folder).absolute()
    while not path.exists():
        path = path.parent
    return int(usage(path).free)


def available_memory_mib(*, root: Path = Path("/"), held_mib: float | None = None) -> float:
    """Return what this process may hold in all, MiB: what it holds, and what is left for it to take.

    What is left is the smaller of the machine's available memory, and of the room in every control group
    that the process is in, where pages of files that can be dropped count as room.

    Parameters
    ----------
    root : Path
        Below which Linux has its folders proc and sys; where they say nothing, the result is infinite.
    held_mib : float, optional
        What this process holds; asked of the system unless given.
    """
    left = [kib / 1024 for name, kib in _numbers(root / "proc/meminfo") if name == "MemAvailable"]
    left += [room / 2**20 for room in _cgroup_rooms(root)]
    held = _resident("VmRSS") if left and held_mib is None else held_mib or 0.0
    return min(left, default=math.inf) + held


def available_device_mib(device: str) -> float:
    """Return what this process may hold on a GPU in all, MiB: what torch holds there, and what is free."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return float(free + torch.cuda.memory_reserved(device)) / 2**20


def _cgroup_rooms(root: Path) -> list[float]:
    """Return the bytes left in every control group with a limit, of this process and above (v1 and v2)."""
    rooms = []
    own, mounted = root / "proc/self/cgroup", root / "sys/fs/cgroup"
    for line in own.read_text(encoding="utf-8").splitlines() if own.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, limit, used, cache = mounted, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top = mounted / "memory"
            limit, used, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the path may be the host's, of which only the top is mounted.
        parts = Path(path.lstrip("/")).parts
        for depth in range(len(parts), -1, -1):
            group = top.joinpath(*parts[:depth])
            if not all((group / name).is_file() for name in (limit, used)):
                continue
            most = (group / limit).read_text(encoding="utf-8").strip()
            if most == "max":
                continue
            taken = int((group / used).read_text(encoding="utf-8"))
            dropped = sum(number for name, number in _numbers(group / "memory.stat") if name == cache)
            rooms.append(max(int(most) - taken + dropped, 0.0))
    return rooms


def _numbers(path: Path) -> list[tuple[str, int]]:
    """Read lines such as ``MemAvailable:  123 kB`` or ``inactive_file 123``; none where there is no file."""
    if not path.is_file():
        return []
    words = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(w[0].rstrip(":"), int(w[1])) for w in words if len(w) > 1 and w[1].isdigit()]


def _file_bytes(tensors: Sequence[tuple[str, int]]) -> int:
    """Return the size of a safetensors file of tensors of given names and bytes."""
    return sum(size + len(name) + TENSOR_HEADER for name, size in tensors)
