"""`MutantBatch`: B mutants as ragged tensors, cut from a table without per-sample Python.

Legend: b mutants · k perturbed per mutant · Σk their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from wildtype.mutants.table import MutantTable

if TYPE_CHECKING:
    from wildtype.mutants.evidence.tokens import EvidenceTokens


@dataclass(slots=True)
class MutantBatch:
    """B mutants; nothing in here has the size of the genome or of a graph.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the gene index.
    offsets : int64 [B+1]
        Mutant i owns ``gene[offsets[i]:offsets[i+1]]``.
    kind : uint8 [Σk]
        ``Kind`` of each perturbation.
    condition : int64 [B]
        Position in the dataset's conditions.
    phenotype : int64 [B]
        Position in the dataset's phenotypes.
    value, sd : float32 [B]
        Target and its standard deviation (NaN: not known).
    dose : float32 [Σk] or None
        Dose of each perturbation.
    p : float32 [B] or None
        Two-sided p-value of the measured effect (NaN: not known).
    evidence : EvidenceTokens or None
        What was measured of similar mutants, where it has been looked up; slices do not have it.
    """

    gene: Tensor
    offsets: Tensor
    kind: Tensor
    condition: Tensor
    phenotype: Tensor
    value: Tensor
    sd: Tensor
    dose: Tensor | None = None
    p: Tensor | None = None
    evidence: EvidenceTokens | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to(self, device: torch.device | str, non_blocking: bool = False) -> MutantBatch:
        """Return the batch on another device."""
        return self._map(lambda x: x.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> MutantBatch:
        """Return the batch in page-locked memory, for asynchronous copies to a GPU."""
        return self._map(lambda x: x.pin_memory())

    def _map(self, change: Callable[[Any], Any]) -> MutantBatch:
        columns: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        changed: dict[str, Any] = {name: None if x is None else change(x) for name, x in columns.items()}
        return MutantBatch(**changed)

    @classmethod
    def from_table(cls, table: MutantTable) -> MutantBatch:
        """Return all rows of a table as one batch, sharing its memory."""
        return cls(
            gene=torch.from_numpy(table.gene),
            offsets=torch.from_numpy(table.offsets),
            kind=torch.from_numpy(table.kind),
            condition=torch.from_numpy(table.condition),
            phenotype=torch.from_numpy(table.phenotype),
            value=torch.from_numpy(table.value),
            sd=torch.from_numpy(table.sd),
            dose=None if table.dose is None else torch.from_numpy(table.dose),
            p=None if table.p is None else torch.from_numpy(table.p),
        )

    def take(self, rows: Tensor) -> MutantBatch:
        """Return the mutants at ``rows`` [R] (int64), in that order; O(selected genes)."""
        starts = self.offsets[:-1].index_select(0, rows)
        counts = self.offsets[1:].index_select(0, rows) - starts
        offsets = torch.zeros(len(rows) + 1, dtype=torch.int64)
        torch.cumsum(counts, 0, out=offsets[1:])
        if len(rows) and bool((counts == counts[0]).all()):
            at = (starts[:, None] + torch.arange(int(counts[0]))).reshape(-1)
        else:
            at = torch.arange(int(offsets[-1])) + torch.repeat_interleave(starts - offsets[:-1], counts)
        return MutantBatch(
            gene=self.gene.index_select(0, at),
            offsets=offsets,
            kind=self.kind.index_select(0, at),
            condition=self.condition.index_select(0, rows),
            phenotype=self.phenotype.index_select(0, rows),
            value=self.value.index_select(0, rows),
            sd=self.sd.index_select(0, rows),
            dose=None if self.dose is None else self.dose.index_select(0, at),
            p=None if self.p is None else self.p.index_select(0, rows),
        )

    def slice(self, start: int, stop: int) -> MutantBatch:
        """Return mutants ``start`` … ``stop``-1 as views."""
        a, b = int(self.offsets[start]), int(self.offsets[min(stop, len(self))])
        return MutantBatch(
            gene=self.gene[a:b],
            offsets=self.offsets[start : stop + 1] - a,
            kind=self.kind[a:b],
            condition=self.condition[start:stop],
            phenotype=self.phenotype[start:stop],
            value=self.value[start:stop],
            sd=self.sd[start:stop],
            dose=None if self.dose is None else self.dose[a:b],
            p=None if self.p is None else self.p[start:stop],
        )
