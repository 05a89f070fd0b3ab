"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wildtype.errors import ConfigError
from wildtype.settings import check_settings, setting

Execution = Literal["training", "forward_backward", "forward", "data_only"]
EXECUTIONS: tuple[str, ...] = get_args(Execution)
"""How much of a training step is done."""
WITHOUT_GRADIENTS: tuple[str, ...] = ("device", "deterministic", "threads")
"""Training settings that a model without gradients uses, too; all others are about training steps."""


@dataclass
class TrainingConfig:
    """How a neural model is trained."""

    epochs: int = setting(30, "Most passes over the training rows.", minimum=1)
    steps: int = setting(
        0, "Most optimiser steps, even if the last epoch ends early; 0: no limit.", minimum=0
    )
    batch_size: int = setting(2048, "Mutants per optimiser step, over all processes.", minimum=1)
    gradient_accumulation_steps: int = setting(
        1,
        "Micro-batches that the mutants of a step are split into to save memory; their gradients add up to "
        "that of the batch.",
        minimum=1,
    )
    learning_rate: float = setting(1e-3, "Peak learning rate of AdamW.", above=0)
    weight_decay: float = setting(
        0.1, "Weight decay of AdamW, on weights of two or more dimensions.", minimum=0
    )
    schedule: Literal["cosine", "plateau", "constant"] = setting(
        "cosine",
        "The learning rate after the warm-up: it falls to zero along a cosine; stays until the validation "
        "score does, and is then multiplied by `training.plateau_factor`; or stays.",
    )
    warmup: float = setting(
        0.1,
        "Fraction of all steps with a rising learning rate; `training.schedule` follows.",
        minimum=0,
        below=1,
    )
    plateau_patience: int = setting(
        3,
        "Schedule plateau: epochs without a better validation score before the learning rate falls.",
        minimum=1,
    )
    plateau_factor: float = setting(
        0.3, "Schedule plateau: what the learning rate is multiplied by.", above=0, below=1
    )
    clip: float = setting(
        1.0, "Largest norm of the gradient; 0: no clipping, and no norm in the logs.", minimum=0
    )
    loss: Literal["squared", "log_cosh"] = setting("squared", "Loss of one scaled regression label.")
    weighting: Literal["none", "p", "sd"] = setting(
        "none",
        "Weight of a row: equal; -log10 of its p-value, as in DANGO's published protocol; or its inverse "
        "variance, 1 / (sd² + median sd² of its phenotype).",
    )
    balance: Literal["rows", "phenotypes", "heads"] = setting(
        "rows", "What counts equally in the loss: rows, phenotypes, or output heads (a vector is one)."
    )
    members: int = setting(1, "Models trained from different seeds; their mean predicts.", minimum=1)
    snapshots: int = setting(
        0,
        "Ensemble members taken at the ends of the last cycles of the learning rate (Huang et al. 2017), "
        "instead of the weights that were best on validation. 0: none. Training then never stops early.",
        minimum=0,
    )
    cycles: int = setting(
        0, "Cycles of the learning rate, of whole epochs; 0: as many as snapshots.", minimum=0
    )
    patience: int = setting(
        8, "Epochs without a better validation score before training stops; 0: never.", minimum=0
    )
    precision: Literal["auto", "32", "bf16"] = setting(
        "auto", "Arithmetic: bf16 on a GPU and float32 on a CPU (auto), float32, or bf16."
    )
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "Where training runs.")
    deterministic: bool = setting(
        False, "Use one thread and deterministic kernels: equal runs give equal bits."
    )
    threads: int = setting(
        0, "CPU threads of a process; 0: by the size of the model, at most the cores.", minimum=0
    )
    start: str = setting(
        "", "Run or checkpoint whose weights training starts from, matched by name; empty: random weights."
    )
    like_start: bool = setting(False, "Take the settings of the model from `training.start`.")
    frozen: list[str] = setting(
        [],
        "Modules that keep the weights of `training.start`, by the beginning of their names, as in encoder.",
    )
    figures: int = setting(
        0,
        "Epochs between figures in TensorBoard and Weights & Biases: predicted against measured validation "
        "rows, and learning curves; 0: none.",
        minimum=0,
    )
    oversmoothing: bool = setting(
        True,
        "Log after every epoch how alike the genes' states have become, layer by layer: mean cosine and "
        "Dirichlet energy.",
    )
    trace_step: int = setting(
        0,
        "Step, from 1, that torch's profiler records in every process, in `traces` of the run directory "
        "(`wildtype profile trace FILE` reads it); 0: none.",
        minimum=0,
    )
    trace_with: list[Literal["shapes", "stacks"]] = setting(
        [], "What the trace also records: shapes of operands, Python's call stacks."
    )
    wandb: bool = setting(
        False, "Also log to Weights & Biases (extra wandb), offline unless `training.wandb_online`."
    )
    wandb_online: bool = setting(
        False, "Weights & Biases: upload while training, with the account of `wandb login`."
    )
    wandb_project: str = setting("wildtype", "Weights & Biases: project.")
    wandb_name: str = setting("", "Weights & Biases: name of the run; empty: that of the run directory.")
    wandb_group: str = setting(
        "", "Weights & Biases: group of runs; empty: an ensemble's members are a group of its name."
    )
    wandb_tags: list[str] = setting([], "Weights & Biases: tags.")

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
        """Refuse values out of range and combinations that make no sense; raises ``ConfigError``."""
        check_settings(self, "training.")
        if self.cycles and not self.snapshots <= self.cycles:
            raise ConfigError(
                f"training.snapshots={self.snapshots} needs as many cycles, and training.cycles="
                f"{self.cycles}: choose more cycles"
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
        if self.schedule != "cosine" and max(self.cycles, self.snapshots):
            name, value = ("cycles", self.cycles) if self.cycles else ("snapshots", self.snapshots)
            raise ConfigError(
                f"training.schedule={self.schedule} has no cycles, and training.{name}={value} needs them: "
                f"take training.schedule=cosine"
            )
        if self.trace_with and not self.trace_step:
            raise ConfigError(
                f"training.trace_with={self.trace_with} records nothing: give training.trace_step"
            )
        if self.frozen and not self.start:
            raise ConfigError(
                f"training.frozen={self.frozen} would freeze random weights: give training.start=RUN"
            )
        if self.like_start and not self.start:
            raise ConfigError("training.like_start=true: give training.start=RUN")
