"""`GradientExchange`: gradients averaged over processes, and its time as the phase ``gradient sync``."""

# Annotations are evaluated here: DDP looks at those of the function that exchanges a bucket.

from typing import Any

import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from wildtype.phases import current, phase

SYNC = "gradient sync"


class GradientExchange(DDPStrategy):
    """Torch's DistributedDataParallel.

    Every parameter has a gradient in every step: a process without mutants has gradients of 0, and so have
    parameters that the model declares unused (`FitTask`). So DDP need not walk the graph for unused ones, and
    exchanges what is ready while the backward pass goes on.

    Parameters
    ----------
    place : str
        Where training takes place, ``gpu`` or ``cpu``.
    backward : bool
        Whether steps have a backward pass; DDP would wait for it in the next step.
    """

    def __init__(self, place: str, *, backward: bool) -> None:
        # Buffers are counters, which `FitTask` joins before validation; broadcasting rank 0's would lose the
        # others'.
        backend = "gloo" if place == "cpu" else "nccl"
        super().__init__(find_unused_parameters=False, broadcast_buffers=False, process_group_backend=backend)
        self._backward = backward

    def configure_ddp(self) -> None:
        """Wrap the task."""
        super().configure_ddp()
        assert isinstance(self.model, torch.nn.parallel.DistributedDataParallel)
        self.model.require_backward_grad_sync = self._backward
        self.model.register_comm_hook(None, _average)


def _average(
    state: Any,
    bucket: torch.distributed.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """Begin to average a bucket of gradients; they are exchanged in the order of the buckets."""
    if bucket.is_last():
        # All gradients are there. What is left of the backward pass is to wait: for other processes, and for
        # the exchange. `leave` ends the phase, once the pass is over.
        phase(SYNC).__enter__()
    return allreduce_hook(state, bucket)


def leave() -> None:
    """End the phase that the last bucket began, if there was one."""
    if current() == SYNC:
        phase(SYNC).__exit__(None, None, None)
