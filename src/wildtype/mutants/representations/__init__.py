"""Five representations of a mutant: node masks over one shared wiring, and the reference with torch_geometric
(`pyg`).
"""

from wildtype.mutants.representations.fast import (
    NAMES,
    LazySubgraph,
    NeighborSubgraph,
    NodeMasks,
    Perturbation,
    Representation,
    Subgraph,
    Unperturbed,
    representation,
)

__all__ = [
    "NAMES",
    "LazySubgraph",
    "NeighborSubgraph",
    "NodeMasks",
    "Perturbation",
    "Representation",
    "Subgraph",
    "Unperturbed",
    "representation",
]
