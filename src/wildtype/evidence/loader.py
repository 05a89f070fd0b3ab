"""`EvidenceLoader`: batches of another loader, with their evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np

from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.evidence_tokens import EvidenceTokens
from wildtype.mutants.loader import Batches
from wildtype.phases import phase

KEPT = 20_000
"""Mutants whose evidence is kept, of a loader that never changes (fewer with several phenotypes)."""


TOGETHER = 4096
"""Mutants whose evidence is looked up in one call (fewer with several phenotypes): out of fold, some ten or
thirty indices answer each its share of them, and a share of few mutants costs more in calls than in lookups.
"""


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
        for batch in self._looked_up():
            room -= len(batch) * self._size(batch)
            if room >= 0:
                served.append(batch)
            else:
                served.clear()
            yield batch
        if room >= 0:
            self._kept = served

    def _looked_up(self) -> Iterator[MutantBatch]:
        """Serve all batches with their evidence, several of which are looked up together."""
        waiting: list[MutantBatch] = []
        size = TOGETHER  # the first batch tells how large the evidence of a mutant is
        for batch in self.loader:
            waiting.append(batch)
            if sum(map(len, waiting)) * size >= TOGETHER:
                yield from self._answered(waiting)
                size = self._size(batch)
                waiting = []
        yield from self._answered(waiting)

    @staticmethod
    def _size(batch: MutantBatch) -> int:
        """Return how large the evidence of a mutant is, in that of mutants with few phenotypes."""
        assert batch.evidence is not None
        return max(batch.evidence.one.value.shape[-1] // 4, 1)

    def _answered(self, batches: list[MutantBatch]) -> Iterator[MutantBatch]:
        if not batches:
            return
        with phase("representation"):
            tokens = self.evidence.tokens_of(MutantBatch.of_mutants(batches))
        if len(batches) == 1:
            batches[0].evidence = tokens
            yield batches[0]
            return
        rows = pairwise(np.cumsum([0, *(len(batch) for batch in batches)]).tolist())
        genes = pairwise(np.cumsum([0, *(len(batch.gene) for batch in batches)]).tolist())
        for batch, (start, stop), (first, last) in zip(batches, rows, genes, strict=True):
            batch.evidence = tokens.slice(start, stop, first, last)
            yield batch
