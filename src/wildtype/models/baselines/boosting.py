"""Gradient boosting on label-free features, and on labels propagated over gene graphs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.holdout import folds, holdout_scheme
from wildtype.evidence.label_features import LabelFeatures
from wildtype.evidence.reference import zero_of_evidence
from wildtype.models.baselines.base import Baseline, weighted_mean
from wildtype.models.boosted_trees import BoostedTrees
from wildtype.mutants import MutantTable
from wildtype.organism import Organism

BAGS = 3


class Boosting(Baseline):
    """Histogram gradient boosting on organism features of the genes of a row and of their pairs."""

    name: ClassVar[str] = "boosting"
    description: ClassVar[str] = (
        "gradient boosting on graph, feature and single-fitness features of gene pairs"
    )

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        x, held = self._groundwork.features(train), self._groundwork.features(validation)
        self._trees = BoostedTrees(
            x, train.value, held, validation.value, self.fixed, bags=BAGS, seed=seed, weights=train.weights
        )
        self.chosen = self._trees.chosen

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._trees.predict(self._groundwork.features(table))


def _zero(train: MutantTable) -> float:
    """Return the value that counts as no effect among training rows, each as many as it stands for."""
    if train.weights is None:
        return zero_of_evidence(float(train.value.mean()), float(train.value.std()))
    mean = weighted_mean(train.value, train.weights)
    return zero_of_evidence(mean, weighted_mean((train.value - mean) ** 2, train.weights) ** 0.5)


class BoostingPropagation(Baseline):
    """Boosting with label features: means of genes and labels of measured neighbours.

    Held-out rows see all training rows. A training row sees what a held-out row would (see
    `wildtype.evidence.holdout`); the holdout scheme follows from the genes of the validation rows, never from
    their labels.
    """

    name: ClassVar[str] = "boosting_propagation"
    description: ClassVar[str] = "gradient boosting with labels propagated from measured neighbours"

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        n = len(organism.genes)
        graphs = self._groundwork.graphs(seed)
        orders = np.unique(train.order)
        centre = _zero(train)
        several = len(orders) > 1 or int(orders.max()) > 2
        self.scheme = holdout_scheme(train, validation, n)
        # Label features of training rows come from other folds: a row's own label would be learned by heart.
        asked, labels = [], []
        for ask, see in folds(self.scheme, train, n, seed):
            if ask.size:
                features = LabelFeatures(train.take(see), n, graphs, centre=centre, several=several)
                asked.append(ask)
                labels.append(features(train.take(ask)))
        rows = np.concatenate(asked) if asked else np.arange(len(train))
        self._labels = LabelFeatures(train, n, graphs, centre=centre, several=several)
        # Without any fold there is nothing to learn from labels: their columns hold no number.
        label_features = np.concatenate(labels) if labels else self._labels(train) * np.nan
        x = np.concatenate([self._groundwork.features(train)[rows], label_features], axis=1)
        held = self._table_features(validation)
        self._trees = BoostedTrees(
            x,
            train.value[rows],
            held,
            validation.value,
            self.fixed,
            bags=BAGS,
            seed=seed,
            weights=None if train.weights is None else train.weights[rows],
        )
        self.chosen = self._trees.chosen

    def _table_features(self, table: MutantTable) -> NDArray[np.float32]:
        return np.concatenate([self._groundwork.features(table), self._labels(table)], axis=1)

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._trees.predict(self._table_features(table))
