"""Edge masks: which stored edges of the shared wiring each mutant of a batch keeps, generated in five ways.

Legend: b mutants · n nodes · e stored edges of a relation · r removed nodes of a mutant · D largest degree.

An edge is kept iff both its ends are; the `Wiring` says which nodes a mutant loses. One polarity:
True = kept.

Cost of a batch, with Σ the degrees of all removed nodes of all its mutants, and memory between batches:

    generator        time                memory                     kept
    LoopMasks        O(b (n + e))        the masks, b · e           the ends, 16 e bytes
    PaddedMasks      O(b e + Σr · D)     the masks and Σr · D       8 n D bytes, whatever the degrees are
    CsrMasks         O(b e + Σ)          the masks and O(Σ)         8 e bytes (4 a position) and 8 n
    ResetMasks       O(Σ)                O(Σ)                       one set of masks, and what CsrMasks keeps
    FilteredEdges    O(b r e)            the kept edges             the ends

The b · e of CsrMasks is the cost of writing True into the output; reuse the memory of an earlier batch. With
metabolism, evaluating the gene rules comes on top, in SciPy on the CPU.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from wildtype.errors import ShapeError, WildtypeError
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations.removal import REMOVES
from wildtype.mutants.wiring import Removed, Wiring

__all__ = [
    "GENERATORS",
    "CsrMasks",
    "EdgeMasks",
    "FilteredEdges",
    "LoopMasks",
    "MaskError",
    "PaddedMasks",
    "Removed",
    "ResetMasks",
    "Wiring",
]


class MaskError(WildtypeError, RuntimeError):
    """Lent masks that were requested twice at once, or written to."""


class EdgeMasks(ABC):
    """Generates the edge masks of a batch; every subclass gives the same ones.

    Parameters
    ----------
    graph : CellGraph or Wiring
        What all mutants share; a wiring that is given is shared by several generators.
    removes, device
        As for `Wiring`; must be left out where one is given.
    """

    def __init__(
        self,
        graph: CellGraph | Wiring,
        *,
        removes: Iterable[str] = REMOVES,
        device: torch.device | str = "cpu",
    ) -> None:
        if isinstance(graph, CellGraph):
            graph = Wiring(graph, removes=removes, device=device)
        self.wiring = graph

    def masks(self, batch: MutantBatch, out: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return which edges every mutant keeps, bool [b, e] for every relation, in the wiring's order.

        Parameters
        ----------
        batch : MutantBatch
            b mutants.
        out : dict of str to bool [at least b, e], optional
            Masks of an earlier batch that are no longer needed, to be overwritten. Where the masks are large,
            getting fresh memory costs more than everything else.

        Raises
        ------
        GeneSetError
            If a perturbed gene is outside the gene index.
        ShapeError
            If ``out`` does not fit.
        """
        return self._write(batch, self._all_kept(len(batch), out))

    @abstractmethod
    def _write(self, batch: MutantBatch, out: dict[str, Tensor]) -> dict[str, Tensor]:
        """Set what the mutants lose to False in ``out``, which is all True, and return it."""

    def _all_kept(self, mutants: int, out: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        edges = self.wiring.edges
        if out is None:
            return {name: self._all(mutants, e) for name, e in edges.items()}
        for name, e in edges.items():
            given = out.get(name)
            if (
                given is None
                or given.dtype != torch.bool
                or given.device.type != self.wiring.device.type
                or given.ndim != 2
                or len(given) < mutants
                or given.shape[1] != e
                or not given.is_contiguous()
            ):
                received = None if given is None else (given.dtype, tuple(given.shape), str(given.device))
                raise ShapeError(
                    f"out[{name!r}]: received {received}, expected contiguous torch.bool [>= {mutants}, {e}] "
                    f"on {self.wiring.device}"
                )
        return {name: out[name][:mutants].fill_(True) for name in edges}

    @property
    def kept_bytes(self) -> int:
        """Bytes that stay between batches beyond the ends of the edges."""
        return 0

    def _all(self, mutants: int, edges: int) -> Tensor:
        if self.wiring.device.type != "cpu":
            return torch.ones(mutants, edges, dtype=torch.bool, device=self.wiring.device)
        # NumPy asks for huge pages: with small ones, touching fresh memory costs more than filling it.
        return torch.from_numpy(np.empty((mutants, edges), bool)).fill_(True)


class LoopMasks(EdgeMasks):
    """The definition: one mutant and one relation after the other, ``keep[source] & keep[target]``."""

    def _write(self, batch: MutantBatch, out: dict[str, Tensor]) -> dict[str, Tensor]:
        wiring = self.wiring
        for mutant, nodes in enumerate(wiring.removed(batch)):
            keep = torch.ones(wiring.nodes, dtype=torch.bool, device=wiring.device)
            keep[nodes] = False
            for name, ends in wiring.ends.items():
                torch.logical_and(keep[ends.source], keep[ends.target], out=out[name][mutant])
        return out


class PaddedMasks(EdgeMasks):
    """The batch at once over an incidence matrix [n, D] padded to the largest degree with -1."""

    @cached_property
    def padded(self) -> dict[str, Tensor]:
        """Positions of the edges at every node, int64 [n, D] for every relation."""
        out = {}
        for name, incidence in self.wiring.incidence.items():
            degree = incidence.degree
            wide = int(degree.max()) if len(degree) else 0
            filled = torch.arange(wide, device=degree.device) < degree[:, None]
            matrix = torch.full((len(degree), wide), -1, dtype=torch.int64, device=degree.device)
            matrix[filled] = incidence.position.long()
            out[name] = matrix
        return out

    def _write(self, batch: MutantBatch, out: dict[str, Tensor]) -> dict[str, Tensor]:
        removed = self.wiring.removed(batch)
        for name, edges in self.wiring.edges.items():
            position = self.padded[name][removed.node]
            # Row and position become one flat index, so that one scatter writes all mutants of the batch.
            flat = position + removed.row[:, None] * edges
            out[name].view(-1)[flat[position >= 0]] = False
        return out

    @property
    def kept_bytes(self) -> int:
        """Bytes of the padded matrices."""
        return sum(matrix.nbytes for matrix in self.padded.values())


class CsrMasks(EdgeMasks):
    """The batch at once over an incidence in CSR, without padding: only removed edges are written."""

    def _write(self, batch: MutantBatch, out: dict[str, Tensor]) -> dict[str, Tensor]:
        removed = self.wiring.removed(batch)
        for name, mask in out.items():
            self.wiring.incidence[name].write(mask, removed, False)
        return out

    @property
    def kept_bytes(self) -> int:
        """Bytes of the incidences."""
        return sum(incidence.bytes for incidence in self.wiring.incidence.values())


class ResetMasks(EdgeMasks):
    """Masks that stay: all True, set to False at removed edges, lent, and set back where they were changed.

    ``with generator.lent(batch) as masks:`` gives the masks of a batch for the length of the block. They must
    not be written to, and a second loan cannot begin inside it; both are errors. At the end the tensors that
    were lent are emptied, so that a late reader finds no edges rather than another mutant's.
    """

    def __init__(
        self,
        graph: CellGraph | Wiring,
        *,
        removes: Iterable[str] = REMOVES,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(graph, removes=removes, device=device)
        self._base = {name: self._all(0, edges) for name, edges in self.wiring.edges.items()}
        self._on_loan = False

    @contextlib.contextmanager
    def lent(self, batch: MutantBatch) -> Iterator[dict[str, Tensor]]:
        """Lend the masks of a batch, bool [b, e] for every relation, for the length of a ``with`` block.

        Raises
        ------
        MaskError
            On entry if masks are on loan already; on exit if a lent mask was written to.
        """
        if self._on_loan:
            raise MaskError("the masks are on loan to another batch: end its `with` block first")
        removed, incidence = self.wiring.removed(batch), self.wiring.incidence
        masks: dict[str, Tensor] = {}
        for name, edges in self.wiring.edges.items():
            if len(self._base[name]) < len(batch):
                self._base[name] = self._all(len(batch), edges)
            incidence[name].write(self._base[name], removed, False)
            masks[name] = self._base[name].detach()[: len(batch)]
        # PyTorch counts in-place writes per tensor, which shows at the end whether a borrower changed a mask.
        versions = {name: mask._version for name, mask in masks.items()}
        lent = dict(masks)
        self._on_loan = True
        try:
            yield lent
        finally:
            self._on_loan = False
            written = [name for name, mask in masks.items() if mask._version != versions[name]]
            for name, base in self._base.items():
                if name in written:
                    base.fill_(True)
                else:
                    incidence[name].write(base, removed, True)
                masks[name].set_()  # type: ignore[call-overload]
            lent.clear()
        if written:
            raise MaskError(f"the lent mask of {written[0]!r} was written to: copy it before changing it")

    def _write(self, batch: MutantBatch, out: dict[str, Tensor]) -> dict[str, Tensor]:
        with self.lent(batch) as masks:  # what may be kept is a copy: O(b e), as all that outlives a batch
            return {name: mask.copy_(masks[name]) for name, mask in out.items()}

    @property
    def kept_bytes(self) -> int:
        """Bytes of the masks that stay and of the incidences."""
        incidences = sum(incidence.bytes for incidence in self.wiring.incidence.values())
        return incidences + sum(base.nbytes for base in self._base.values())


class FilteredEdges:
    """Edges instead of masks: what each mutant keeps of every edge list, by ``isin`` where the wiring is.

    Parameters
    ----------
    graph, removes, device
        As for `EdgeMasks`.
    """

    def __init__(
        self,
        graph: CellGraph | Wiring,
        *,
        removes: Iterable[str] = REMOVES,
        device: torch.device | str = "cpu",
    ) -> None:
        if isinstance(graph, CellGraph):
            graph = Wiring(graph, removes=removes, device=device)
        self.wiring = graph

    def edges(self, batch: MutantBatch) -> Iterator[dict[str, Tensor]]:
        """Yield, mutant by mutant, the kept edges of every relation: positions int64 [2, kept]."""
        for nodes in self.wiring.removed(batch):
            kept = {}
            for name, ends in self.wiring.ends.items():
                gone = torch.isin(ends.source, nodes) | torch.isin(ends.target, nodes)
                kept[name] = ends.positions[:, ~gone]
            yield kept


GENERATORS: dict[str, type[EdgeMasks]] = {
    "loop": LoopMasks,
    "padded": PaddedMasks,
    "csr": CsrMasks,
    "reset": ResetMasks,
}
"""Every generator of masks by name; `FilteredEdges` gives edges instead."""
