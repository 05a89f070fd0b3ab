"""`MutantBatch`: B mutants as ragged tensors, cut from a table without per-sample Python.

Legend: b mutants · k perturbed per mutant · Σk their sum · t targets (a mutant may have many) · r profiles ·
n genes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from wildtype.mutants.identity import grouping
from wildtype.mutants.table import MutantTable

if TYPE_CHECKING:
    from wildtype.mutants.evidence_tokens import EvidenceTokens


@dataclass(slots=True)
class MutantBatch:
    """B mutants and what was measured of them; of the genome's size are measured profiles alone.

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
    phenotype : int64 [T]
        Position in the dataset's phenotypes.
    value, sd : float32 [T]
        Target and its standard deviation (NaN: not known).
    dose : float32 [Σk] or None
        Dose of each perturbation.
    p : float32 [T] or None
        Two-sided p-value of the measured effect (NaN: not known).
    mutant : int64 [T] or None
        Mutant of each target, ascending; None: target i is that of mutant i, and T = B.
    profile : int64 [T] or None
        Row of ``profiles`` that a target is, -1 where it is ``value``; None: none is.
    profiles : float32 [r, n] or None
        One number per gene (NaN: not measured).
    evidence : EvidenceTokens or None
        What was measured of similar mutants, where it has been looked up.
    step_targets : int64 scalar or None
        Known targets of the optimiser step that this is a micro-batch of; None: the batch is the step.
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
    mutant: Tensor | None = None
    profile: Tensor | None = None
    profiles: Tensor | None = None
    evidence: EvidenceTokens | None = None
    step_targets: Tensor | None = None

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
        """Return all rows of a table as one batch, each as a mutant, sharing its memory."""
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
            profile=None if table.profile is None else torch.from_numpy(table.profile),
            profiles=None if table.profiles is None else torch.from_numpy(table.profiles),
        )

    @classmethod
    def grouped(cls, table: MutantTable) -> MutantBatch:
        """Return all rows of a table, those of equal genes, kinds, doses and condition as one mutant.

        Mutants come as their first rows do, and so do the targets of one. Where no mutant has two targets, or
        the table one phenotype alone, this is ``from_table``. Costs O(m log m) once, and beside the mutants
        24 bytes per target.
        """
        found = grouping(table)
        if found is None:
            return cls.from_table(table)
        targets = np.argsort(found.mutant, kind="stable")
        batch = cls.from_table(table.take(found.first))
        columns = ("phenotype", "value", "sd", "p", "profile")
        own: dict[str, Any] = {
            name: None if column is None else torch.from_numpy(column[targets])
            for name, column in ((name, getattr(table, name)) for name in columns)
        }
        return replace(batch, mutant=torch.from_numpy(found.mutant[targets]), **own)

    def take(self, rows: Tensor) -> MutantBatch:
        """Return the mutants at ``rows`` [R] (int64), in that order; O(selected genes and targets)."""
        at, offsets = _ragged(self.offsets, rows)
        target, mutant = rows, None
        if self.mutant is not None:
            target, first = _ragged(self._first_targets(), rows)
            mutant = torch.repeat_interleave(torch.arange(len(rows)), first.diff())
        return MutantBatch(
            gene=self.gene.index_select(0, at),
            offsets=offsets,
            kind=self.kind.index_select(0, at),
            condition=self.condition.index_select(0, rows),
            phenotype=self.phenotype.index_select(0, target),
            value=self.value.index_select(0, target),
            sd=self.sd.index_select(0, target),
            dose=None if self.dose is None else self.dose.index_select(0, at),
            p=None if self.p is None else self.p.index_select(0, target),
            mutant=mutant,
            profile=None if self.profile is None else self.profile.index_select(0, target),
            profiles=self.profiles,
        )

    def slice(self, start: int, stop: int) -> MutantBatch:
        """Return mutants ``start`` … ``stop``-1 as views."""
        a, b = int(self.offsets[start]), int(self.offsets[min(stop, len(self))])
        i, j, mutant = start, stop, None
        if self.mutant is not None:
            i, j = torch.searchsorted(self.mutant, torch.tensor([start, stop])).tolist()
            mutant = self.mutant[i:j] - start
        return MutantBatch(
            gene=self.gene[a:b],
            offsets=self.offsets[start : stop + 1] - a,
            kind=self.kind[a:b],
            condition=self.condition[start:stop],
            phenotype=self.phenotype[i:j],
            value=self.value[i:j],
            sd=self.sd[i:j],
            dose=None if self.dose is None else self.dose[a:b],
            p=None if self.p is None else self.p[i:j],
            mutant=mutant,
            profile=None if self.profile is None else self.profile[i:j],
            profiles=self.profiles,
            evidence=None if self.evidence is None else self.evidence.slice(start, stop, a, b),
        )

    def with_own_profiles(self) -> MutantBatch:
        """Return the batch with a copy of those profiles only that are its targets, numbered as they come."""
        if self.profile is None or self.profiles is None:
            return self
        own = self.profile >= 0
        return replace(
            self,
            profile=torch.where(own, own.cumsum(0) - 1, -1),
            profiles=self.profiles.index_select(0, self.profile[own]),
        )

    def _first_targets(self) -> Tensor:
        """Return where each mutant's targets begin [B+1]."""
        assert self.mutant is not None
        return torch.searchsorted(self.mutant, torch.arange(len(self) + 1))


def _ragged(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of the entries of ragged rows [R], and where each row's begin among them [R+1]."""
    starts = offsets[:-1].index_select(0, rows)
    counts = offsets[1:].index_select(0, rows) - starts
    out = torch.zeros(len(rows) + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=out[1:])
    if len(rows) and bool((counts == counts[0]).all()):
        return (starts[:, None] + torch.arange(int(counts[0]))).reshape(-1), out
    return torch.arange(int(out[-1])) + torch.repeat_interleave(starts - out[:-1], counts), out
