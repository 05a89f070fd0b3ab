"""Operators of one training step, counted, with the line of Python behind every read of a value.

`count_operators` watches a step through torch's dispatcher: every operator of forward, backward and
optimiser, its phase, its new storage, and the line of Python behind every read. A read makes the processor
wait for a GPU, so its line is where a step synchronises. Counting works alike on every device, and slows the
step.

The thread that calls the step and its backward passes are seen; worker processes of a loader are not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from wildtype.phases import current
from wildtype.profiling.trace_analysis import SCALAR_READ, OperatorCounts, OperatorTotal, Read
from wildtype.training.stack_sampler import place_of_code

Step = Callable[[], object]
Phase = Callable[[], "str | None"]

UNATTRIBUTED = "unattributed"
BACKWARD = "<backward>"
_TORCH = str(Path(torch.__file__).parent)
# Operators whose result has a size that depends on the values, or is a value of Python.
_SIZED_BY_VALUES = frozenset(
    {
        "aten::nonzero",
        "aten::masked_select",
        "aten::_unique",
        "aten::_unique2",
        "aten::unique_dim",
        "aten::unique_consecutive",
        "aten::unique_dim_consecutive",
        "aten::bincount",
        "aten::equal",
    }
)
_INDEXING = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
_COPIES = frozenset({"aten::_to_copy", "aten::copy_"})
# Calls without an operator on a CPU, where nothing is copied: torch functions, which a dispatch mode misses.
_TO_HOST: dict[Any, str] = {
    torch.Tensor.cpu: "Tensor.cpu",
    torch.Tensor.numpy: "Tensor.numpy",
    torch.Tensor.__array__: "Tensor.numpy",
    torch.Tensor.tolist: "Tensor.tolist",
}


def count_operators(step: Step, phase: Phase = current) -> OperatorCounts:
    """Run one step and count its operators by phase, and its reads by line.

    Parameters
    ----------
    step : callable
        One training step on the next batch. The work that only a first step does would be counted too, so
        run one before.
    phase : callable
        Returns the name of the current phase, or None, which counts as ``unattributed``.
    """
    with OperatorCounter(phase) as counter:
        step()
    return counter.counts()


class OperatorCounter:
    """A context that counts the operators inside it, for steps that another loop calls.

    Contexts of one counter may follow each other, for example one per step; ``counts`` sums over all.
    Optimisers read their step counters, which stay on the CPU on every machine: these are not counted.
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
                    name: OperatorTotal(
                        t.calls / steps, t.seconds / steps, t.allocated_mib / steps, t.float64 / steps
                    )
                    for name, t in totals.items()
                }
                for phase, totals in self.operators.items()
            },
            {read: calls / steps for read, calls in self.reads.items()},
        )

    def add(self, name: str, seconds: float, allocated: int, float64: bool = False) -> None:
        """Count one call of an operator that took ``allocated`` bytes, and may have made float64."""
        total = self.operators.setdefault(self.phase() or UNATTRIBUTED, {}).setdefault(name, OperatorTotal())
        total.calls += 1
        total.seconds += seconds
        total.allocated_mib += allocated / 2**20
        total.float64 += float64

    def add_read(self, what: str, on_device: bool, frame: FrameType) -> None:
        """Count one read, unless it is an optimiser's look at its own step counter."""
        where, own_counter = _line(frame)
        if on_device or not own_counter:
            read = Read(where, what, self.phase() or UNATTRIBUTED, on_device)
            self.reads[read] = self.reads.get(read, 0.0) + 1


class _Operators(TorchDispatchMode):
    """Reports every operator below autograd to the counter."""

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
        # Storage is new unless an argument has it: views and in-place results take no memory. A tensor made
        # of Python's values passes through lift_fresh, whose argument is that same new storage.
        known = set() if name == "aten::lift_fresh" else {key for x in given for key, _ in _storages(x)}
        new = {key: size for x in tree_leaves(made) for key, size in _storages(x) if key not in known}
        # Python's numbers are float64 tensors of one element on their way, which costs nothing.
        wide = any(
            isinstance(x, torch.Tensor) and x.dtype == torch.float64 and x.numel() > 1
            for x in tree_leaves(made)
        )
        self.counter.add(name, seconds, sum(new.values()), wide)
        what = _read_of(name, args, kwargs, made)
        if what:
            on_device = any(x.device.type != "cpu" for x in given) or _on_device(made)
            self.counter.add_read(what, on_device, sys._getframe(1))
        return made


class _Calls(TorchFunctionMode):
    """Reports copies to the host that are no operators because the tensor is there already."""

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
        # A boolean mask is looked up with nonzero, whose size depends on the values. One value put through a
        # mask is not: torch fills in place.
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
            if code.co_name == "_engine_run_backward":  # the engine calls operators without frames of Python
                break
            own_counter |= code.co_name == "_get_value"
        elif code.co_filename != __file__:
            return place_of_code(code, frame.f_lineno), own_counter
        frame = frame.f_back
    return BACKWARD, own_counter
