"""`EvidenceLoader`: batches of another loader, with their evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.loader import Batches
from wildtype.phases import phase

KEPT = 20_000
"""Mutants whose evidence is kept, of a loader that never changes (fewer with several phenotypes)."""


class Evidence(Protocol):
    """Looks up the evidence of a batch of mutants."""

    def tokens_of(self, asked: MutantBatch) -> EvidenceTokens:
        """Return their evidence."""


class EvidenceLoader:
    """Adds evidence to the batches of another loader.

    Parameters
    ----------
    loader : Batches
        Serves the mutants.
    evidence : Evidence
        Looked up for each batch; its ``set_epoch``, if it has one, is called as epochs begin.
    keep : bool
        Whether every epoch is the same, so that evidence of few mutants need be looked up but once.
    """

    def __init__(self, loader: Batches, evidence: Evidence, *, keep: bool = False) -> None:
        self.loader, self.evidence, self.keep = loader, evidence, keep
        self._kept: list[MutantBatch] = []

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is served next."""
        self.loader.set_epoch(epoch)
        if hasattr(self.evidence, "set_epoch"):
            self.evidence.set_epoch(epoch)

    def __iter__(self) -> Iterator[MutantBatch]:
        if self._kept:
            yield from self._kept
            return
        served: list[MutantBatch] = []
        # Batches are kept only if all of them fit: part of an epoch would be of no use for the next.
        room = KEPT if self.keep else 0
        for batch in self.loader:
            with phase("representation"):
                batch.evidence = self.evidence.tokens_of(batch)
            room -= len(batch) * max(batch.evidence.one.value.shape[-1] // 4, 1)
            if room >= 0:
                served.append(batch)
            else:
                served.clear()
            yield batch
        if room >= 0:
            self._kept = served
