"""What benches share: the sizes of a problem, a training step, and how far two formulations differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from wildtype.models.interface import Model, OrganismTensors
from wildtype.mutants.batch import MutantBatch
from wildtype.training.objective import objective

Problem = dict[str, Any]
Step = Callable[[], Tensor]
Reference = Annotated[
    bool, typer.Option(help="Also run the plain formulation (slow, up to 12 GiB of memory).")
]


def chosen(options: Mapping[str, Any], *without: str) -> Problem:
    """Return the options of a bench, its ``locals()`` on entry, without some."""
    return {name: value for name, value in options.items() if name not in without}


def training_step(
    model: Model, organism: OrganismTensors, batch: MutantBatch, *, loss: str = "squared", clip: float = 0.0
) -> Step:
    """Return a training step that encodes, predicts, goes back, clips if asked, and lets AdamW step."""

    def total() -> Tensor:
        wild_type = model.encode(organism)
        return objective(model(wild_type, batch), wild_type, batch, loss=loss).total

    return optimised(model, total, clip=clip)


def optimised(model: Model, total: Step, *, clip: float = 0.0) -> Step:
    """Return a training step around a loss."""
    # A learning rate of 0 does the work of an update and changes nothing, so that every step is the same.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = total()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss.detach()

    return step


def gradients(model: torch.nn.Module) -> list[Tensor]:
    """Return copies of the gradients of all parameters, zeros where there is none."""
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


def largest_gap(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest absolute difference, relative to the largest expected number of all tensors."""
    scale = max(float(x.abs().max()) for x in expected)
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True)) / scale
