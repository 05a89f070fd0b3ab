"""Five representations of a mutant as node masks over one shared wiring.

Legend: n genes · r reactions · B mutants · S perturbed genes of a mutant.

Deleting genes, cutting out an induced subgraph and taking a k-hop neighbourhood differ only in which nodes
stay: A_b = D_b A D_b with D_b = diag(keep_b). So a mutant costs n bits, no edge list and no edge mask. The
reference formulation with torch_geometric is in `pyg`; both keep the same nodes and edges. One polarity
everywhere: True = present.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.errors import ConfigError
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations.reach import reach, unpack
from wildtype.mutants.representations.removal import REMOVES, Removal


@dataclass(frozen=True, slots=True)
class NodeMasks:
    """The nodes that B mutants keep; metabolites always stay. An edge is kept iff both its ends are.

    Attributes
    ----------
    gene : bool [n, B]
        True = present.
    reaction : bool [r, B] or None
        True = alive; None without metabolism.
    """

    gene: Tensor
    reaction: Tensor | None = None

    def __len__(self) -> int:
        return int(self.gene.shape[1])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> NodeMasks:
        """Return the masks on another device."""
        reaction = self.reaction
        return NodeMasks(
            self.gene.to(device, non_blocking=non_blocking),
            None if reaction is None else reaction.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> NodeMasks:
        """Return the masks in page-locked memory, for asynchronous copies to a GPU."""
        return NodeMasks(
            self.gene.pin_memory(), None if self.reaction is None else self.reaction.pin_memory()
        )


class Representation(ABC):
    """How mutants are shown to a model that reads graphs.

    Parameters
    ----------
    graph : CellGraph
        The wiring that all mutants share.
    removes : iterable of str
        Kinds of perturbation that take a gene out of the graph; all other genes stay.

    Raises
    ------
    ConfigError
        If a kind does not exist.
    """

    name: ClassVar[str]

    def __init__(self, graph: CellGraph, removes: Iterable[str] = REMOVES) -> None:
        self.graph = graph
        self.removal = Removal(removes, graph.foreign)

    @abstractmethod
    def masks(self, batch: MutantBatch) -> NodeMasks | None:
        """Return which nodes each mutant keeps, on the batch's device; None: the model needs no graph.

        Raises
        ------
        GeneSetError
            If a perturbed gene is outside the gene index.
        """

    def _finish(self, batch: MutantBatch, gene: NDArray[np.bool_]) -> NodeMasks:
        """Take the removed genes out of bool [n, B], and the reactions that die without them."""
        lost, row = self.removal.pairs(batch, self.graph.n)
        gene[lost, row] = False
        reaction = None
        if self.graph.metabolism is not None:
            dead = self.graph.dead_reactions(lost, row, len(batch))
            reaction = np.ones((dead.shape[1], len(batch)), bool)
            reaction[dead.indices, np.repeat(np.arange(len(batch)), np.diff(dead.indptr))] = False
        masks = NodeMasks(torch.from_numpy(gene), None if reaction is None else torch.from_numpy(reaction))
        return masks if batch.gene.device.type == "cpu" else masks.to(batch.gene.device)


class Perturbation(Representation):
    """Indices only: the mutant is its perturbed genes, the graph is the wild type's."""

    name = "perturbation"

    def masks(self, batch: MutantBatch) -> None:
        """Return None: the batch holds all there is."""
        return None


class Subgraph(Representation):
    """The wild type without the removed genes: edges filtered, by masking both their ends."""

    name = "subgraph"

    def masks(self, batch: MutantBatch) -> NodeMasks:
        """Return keep masks: all genes but the removed ones, all reactions whose rule holds."""
        return self._finish(batch, np.ones((self.graph.n, len(batch)), bool))


class LazySubgraph(Subgraph):
    """The full graph and masks. As node masks it is `Subgraph`: the two differ in how edges are held only."""

    name = "lazy_subgraph"


class NeighborSubgraph(Representation):
    """Genes within k hops of S in the union of relations, in both directions, in the wild type; less S.

    Every perturbed gene is a centre, whatever was done to it; only genes of removed kinds are then taken out.
    A mutant without perturbed genes keeps no gene. Reactions stay while their rule holds.

    Parameters
    ----------
    graph, removes
        As in ``Representation``.
    hops : int
        k, at least 1.

    Raises
    ------
    ConfigError
        If ``hops`` is less than 1 or a kind does not exist.
    """

    name = "neighbor_subgraph"

    def __init__(self, graph: CellGraph, removes: Iterable[str] = REMOVES, *, hops: int = 1) -> None:
        super().__init__(graph, removes)
        if hops < 1:
            raise ConfigError(f"a neighbourhood of {hops} hops is none: give 1 or more")
        self.hops = hops

    def packed(self, batch: MutantBatch) -> NDArray[np.uint64]:
        """Return the neighbourhoods in the wild type, S included, as bits [⌈B/64⌉, n]; see ``reach``."""
        gene, offsets = batch.gene.numpy(force=True), batch.offsets.numpy(force=True)
        return reach(self.graph.union, gene, offsets, self.hops)

    def masks(self, batch: MutantBatch) -> NodeMasks:
        """Return keep masks: the neighbourhood less the removed genes, all reactions whose rule holds."""
        return self._finish(batch, unpack(self.packed(batch), len(batch)))


class Unperturbed(Representation):
    """The complete wild type, and the indices of the perturbed genes."""

    name = "unperturbed"

    def masks(self, batch: MutantBatch) -> NodeMasks:
        """Return masks that keep everything; they share one byte, whatever their size."""
        if self.graph.foreign is not None:
            # The wild type has none of the foreign genes, whatever mutants carry.
            nobody = replace(
                batch, gene=batch.gene[:0], kind=batch.kind[:0], offsets=batch.offsets[:1].repeat(2)
            )
            found = self._finish(replace(nobody, dose=None), np.ones((self.graph.n, 1), bool))
            reaction = found.reaction
            return NodeMasks(
                found.gene.expand(-1, len(batch)),
                None if reaction is None else reaction.expand(-1, len(batch)),
            )
        # An expanded tensor repeats one byte by stride 0.
        everything = torch.ones(1, dtype=torch.bool, device=batch.gene.device)
        metabolism = self.graph.metabolism
        return NodeMasks(
            everything.expand(self.graph.n, len(batch)),
            None if metabolism is None else everything.expand(len(metabolism.reactions), len(batch)),
        )


_KINDS: dict[str, type[Representation]] = {
    kind.name: kind for kind in (Perturbation, Subgraph, LazySubgraph, NeighborSubgraph, Unperturbed)
}
NAMES = tuple(_KINDS)


def representation(
    name: str, graph: CellGraph, *, hops: int = 1, removes: Iterable[str] = REMOVES
) -> Representation:
    """Return a representation by name; ``hops`` is read by ``neighbor_subgraph`` only.

    Raises
    ------
    ConfigError
        If the name or a kind is unknown, or there are fewer hops than one.
    """
    if name not in _KINDS:
        raise ConfigError(f"{name!r} is not a representation of mutants; known: {', '.join(NAMES)}")
    if name == NeighborSubgraph.name:
        return NeighborSubgraph(graph, removes, hops=hops)
    return _KINDS[name](graph, removes)
