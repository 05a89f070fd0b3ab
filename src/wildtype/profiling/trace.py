"""A few training steps looked at operator by operator: what runs, what is allocated, what waits for a value.

Two instruments, each for what it is exact at:

* `count_operators` watches one step through torch's dispatcher: every operator of forward, backward and
  optimiser, the phase it ran in, the storage it made, and the line of Python behind every read, which is
  what makes the processor wait for a GPU. It works alike on every device, and slows the step it watches.
* `trace` runs torch's profiler over a window of steps: when each operator and kernel ran. The lines of
  Python come from the first instrument, which names the line of every read and guesses none.

The first sees the thread that calls the step and its backward passes, neither a loader's worker processes.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from wildtype.errors import ConfigError
from wildtype.files import writing
from wildtype.phases import current, listening
from wildtype.profiling.trace_analysis import (
    PHASE_MARK,
    SCALAR_READ,
    OperatorCounts,
    OperatorTotal,
    Read,
    TraceReport,
    analyse,
)

Step = Callable[[], object]
Phase = Callable[[], "str | None"]

UNATTRIBUTED = "unattributed"
BACKWARD = "<backward>"
_TORCH = str(Path(torch.__file__).parent)
# Operators whose result has a size that only the values tell, or is a value of Python.
_SIZED_BY_VALUES = frozenset(
    {
        "aten::nonzero", "aten::masked_select", "aten::_unique", "aten::_unique2", "aten::unique_dim",
        "aten::unique_consecutive", "aten::unique_dim_consecutive", "aten::bincount", "aten::equal",
    }
)  # fmt: skip
_INDEXING = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
_COPIES = frozenset({"aten::_to_copy", "aten::copy_"})
# Calls that make no operator on a CPU, where there is nothing to copy.
_TO_HOST: dict[Any, str] = {
    torch.Tensor.cpu: "Tensor.cpu",
    torch.Tensor.numpy: "Tensor.numpy",
    torch.Tensor.__array__: "Tensor.numpy",
    torch.Tensor.tolist: "Tensor.tolist",
}


@dataclass(frozen=True)
class Window:
    """Which steps a trace records: ``wait`` run plainly, ``warm_up`` with discarded events, ``active`` count.

    The step before the active ones is also the one whose reads are traced to their lines; where there is
    none, one more step follows.
    """

    wait: int = 2
    warm_up: int = 2
    active: int = 5

    @property
    def steps(self) -> int:
        """Steps that the window takes in all."""
        return self.wait + self.warm_up + self.active + (self.wait + self.warm_up == 0)

    def check(self, steps_available: int | None = None) -> None:
        """Refuse a window that records nothing or does not fit.

        Parameters
        ----------
        steps_available : int, optional
            Steps there are; None where there is no end.

        Raises
        ------
        ConfigError
            If a part is negative, no step is active, or there are fewer steps than the window takes.
        """
        for part, steps in (("wait", self.wait), ("warm_up", self.warm_up), ("active", self.active)):
            if steps < 0:
                raise ConfigError(f"{part}={steps} in the trace window: give 0 steps or more")
        if self.active == 0:
            raise ConfigError("active=0 in the trace window records nothing: give 1 active step or more")
        if steps_available is not None and self.steps > steps_available:
            raise ConfigError(
                f"the trace window takes {self.steps} steps (wait={self.wait}, warm_up={self.warm_up}, "
                f"active={self.active}), but there are {steps_available}: "
                "shorten the window or take a smaller batch size"
            )


def count_operators(step: Step, phase: Phase = current) -> OperatorCounts:
    """Run one step and count its operators by phase, and its reads by line.

    Parameters
    ----------
    step : callable
        One training step on the next batch. What a first step does only once is counted as any other, so run
        one before.
    phase : callable
        Returns the name of the current phase, or None, which counts as ``unattributed``.
    """
    with OperatorCounter(phase) as counter:
        step()
    return counter.counts()


class OperatorCounter:
    """A context that counts the operators of what runs inside it; for steps that somebody else calls.

    Contexts of one counter may follow each other, for example one per step; ``counts`` sums over all.
    The optimisers' own step counters, which stay on the CPU on every machine, are no reads.
    """

    def __init__(self, phase: Phase = current) -> None:
        self.phase = phase
        self.operators: dict[str, dict[str, OperatorTotal]] = {}
        self.reads: dict[Read, float] = {}

    def __enter__(self) -> OperatorCounter:
        self._modes = ExitStack()
        self._modes.enter_context(_Calls(self))
        self._modes.enter_context(_Operators(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._modes.__exit__(kind, error, trace)

    def counts(self, steps: int = 1) -> OperatorCounts:
        """Return what was counted, divided by ``steps``."""
        return OperatorCounts(
            {
                phase: {
                    name: OperatorTotal(t.calls / steps, t.seconds / steps, t.allocated_mib / steps)
                    for name, t in totals.items()
                }
                for phase, totals in self.operators.items()
            },
            {read: calls / steps for read, calls in self.reads.items()},
        )

    def add(self, name: str, seconds: float, allocated: int) -> None:
        """Count one call of an operator that took ``allocated`` bytes."""
        total = self.operators.setdefault(self.phase() or UNATTRIBUTED, {}).setdefault(name, OperatorTotal())
        total.calls += 1
        total.seconds += seconds
        total.allocated_mib += allocated / 2**20

    def add_read(self, what: str, on_device: bool, frame: FrameType) -> None:
        """Count one read, unless it is an optimiser's look at its own step counter."""
        where, own_counter = _line(frame)
        if on_device or not own_counter:
            read = Read(where, what, self.phase() or UNATTRIBUTED, on_device)
            self.reads[read] = self.reads.get(read, 0.0) + 1


