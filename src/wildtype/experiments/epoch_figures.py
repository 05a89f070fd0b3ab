"""`EpochFigures`: a callback that draws how training goes, for TensorBoard and Weights & Biases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

from wildtype.datasets.dataset_record import Phenotype
from wildtype.evaluation.predicted_rows import PredictedRows
from wildtype.evaluation.training_record import learning_curves
from wildtype.mutants import MutantTable
from wildtype.report.figures.learning import learning_panels
from wildtype.report.figures.panel import Panel, image_of
from wildtype.report.figures.predicted import predicted_panels
from wildtype.training.task import FitTask

MOST = 9
"""Phenotypes that are drawn, those with the most validation rows."""


class EpochFigures(Callback):
    """Logs two figures every few epochs: predicted against measured validation rows, and learning curves.

    Parameters
    ----------
    every : int
        Epochs between figures.
    model : str
        Name of the model.
    phenotypes : sequence of Phenotype
        Of the run, for their units.
    """

    def __init__(self, every: int, model: str, phenotypes: Sequence[Phenotype]) -> None:
        self.every = every
        self.model = model
        self.phenotypes = phenotypes

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw after every so many epochs; the epoch is counted by now."""
        assert isinstance(pl_module, FitTask)
        if pl_module.epoch % self.every or not trainer.loggers:
            return
        pl_module.flush_log()
        for name, panels in (
            ("validation/predicted against measured", self._predicted(pl_module)),
            ("learning curves", self._learning(trainer)),
        ):
            if panels:
                log_image(trainer, name, panels, pl_module.step - 1)

    def _predicted(self, task: FitTask) -> list[Panel]:
        found = sorted(task.validation.in_units(task.scaler).items(), key=lambda item: -len(item[1][0]))
        panels = []
        for p, (predicted, measured) in found[:MOST]:
            phenotype = self.phenotypes[p]
            rows = PredictedRows(
                phenotype.name,
                phenotype.unit,
                MutantTable.build(np.zeros(0, np.int64), [0]),  # what is drawn is not about genes
                (),
                (),
                measured,
                np.full(len(measured), np.nan),
                {self.model: predicted},
                calls=phenotype.form == "class",
            )
            # Several phenotypes: their names tell panels apart.
            panels += predicted_panels(rows, by_phenotype=len(found) > 1)
        return panels

    @staticmethod
    def _learning(trainer: Trainer) -> list[Panel]:
        (table,) = (logger for logger in trainer.loggers if isinstance(logger, CSVLogger))
        table.save()
        curves = learning_curves(pd.read_csv(table.experiment.metrics_file_path))
        return [] if curves is None else learning_panels(curves)


def log_image(trainer: Trainer, name: str, panels: Sequence[Panel], step: int) -> None:
    """Draw panels once, and hand the image to every logger that takes images."""
    image = image_of(panels)
    for logger in trainer.loggers:
        if isinstance(logger, TensorBoardLogger):
            logger.experiment.add_image(name, image, step, dataformats="HWC")
        elif hasattr(logger, "log_image"):  # Weights & Biases
            logger.log_image(name, [image], step=step)
