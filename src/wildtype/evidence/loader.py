"""`EvidenceLoader`: batches of a loader, with evidence looked up as they are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.loader import Batches
from wildtype.phases import phase

KEPT = 20_000
"""Mutants up to which the evidence of a loader that never changes is kept (of several phenotypes, fewer)."""


class Evidence(Protocol):
    """Answers what is known of the mutants of a batch."""

    def tokens_of(self, asked: MutantBatch) -> EvidenceTokens:
        """Return their evidence."""


class EvidenceLoader:
    """Adds evidence to the batches of another loader.

    Parameters
    ----------
    loader : Batches
        Serves the mutants.
    evidence : Evidence
        Is asked about each batch; told which epoch begins if it has ``set_epoch``.
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
