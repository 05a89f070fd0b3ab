"""`AddedGene`: what is known of a foreign gene, in plain values that are kept beside a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from wildtype.organism.new_reactions import NewReaction
from wildtype.organism.organism import Organism


@dataclass(frozen=True)
class AddedGene:
    """A foreign gene, as `Organism.add_gene` takes it.

    Attributes
    ----------
    name : str
    sequence : str or None
        Its coding sequence or its protein.
    features : mapping of str to mapping of str to float
        Values by block and column.
    reactions : sequence
        Ids of reactions that it catalyses, ids with what they need, or new reactions.
    edges : mapping of str to sequence of (str, float)
        Genes and weights by relation.
    """

    name: str
    sequence: str | None = None
    features: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reactions: Sequence[str | tuple[str, str] | NewReaction] = ()
    edges: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)

    def added_to(self, organism: Organism) -> Organism:
        """Return the organism with this gene at its end; errors as ``Organism.add_gene``."""
        return organism.add_gene(
            self.name,
            sequence=self.sequence,
            features=self.features,
            reactions=self.reactions,
            edges=self.edges,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it in plain values."""
        reactions: list[Any] = [
            {"name": r.name, "equation": r.equation, "needs": r.needs}
            if isinstance(r, NewReaction)
            else r
            if isinstance(r, str)
            else list(r)
            for r in self.reactions
        ]
        return {
            "name": self.name,
            "sequence": self.sequence,
            "features": {block: dict(values) for block, values in self.features.items()},
            "reactions": reactions,
            "edges": {name: [list(pair) for pair in pairs] for name, pairs in self.edges.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Return the gene that ``to_json`` gave; raises ``KeyError`` or ``TypeError`` for other records."""
        reactions = [
            NewReaction(**r) if isinstance(r, Mapping) else r if isinstance(r, str) else (r[0], r[1])
            for r in record["reactions"]
        ]
        edges = {name: [(str(g), float(w)) for g, w in pairs] for name, pairs in record["edges"].items()}
        return cls(record["name"], record["sequence"], record["features"], reactions, edges)


def with_added(organism: Organism, genes: Iterable[AddedGene]) -> Organism:
    """Return an organism with foreign genes at its end, in this order; errors as ``Organism.add_gene``."""
    for gene in genes:
        organism = gene.added_to(organism)
    return organism
