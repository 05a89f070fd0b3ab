"""What a planted slow-down is: the settings of a training run with and without it, and what must be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lightning.pytorch import Callback

from wildtype.models.interface import Model
from wildtype.mutants import MutantTable
from wildtype.mutants.loader import Batches

GENES, EDGES, ROWS, BATCH = 400, 6000, 2560, 256
MANY_GENES = 2000
"""Genes of the organism with a dense adjacency."""
FEW = 16
"""Mutants of a tiny batch, and of the batches of graphs."""


@dataclass(frozen=True)
class Ways:
    """Settings of a training run that can make it slow; by default none does.

    Attributes
    ----------
    batch_size : int
        Mutants per step.
    model : callable
        Wraps the model of the base.
    loader : callable, optional
        Makes the loader of a table and a batch size.
    callbacks : sequence of Callback
        Further callbacks.
    clip : float
        Largest gradient norm.
    genes, layers : int
        Of the organism, and of the model's encoder.
    steps : int
        Timed steps: more of short ones, so that samples of their stacks see what lies between phases.
    graphs : bool
        Whether the model is a difference GNN.
    around : callable
        Makes the context that the training runs inside of.
    """

    batch_size: int = BATCH
    model: Callable[[Model], Model] = lambda model: model
    loader: Callable[[MutantTable, int], Batches] | None = None
    callbacks: Sequence[Callback] = ()
    clip: float = 1.0
    genes: int = GENES
    layers: int = 1
    steps: int = 24
    graphs: bool = False
    around: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True)
class Plant:
    """A slow-down.

    Attributes
    ----------
    base, slow : Ways
        A run without it, and one with it.
    phases : set of str or None
        Phases that count as found; None: of the whole run, such as the number of steps.
    kinds : set of str
        Kinds of causes that count as found.
    said : str
        What the evidence must name, such as a function.
    """

    base: Ways
    slow: Ways
    phases: frozenset[str | None]
    kinds: frozenset[str]
    said: str = ""
