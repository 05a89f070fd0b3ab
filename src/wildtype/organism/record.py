"""`OrganismRecord`: the data of a wild type, on which everything that changes or exports an organism works.

`Organism` is built on it and offers those functions as methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.organism.features import GeneFeatures
from wildtype.organism.genes import Coordinates, GeneIndex
from wildtype.organism.metabolism import Metabolism
from wildtype.organism.relations import Appended, GeneGraphs
from wildtype.organism.units import Units


@dataclass(frozen=True, eq=False)
class OrganismRecord:
    """The wild type of one organism.

    Attributes
    ----------
    name : str
        Used in messages and file names.
    genes : GeneIndex
        The n genes; every array below follows their order.
    graphs : GeneGraphs
        Named relations over the n genes.
    features : GeneFeatures
        Named feature blocks of the n genes.
    metabolism : Metabolism or None
        Reactions, metabolites and gene rules.
    essential : bool [n] or None
        Genes whose deletion is lethal in the reference condition, where known.
    description : str
        One line; it states when the organism is simulated.
    appended : Appended
        Genes that were added, and which of their relations are known.
    coordinates : Coordinates or None
        Positions of the genes on the chromosomes.
    dubious : bool [n] or None
        Open reading frames that are unlikely to encode a protein, where known.
    units : Units or None
        Which genes every token is made of, where tokens are not single genes.
    foreign : bool [n] or None
        Genes that the wild type does not have and a mutant may be given; None: there are none. Any mutant
        that does not name such a gene lacks it.

    Raises
    ------
    DatasetError
        If a part is over another number of genes.
    """

    name: str
    genes: GeneIndex
    graphs: GeneGraphs = field(default_factory=GeneGraphs)
    features: GeneFeatures = field(default_factory=GeneFeatures)
    metabolism: Metabolism | None = None
    essential: NDArray[np.bool_] | None = None
    description: str = ""
    appended: Appended = field(default_factory=Appended)
    coordinates: Coordinates | None = None
    dubious: NDArray[np.bool_] | None = None
    units: Units | None = None
    foreign: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        n = len(self.genes)
        object.__setattr__(self, "features", self.features.of(self.genes))
        sizes = [(f"relation {relation.name!r} is", relation.n) for relation in self.graphs.values()]
        sizes += [(f"feature block {b.name!r} is", len(b.values)) for b in self.features.values()]
        if self.coordinates is not None:
            sizes.append(("coordinates are", len(self.coordinates.chromosome)))
        for part, size in sizes:
            if size != n:
                raise DatasetError(f"{part} over {size} genes, {self.name!r} has {n}")
        if self.essential is not None and self.essential.shape != (n,):
            raise DatasetError(f"essential has shape {self.essential.shape}, expected ({n},)")
        for name, flags in (("dubious", self.dubious), ("foreign", self.foreign)):
            if flags is not None and flags.shape != (n,):
                raise DatasetError(f"{name} has shape {flags.shape}, expected ({n},)")
        if self.units is not None and len(self.units) != n:
            raise DatasetError(f"units are {len(self.units)}, {self.name!r} has {n} tokens")

    @property
    def metabolic(self) -> NDArray[np.bool_] | None:
        """Genes named in gene rules of the metabolism [n]; None without metabolism."""
        return None if self.metabolism is None else self.metabolism.gene_columns(self.genes) >= 0

    def restrict(self, positions: NDArray[np.int64]) -> Self:
        """Return the organism restricted to the genes at ``positions`` [M]: induced graphs, their features.

        The metabolism is keyed by gene name and stays complete.
        """
        return replace(
            self,
            genes=self.genes.restrict(positions),
            graphs=self.graphs.restrict(positions),
            features=self.features.restrict(positions),
            essential=None if self.essential is None else self.essential[positions],
            appended=self.appended.restrict(positions),
            coordinates=None if self.coordinates is None else self.coordinates.take(positions),
            dubious=None if self.dubious is None else self.dubious[positions],
            units=None if self.units is None else self.units.restrict(positions),
            foreign=None if self.foreign is None else self.foreign[positions],
        )
