"""Baselines trained by gradient descent: an embedding-sum MLP and a factorisation machine.

Legend: b rows of a batch · t tokens of a row (genes, kinds, condition) · v tokens known · d width.
torch is imported when a model is fitted, so that the other baselines work without loading it.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.models.baselines.base import Baseline, weighted_mean
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.rows import Codes
from wildtype.organism import Organism
from wildtype.seeds import derive, generator

if TYPE_CHECKING:
    import torch


class Tokens:
    """Rows as token numbers: one per gene, per gene × kind and per condition; 0 for padding and the unseen.

    Kind and condition tokens exist only where the training rows have several kinds or conditions.
    """

    def __init__(self, table: MutantTable) -> None:
        self.genes = Codes(table.gene)
        several = len(np.unique(table.kind)) > 1
        self.kinds = Codes(table.gene * len(Kind) + table.kind) if several else None
        self.conditions = Codes(table.condition) if len(np.unique(table.condition)) > 1 else None
        self.size = 1 + sum(
            len(book) for book in (self.genes, self.kinds, self.conditions) if book is not None
        )

    def matrix(self, table: MutantTable) -> NDArray[np.int64]:
        """Return token numbers [m, t]; t depends on the table."""
        # Token 0 is padding and any unseen token. Its embedding is zero, so it drops out of every sum.
        wide = max(int(table.order.max(initial=0)), 1)
        place = np.arange(len(table.gene)) - table.offsets[table.row]
        parts, start = [], 1
        for book, code in ((self.genes, table.gene), (self.kinds, table.gene * len(Kind) + table.kind)):
            if book is None:
                continue
            part = np.zeros((len(table), wide), np.int64)
            at = book.find(code)
            part[table.row, place] = np.where(at >= 0, at + start, 0)
            parts.append(part)
            start += len(book)
        if self.conditions is not None:
            at = self.conditions.find(table.condition)
            parts.append(np.where(at >= 0, at + start, 0)[:, None])
        return np.concatenate(parts, axis=1)


def _mean_and_sd(train: MutantTable) -> tuple[float, float]:
    """Return mean and sd of the labels, each counted as often as its row stands for; sd 1 where it is 0."""
    if train.weights is None:
        return float(train.value.mean()), float(train.value.std()) or 1.0
    mean = weighted_mean(train.value, train.weights)
    return mean, weighted_mean((train.value - mean) ** 2, train.weights) ** 0.5 or 1.0


def _loss(predicted: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Return the mean squared error of a batch; with weights Σ w e² / Σ w."""
    import torch

    if weight is None:
        return torch.nn.functional.mse_loss(predicted, target)
    return (weight * (predicted - target) ** 2).sum() / weight.sum()


