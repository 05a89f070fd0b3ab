"""Baselines that complete the matrix of a screen of gene pairs, in closed form.

They read a screen as one symmetric matrix of strains (`wildtype.evidence.pair_matrix`): a constant, additive
effects, low rank, kernel ridge on what is known of genes, and low rank with profile neighbours. With a grid,
visible crosses that the screen does not list are known zeros; without one, they are unknown.

Legend: m rows · s strains · d width of the map of genes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from wildtype.evidence.completion import Additive, Floats, low_rank, profile_completion, residuals
from wildtype.evidence.kernel_ridge import (
    NONE,
    ONE,
    SEEN,
    PairModel,
    choose_penalties,
    effect_map,
    filled_residuals,
    pairwise_ridge,
    turned,
    two_step_ridge,
)
from wildtype.evidence.kernel_weights import kernel_weights
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.pooled_screens import pooled
from wildtype.models.baselines.base import Baseline, squared_error
from wildtype.mutants import MutantTable
from wildtype.organism import Organism
from wildtype.organism.gene_kernels import gene_kernel_map, kernel_maps

RANKS = (5, 10, 20, 40, 80, 120)
DEFAULT_RANK = 20
"""Without validation rows."""
ALPHAS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
DEFAULT_ALPHA = 1.0
DEFAULT_WEIGHTS = {"scale": 1.0, "completed": 0.5, "measured": 0.5}
"""Of what `PooledCompletion` adds up, without validation rows."""
FEWEST = 50
"""Validation rows from which on its weights are fitted."""


class PairBaseline(Baseline):
    """A baseline that sees a screen as a matrix of strains; every row has two genes.

    Rows of one pair of strains are averaged, whatever their condition.
    """

    order: ClassVar[int | None] = 2

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        self._matrix = PairMatrix.of(train, self._crosses)
        self._complete(self._matrix, organism, validation, seed)

    @abstractmethod
    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        """Fit to the known cells; validation rows choose settings."""


class CompletedMatrix(PairBaseline):
    """A baseline that predicts every pair of seen strains; pairs with an unseen gene get additive effects."""

    _additive: Additive
    _values: Floats

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._look_up(self._values, table)

    def _look_up(self, values: Floats, table: MutantTable) -> NDArray[np.float64]:
        """Return the predictions of rows from those of all pairs of strains [s, s]."""
        cells = self._matrix.cells(table)
        seen = cells >= 0
        # An unseen gene adds nothing, which is what shrinkage leaves of a gene without cells.
        out = self._additive.mean + np.where(seen, self._additive.effect[cells], 0).sum(axis=1)
        both = seen.all(axis=1)
        out[both] = values[cells[both, 0], cells[both, 1]]
        return np.asarray(out)


class ScreenConstant(PairBaseline):
    """The mean of the known cells: with a grid, of listed values and zeros."""

    name: ClassVar[str] = "screen_constant"
    description: ClassVar[str] = "mean of the measured pairs, unlisted ones as zeros"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        self._mean = Additive.of(matrix).mean

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return np.full(len(table), self._mean)


class ScreenAdditive(CompletedMatrix):
    """Mean and one shrunken effect per strain on the known cells."""

    name: ClassVar[str] = "screen_additive"
    description: ClassVar[str] = "additive effects of both strains, unlisted pairs as zeros"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        self._additive = Additive.of(matrix)
        self._values = self._additive.matrix()


class LowRank(CompletedMatrix):
    """Additive effects and low-rank completion of what they leave, the rank chosen on validation rows.

    The strongest simple predictor of dense maps for genes that were seen.
    """

    name: ClassVar[str] = "low_rank"
    description: ClassVar[str] = "low-rank completion of the matrix of pairs, with additive effects"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        self._additive = Additive.of(matrix)
        base, residual = self._additive.matrix(), residuals(matrix, self._additive)
        ranks = (int(self.fixed["rank"]),) if "rank" in self.fixed else RANKS
        if len(ranks) > 1 and not len(validation):
            ranks = (DEFAULT_RANK,)
        best = math.inf
        for rank in ranks:
            values = base + low_rank(residual, matrix.known, rank, seed=seed).matrix()
            error = squared_error(self._look_up(values, validation), validation)
            if error < best:
                best, self._values = error, values
                self.chosen = {"rank": rank}


class ProfileCompletion(CompletedMatrix):
    """MATRIX: residuals of the pair with either strain replaced by one of similar profile.

    See `wildtype.evidence.completion.profile_completion`. Its scale is fitted to the validation rows.
    """

    name: ClassVar[str] = "matrix"
    description: ClassVar[str] = "low-rank completion smoothed over strains of similar profile"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        self._additive = Additive.of(matrix)
        self._values = profile_completion(matrix, self._additive, seed=seed)
        scale = self.fixed.get("scale", 1.0)
        if "scale" not in self.fixed and len(validation):
            predicted = self._look_up(self._values, validation)
            # Least squares through the origin; a negative scale would reverse every prediction.
            scale = max(float(predicted @ validation.value / max(float(predicted @ predicted), 1e-12)), 0.0)
        self.chosen = {"scale": scale}

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self.chosen["scale"] * super()._predict(table)


class PooledCompletion(CompletedMatrix):
    """MATRIX of the screen and of others as one matrix, and what another screen measured of the pair itself.

    Others are in the unit of the screen (`wildtype.evidence.pooled_screens.pooled`). Of a pair that one of
    them measured, the prediction is a sum of what it measured and of what MATRIX says, of others a multiple
    of MATRIX; the weights are those of least squares on validation rows, none below 0.
    """

    name: ClassVar[str] = "matrix_screens"
    description: ClassVar[str] = "MATRIX of all screens as one, and what others measured of the pair"
    reads_screens: ClassVar[bool] = True

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        self._matrix = together = pooled(matrix, [screen.matrix for screen in self._screens])
        place = np.searchsorted(together.codes, matrix.codes)
        elsewhere = together.known.copy()
        elsewhere[np.ix_(place, place)] &= ~matrix.known
        self._measured = np.where(elsewhere, together.values, np.nan)
        self._additive = Additive.of(together)
        self._values = profile_completion(together, self._additive, seed=seed)
        found = DEFAULT_WEIGHTS | self._weights(validation)
        self.chosen = {name: self.fixed.get(name, weight) for name, weight in found.items()}

    def _weights(self, validation: MutantTable) -> dict[str, float]:
        """Return the weights that fit the validation rows best; none where there are too few."""
        completed, measured = self._said(validation)
        known = np.isfinite(measured)
        found = {}
        if known.sum() >= FEWEST:
            both = np.stack([completed, measured], axis=1)[known]
            (found["completed"], found["measured"]), _ = nnls(both, validation.value[known].astype(float))
        if (~known).sum() >= FEWEST:
            (found["scale"],), _ = nnls(completed[~known, None], validation.value[~known].astype(float))
        return {name: float(weight) for name, weight in found.items()}

    def _said(self, table: MutantTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what MATRIX says of rows [m], and what another screen measured of them; NaN: nothing."""
        cells = self._matrix.cells(table)
        both = (cells >= 0).all(axis=1)
        measured = np.full(len(table), np.nan)
        measured[both] = self._measured[cells[both, 0], cells[both, 1]]
        return self._look_up(self._values, table), measured

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        completed, measured = self._said(table)
        weight = self.chosen
        known = weight["completed"] * completed + weight["measured"] * measured
        return np.where(np.isfinite(measured), known, weight["scale"] * completed)


