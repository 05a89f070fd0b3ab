from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable
from wildtype.mutants import loader as module
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import MutantLoader

SETS = st.lists(st.sets(st.integers(0, 9), max_size=4).map(sorted), min_size=1, max_size=40)


def rows(batches: list[MutantBatch]) -> list[tuple[tuple[int, ...], float]]:
    out = []
    for batch in batches:
        spans = zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
        out += [
            (tuple(batch.gene[a:b].tolist()), float(v)) for (a, b), v in zip(spans, batch.value, strict=True)
        ]
    return out


@given(SETS, st.integers(1, 9), st.booleans(), st.integers(1, 16))
@settings(deadline=None)
def test_every_mutant_is_served_once(sets: list[list[int]], size: int, shuffle: bool, block: int) -> None:
    table = MutantTable.from_sets(sets, value=np.arange(len(sets)))
    served = MutantLoader(table, size, shuffle=shuffle)
    served.block = max(block // size, 1) * size  # many blocks, as for a large table
    batches = list(served)
    assert len(batches) == len(served)
    assert all(len(b) == size for b in batches[:-1])
    expected = [(tuple(s), float(i)) for i, s in enumerate(sets)]
    assert (sorted(rows(batches)) if shuffle else rows(batches)) == (
        sorted(expected) if shuffle else expected
    )


def test_order_depends_on_seed_and_epoch_alone() -> None:
    table = MutantTable.from_matrix(np.arange(200).reshape(100, 2), value=np.arange(100))
    loader = MutantLoader(table, 7, shuffle=True, seed=3)
    first = rows(list(loader))
    loader.set_epoch(1)
    second = rows(list(loader))
    loader.set_epoch(0)
    assert rows(list(loader)) == first
    assert second != first
    assert rows(list(MutantLoader(table, 7, shuffle=True, seed=4))) != first


def test_every_column_follows_its_row() -> None:
    n = 50
    table = MutantTable.build(
        np.arange(2 * n),
        np.arange(n + 1) * 2,
        kind=np.arange(2 * n) % 5,
        condition=np.arange(n),
        phenotype=np.arange(n),
        value=np.arange(n),
        sd=np.arange(n),
        dose=np.arange(2 * n),
        p=np.arange(n) / n,
    )
    for batch in MutantLoader(table, 8, shuffle=True):
        row = batch.value.long()
        torch.testing.assert_close(batch.gene.view(-1, 2)[:, 0], 2 * row)
        torch.testing.assert_close(batch.kind.view(-1, 2)[:, 1].long(), (2 * row + 1) % 5)
        assert batch.dose is not None
        torch.testing.assert_close(batch.dose.view(-1, 2)[:, 0].long(), 2 * row)
        assert batch.p is not None
        torch.testing.assert_close(batch.p, (row / n).float())
        for column in (batch.condition, batch.phenotype, batch.sd.long()):
            torch.testing.assert_close(column, row)


def test_empty_table_and_bad_batch_size_are_refused() -> None:
    with pytest.raises(DatasetError, match="no mutants"):
        MutantLoader(MutantTable.from_sets([]), 4)
    with pytest.raises(DatasetError, match="at least 1"):
        MutantLoader(MutantTable.from_sets([[1]]), 0)


def test_blocks_are_large_enough_to_be_worth_it() -> None:
    assert MutantLoader(MutantTable.from_sets([[1]]), 4096).block == module.BLOCK


def test_a_batch_without_p_values_has_none() -> None:
    table = MutantTable.from_sets([[0], [1, 2]])
    batch = MutantBatch.from_table(table)
    moved = [batch, batch.take(torch.tensor([1])), batch.slice(0, 1), batch.to("cpu")]
    assert all(one.p is None for one in moved)
    valued = MutantBatch.from_table(MutantTable.from_sets([[0], [1, 2]], p=[0.5, np.nan]))
    assert valued.to("cpu").p is not None
