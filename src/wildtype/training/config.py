"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field

from wildtype.errors import ConfigError

CHOICES = {
    "precision": ("auto", "32", "bf16"),
    "device": ("auto", "cpu", "cuda"),
    "loss": ("squared", "log_cosh"),
    "weighting": ("none", "p"),
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
        Mutants per step; the encoder's cost does not depend on it.
    learning_rate, weight_decay : float
        Of AdamW.
    warmup : float
        Share of all steps with a rising learning rate; cosine decay afterwards.
    clip : float
        Largest gradient norm; 0: no clipping.
    loss : str
        ``squared`` error or ``log_cosh`` of the scaled labels.
    weighting : str
        ``none``, or ``p``: a row counts as -log10 of its p-value, as in DANGO's published protocol.
    members : int
        Models to train from different seeds; their mean predicts.
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
    frozen : list of str
        Parts of the model that keep the weights of the start, by the beginnings of their names, as in
        ``encoder``.
    wandb : bool
        Also log to Weights & Biases (extra ``wandb``; offline unless ``WANDB_API_KEY`` is set).
    """

    epochs: int = 30
    steps: int = 0
    batch_size: int = 2048
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    warmup: float = 0.1
    clip: float = 1.0
    loss: str = "squared"
    weighting: str = "none"
    members: int = 1
    patience: int = 8
    precision: str = "auto"
    device: str = "auto"
    deterministic: bool = False
    threads: int = 0
    start: str = ""
    frozen: list[str] = field(default_factory=list)
    wandb: bool = False

    def check(self) -> None:
        """Refuse values that make no sense; raises ``ConfigError``."""
        if self.steps < 0:
            raise ConfigError(f"training.steps={self.steps} must be at least 0, which is no limit")
        for name in ("epochs", "batch_size", "members"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name}={getattr(self, name)} must be at least 1")
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
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(f"training.{name}={getattr(self, name)!r}; known: {', '.join(known)}")