class RidgeOfPairs(PairBaseline):
    """A baseline that knows genes by the kernel of their relations and features, unseen ones, too."""

    _model: PairModel

    def _gene_map(
        self, matrix: PairMatrix, additive: Additive, organism: Organism, seed: int
    ) -> NDArray[np.float32]:
        """Return the map [n, d] of the kernel that explains the similarity of interaction profiles."""
        maps = self._groundwork.once(("kernel maps",), lambda: kernel_maps(organism))
        filled = filled_residuals(matrix, additive, seed=seed)
        weights = kernel_weights(maps, matrix.gene, filled, seed=seed)
        phi = gene_kernel_map(maps, weights, np.unique(matrix.gene), seed=seed)
        return phi if len(phi) else np.zeros((len(organism.genes), 1), np.float32)

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._model.predict(table.matrix(2), self._matrix.cells(table))


class TwoStepRidge(RidgeOfPairs):
    """Two-step kernel ridge: ridge on one gene, then on the other; penalties by inner folds of genes."""

    name: ClassVar[str] = "two_step_ridge"
    description: ClassVar[str] = "kernel ridge on each gene of a pair in turn"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        phi = self._gene_map(matrix, Additive.of(matrix), organism, seed)
        names = (SEEN, ONE, NONE)
        self.chosen = (
            {name: self.fixed[name] for name in names}
            if all(name in self.fixed for name in names)
            else choose_penalties(matrix, phi, seed=seed)
            | {n: self.fixed[n] for n in names if n in self.fixed}
        )
        self._model = two_step_ridge(matrix, phi, self.chosen, seed=seed)


class PairwiseRidge(RidgeOfPairs):
    """Pairwise kernel ridge: one bilinear form of the maps of both genes, fitted to the known cells."""

    name: ClassVar[str] = "pairwise_ridge"
    description: ClassVar[str] = "kernel ridge on pairs of genes"

    def _complete(self, matrix: PairMatrix, organism: Organism, validation: MutantTable, seed: int) -> None:
        additive = Additive.of(matrix)
        phi = self._gene_map(matrix, additive, organism, seed)
        alphas = (self.fixed["alpha"],) if "alpha" in self.fixed else ALPHAS
        if len(alphas) > 1 and not len(validation):
            alphas = (DEFAULT_ALPHA,)
        phi, values = turned(phi, matrix.gene)
        target = PairMatrix(matrix.gene, matrix.kind, residuals(matrix, additive), matrix.known)
        effects = effect_map(phi, values, matrix.gene, additive.effect)
        best, weights = math.inf, None
        # From the strongest penalty down, each solution starts the next; past the best, they only overfit.
        for alpha in alphas:
            weights = pairwise_ridge(target, phi, alpha, weights)
            mixed = weights @ phi[matrix.gene].T
            model = PairModel(phi, additive.mean, additive.effect, effects, weights, mixed, weights)
            predicted = model.predict(validation.matrix(2), matrix.cells(validation))
            error = squared_error(predicted, validation)
            if error >= best:
                break
            best, self._model = error, model
            self.chosen = {"alpha": alpha}
