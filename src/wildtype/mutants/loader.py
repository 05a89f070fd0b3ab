"""`MutantLoader`: shuffled batches at memory speed, for a table that fits in memory.

Rows of one mutant are served together, so that it passes the model once with all its targets. Mutants are
permuted once per epoch and gathered in blocks of a few hundred thousand targets; batches are views of a
block, and copies of measured profiles. Cost: O(Σk) copies per epoch, O(block) extra memory, no per-sample
Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch

from wildtype.errors import DatasetError
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.table import MutantTable
from wildtype.phases import phase
from wildtype.seeds import derive

BLOCK = 1 << 18


class Batches(Protocol):
    """Serves the batches of an epoch, as `MutantLoader` does."""

    def __len__(self) -> int:
        """Batches of an epoch."""

    def __iter__(self) -> Iterator[MutantBatch]:
        """Serve an epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to serve."""


class MutantLoader:
    """Iterates over the mutants of a table, in an order that depends on (seed, epoch) alone.

    Parameters
    ----------
    table : MutantTable
        The rows to serve.
    batch_size : int
        Mutants per batch; the last batch may be smaller, no mutant is dropped.
    shuffle : bool
        Whether to permute the mutants anew every epoch.
    seed : int
        Seed of the permutation.

    Raises
    ------
    DatasetError
        If the table is empty or the batch size is not positive.
    """

    def __init__(self, table: MutantTable, batch_size: int, *, shuffle: bool = False, seed: int = 0) -> None:
        if not len(table):
            raise DatasetError("there are no mutants to load: the split or the filter left none")
        if batch_size < 1:
            raise DatasetError(f"batch size {batch_size} must be at least 1")
        self.rows = MutantBatch.grouped(table)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        # Blocks hold a fixed number of targets, since one mutant may have thousands.
        mutants = BLOCK * len(self.rows) // len(table)
        self.block = max(mutants // batch_size, 1) * batch_size

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose permutation the next iteration uses."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[MutantBatch]:
        total = len(self.rows)
        permutation = None
        if self.shuffle:
            # A separate generator leaves the global stream, from which layers draw, untouched.
            stream = torch.Generator().manual_seed(derive(self.seed, "shuffle", self.epoch))
            permutation = torch.randperm(total, generator=stream)
        for start in range(0, total, self.block):
            stop = min(start + self.block, total)
            with phase("fetch"):
                block = (
                    self.rows.slice(start, stop)
                    if permutation is None
                    else self.rows.take(permutation[start:stop])
                )
            for at in range(0, len(block), self.batch_size):
                with phase("collate"):
                    batch = block.slice(at, min(at + self.batch_size, len(block))).with_own_profiles()
                yield batch
