"""`Organism`: everything the encoder may look at, before any gene is perturbed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.organism.features import GeneFeatures
from wildtype.organism.genes import GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.relations import GeneGraphs


@dataclass(frozen=True, eq=False)
class Organism:
    """The wild type of one organism.

    Attributes
    ----------
    name : str
        For people and for file names.
    genes : GeneIndex
        The n genes; every array below follows its order.
    graphs : GeneGraphs
        Named relations over the n genes.
    features : GeneFeatures
        Named feature blocks of the n genes.
    metabolism : Metabolism or None
        Reactions, metabolites and gene rules.
    essential : bool [n] or None
        Genes whose deletion is lethal in the reference condition, where known.
    description : str
        One line; says when the organism is simulated.
    """

    name: str
    genes: GeneIndex
    graphs: GeneGraphs = field(default_factory=GeneGraphs)
    features: GeneFeatures = field(default_factory=GeneFeatures)
    metabolism: Metabolism | None = None
    essential: NDArray[np.bool_] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        n = len(self.genes)
        for relation in self.graphs.values():
            if relation.n != n:
                raise DatasetError(
                    f"relation {relation.name!r} is over {relation.n} genes, {self.name!r} has {n}"
                )
        for block in self.features.values():
            if len(block.values) != n:
                raise DatasetError(
                    f"feature block {block.name!r} is over {len(block.values)} genes, {self.name!r} has {n}"
                )
        if self.essential is not None and self.essential.shape != (n,):
            raise DatasetError(f"essential has shape {self.essential.shape}, expected ({n},)")

    def restrict(self, positions: NDArray[np.int64]) -> Organism:
        """Return the organism as seen through the genes at ``positions`` [M]: induced graphs, their features.

        The metabolism is whole and keyed by gene name, so it stays as it is.
        """
        return replace(
            self,
            genes=self.genes.restrict(positions),
            graphs=self.graphs.restrict(positions),
            features=self.features.restrict(positions),
            essential=None if self.essential is None else self.essential[positions],
        )

    def to_pyg(self) -> Any:
        """Return the organism as torch_geometric's ``HeteroData``; see ``wildtype.organism.pyg``."""
        from wildtype.organism.pyg import to_pyg

        return to_pyg(self)

    @classmethod
    def from_pyg(cls, data: Any) -> Organism:
        """Return the organism that ``to_pyg`` made ``data`` of; raises ``DatasetError`` if it did not."""
        from wildtype.organism.pyg import from_pyg

        return from_pyg(data)
