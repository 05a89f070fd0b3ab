"""`EvidenceLoader`: batches of another loader, with their evidence."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice, pairwise
from typing import Protocol

import numpy as np

from wildtype.evidence.pieces import Ahead, as_asked
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
GROWTH = 1 / 3
"""Largest share of the mutants served so far that is looked up together."""


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
    ahead : callable
        Yields groups of batches and calls that return their evidence: `nn.threads.ahead` looks it up in a
        thread of its own while the batches before are used.
    """

    def __init__(
        self, loader: Batches, evidence: Evidence, *, keep: bool = False, ahead: Ahead = as_asked
    ) -> None:
        self.loader, self.evidence, self.keep, self.ahead = loader, evidence, keep, ahead
        self._kept: list[MutantBatch] = []
        self._serving: Generator[MutantBatch] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is served next; what is still served of another one ends."""
        if self._serving is not None:
            self._serving.close()  # nobody looks up evidence while its folds are drawn
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
        self._serving = self._looked_up()
        for batch in self._serving:
            room -= len(batch) * self._size(batch)
            if room >= 0:
                served.append(batch)
            else:
                served.clear()
            yield batch
        if room >= 0:
            self._kept = served

    def _looked_up(self) -> Generator[MutantBatch]:
        """Serve all batches with their evidence, looked up for several together and ahead of their use."""
        batches = iter(self.loader)
        for first in islice(batches, 1):
            with phase("representation"):
                first.evidence = self.evidence.tokens_of(first)
            yield first
            together = max(TOGETHER // self._size(first), 1)
            for group, tokens in self.ahead(_groups(batches, len(first), together), self._tokens):
                with phase("representation"):
                    _hand_out(tokens(), group)
                yield from group

    def _tokens(self, group: list[MutantBatch]) -> EvidenceTokens:
        return self.evidence.tokens_of(MutantBatch.of_mutants(group))

    @staticmethod
    def _size(batch: MutantBatch) -> int:
        """Return how large the evidence of a mutant is, in that of mutants with few phenotypes."""
        assert batch.evidence is not None
        return max(batch.evidence.one.value.shape[-1] // 4, 1)


def _groups(batches: Iterable[MutantBatch], before: int, mutants: int) -> Iterator[list[MutantBatch]]:
    """Yield lists of batches with at least so many mutants each; the last one may have fewer.

    The first ones have fewer, too: a third of those served, from ``before`` on. More could not be looked up
    while those are used.
    """
    group: list[MutantBatch] = []
    for batch in batches:
        group.append(batch)
        if (count := sum(map(len, group))) >= min(mutants, before * GROWTH):
            yield group
            group, before = [], before + count
    if group:
        yield group


def _hand_out(tokens: EvidenceTokens, batches: list[MutantBatch]) -> None:
    """Give each batch its share of the tokens of all."""
    if len(batches) == 1:
        batches[0].evidence = tokens
        return
    rows = pairwise(np.cumsum([0, *(len(batch) for batch in batches)]).tolist())
    genes = pairwise(np.cumsum([0, *(len(batch.gene) for batch in batches)]).tolist())
    for batch, (start, stop), (first, last) in zip(batches, rows, genes, strict=True):
        batch.evidence = tokens.slice(start, stop, first, last)
