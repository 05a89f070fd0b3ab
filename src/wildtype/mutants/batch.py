"""`MutantBatch`: B mutants as ragged tensors, cut from a table without per-sample Python.

Legend: b mutants · k perturbed per mutant · Σk their sum · t targets (a mutant may have many) · r profiles ·
n genes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from wildtype.mutants.identity import grouping
from wildtype.mutants.ragged import Column
from wildtype.mutants.table import MutantTable

if TYPE_CHECKING:
    from wildtype.mutants.evidence_tokens import EvidenceTokens


TARGETS = ("phenotype", "value", "sd", "p", "profile", "weight")
"""Columns [T] of targets; a mutant of several phenotypes has several."""
DESCRIBED = ("columns", "unseen")
"""What a screen of pairs says of the mutants [B]."""


@dataclass(slots=True)
class MutantBatch:
    """B mutants and their measurements; only measured profiles are of the size of the genome.

    Attributes
    ----------
    gene : int64 [Σk]
        Positions in the gene index.
    offsets : int64 [B+1]
        Mutant i has ``gene[offsets[i]:offsets[i+1]]``.
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
    weight : float32 [T] or None
        How many mutants a target stands for; None: each for itself alone.
    evidence : EvidenceTokens or None
        Measurements of similar mutants, where they were looked up.
    columns : float32 [B, f] or None
        What a screen of pairs says of each mutant (`evidence.pair_index`), where a model reads it.
    unseen : int64 [B] or None
        Genes of each pair without a visible cross, where ``columns`` are; -1: the mutant is no pair.
    step_targets : scalar or None
        Known targets, or the sum of their weights, of the optimiser step that this is a micro-batch of; None:
        the batch is the step.
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
    weight: Tensor | None = None
    evidence: EvidenceTokens | None = None
    columns: Tensor | None = None
    unseen: Tensor | None = None
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
        return MutantBatch(**self._changed([f.name for f in fields(self)], change))

    def _changed(self, names: Iterable[str], change: Callable[[Any], Any]) -> dict[str, Any]:
        """Return columns with ``change`` made to each; an absent one stays absent."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in names}
        return {name: None if column is None else change(column) for name, column in columns.items()}

    @classmethod
    def from_table(cls, table: MutantTable) -> MutantBatch:
        """Return all rows of a table as one batch, each as a mutant, sharing its memory."""
        return cls(**_tensors(table.columns(("offsets", *table.ENTRIES, *table.ROWS, "profiles"))))

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
        columns = {n: None if c is None else c[targets] for n, c in table.columns(TARGETS).items()}
        return replace(batch, mutant=torch.from_numpy(found.mutant[targets]), **_tensors(columns))

    @classmethod
    def of_mutants(cls, batches: Sequence[MutantBatch]) -> MutantBatch:
        """Return the mutants of several batches of a table as one, without targets, to ask about them."""
        if len(batches) == 1:
            return batches[0]
        size = torch.cat([batch.offsets.diff() for batch in batches])
        nothing = torch.zeros(0)

        def all_of(name: str) -> Any:
            columns = [getattr(batch, name) for batch in batches]
            return None if columns[0] is None else torch.cat(columns)

        return cls(
            offsets=torch.cat([torch.zeros(1, dtype=torch.int64), size.cumsum(0)]),
            condition=all_of("condition"),
            **{name: all_of(name) for name in MutantTable.ENTRIES},
            phenotype=nothing.long(),
            value=nothing,
            sd=nothing,
            mutant=nothing.long(),
        )

    def take(self, rows: Tensor) -> MutantBatch:
        """Return the mutants at ``rows`` [R] (int64), in that order; O(selected genes and targets)."""
        at, offsets = _ragged(self.offsets, rows)
        target, mutant = rows, None
        if self.mutant is not None:
            target, first = _ragged(self._first_targets(self.mutant), rows)
            mutant = torch.repeat_interleave(torch.arange(len(rows)), first.diff())
        return MutantBatch(
            offsets=offsets,
            mutant=mutant,
            profiles=self.profiles,
            condition=self.condition.index_select(0, rows),
            **self._changed(DESCRIBED, lambda column: column.index_select(0, rows)),
            **self._changed(MutantTable.ENTRIES, lambda column: column.index_select(0, at)),
            **self._changed(TARGETS, lambda column: column.index_select(0, target)),
        )

    def slice(self, start: int, stop: int) -> MutantBatch:
        """Return mutants ``start`` … ``stop``-1 as views."""
        a, b = int(self.offsets[start]), int(self.offsets[min(stop, len(self))])
        i, j, mutant = start, stop, None
        if self.mutant is not None:
            # Targets ascend by mutant, so those of a slice of mutants are a slice too.
            i, j = torch.searchsorted(self.mutant, torch.tensor([start, stop])).tolist()
            mutant = self.mutant[i:j] - start
        return MutantBatch(
            offsets=self.offsets[start : stop + 1] - a,
            mutant=mutant,
            profiles=self.profiles,
            condition=self.condition[start:stop],
            **self._changed(DESCRIBED, lambda column: column[start:stop]),
            evidence=None if self.evidence is None else self.evidence.slice(start, stop, a, b),
            **self._changed(MutantTable.ENTRIES, lambda column: column[a:b]),
            **self._changed(TARGETS, lambda column: column[i:j]),
        )

    def with_own_profiles(self) -> MutantBatch:
        """Return the batch with a copy of only the profiles that are its targets, numbered as they come."""
        if self.profile is None or self.profiles is None:
            return self
        has = self.profile >= 0
        return replace(
            self,
            # The k-th target with a profile gets row k of the copied profiles.
            profile=torch.where(has, has.cumsum(0) - 1, -1),
            profiles=self.profiles.index_select(0, self.profile[has]),
        )

    def _first_targets(self, mutant: Tensor) -> Tensor:
        """Return where each mutant's targets begin [B+1]."""
        return torch.searchsorted(mutant, torch.arange(len(self) + 1))


def _tensors(columns: Mapping[str, Column]) -> dict[str, Any]:
    return {name: None if column is None else torch.from_numpy(column) for name, column in columns.items()}


def _ragged(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of the entries of ragged rows [R], and where each row's begin among them [R+1]."""
    starts = offsets[:-1].index_select(0, rows)
    counts = offsets[1:].index_select(0, rows) - starts
    out = torch.zeros(len(rows) + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=out[1:])
    # Rows of one order, the usual case, need one broadcast sum instead of a gather per entry.
    if len(rows) and bool((counts == counts[0]).all()):
        return (starts[:, None] + torch.arange(int(counts[0]))).reshape(-1), out
    return torch.arange(int(out[-1])) + torch.repeat_interleave(starts - out[:-1], counts), out
