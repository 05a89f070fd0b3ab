"""Training rows, the weights that fit them best, and predictions given them.

Legend: m training rows · b mutants · e perturbations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.models.gaussian_process.kernel import (
    Described,
    GeneSources,
    MutantKernel,
    Rows,
    between,
    describe,
)
from wildtype.models.gaussian_process.label_columns import LabelColumns, out_of_fold
from wildtype.mutants import MutantTable
from wildtype.nn.forest import load_sizes

RATE = 0.1
"""Of Adam."""
FEW = 32
"""Mutants whose covariance with one another is computed for its diagonal alone."""


class Measured(nn.Module):
    """The training rows of a phenotype in buffers, so that a checkpoint holds them.

    Attributes
    ----------
    gene, kind, dose, dosed, row : int64 [e], uint8 [e], float32 [e], bool [e], int64 [e]
        Of each perturbation; without a dose it is 0 and not ``dosed``, since checkpoints hold finite numbers
        only.
    condition : int64 [m]
    value : float64 [m]
        Scaled labels.
    columns : float32 [m, f]
        Label columns, as other rows' labels give them; empty before `add_columns`.
    """

    gene: Tensor
    kind: Tensor
    dose: Tensor
    dosed: Tensor
    row: Tensor
    condition: Tensor
    value: Tensor
    columns: Tensor

    def __init__(self) -> None:
        super().__init__()
        entries = {"gene": torch.int64, "kind": torch.uint8, "dose": torch.float32, "dosed": torch.bool}
        rows = {"row": torch.int64, "condition": torch.int64, "value": torch.float64}
        for name, of in (entries | rows).items():
            self.register_buffer(name, torch.zeros(0, dtype=of))
        self.register_buffer("columns", torch.zeros(0, 0))

    @classmethod
    def of(cls, table: MutantTable, value: NDArray[np.float64]) -> Measured:
        """Return the rows of a table with scaled labels [m]."""
        made = cls()
        dose = np.full(len(table.gene), np.nan, np.float32) if table.dose is None else table.dose
        columns = {
            "gene": table.gene,
            "kind": table.kind,
            "dose": np.nan_to_num(dose),
            "dosed": ~np.isnan(dose),
        }
        columns |= {"row": table.row, "condition": table.condition, "value": value}
        for name, column in columns.items():
            setattr(made, name, torch.from_numpy(np.array(column)))
        made.columns = torch.zeros(len(table), 0)
        return made

    def add_columns(self, sources: GeneSources, held: MutantTable, seed: int) -> None:
        """Add label columns where rows have two genes or more.

        Parameters
        ----------
        sources : GeneSources
        held : MutantTable
            Validation rows, of which only genes are looked at: training rows see what these see.
        seed : int
            Of folds.
        """
        rows = self.rows()
        if rows.paired:
            self.columns = out_of_fold(sources.similarity, rows.table(self.value), held, seed)

    def rows(self) -> Rows:
        """Return the m mutants."""
        dose = torch.where(self.dosed, self.dose, torch.nan)
        return Rows.of(self.gene, self.kind, dose, self.row, self.condition)

    def described(self, sources: GeneSources) -> tuple[Described, LabelColumns | None]:
        """Return the m mutants as the covariance sees them, and what gives others their label columns."""
        rows = self.rows()
        if not self.columns.shape[1]:
            return describe(rows, sources), None
        labels = LabelColumns(sources.similarity, rows.table(self.value), self.columns)
        return describe(rows, sources, labels.standardised(self.columns)), labels

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)


@dataclass(frozen=True, eq=False)
class Given:
    """Training rows of a phenotype, solved for.

    Attributes
    ----------
    rows : Described
        The m mutants.
    lower : float64 [m, m]
        Cholesky factor of K + σ²I.
    weight : float64 [m]
        (K + σ²I)⁻¹y.
    labels : LabelColumns or None
        Of mutants that are asked about.
    """

    rows: Described
    lower: Tensor
    weight: Tensor
    labels: LabelColumns | None = None

    def predict(self, kernel: MutantKernel, asked: Described, sources: GeneSources) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations [b] of mutants; O(b m²)."""
        if self.labels is not None:
            asked = replace(asked, columns=self.labels(asked.rows.table()))
        found = kernel(asked, self.rows, between(sources, asked.rows, self.rows.rows))
        explained = torch.linalg.solve_triangular(self.lower, found.T, upper=False).square().sum(0)
        # Rounding makes the variance of a mutant that was measured many times negative.
        return found @ self.weight, (_variances(kernel, asked, sources) - explained).clamp(min=0).sqrt()


def _variances(kernel: MutantKernel, asked: Described, sources: GeneSources) -> Tensor:
    """Return the variance of every mutant [b] before any measurement."""
    found = []
    # The diagonal of few mutants at a time: the covariance of all with all is mostly thrown away.
    for start in range(0, len(asked.rows), FEW):
        part = torch.arange(start, min(start + FEW, len(asked.rows)))
        few = asked.take(part)
        found.append(kernel(few, few, between(sources, few.rows, few.rows)).diagonal())
    return torch.cat(found)


@torch.no_grad()
def given_rows(kernel: MutantKernel, measured: Measured, sources: GeneSources) -> Given | None:
    """Return the training rows of a phenotype, solved for, or None without rows; O(m³)."""
    if not len(measured.value):
        return None
    rows, labels = measured.described(sources)
    lower = torch.linalg.cholesky(kernel.of_labels(rows, between(sources, rows.rows, rows.rows)))
    return Given(rows, lower, torch.cholesky_solve(measured.value[:, None], lower)[:, 0], labels)


def fit_kernel(sources: GeneSources, mutants: Described, value: Tensor, steps: int) -> MutantKernel:
    """Return weights and amplitudes that maximise the posterior of labels.

    Adam on ½ yᵀ(K + σ²I)⁻¹y + ½ log |K + σ²I| + `MutantKernel.penalty`; O(steps · m³).

    Parameters
    ----------
    sources : GeneSources
    mutants : Described
        The m mutants.
    value : float64 [m]
        Scaled labels.
    steps : int
        0: the weights before any label.
    """
    kernel = MutantKernel(len(sources))
    kernel.standardise(mutants)
    alike = between(sources, mutants.rows, mutants.rows)
    learned = [kernel.effects, kernel.products, kernel.related, kernel.amplitude]
    for weights in learned:
        weights.requires_grad_(True)
    optimiser = torch.optim.Adam(learned, lr=RATE)
    with torch.enable_grad():
        for _ in range(steps):
            lower = torch.linalg.cholesky(kernel.of_labels(mutants, alike))
            solved = torch.cholesky_solve(value[:, None], lower)[:, 0]
            loss = value @ solved / 2 + lower.diagonal().log().sum() + kernel.penalty()
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    for weights in learned:
        weights.requires_grad_(False)
    return kernel
