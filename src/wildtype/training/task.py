"""`FitTask`: one training step and one validation pass, for Lightning's loop.

Every random draw of a step comes from (seed, step), so that a resumed run continues as if it had never
stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from wildtype.models.interface import Model, OrganismTensors, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.seeds import derive
from wildtype.training.config import TrainingConfig
from wildtype.training.objective import learning_rate, objective


class FitTask(LightningModule):
    """A model, the organism it sees, and how it is optimised.

    Parameters
    ----------
    model : Model
        The model to fit, in place.
    organism : OrganismTensors
        What it sees of the organism.
    config : TrainingConfig
        Optimiser settings.
    steps : int
        Optimiser steps of the whole run, for the schedule.
    seed : int
        Root of all random draws.
    mean_weight : float
        Mean weight of the training rows; 0: rows count alike.
    """

    def __init__(
        self,
        model: Model,
        organism: OrganismTensors,
        config: TrainingConfig,
        steps: int,
        seed: int,
        mean_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self.organism = organism
        self.config = config
        self.steps = steps
        self.seed = seed
        self.mean_weight = mean_weight
        self.step = 0  # of the whole run, resumed parts included
        self.epoch = 0  # finished ones, likewise
        self.validation_score = float("-inf")
        self._validation: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        self._wild_type: WildType | None = None

    def on_fit_start(self) -> None:
        """Move the organism beside the model."""
        self.organism = self.organism.to(self.device)

    def transfer_batch_to_device(
        self, batch: MutantBatch, device: torch.device, dataloader_idx: int
    ) -> MutantBatch:
        """Move a batch."""
        return batch.to(device, non_blocking=True)

    def on_train_epoch_start(self) -> None:
        """Tell the model which epoch begins, and encode the wild type if that is to serve for all of it."""
        self.model.set_epoch(self.epoch)
        if self.model.encode_per_epoch:
            with torch.no_grad():
                self._wild_type = self.model.encode(self.organism)

    def on_train_batch_start(self, batch: MutantBatch, batch_idx: int) -> None:
        """Set this step's learning rate and random streams."""
        torch.manual_seed(derive(self.seed, "step", self.step))
        rate = learning_rate(self.step, self.steps, self.config.learning_rate, self.config.warmup)
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = rate

    def training_step(self, batch: MutantBatch, batch_idx: int) -> Tensor:
        """Encode the wild type once, predict every mutant of the batch, and return the objective."""
        wild_type = self._wild_type
        if wild_type is None:
            stream = torch.Generator().manual_seed(derive(self.seed, "prior", self.step))
            wild_type = self.model.encode(self.organism, stream)
        prediction = self.model(wild_type, batch)
        result = objective(prediction, wild_type, batch, loss=self.config.loss, mean=self.mean_weight)
        self.log_dict(result.log_record(), on_step=True, batch_size=len(batch))
        self.step += 1
        return result.total

    def on_validation_epoch_start(self) -> None:
        """Encode the wild type once for the whole validation pass."""
        self._wild_type = self.model.encode(self.organism.without_priors())
        self._validation = ([], [], [])

    def validation_step(self, batch: MutantBatch, batch_idx: int) -> None:
        """Collect predictions of the rows' own phenotypes."""
        assert self._wild_type is not None
        mean = self.model(self._wild_type, batch).mean
        predicted, measured, phenotype = self._validation
        predicted.append(mean.gather(1, batch.phenotype[:, None]).squeeze(1).float().cpu())
        measured.append(batch.value.cpu())
        phenotype.append(batch.phenotype.cpu())

    def on_validation_epoch_end(self) -> None:
        """Log Pearson (mean over phenotypes) and squared error on the validation rows."""
        predicted, measured, phenotype = (torch.cat(parts) for parts in self._validation)
        scores = []
        for p in range(int(phenotype.max()) + 1):
            rows = phenotype == p
            a, b = predicted[rows].double(), measured[rows].double()
            if len(a) > 1 and a.std() > 0 and b.std() > 0:
                scores.append(float(torch.corrcoef(torch.stack([a, b]))[0, 1]))
        self.validation_score = float(np.mean(scores)) if scores else 0.0
        error = torch.mean((predicted - measured) ** 2)
        self.log_dict(
            {"validation/pearson": self.validation_score, "validation/error": error}, batch_size=len(measured)
        )
        self._wild_type = None

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW; norms, biases and embeddings of one dimension are not decayed."""
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": decayed, "weight_decay": self.config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.config.learning_rate)
