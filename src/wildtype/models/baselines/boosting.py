"""Gradient boosting on label-free features of genes and gene pairs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.models.baselines.base import Baseline
from wildtype.models.boosted_trees import BoostedTrees
from wildtype.mutants import MutantTable
from wildtype.organism import Organism

BAGS = 3


class Boosting(Baseline):
    """Histogram gradient boosting on what the organism says about the genes of a row and their pairs."""

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
        self._trees = BoostedTrees(x, train.value, held, validation.value, self.fixed, bags=BAGS, seed=seed)
        self.chosen = self._trees.chosen

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._trees.predict(self._groundwork.features(table))
