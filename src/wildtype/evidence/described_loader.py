"""`DescribedLoader`: batches of another loader, with what a screen says of their pairs.

Legend: b mutants · u training pairs · r descriptions · f columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wildtype.evidence.pair_index import Pairs
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.mutants.rows import Codes
from wildtype.phases import phase
from wildtype.seeds import generator

KINDS = 256
"""Numbers that a kind of perturbation may be."""


class Describes(Protocol):
    """Describes mutants by a screen of pairs."""

    def described(self, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return the columns [b, f] of mutants and the number of their unseen genes [b]; -1: no pair."""


class OutOfFoldPairs:
    """Training pairs, each described without itself, and in some epochs as if a gene of it were unseen.

    Parameters
    ----------
    pairs : Pairs
        The u pairs, distinct, in the order of `numpy.unique` over genes and kinds.
    parts : dict of int to (int64 [r], float32 [r, f])
        Pairs that are described with so many unseen genes, and their columns. A pair may stand several times,
        or, where its cross cannot be hidden, never.
    genes : int
        Number of all genes.
    share : float
        Of pairs that are described as if a gene were unseen, where they can be, drawn anew in every epoch.
    seed : int

    Attributes
    ----------
    columns : float32 [r, f]
        Of all descriptions.
    """

    def __init__(
        self,
        pairs: Pairs,
        parts: Mapping[int, tuple[NDArray[np.int64], NDArray[np.float32]]],
        genes: int,
        share: float,
        seed: int,
    ) -> None:
        self._genes, self._share, self._seed = genes, share, seed
        self._book = Codes(self._codes(pairs.gene, pairs.kind))
        u = len(pairs)
        # Descriptions by pair, those without an unseen gene first: each pair has a range of places.
        pair = np.concatenate([rows for rows, _ in parts.values()])
        unseen = np.concatenate([np.full(len(rows), number) for number, (rows, _) in parts.items()])
        order = np.lexsort((unseen, pair))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.columns = np.empty((len(order), next(iter(parts.values()))[1].shape[1]), np.float32)
        done = 0
        # One part after the other: joined before they are sorted, they would be in memory three times.
        for rows, columns in parts.values():
            self.columns[place[done : done + len(rows)]] = columns
            done += len(rows)
        self._unseen = unseen[order]
        self._first = np.searchsorted(pair[order], np.arange(u + 1))
        self._seen = np.bincount(pair[unseen == 0], minlength=u)
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draw which description every pair has in an epoch."""
        rng, u = generator(self._seed, "descriptions of pairs", epoch), len(self._first) - 1
        count = np.diff(self._first)
        hidden = count - self._seen
        as_unseen = (hidden > 0) & ((rng.random(u) < self._share) | (self._seen == 0))
        chosen = np.where(as_unseen, self._seen + (rng.random(u) * hidden).astype(np.int64), 0)
        self._chosen = np.where(count > 0, self._first[:-1] + chosen, -1)

    def described(self, mutants: MutantBatch) -> tuple[Tensor, Tensor]:
        """Return as `Describes` does; a mutant that is no training pair is described as no pair."""
        rows = torch.nonzero(mutants.offsets.diff() == 2).reshape(-1)
        first = mutants.offsets[:-1][rows][:, None] + torch.arange(2)
        pair = self._book.find(self._codes(mutants.gene[first].numpy(), mutants.kind[first].numpy()))
        place = np.where(pair >= 0, self._chosen[np.maximum(pair, 0)], -1)
        columns = torch.full((len(mutants), self.columns.shape[1]), torch.nan)
        unseen = torch.full((len(mutants),), -1, dtype=torch.int64)
        rows, place = rows[torch.from_numpy(place >= 0)], place[place >= 0]
        columns[rows] = torch.from_numpy(self.columns[place])
        unseen[rows] = torch.from_numpy(self._unseen[place])
        return columns, unseen

    def _codes(self, gene: NDArray[np.int64], kind: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return a number per pair that ascends as its genes and then its kinds do."""
        kinds = kind.astype(np.int64)
        pair = gene[:, 0] * self._genes + gene[:, 1]
        return np.asarray((pair * KINDS + kinds[:, 0]) * KINDS + kinds[:, 1])


class DescribedLoader:
    """Adds columns to the batches of another loader.

    Parameters
    ----------
    loader : Batches
        Serves the mutants.
    source : Describes
        Its ``set_epoch``, if it has one, is called as epochs begin.
    keep : bool
        Whether every epoch is the same, so that mutants are described but once.
    """

    def __init__(self, loader: Batches, source: Describes, *, keep: bool = False) -> None:
        self.loader, self.source, self.keep = loader, source, keep
        self._kept: list[MutantBatch] = []

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is served next."""
        self.loader.set_epoch(epoch)
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(epoch)

    def __iter__(self) -> Iterator[MutantBatch]:
        if self._kept:
            yield from self._kept
            return
        served = []
        for batch in self.loader:
            with phase("representation"):
                batch.columns, batch.unseen = self.source.described(batch)
            if self.keep:
                served.append(batch)
            yield batch
        self._kept = served
