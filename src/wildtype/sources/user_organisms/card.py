"""The card of an organism: what it holds, and what became of every row of every file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wildtype.organism import Organism
from wildtype.sources.user_organisms.reading import FileCard


def card_of(
    organism: Organism, files: Sequence[FileCard] = (), remarks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the card in plain values."""
    genes = organism.genes
    known = None if organism.coordinates is None else int(organism.coordinates.known.sum())
    return {
        "name": organism.name,
        "description": organism.description,
        "genes": {
            "count": len(genes),
            "sha256": genes.sha256,
            "with_standard_name": len(genes.standard),
            "aliases": sum(len(other) for other in genes.aliases.values()),
            "described": len(genes.descriptions),
            "essential": None if organism.essential is None else int(organism.essential.sum()),
            "located": known,
            "of_units": None if organism.units is None else len(organism.units.genes),
        },
        "relations": [
            relation.facts | {"edges": relation.edges, "genes": relation.nodes}
            for relation in organism.graphs.values()
        ],
        "features": [
            {
                "name": block.name,
                "columns": len(block.columns),
                "genes": int(np.isfinite(block.values).any(1).sum()),
                "source": block.source,
                "note": block.note,
            }
            for block in organism.features.values()
        ],
        "metabolism": None
        if organism.metabolism is None
        else {"reactions": len(organism.metabolism.reactions), "genes": len(organism.metabolism.genes)},
        "files": [card.to_json() for card in files],
        "remarks": list(remarks),
    }
