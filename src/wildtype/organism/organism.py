"""`Organism`: everything the encoder may look at, before any gene is perturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.errors import DatasetError, shown
from wildtype.organism.added_genes import Edges, add_gene
from wildtype.organism.embeddings import read_embeddings
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.graph_features import DEGREES, graph_features
from wildtype.organism.new_reactions import NewReaction
from wildtype.organism.pyg import from_pyg, to_pyg
from wildtype.organism.record import OrganismRecord
from wildtype.organism.relations import GeneGraphs, Relation
from wildtype.organism.sequence_features import blocks_of_sequences
from wildtype.tables import facts_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Organism(OrganismRecord):
    """The wild type of one organism; its attributes are those of ``OrganismRecord``."""

    def __repr__(self) -> str:
        return f"Organism({self.name!r}, {', '.join(f'{value} {name}' for name, value in self._facts())})"

    def _repr_html_(self) -> str:
        return facts_html(self.name, [("description", self.description or "none"), *self._facts()])

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("genes", f"{len(self.genes):,}"),
            ("gene graphs", f"{len(self.graphs)}"),
            ("feature blocks", f"{len(self.features)}"),
        ]
        if self.metabolism is not None:
            facts.append(("reactions", f"{len(self.metabolism.reactions):,}"))
        return facts

    def with_features(
        self, features: FeatureBlock | pd.DataFrame | str | Path, *, name: str = ""
    ) -> Organism:
        """Return the organism with one more feature block.

        Parameters
        ----------
        features : FeatureBlock, DataFrame or path
            A block of the n genes, a table of numbers whose index holds names of genes, or a file of vectors
            by gene name (CSV, TSV, Parquet, NPZ, .h5ad), such as the embeddings of a protein language model;
            see ``wildtype.organism.embeddings``. The block's note counts the names that were used and those
            that were not.
        name : str
            Of the block; that of the file, or ``table``, if not given.

        Raises
        ------
        SourceError
            If the file is missing, unreadable, or names no gene of the organism.
        DatasetError
            If the block is over another number of genes, or there is one of its name.
        """
        block = features
        if not isinstance(block, FeatureBlock):
            block = read_embeddings(block, self.genes, name=name).block
        return replace(self, features=GeneFeatures([*self.features.values(), block]))

    def with_relation(self, relation: Relation) -> Organism:
        """Return the organism with one more gene graph; ``wildtype.read_relation`` reads one from a file.

        Degrees in it join the features, and places in it if it is large, where the organism has such features
        of its other graphs.

        Raises
        ------
        DatasetError
            If it is no relation, is over another number of genes, or there is one of its name.
        """
        if not isinstance(relation, Relation):
            raise DatasetError(
                f"{shown(relation)} is no Relation: read an edge list with "
                f"wildtype.read_relation(path, organism)"
            )
        graphs = GeneGraphs([*self.graphs.values(), relation])
        blocks = dict(self.features)
        if DEGREES in blocks or not self.graphs:
            for block in graph_features(GeneGraphs([relation])):
                blocks[block.name] = _joined(blocks[DEGREES], block) if block.name in blocks else block
        return replace(self, graphs=graphs, features=GeneFeatures(blocks.values()))

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
        """Return the organism with one more gene, at the end; see ``wildtype.organism.added_genes``.

        Raises
        ------
        GeneSetError
            If the name is empty or known already.
        UnknownGeneError
            If an edge or a rule names a gene that there is not.
        DatasetError
            If a feature, reaction or edge does not fit the organism.
        SourceError
            If the sequence is neither a coding sequence nor a protein.
        """
        return add_gene(self, name, sequence=sequence, features=features, reactions=reactions, edges=edges)

    def to_pyg(self) -> Any:
        """Return the organism as torch_geometric's ``HeteroData``; see ``wildtype.organism.pyg``.

        Raises ``ConfigError`` where torch_geometric is not installed.
        """
        return to_pyg(self)

    @classmethod
    def from_pyg(cls, data: Any) -> Organism:
        """Return the organism that ``to_pyg`` exported; raises ``DatasetError`` for any other data."""
        return from_pyg(data, cls)


def _joined(block: FeatureBlock, other: FeatureBlock) -> FeatureBlock:
    values = np.concatenate([block.values, other.values], axis=1)
    return replace(block, values=values, columns=(*block.columns, *other.columns))
