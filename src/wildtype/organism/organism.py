"""`Organism`: everything the encoder may look at, before any gene is perturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.organism.appended import Appended
from wildtype.organism.coordinates import Coordinates
from wildtype.organism.features import FeatureBlock, GeneFeatures
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
    appended : Appended
        Genes that were added to the organism's own, and which of their relations are known.
    coordinates : Coordinates or None
        Where the genes lie on the chromosomes.
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
        if self.coordinates is not None and len(self.coordinates.chromosome) != n:
            places = len(self.coordinates.chromosome)
            raise DatasetError(f"there are coordinates of {places} genes, {self.name!r} has {n}")

    @property
    def metabolic(self) -> NDArray[np.bool_] | None:
        """Genes that rules of the metabolism name [n]; None without metabolism."""
        return None if self.metabolism is None else self.metabolism.gene_columns(self.genes) >= 0

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
            appended=self.appended.restrict(positions),
            coordinates=None if self.coordinates is None else self.coordinates.take(positions),
        )

    def with_features(self, features: FeatureBlock | str | Path) -> Organism:
        """Return the organism with one more feature block.

        Parameters
        ----------
        features : FeatureBlock or path
            A block of the n genes, or a file of vectors by gene name (CSV, Parquet or NPZ), such as the
            embeddings of a protein language model; see ``wildtype.organism.embeddings``. What became of its
            names stands in the block's note.

        Raises
        ------
        SourceError
            If the file is missing, unreadable, or names no gene of the organism.
        DatasetError
            If the block is over another number of genes, or there is one of its name.
        """
        if not isinstance(features, FeatureBlock):
            from wildtype.organism.embeddings import read_embeddings

            features = read_embeddings(features, self.genes).block
        return replace(self, features=GeneFeatures([*self.features.values(), features]))

    def with_sequences(self, sequences: Mapping[str, str], *, source: str = "") -> Organism:
        """Return the organism with the feature blocks that follow from its genes' sequences.

        Parameters
        ----------
        sequences : mapping of str to str
            Any name of a gene to its coding sequence, or to its protein; all of one sort.
        source : str
            Where they come from.

        Raises
        ------
        SourceError
            If a sequence is none, they are of both sorts, or all alike.
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            If a name is not that of one gene, or a gene is named twice.
        DatasetError
            If there are such blocks already.
        """
        from wildtype.organism.sequence_features import blocks_of_sequences

        blocks = blocks_of_sequences(sequences, self.genes, source=source)
        return replace(self, features=GeneFeatures([*self.features.values(), *blocks]))

    def add_gene(
        self,
        name: str,
        *,
        sequence: str | None = None,
        features: Mapping[str, Any] | None = None,
        reactions: Sequence[str | tuple[str, str]] = (),
        edges: Mapping[str, Sequence[str | tuple[str, float]]] | None = None,
    ) -> Organism:
        """Return the organism with one gene more, at the end; see ``wildtype.organism.added_genes``."""
        from wildtype.organism.added_genes import add_gene

        return add_gene(self, name, sequence=sequence, features=features, reactions=reactions, edges=edges)

    def to_pyg(self) -> Any:
        """Return the organism as torch_geometric's ``HeteroData``; see ``wildtype.organism.pyg``."""
        from wildtype.organism.pyg import to_pyg

        return to_pyg(self)

    @classmethod
    def from_pyg(cls, data: Any) -> Organism:
        """Return the organism that ``to_pyg`` made ``data`` of; raises ``DatasetError`` if it did not."""
        from wildtype.organism.pyg import from_pyg

        return from_pyg(data)
