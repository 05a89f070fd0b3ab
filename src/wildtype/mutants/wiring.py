"""The wiring that all mutants share: the ends of every stored edge, and which edges lie at which node.

Nodes are numbered genes first, then reactions, then metabolites. A removed gene also removes a reaction whose
gene rule then fails; metabolites stay. Gene rules are evaluated in SciPy on the CPU; everything else runs on
the device of the wiring.

Legend: b mutants · n nodes · e stored edges of a relation · r removed nodes of a mutant.

In the compiled loops, mutant i lost ``node[offsets[i]:offsets[i+1]]``, and node v has the edges
``position[starts[v]:starts[v+1]]``; every edge is listed at both its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from wildtype.compiled import njit
from wildtype.errors import ConfigError
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations.removal import REMOVES, Removal

GPR, STOICHIOMETRY = "gpr", "stoichiometry"


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def write_edges(out: Any, node: Any, offsets: Any, starts: Any, position: Any, value: bool) -> None:
    """Write ``value`` into out [b, e] at every edge of every removed node."""
    for mutant in range(len(offsets) - 1):
        for at in range(offsets[mutant], offsets[mutant + 1]):
            for edge in range(starts[node[at]], starts[node[at] + 1]):
                out[mutant, position[edge]] = value


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_edges(
    node: Any, offsets: Any, starts: Any, position: Any, source: Any, target: Any, gone: Any, out: Any
) -> None:
    """Write to out [b] how many edges every mutant lost: all at its nodes, those between two of them once.

    ``gone`` [n] is all False, before and after.
    """
    for mutant in range(len(offsets) - 1):
        mine = node[offsets[mutant] : offsets[mutant + 1]]
        gone[mine] = True
        lost = 0
        for v in mine:
            lost += starts[v + 1] - starts[v]
            # An edge between two removed nodes is met at both ends; it counts at its source only.
            for edge in range(starts[v], starts[v + 1]):
                at = position[edge]
                if gone[source[at]] and target[at] == v:
                    lost -= 1
        gone[mine] = False
        out[mutant] = lost


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def list_edges(
    node: Any,
    offsets: Any,
    starts: Any,
    position: Any,
    source: Any,
    target: Any,
    gone: Any,
    ends: Any,
    out: Any,
) -> None:
    """Write the edges that mutant i lost, ascending, to ``out[ends[i]:ends[i+1]]``; ``gone`` as above."""
    for mutant in range(len(offsets) - 1):
        mine = node[offsets[mutant] : offsets[mutant + 1]]
        gone[mine] = True
        to = ends[mutant]
        for v in mine:
            for edge in range(starts[v], starts[v + 1]):
                at = position[edge]
                if not (gone[source[at]] and target[at] == v):
                    out[to] = at
                    to += 1
        gone[mine] = False
        out[ends[mutant] : ends[mutant + 1]].sort()


@dataclass(frozen=True, eq=False)
class Ends:
    """Both ends of the e stored edges of one relation, as node numbers.

    Attributes
    ----------
    source, target : int64 [e]
        In the stored order: by row, then column, of the relation's CSR arrays.
    starts : (int, int)
        The node numbers at which the node kinds of source and target begin; taken off, they are positions.
    """

    source: Tensor
    target: Tensor
    starts: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def positions(self) -> Tensor:
        """Positions among source's and target's node kinds, int64 [2, e]: an ``edge_index``."""
        return torch.stack([self.source - self.starts[0], self.target - self.starts[1]])


@dataclass(frozen=True, eq=False)
class Removed:
    """Removed nodes of b mutants: mutant i lost ``node[offsets[i]:offsets[i+1]]``, int64 [Σr] and [b+1]."""

    node: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def row(self) -> Tensor:
        """Mutant of every removed node, int64 [Σr]."""
        return torch.repeat_interleave(self.offsets.diff())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(torch.split(self.node, self.offsets.diff().tolist()))


@dataclass(frozen=True, eq=False)
class Incidence:
    """Node → positions of its edges, in CSR: node i has ``position[starts[i]:starts[i+1]]``.

    Attributes
    ----------
    starts : int64 [n+1]
        Over the nodes that can be removed.
    position : int32 (int64 from 2³¹ edges on) [at most 2 e]
        An edge is listed at both its ends.
    """

    starts: Tensor
    position: Tensor

    @classmethod
    def of(cls, ends: Ends, nodes: int) -> Self:
        """Return the incidence of the nodes below ``nodes``."""
        node = torch.cat([ends.source, ends.target])
        # A stable sort keeps every node's edges ascending, so that writes go through memory in order.
        order = torch.argsort(node, stable=True)
        counts = torch.bincount(node, minlength=nodes)[:nodes]
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        # Sources and targets were concatenated: entry e + i is the target end of edge i.
        position = order[: int(starts[-1])] % max(len(ends), 1)
        return cls(starts, position.int() if len(ends) < 2**31 else position)

    @property
    def degree(self) -> Tensor:
        """Number of stored edges at every node, int64 [n]."""
        return self.starts.diff()

    @property
    def bytes(self) -> int:
        """Bytes of both arrays."""
        return self.starts.nbytes + self.position.nbytes

    def edges_of(self, removed: Removed) -> tuple[Tensor, Tensor]:
        """Return mutant and position, int64 [Σ] each, of every edge at a removed node.

        An edge that lost both ends is listed twice. Mutants ascend.
        """
        first = self.starts[removed.node]
        counts = self.starts[removed.node + 1] - first
        which = torch.repeat_interleave(counts)
        shift = first - counts.cumsum(0) + counts
        at = torch.arange(len(which), device=which.device) + shift[which]
        return removed.row[which], self.position[at].long()

    def write(self, out: Tensor, removed: Removed, value: bool) -> None:
        """Write ``value`` into out [≥ b, e] at every edge of every removed node: O(Σ), in place."""
        if out.device.type != "cpu":
            row, position = self.edges_of(removed)
            out.view(-1).index_fill_(0, row * out.shape[1] + position, value)
            return
        arrays = (out, removed.node, removed.offsets, self.starts, self.position)
        write_edges(*(array.numpy() for array in arrays), value)


class Wiring:
    """The ends of all edges of a `CellGraph`, and which of its nodes a mutant loses.

    Parameters
    ----------
    graph : CellGraph
        Its relations in order, then, with metabolism, ``gpr`` (gene to reaction, in the order of
        ``CellGraph.gpr``) and ``stoichiometry`` (reaction to metabolite, as ``CellGraph.stoichiometry``).
    removes : iterable of str
        Kinds of perturbation that remove the gene; every other kind leaves it in the graph.
    device : torch.device or str
        Where the arrays are; batches are brought there.

    Raises
    ------
    ConfigError
        If a kind is unknown, or a relation has the name of a metabolic one.
    """

    def __init__(
        self, graph: CellGraph, *, removes: Iterable[str] = REMOVES, device: torch.device | str = "cpu"
    ) -> None:
        self.graph = graph
        self.removal = Removal(removes, graph.foreign)
        self.device = torch.device(device)
        network = graph.metabolism
        self.removable = graph.n + (len(network.reactions) if network else 0)
        self.nodes = self.removable + (len(network.metabolites) if network else 0)
        self.ends: dict[str, Ends] = {}
        for name, relation in graph.relations.items():
            rows, columns, _ = relation.endpoints()
            self.ends[name] = self._ends(rows, columns, (0, 0))
        if network is not None:
            for name in (GPR, STOICHIOMETRY):
                if name in self.ends:
                    raise ConfigError(
                        f"a relation is called {name!r}, as the edges of metabolism are: rename the relation"
                    )
            gpr, stoichiometry = graph.gpr.tocoo(), graph.stoichiometry.tocoo()
            self.ends[GPR] = self._ends(gpr.col, gpr.row, (0, graph.n))
            self.ends[STOICHIOMETRY] = self._ends(
                stoichiometry.col, stoichiometry.row, (graph.n, self.removable)
            )

    def _ends(
        self,
        source: np.ndarray[tuple[int], np.dtype[np.integer]],
        target: np.ndarray[tuple[int], np.dtype[np.integer]],
        starts: tuple[int, int],
    ) -> Ends:
        pair = torch.from_numpy(np.stack([source, target]).astype(np.int64)).to(self.device)
        return Ends(pair[0] + starts[0], pair[1] + starts[1], starts)

    @property
    def edges(self) -> dict[str, int]:
        """Number of stored edges of every relation, in order."""
        return {name: len(ends) for name, ends in self.ends.items()}

    @cached_property
    def incidence(self) -> dict[str, Incidence]:
        """Incidence of every relation."""
        return {name: Incidence.of(ends, self.removable) for name, ends in self.ends.items()}

    def removed(self, batch: MutantBatch) -> Removed:
        """Return the nodes that every mutant of a batch loses: genes, and reactions whose rule fails.

        Raises
        ------
        GeneSetError
            If a perturbed gene is outside the gene index.
        """
        gene, row = self.removal.pairs(batch, self.graph.n)
        if self.graph.metabolism is not None:
            dead = self.graph.dead_reactions(gene, row, len(batch)).tocoo()
            gene = np.concatenate([gene, dead.col.astype(np.int64) + self.graph.n])
            row = np.concatenate([row, dead.row.astype(np.int64)])
            # Genes and reactions of one mutant must be neighbours before offsets can delimit them.
            order = np.argsort(row, kind="stable")
            gene, row = gene[order], row[order]
        offsets = np.searchsorted(row, np.arange(len(batch) + 1))
        return Removed(torch.from_numpy(gene).to(self.device), torch.from_numpy(offsets).to(self.device))

    def keeps(self, removed: Removed) -> Tensor:
        """Return which nodes every mutant keeps, bool [b, n]."""
        keep = torch.ones(len(removed), self.nodes, dtype=torch.bool, device=self.device)
        keep.view(-1)[removed.row * self.nodes + removed.node] = False
        return keep
