"""Ridge on gene features: the baseline for genes that no training row perturbs.

Legend: m rows · n genes · c columns · a ridge penalties (alphas).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.models.baselines.base import Baseline
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import mutant_keys
from wildtype.organism import Organism

ALPHAS = tuple(10.0 ** (step / 2) for step in range(0, 13))
DEFAULT = 1000.0
"""The penalty without validation rows."""
BLOCK = 1 << 15
"""Rows of a design that are worked on at a time."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Centred design of some rows and the eigenvectors of its Gram matrix: ridge for any labels and penalty.

    Attributes
    ----------
    centred : float64 [m, c]
        The design minus ``mean`` [c].
    values, vectors : float64 [c], [c, c]
        Of centredᵀ centred, or centredᵀ diag(weights) centred.
    weights : float64 [m] or None
        How many mutants each row stands for; None: itself alone.
    """

    centred: Floats
    mean: Floats
    values: Floats
    vectors: Floats
    weights: Floats | None = None

    @classmethod
    def of(cls, x: Floats, rows: Floats | None = None) -> Spectrum:
        """Return the spectrum of a design [m, c], each row counted ``rows`` [m] times; O(m c² + c³)."""
        mean = x.mean(0) if rows is None else rows @ x / rows.sum()
        centred = x - mean
        # XᵀX = V Λ Vᵀ, so w = V (Λ + α)⁻¹ Vᵀ Xᵀ y: one decomposition serves every penalty and every label.
        gram = centred.T @ centred if rows is None else _weighted_gram(centred, rows)
        values, vectors = np.linalg.eigh(gram)
        # A Gram matrix has no negative eigenvalue; those that rounding made would weaken small penalties.
        return cls(centred, mean, np.maximum(values, 0.0), vectors, rows)

    def solve(self, y: Floats, alphas: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Return weights [c, a] and intercepts [a] that minimise ‖y − Xw − b‖² + alpha ‖w‖², b unpenalised.

        O(m c + c² a) for labels y [m].
        """
        level = float(y.mean() if self.weights is None else np.average(y, weights=self.weights))
        error = y - level if self.weights is None else self.weights * (y - level)
        rotated = self.vectors.T @ (self.centred.T @ error)
        weights = self.vectors @ (rotated[:, None] / (self.values[:, None] + np.array(alphas)))
        return weights, level - self.mean @ weights


def _weighted_gram(x: Floats, rows: Floats) -> Floats:
    """Return Xᵀ diag(rows) X [c, c] of a design [m, c], by blocks: never a weighted copy of all rows."""
    gram = np.zeros((x.shape[1],) * 2)
    for start in range(0, len(x), BLOCK):
        part = x[start : start + BLOCK]
        gram += part.T @ (part * rows[start : start + BLOCK, None])
    return gram


class FeatureRidge(Baseline):
    """Ridge on the sum of the gene features of a row, and on how many genes of which kind it perturbs.

    Any order; an unseen gene counts like any other. Features that were made from measurements of the target
    are no part of what it is given (`GeneFeatures.allowed_for`). The penalty is chosen by the squared error
    on the validation rows. Phenotypes with the same training rows share one eigendecomposition.
    """

    name: ClassVar[str] = "feature_ridge"
    description: ClassVar[str] = "ridge on the sum of the features of a row's genes"

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        self._kinds = np.unique(train.kind)
        self._conditions = np.unique(train.condition)
        # The key holds genes, kinds and conditions of all rows: equal keys are equal designs, whatever the
        # label.
        rows = mutant_keys(train, self._n).tobytes()
        counted = b"" if train.weight is None else train.weight.tobytes()
        spectrum: Spectrum = self._groundwork.once(
            ("spectrum", rows, counted), lambda: Spectrum.of(self._design(train), train.weights)
        )
        alphas = (self.fixed["alpha"],) if "alpha" in self.fixed else ALPHAS
        if len(alphas) > 1 and not len(validation):
            alphas = (DEFAULT,)
        weights, intercepts = spectrum.solve(train.value.astype(np.float64), alphas)
        best = 0
        if len(validation):
            predicted = self._design(validation) @ weights + intercepts
            best = int(((predicted - validation.value[:, None]) ** 2).mean(0).argmin())
        self._weights, self._intercept = weights[:, best], float(intercepts[best])
        self.chosen = {"alpha": alphas[best]}

    def _design(self, table: MutantTable) -> Floats:
        """Return [m, c]: summed gene features, then genes per kind and one column per condition."""
        m, genes = len(table), self._groundwork.gene_features
        f, k = genes.shape[1], len(self._kinds)
        out = np.zeros((m, f + k + len(self._conditions)))
        # By blocks of rows: the features of all genes of all rows take twice the design.
        for block in table.blocks(BLOCK):
            entries = slice(int(table.offsets[block.start]), int(table.offsets[block.stop]))
            # reduceat returns the next row's first entry for an empty segment: rows without genes are left
            # at zero.
            some = block.start + np.flatnonzero(table.order[block])
            if some.size:
                of = genes[table.gene[entries]].astype(np.float64)
                out[some, :f] = np.add.reduceat(of, table.offsets[some] - entries.start, axis=0)
        for i, kind in enumerate(self._kinds):
            out[:, f + i] = np.bincount(table.row[table.kind == kind], minlength=m)
        for i, c in enumerate(self._conditions):
            out[:, f + k + i] = table.condition == c
        return out

    def _predict(self, table: MutantTable) -> Floats:
        return self._design(table) @ self._weights + self._intercept
