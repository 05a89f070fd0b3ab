"""Gradient boosting on label-free features and on labels propagated over gene graphs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.holdout import folds, holdout_scheme
from wildtype.models.baselines.base import Baseline
from wildtype.models.baselines.boosting import BAGS
from wildtype.models.baselines.evidence import Evidence
from wildtype.models.boosted_trees import BoostedTrees
from wildtype.mutants import MutantTable
from wildtype.organism import Organism


class BoostingPropagation(Baseline):
    """Boosting with evidence: gene means and labels of measured neighbours, never of a row's own gene set.

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
        mean, sd = float(train.value.mean()), float(train.value.std())
        # Interactions scatter around 0, which means "as expected"; other labels are taken from their mean.
        centre = mean if abs(mean) > 2 * sd else 0.0
        several = len(orders) > 1 or int(orders.max()) > 2
        self.scheme = holdout_scheme(train, validation, n)
        asked, labels = [], []
        for ask, see in folds(self.scheme, train, n, seed):
            if ask.size:
                evidence = Evidence(train.take(see), n, graphs, centre=centre, several=several)
                asked.append(ask)
                labels.append(evidence.features(train.take(ask)))
        rows = np.concatenate(asked) if asked else np.arange(len(train))
        self._evidence = Evidence(train, n, graphs, centre=centre, several=several)
        label_features = np.concatenate(labels) if labels else self._evidence.features(train) * np.nan
        x = np.concatenate([self._groundwork.features(train)[rows], label_features], axis=1)
        held = self._table_features(validation)
        self._trees = BoostedTrees(
            x, train.value[rows], held, validation.value, self.fixed, bags=BAGS, seed=seed
        )
        self.chosen = self._trees.chosen

    def _table_features(self, table: MutantTable) -> NDArray[np.float32]:
        return np.concatenate([self._groundwork.features(table), self._evidence.features(table)], axis=1)

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._trees.predict(self._table_features(table))
