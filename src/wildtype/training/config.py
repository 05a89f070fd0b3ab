"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field

from wildtype.errors import ConfigError

CHOICES = {
    "precision": ("auto", "32", "bf16"),
    "device": ("auto", "cpu", "cuda"),
    "loss": ("squared", "log_cosh"),
    "weighting": ("none", "p", "sd"),
    "balance": ("rows", "phenotypes", "heads"),
}


@dataclass
class TrainingConfig:
    """How a neural model is trained.

    Attributes
    ----------
    epochs : int
        Most passes over the training rows.
    steps : int
        Most optimiser steps, with the epoch that is going on cut short; 0: as many as the epochs have.
    batch_size : int
        Mutants per step, of all processes together; the encoder's cost does not depend on it.
    accumulate : int
        Parts that the mutants of a step pass the model in, for want of memory: the gradient is that of the
        whole batch.
    learning_rate, weight_decay : float
        Of AdamW.
    warmup : float
        Share of all steps with a rising learning rate; cosine decay afterwards.
    clip : float
        Largest gradient norm; 0: no clipping.
    loss : str
        ``squared`` error or ``log_cosh`` of the scaled labels.
    weighting : str
        ``none``; ``p``: a row counts as -log10 of its p-value, as in DANGO's published protocol; or ``sd``:
        by its inverse variance, sd² plus the median sd² of its phenotype.
    balance : str
        Whether all ``rows`` count alike, or all ``phenotypes``, or all ``heads`` (a vector is one).
    members : int
        Models to train from different seeds; their mean predicts.
    snapshots : int
        Ends of the last so many cycles of the learning rate whose weights become members (Huang et al. 2017),
        instead of the weights that were best on validation; 0: none. Training then never stops early.
    cycles : int
        Cycles of the learning rate, of whole epochs; 0: as many as snapshots.
    patience : int
        Epochs without a better validation score before training stops; 0: never.
    precision : str
        ``auto`` (bf16 on a GPU, float32 on a CPU, where bf16 does not pay), ``32`` or ``bf16``.
    device : str
        ``auto``, ``cpu`` or ``cuda``.
    deterministic : bool
        One thread and deterministic kernels: equal runs give equal bits.
    threads : int
        CPU threads; 0: all.
    start : str
        Run or checkpoint folder whose weights to start from, by name; empty: weights are drawn.
    like_start : bool
        Whether the model has the settings of the start, whatever ``model`` says for these data.
    frozen : list of str
        Parts of the model that keep the weights of the start, by the beginnings of their names, as in
        ``encoder``.
    wandb : bool
        Also log to Weights & Biases (extra ``wandb``; offline unless ``WANDB_API_KEY`` is set).
    """

    epochs: int = 30
    steps: int = 0
    batch_size: int = 2048
    accumulate: int = 1
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    warmup: float = 0.1
    clip: float = 1.0
    loss: str = "squared"
    weighting: str = "none"
    balance: str = "rows"
    members: int = 1
    snapshots: int = 0
    cycles: int = 0
    patience: int = 8
    precision: str = "auto"
    device: str = "auto"
    deterministic: bool = False
    threads: int = 0
    start: str = ""
    like_start: bool = False
    frozen: list[str] = field(default_factory=list)
    wandb: bool = False

    @property
    def cycle_ends(self) -> list[int]:
        """Epochs (from 1) at which cycles of the learning rate end, as equally spaced as whole epochs allow:
        the last one alone unless there are cycles.
        """
        cycles = max(self.cycles, self.snapshots, 1)
        return [round((i + 1) * self.epochs / cycles) for i in range(cycles)]

    @property
    def snapshot_epochs(self) -> list[int]:
        """Epochs whose weights become members; none without snapshots."""
        return self.cycle_ends[-self.snapshots :] if self.snapshots else []

    def check(self) -> None:
        """Refuse values that make no sense; raises ``ConfigError``."""
        if self.steps < 0:
            raise ConfigError(f"training.steps={self.steps} must be at least 0, which is no limit")
        for name in ("epochs", "batch_size", "accumulate", "members"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name}={getattr(self, name)} must be at least 1")
        for name in ("snapshots", "cycles"):
            if getattr(self, name) < 0:
                raise ConfigError(f"training.{name}={getattr(self, name)} must be at least 0, which is none")
        if self.cycles and not self.snapshots <= self.cycles:
            raise ConfigError(
                f"training.snapshots={self.snapshots} are ends of cycles, of which training.cycles="
                f"{self.cycles} are fewer: ask for more cycles"
            )
        if max(self.snapshots, self.cycles) > self.epochs:
            raise ConfigError(
                f"training.epochs={self.epochs} is less than one epoch for each of "
                f"{max(self.snapshots, self.cycles)} cycles: train longer or take fewer snapshots"
            )
        if self.steps and self.snapshots:
            raise ConfigError(
                f"training.steps={self.steps} would cut cycles short, and training.snapshots="
                f"{self.snapshots} need their ends: limit training.epochs instead"
            )
        if self.learning_rate <= 0 or not 0 <= self.warmup < 1:
            raise ConfigError(
                f"training.learning_rate={self.learning_rate} must be positive and "
                f"training.warmup={self.warmup} between 0 and 1"
            )
        if self.frozen and not self.start:
            raise ConfigError(
                f"training.frozen={self.frozen} would keep weights as they were drawn: "
                f"give training.start=RUN"
            )
        if self.like_start and not self.start:
            raise ConfigError("training.like_start=true: give training.start=RUN")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(f"training.{name}={getattr(self, name)!r}; known: {', '.join(known)}")
