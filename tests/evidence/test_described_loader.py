"""Training pairs get their own columns back, and others in every epoch where they look unseen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wildtype.evidence.described_loader import DescribedLoader, OutOfFoldPairs
from wildtype.evidence.pair_index import Pairs
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import MutantLoader

GENES = 12
GENE = np.array([[0, 1], [0, 1], [0, 3], [2, 7], [4, 5]])
KIND = np.array([[0, 0], [0, 3], [0, 0], [0, 0], [0, 0]], np.uint8)
"""Pairs as `numpy.unique` orders them; the second is the first with another kind of perturbation."""


def described(numbers: list[int], unseen: int) -> tuple[np.ndarray, np.ndarray]:
    """Describe pairs: columns say which pair it is, how many unseen genes, and which description."""
    rows = np.array(numbers)
    columns = np.stack([rows, np.full(len(rows), unseen), np.arange(len(rows))], axis=1)
    return rows, columns.astype(np.float32)


PARTS = {0: described([3, 0, 1, 2], 0), 1: described([0, 3, 0, 2], 1), 2: described([3], 2)}
"""The last pair is never described, the second never as if a gene were unseen."""


def source(share: float, seed: int = 0) -> OutOfFoldPairs:
    return OutOfFoldPairs(Pairs(GENE, KIND), PARTS, GENES, share, seed)


def mutants() -> MutantBatch:
    """Return a triple, the pairs from last to first, one pair that is not among them, and a single."""
    genes = [[0, 1, 2], *GENE[::-1].tolist(), [0, 2], [5]]
    kinds = [[0, 0, 0], *KIND[::-1].tolist(), [0, 0], [0]]
    offsets = np.cumsum([0, *map(len, genes)])
    table = MutantTable.build(np.concatenate(genes), offsets, kind=np.concatenate(kinds).astype(np.uint8))
    return MutantBatch.from_table(table)


def test_every_pair_has_its_columns_and_other_mutants_have_none() -> None:
    columns, unseen = source(0.0).described(mutants())
    assert unseen.tolist() == [-1, -1, 0, 0, 0, 0, -1, -1]
    assert columns[2:6, 0].tolist() == [3, 2, 1, 0]
    assert columns[[0, 1, 6, 7]].isnan().all()


def test_pairs_look_unseen_where_they_can() -> None:
    pairs = source(1.0)
    found = set()
    for epoch in range(40):
        pairs.set_epoch(epoch)
        columns, unseen = pairs.described(mutants())
        assert columns[2:6, 0].tolist() == [3, 2, 1, 0]
        assert columns[2:6, 1].tolist() == unseen[2:6].tolist()
        assert unseen[4] == 0
        assert (unseen[[2, 3, 5]] > 0).all()
        found |= {tuple(row) for row in columns[[2, 3, 5]].int().tolist()}
    # Every description is met.
    assert found == {(3, 1, 1), (3, 2, 0), (2, 1, 3), (0, 1, 0), (0, 1, 2)}


def test_an_epoch_is_the_same_again() -> None:
    left, right = source(0.5, seed=3), source(0.5, seed=3)
    drawn = []
    for epoch in (4, 1, 4):
        left.set_epoch(epoch)
        drawn.append(left.described(mutants())[1].tolist())
    right.set_epoch(4)
    assert drawn[0] == drawn[2] == right.described(mutants())[1].tolist()


@pytest.mark.parametrize("keep", [False, True])
def test_a_loader_describes_and_keeps(keep: bool) -> None:
    table = MutantTable.build(GENE.ravel(), np.arange(0, 2 * len(GENE) + 1, 2), kind=KIND.ravel())
    calls: list[int] = []

    class Counted:
        def described(self, asked: MutantBatch) -> tuple[torch.Tensor, torch.Tensor]:
            calls.append(len(asked))
            return torch.ones(len(asked), 2), torch.zeros(len(asked), dtype=torch.int64)

    loader = DescribedLoader(MutantLoader(table, 2), Counted(), keep=keep)
    for _ in range(2):
        served = list(loader)
        assert [len(batch) for batch in served] == [2, 2, 1]
        assert all(batch.columns is not None and batch.unseen is not None for batch in served)
    assert calls == [2, 2, 1] * (1 if keep else 2)