class _Operators(TorchDispatchMode):
    """Tells the counter of every operator below autograd."""

    def __init__(self, counter: OperatorCounter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        start = time.perf_counter()
        made = func(*args, **kwargs)
        seconds = time.perf_counter() - start
        if func.namespace == "profiler":  # the mark of a range, not work
            return made
        name = func._schema.name
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        # A tensor made of Python's values is announced by lift_fresh: its storage is as new as any.
        known = set() if name == "aten::lift_fresh" else {key for x in given for key, _ in _storages(x)}
        new = {key: size for x in tree_leaves(made) for key, size in _storages(x) if key not in known}
        self.counter.add(name, seconds, sum(new.values()))
        what = _read_of(name, args, kwargs, made)
        if what:
            on_device = any(x.device.type != "cpu" for x in given) or _on_device(made)
            self.counter.add_read(what, on_device, sys._getframe(1))
        return made


class _Calls(TorchFunctionMode):
    """Tells the counter of copies to the host that are no operators because the tensor is there already."""

    def __init__(self, counter: OperatorCounter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        what = _TO_HOST.get(func)
        if what and not _on_device(args[0]):
            self.counter.add_read(what, False, sys._getframe(1))
        return func(*args, **(kwargs or {}))


def _on_device(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"


def _storages(value: object) -> Iterator[tuple[int, int]]:
    """Yield identity and bytes of the storages behind a tensor; a sparse one has several."""
    if not isinstance(value, torch.Tensor):
        return
    parts = [value]
    if value.layout == torch.sparse_coo:
        parts = [value._indices(), value._values()]
    elif value.layout == torch.sparse_csr:
        parts = [value.crow_indices(), value.col_indices(), value.values()]
    for part in parts:
        storage = part.untyped_storage()
        yield storage._cdata, storage.nbytes()


def _read_of(name: str, args: Any, kwargs: dict[str, Any], made: Any) -> str | None:
    """Return how a call reads values back to Python, or None if it does not."""
    if name == "aten::_local_scalar_dense":
        return SCALAR_READ
    if name in _SIZED_BY_VALUES:
        return name
    if name == "aten::repeat_interleave" and kwargs.get("output_size") is None:
        return name
    if name in _INDEXING:
        masked = any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
        # One value put through a mask is no look-up: torch fills in place.
        filled = name != "aten::index" and args[2].numel() == 1 and not _on_device(args[2])
        return f"{name} with a boolean mask" if masked and not filled else None
    if name in _COPIES and not (kwargs.get("non_blocking") or args[2:3] == (True,)):
        source = args[1] if name == "aten::copy_" else args[0]
        return f"{name} between devices" if source.device.type != made.device.type else None
    return None


def _line(frame: FrameType | None) -> tuple[str, bool]:
    """Return the line of the innermost frame outside torch, and whether an optimiser reads its counter."""
    own_counter = False
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_TORCH):
            if code.co_name == "_engine_run_backward":  # no Python between the engine and the operator
                break
            own_counter |= code.co_name == "_get_value"
        elif code.co_filename != __file__:
            return f"{_short(code.co_filename)}:{frame.f_lineno} in {code.co_name}", own_counter
        frame = frame.f_back
    return BACKWARD, own_counter


@cache
def _short(file: str) -> str:
    """Return a source file's path from the top of its package on: ``wildtype/nn/sparse.py``."""
    path = Path(file)
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    return str(path.relative_to(top))


def trace(
    step: Step,
    window: Window,
    *,
    target: Path,
    cuda: bool | None = None,
    phase: Phase = current,
    name: str = "",
    steps_available: int | None = None,
) -> TraceReport:
    """Run a window of steps under torch's profiler; write a Chrome trace, phases included; analyse it.

    Parameters
    ----------
    step : callable
        One training step on the next batch.
    target : Path
        Of the Chrome trace, JSON; compressed if it ends in ``.gz``.
    cuda : bool, optional
        Whether to record the GPU; by default where there is one.
    phase : callable
        As for `count_operators`.
    name : str
        Of what is traced, for the report.
    steps_available : int, optional
        Checked before the first step runs.

    Raises
    ------
    ConfigError
        If the window is not sound, the steps run out in it, or there is no GPU to record.
    OutputError
        If ``target`` cannot be written.
    """
    window.check(steps_available)
    if cuda and not torch.cuda.is_available():
        raise ConfigError("cuda=True for the trace, but no CUDA device is visible: leave cuda out")
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available() if cuda is None else cuda:
        activities.append(ProfilerActivity.CUDA)
    counter = OperatorCounter(phase)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")  # as was asked for
        cycle = schedule(wait=window.wait, warmup=window.warm_up, active=window.active, repeat=1)
    recorded = window.wait + window.warm_up + window.active
    counted = window.wait + window.warm_up - 1 if window.steps == recorded else recorded
    ranges = PhaseRanges(_RecordedRanges())
    done = 0
    try:
        with profile(activities=activities, schedule=cycle, profile_memory=True) as profiler:
            while done < recorded:
                with listening(ranges), counter if done == counted else nullcontext():
                    step()
                ranges.change(None)
                profiler.step()
                done += 1
        if counted == recorded:
            with counter:
                step()
    except StopIteration:
        raise ConfigError(
            f"the steps ran out after {done} of the {window.steps} that the trace window takes: "
            "shorten the window"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(raw))
        content = raw.read_bytes()
    with writing(target) as path:
        path.write_bytes(gzip.compress(content) if target.suffix == ".gz" else content)
    return analyse(json.loads(content)["traceEvents"], counter.counts(), name=name, trace=target)


class Ranges(Protocol):
    """Something that marks ranges of time: ``torch.cuda.nvtx`` does."""

    def range_push(self, msg: str) -> object:
        """Begin a range."""

    def range_pop(self) -> object:
        """End the last range."""


class PhaseRanges:
    """A listener to phases that keeps one range open per phase."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.open = False

    def change(self, phase: str | None) -> None:
        """End the range of the last phase and begin that of ``phase``."""
        if self.open:
            self.ranges.range_pop()
        self.open = phase is not None
        if phase is not None:
            self.ranges.range_push(phase)


def nvtx_listener(nvtx: Ranges | None = None) -> PhaseRanges | None:
    """Return a listener that marks phases as NVTX ranges for external profilers; None without CUDA."""
    if nvtx is None and torch.cuda.is_available():
        nvtx = torch.cuda.nvtx
    return PhaseRanges(nvtx) if nvtx is not None else None


class _RecordedRanges:
    """Ranges of torch's profiler."""

    def range_push(self, msg: str) -> None:
        self.last = record_function(PHASE_MARK + msg)
        self.last.__enter__()

    def range_pop(self) -> None:
        self.last.__exit__(None, None, None)
