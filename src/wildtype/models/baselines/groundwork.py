"""Label-free features of baselines, computed once and used for every phenotype of a run.

Legend: n genes · m rows · f features · u distinct mutants met so far.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.pair_features import PairFeatures
from wildtype.evidence.similarity import similarity_graphs
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import mutant_keys
from wildtype.organism import FeatureBlock, GeneFeatures, Organism


class BaselineFeatures:
    """Label-free inputs of one kind of baseline, shared by its fits to several phenotypes.

    Rows of several phenotypes are mostly of the same mutants: features are computed once per mutant.

    Parameters
    ----------
    organism : Organism
        The n genes.
    train : MutantTable
        Training rows of all phenotypes; which columns there are and which genes count as measured follows
        from their mutants, and no label is read.
    single_fitness : float32 [n] or None
        Fitness of single mutants (NaN: not known).
    """

    def __init__(
        self, organism: Organism, train: MutantTable, single_fitness: NDArray[np.float32] | None
    ) -> None:
        self.organism, self.single_fitness = organism, single_fitness
        self._train = train
        self._keys = np.zeros(0, np.uint64)
        self._known: NDArray[np.float32] | None = None
        self._made: dict[Any, Any] = {}

    @cached_property
    def _pairs(self) -> PairFeatures:
        return PairFeatures(self.organism, self._train, self.single_fitness)

    def features(self, table: MutantTable) -> NDArray[np.float32]:
        """Return `PairFeatures` [m, f] of a table; only mutants not met before cost anything."""
        keys = mutant_keys(table, len(self.organism.genes))
        fresh, first = np.unique(keys, return_index=True)
        new = ~np.isin(fresh, self._keys)
        if new.any() or self._known is None:
            made = self._pairs(table.take(first[new]))
            every = np.concatenate([self._keys, fresh[new]])
            # Keys stay sorted, as the search below requires.
            order = np.argsort(every)
            joined = made if self._known is None else np.concatenate([self._known, made])
            self._keys, self._known = every[order], joined[order]
        return self._known[np.searchsorted(self._keys, keys)]

    def graphs(self, seed: int) -> dict[str, sparse.csr_array]:
        """Return `similarity_graphs` towards the genes of the training rows."""
        found: dict[str, sparse.csr_array] = self.once(
            ("graphs", seed), lambda: similarity_graphs(self.organism, np.unique(self._train.gene), seed)
        )
        return found

    @cached_property
    def gene_features(self) -> NDArray[np.float32]:
        """The organism's blocks and single-mutant fitness [n, f], standardised (`GeneFeatures.matrix`)."""
        blocks = list(self.organism.features.values())
        if self.single_fitness is not None:
            fitness = np.asarray(self.single_fitness, np.float32)[:, None]
            blocks.append(FeatureBlock("single_fitness of the dataset", fitness, ("fitness",)))
        return GeneFeatures(blocks).matrix(len(self.organism.genes))[0]

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made under a key, made now if it was not."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