class TorchBaseline(Baseline):
    """AdamW on standardised labels; weight decay and number of epochs are chosen on the validation rows."""

    decays: ClassVar[tuple[float, ...]]
    max_epochs: ClassVar[int] = 60
    patience: ClassVar[int] = 6
    learning_rate: ClassVar[float] = 2e-3
    largest_batch: ClassVar[int] = 1024

    @abstractmethod
    def _build(self, tokens: int) -> torch.nn.Module:
        """Return a module from token numbers int64 [b, t] to standardised predictions [b]."""

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        import torch

        self._tokens = Tokens(train)
        # Constant labels have no spread: they are centred only.
        self._mean, self._sd = _mean_and_sd(train)
        self._weight = None if train.weight is None else torch.from_numpy(train.weight)
        inputs = torch.from_numpy(self._tokens.matrix(train))
        target = torch.from_numpy((train.value - self._mean) / self._sd)
        held_inputs = torch.from_numpy(self._tokens.matrix(validation))
        held_target = torch.from_numpy((validation.value - self._mean) / self._sd)
        decays = (self.fixed["weight_decay"],) if "weight_decay" in self.fixed else self.decays
        if not len(validation):
            decays = decays[:1]
        best = math.inf
        for decay in decays:
            # Initial weights and dropout have a stream of their own; the caller's stream is left as it was.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive(seed, self.name))
                error, epochs, model = self._run(inputs, target, held_inputs, held_target, decay, seed)
            if error < best:
                best, self._model = error, model
                self.chosen = {"weight_decay": decay, "epochs": epochs}

    def _run(
        self,
        inputs: torch.Tensor,
        target: torch.Tensor,
        held_inputs: torch.Tensor,
        held_target: torch.Tensor,
        decay: float,
        seed: int,
    ) -> tuple[float, int, torch.nn.Module]:
        """Return the validation error of the best epoch, its number and the model as it was then."""
        import torch

        model = self._build(self._tokens.size)
        optimiser = torch.optim.AdamW(model.parameters(), lr=self.learning_rate, weight_decay=decay)
        fixed = int(self.fixed["epochs"]) if "epochs" in self.fixed else None
        limit = fixed or (self.max_epochs if len(held_target) else 15)
        batch = min(self.largest_batch, max(64, len(target) // 16))  # some ten steps per epoch on little data
        best, kept, state = math.inf, limit, None
        for epoch in range(1, limit + 1):
            model.train()
            order = torch.from_numpy(generator(seed, f"{self.name} batches", epoch).permutation(len(target)))
            for rows in order.split(batch):
                optimiser.zero_grad()
                loss = _loss(
                    model(inputs[rows]), target[rows], None if self._weight is None else self._weight[rows]
                )
                loss.backward()
                optimiser.step()
            if fixed is not None or not len(held_target):
                continue
            error = float(((self._forward(model, held_inputs) - held_target) ** 2).mean())
            if error < best:
                # state_dict holds references to the weights, which the next step changes: hence a copy.
                best, kept, state = error, epoch, copy.deepcopy(model.state_dict())
            elif epoch - kept >= self.patience:
                break
        if state is not None:
            model.load_state_dict(state)
        elif len(held_target):
            best = float(((self._forward(model, held_inputs) - held_target) ** 2).mean())
        else:
            best = 0.0
        return best, kept, model

    def _forward(self, model: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        import torch

        model.eval()
        with torch.no_grad():
            return torch.cat([model(part) for part in inputs.split(8192)])

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        import torch

        standardised = self._forward(self._model, torch.from_numpy(self._tokens.matrix(table)))
        return np.asarray(standardised.double().numpy() * self._sd + self._mean)


class EmbeddingMLP(TorchBaseline):
    """Sum of learned token embeddings, then a perceptron of two hidden layers; an unseen gene adds 0."""

    name: ClassVar[str] = "embedding_mlp"
    description: ClassVar[str] = "sum of learned gene embeddings, then an MLP"
    decays: ClassVar[tuple[float, ...]] = (0.3, 3.0)

    def _build(self, tokens: int) -> torch.nn.Module:
        import torch
        from torch import nn

        from wildtype.nn.dropout import Dropout

        class Model(nn.Module):
            def __init__(self, v: int, d: int) -> None:
                super().__init__()
                self.embedding = nn.Embedding(v, d, padding_idx=0)
                nn.init.normal_(self.embedding.weight, std=0.1)
                # padding_idx stops the gradient of row 0, but normal_ has just filled it.
                with torch.no_grad():
                    self.embedding.weight[0] = 0
                self.head = nn.Sequential(
                    nn.Linear(d, d), nn.GELU(), Dropout(0.2), nn.Linear(d, d), nn.GELU(), nn.Linear(d, 1)
                )

            def forward(self, tokens_bt: torch.Tensor) -> torch.Tensor:
                out: torch.Tensor = self.head(self.embedding(tokens_bt).sum(1))
                return out.squeeze(-1)

        return Model(tokens, 64)


class LowRankBilinear(TorchBaseline):
    """Additive effects plus Σ over token pairs of ⟨u_a, u_b⟩.

    A factorisation machine (Rendle, ICDM 2010, eq. 1), any order: Σ_{a<b} ⟨u_a, u_b⟩ = ½ (‖Σ u‖² − Σ ‖u‖²).
    """

    name: ClassVar[str] = "low_rank_bilinear"
    description: ClassVar[str] = "additive effects plus low-rank products of gene embeddings"
    decays: ClassVar[tuple[float, ...]] = (1.0, 4.0, 16.0)

    def _build(self, tokens: int) -> torch.nn.Module:
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self, v: int, d: int) -> None:
                super().__init__()
                self.bias = nn.Parameter(torch.zeros(()))
                self.additive = nn.Embedding(v, 1, padding_idx=0)
                self.factors = nn.Embedding(v, d, padding_idx=0)
                nn.init.zeros_(self.additive.weight)
                nn.init.normal_(self.factors.weight, std=0.1)
                with torch.no_grad():
                    self.factors.weight[0] = 0

            def forward(self, tokens_bt: torch.Tensor) -> torch.Tensor:
                u_btd = self.factors(tokens_bt)
                # Σ_{a<b} ⟨u_a, u_b⟩ = ½ (‖Σ u‖² − Σ ‖u‖²): O(t d) instead of O(t² d).
                bilinear: torch.Tensor = (u_btd.sum(1) ** 2 - (u_btd**2).sum(1)).sum(-1) / 2
                additive: torch.Tensor = self.additive(tokens_bt).sum((1, 2))
                return self.bias + additive + bilinear

        return Model(tokens, 24)
