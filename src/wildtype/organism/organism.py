"""`Organism`: everything the encoder may look at, before any gene is perturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wildtype.organism.added_genes import Edges, add_gene
from wildtype.organism.embeddings import read_embeddings
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.new_reactions import NewReaction
from wildtype.organism.pyg import from_pyg, to_pyg
from wildtype.organism.record import OrganismRecord
from wildtype.organism.sequence_features import blocks_of_sequences


@dataclass(frozen=True, eq=False)
class Organism(OrganismRecord):
    """The wild type of one organism; its attributes are those of ``OrganismRecord``."""

    def with_features(self, features: FeatureBlock | str | Path) -> Organism:
        """Return the organism with one more feature block.

        Parameters
        ----------
        features : FeatureBlock or path
            A block of the n genes, or a file of vectors by gene name (CSV, Parquet or NPZ), such as the
            embeddings of a protein language model; see ``wildtype.organism.embeddings``. The block's note
            counts the names that were used and those that were not.

        Raises
        ------
        SourceError
            If the file is missing, unreadable, or names no gene of the organism.
        DatasetError
            If the block is over another number of genes, or there is one of its name.
        """
        block = features
        if not isinstance(block, FeatureBlock):
            block = read_embeddings(block, self.genes).block
        return replace(self, features=GeneFeatures([*self.features.values(), block]))

    def with_sequences(self, sequences: Mapping[str, str], *, source: str = "") -> Organism:
        """Return the organism with the feature blocks that follow from its genes' sequences.

        Parameters
        ----------
        sequences : mapping of str to str
            Any name of a gene to its coding sequence, or to its protein; all of one type.
        source : str
            Where the sequences come from.

        Raises
        ------
        SourceError
            If a text is not a sequence, both types are mixed, or all sequences are alike.
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            If a name is unknown or ambiguous, or a gene is named twice.
        DatasetError
            If there are such blocks already.
        """
        blocks = blocks_of_sequences(sequences, self.genes, source=source)
        return replace(self, features=GeneFeatures([*self.features.values(), *blocks]))

    def add_gene(
        self,
        name: str,
        *,
        sequence: str | None = None,
        features: Mapping[str, Any] | None = None,
        reactions: Sequence[str | tuple[str, str] | NewReaction] = (),
        edges: Edges | None = None,
    ) -> Organism:
        """Return the organism with one more gene, at the end; see ``wildtype.organism.added_genes``."""
        return add_gene(self, name, sequence=sequence, features=features, reactions=reactions, edges=edges)

    def to_pyg(self) -> Any:
        """Return the organism as torch_geometric's ``HeteroData``; see ``wildtype.organism.pyg``."""
        return to_pyg(self)

    @classmethod
    def from_pyg(cls, data: Any) -> Organism:
        """Return the organism that ``to_pyg`` exported; raises ``DatasetError`` for any other data."""
        return from_pyg(data, cls)
