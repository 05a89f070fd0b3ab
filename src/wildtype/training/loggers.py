"""The loggers of a run: a table, TensorBoard, and Weights & Biases where it is asked for.

logs/metrics.csv             a row per step, and one per epoch with the scores
logs/epochs.csv              a row per epoch, part of the split and phenotype (`epoch_table`)
logs/events.out.tfevents.*   TensorBoard
logs/wandb/                  Weights & Biases; offline runs are uploaded by `wandb sync`
"""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from tensorboard.compat.proto.summary_pb2 import Summary

from wildtype.errors import ConfigError
from wildtype.files import write_text
from wildtype.training.config import TrainingConfig

LOGS = "logs"
RUN_ID = "wandb-run-id.txt"
"""File beside the logs: a resumed training continues the same run of Weights & Biases."""


@dataclass(frozen=True)
class RunLabels:
    """What Weights & Biases shows of a run.

    Attributes
    ----------
    name, group : str
        Unless the settings name others.
    config : mapping
        All settings of the run.
    """

    name: str = ""
    group: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


class TensorBoard(TensorBoardLogger):
    """TensorBoard's logger with one event per step instead of one per number: several times faster."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the numbers of a step as one event."""
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self.experiment._get_file_writer().add_summary(Summary(value=values), step)


def make_loggers(
    folder: Path, config: TrainingConfig, labels: RunLabels | None = None, *, resumed: int = 0
) -> list[Logger]:
    """Return the loggers of a run directory.

    Parameters
    ----------
    folder : Path
        Of the run, or of a member.
    config : TrainingConfig
        Whether Weights & Biases is one, and how.
    labels : RunLabels, optional
        For Weights & Biases.
    resumed : int
        Finished epochs of a run that is continued: their rows are kept.

    Raises
    ------
    ConfigError
        If Weights & Biases is asked for and not installed, or cannot begin a run.
    """
    logs = folder / LOGS
    before = _rows_before(logs / "metrics.csv", resumed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Experiment logs directory .* exists")  # its rows are given back
        table = CSVLogger(folder, name=LOGS, version="", flush_logs_every_n_steps=20)
        table.experiment.metrics.extend(before)
    loggers: list[Logger] = [table, TensorBoard(folder, name=LOGS, version="")]
    if config.wandb:
        loggers.append(_wandb(logs, config, labels or RunLabels(folder.name), resumed))
    return loggers


def _rows_before(path: Path, epochs: int) -> list[dict[str, Any]]:
    """Return the rows of a table of steps that belong to the first epochs."""
    if not epochs or not path.is_file():
        return []
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    kept = rows[rows["epoch"].astype(int) < epochs].to_dict("records")
    return [{str(name): value for name, value in row.items() if value} for row in kept]


def _wandb(logs: Path, config: TrainingConfig, labels: RunLabels, resumed: int) -> Logger:
    try:
        import wandb
        from lightning.pytorch.loggers import WandbLogger
    except ModuleNotFoundError as error:
        raise ConfigError("training.wandb=true needs the extra: pip install 'wildtype[wandb]'") from error
    mark = logs / RUN_ID
    if not (resumed and mark.is_file()):
        write_text(mark, uuid.uuid4().hex[:8])
    try:
        # Begun here and not by Lightning, which would continue whatever run this process has begun before:
        # for all members of an ensemble, the first one's.
        run = wandb.init(
            project=config.wandb_project,
            name=config.wandb_name or labels.name or None,
            group=config.wandb_group or labels.group or None,
            tags=config.wandb_tags or None,
            config=dict(labels.config),
            id=mark.read_text(encoding="utf-8").strip(),
            resume="allow" if config.wandb_online else None,  # offline, an equal id is all there can be
            dir=logs,
            mode="online" if config.wandb_online else "offline",
            reinit="create_new",
            settings=wandb.Settings(silent=True),
        )
    except wandb.Error as error:
        raise ConfigError(
            f"training.wandb=true: Weights & Biases does not begin a run ({str(error).splitlines()[0]}); log "
            f"in with `wandb login`, or set training.wandb_online=false"
        ) from error
    run.define_metric("trainer/global_step")
    run.define_metric("*", step_metric="trainer/global_step", step_sync=True)
    return WandbLogger(experiment=run)


@contextlib.contextmanager
def closing_logs(loggers: list[Logger]) -> Iterator[list[Logger]]:
    """Give a list of loggers, and end all that are in it by then; after an error, as failed runs."""
    failed = True
    try:
        yield loggers
        failed = False
    finally:
        for logger in loggers:
            logger.finalize("failed" if failed else "success")
            if isinstance(logger, TensorBoardLogger):
                logger.experiment.close()
            finish = getattr(logger.experiment, "finish", None)  # of Weights & Biases
            if finish is not None:
                finish(exit_code=int(failed))
