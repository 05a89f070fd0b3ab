"""A baseline: the mean label of every gene's training rows, averaged over the genes of a mutant."""

import numpy as np

from wildtype.models.baselines import Baseline, register_baseline


@register_baseline
class MeanOfGenes(Baseline):
    """The mean label of every gene's training rows, averaged over the genes of a mutant."""

    name = "mean_of_genes"
    description = "mean of the genes' mean labels"

    def _fit(self, organism, train, validation, single_fitness, seed):
        n, value = len(organism.genes), train.value[train.row]
        count = np.bincount(train.gene, minlength=n)
        total = np.bincount(train.gene, weights=value, minlength=n)
        self.effect = np.where(count, total / np.maximum(count, 1), train.value.mean())

    def _predict(self, table):
        total = np.bincount(table.row, weights=self.effect[table.gene], minlength=len(table))
        return total / np.maximum(table.order, 1)
