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
BLOCK = 512
"""Genes whose kernels are made at a time."""
KEPT = 1 << 27
"""Numbers of kernels of genes that are kept for all phenotypes together: 1 GiB."""


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


class GeneKernels:
    """What `MutantKernel.mixed` gives of any genes with those of the training rows.

    A gene's row is made when it is first asked about, and kept where all of them fit: mutants of a screen
    share their genes.

    Parameters
    ----------
    kernel : MutantKernel
    sources : GeneSources
        Of the n genes.
    gene : int64 [t]
        Of the items of the training rows.
    room : int
        Numbers that may be kept. Where all n rows have more, none is.
    """

    def __init__(self, kernel: MutantKernel, sources: GeneSources, gene: Tensor, room: int) -> None:
        self._kernel, self._sources = kernel, sources
        self._genes, self._column = np.unique(gene.numpy(), return_inverse=True)
        n, u, sums = sources.similarity.genes, len(self._genes), kernel.sums(sources)
        self._keeps = n * u * sums <= room
        self._made = np.zeros(n, bool)
        # Memory is taken by the rows that are written.
        self._kept = [torch.empty(n, u, dtype=torch.float64) for _ in range(sums if self._keeps else 0)]

    def __call__(self, gene: NDArray[np.int64]) -> list[Tensor]:
        """Return the sums of kernels [q, t] of genes [q]."""
        if not self._keeps:
            some, place = np.unique(gene, return_inverse=True)
            return [sums[place][:, self._column] for sums in self._of(some)]
        new = np.unique(gene[~self._made[gene]])
        for start in range(0, len(new), BLOCK):
            some = new[start : start + BLOCK]
            for kept, sums in zip(self._kept, self._of(some), strict=True):
                kept[some] = sums
            self._made[some] = True
        return [kept[gene][:, self._column] for kept in self._kept]

    def _of(self, gene: NDArray[np.int64]) -> tuple[Tensor, ...]:
        return self._kernel.mixed(self._sources.between(gene, self._genes))


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
    kernels : GeneKernels
        Of all genes with those of the rows.
    labels : LabelColumns or None
        Of mutants that are asked about.
    """

    rows: Described
    lower: Tensor
    weight: Tensor
    kernels: GeneKernels
    labels: LabelColumns | None = None

    def predict(self, kernel: MutantKernel, asked: Described, sources: GeneSources) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations [b] of mutants; O(b m²)."""
        if self.labels is not None:
            asked = replace(asked, columns=self.labels(asked.rows.table()))
        found = kernel.covariance(asked, self.rows, self.kernels(asked.rows.gene.numpy()))
        explained = torch.linalg.solve_triangular(self.lower, found.T, upper=False).square().sum(0)
        # Rounding makes the variance of a mutant that was measured many times negative.
        return found @ self.weight, (kernel.variances(asked, sources) - explained).clamp(min=0).sqrt()


@torch.no_grad()
def given_rows(
    kernel: MutantKernel, measured: Measured, sources: GeneSources, room: int = KEPT
) -> Given | None:
    """Return the training rows of a phenotype, solved for, or None without rows; O(m³).

    ``room`` is how many numbers `GeneKernels` may keep.
    """
    if not len(measured.value):
        return None
    rows, labels = measured.described(sources)
    lower = torch.linalg.cholesky(kernel.of_labels(rows, between(sources, rows.rows, rows.rows)))
    weight = torch.cholesky_solve(measured.value[:, None], lower)[:, 0]
    return Given(rows, lower, weight, GeneKernels(kernel, sources, rows.rows.gene, room), labels)


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
