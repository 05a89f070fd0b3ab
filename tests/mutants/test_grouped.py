"""Rows of one mutant as one mutant with several targets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import GeneSetError, ShapeError
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.identity import grouping
from wildtype.mutants.loader import MutantLoader
from wildtype.mutants.table import read_table, save_table

ROWS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 3), max_size=2).map(sorted),
        st.integers(0, 2),
        st.integers(0, 1),
        st.sampled_from([0, 2]),
        st.sampled_from([np.nan, 0.5, 2.0]),
    ),
    min_size=1,
    max_size=40,
)
Row = tuple[list[int], int, int, int, float]


def made(rows: list[Row]) -> MutantTable:
    return MutantTable.from_sets(
        [genes for genes, *_ in rows],
        kind=np.concatenate([np.full(len(r[0]), r[3], np.uint8) for r in rows]),
        dose=np.concatenate([np.full(len(r[0]), r[4], np.float32) for r in rows]),
        phenotype=[r[1] for r in rows],
        condition=[r[2] for r in rows],
        value=np.arange(len(rows)),
    )


def targets(batch: MutantBatch) -> set[tuple[object, ...]]:
    """Return every target with the mutant that it is said to be of."""
    mutant = torch.arange(len(batch)) if batch.mutant is None else batch.mutant
    out = set()
    for i, m in enumerate(mutant.tolist()):
        a, b = batch.offsets[m : m + 2].tolist()
        assert batch.dose is not None
        out.add(
            (
                *batch.gene[a:b].tolist(),
                "kind",
                *batch.kind[a:b].tolist(),
                *map(str, batch.dose[a:b].tolist()),
                int(batch.condition[m]),
                int(batch.phenotype[i]),
                float(batch.value[i]),
            )
        )
    return out


@settings(max_examples=40)
@given(ROWS, st.integers(1, 5), st.integers(1, 8))
def test_every_target_keeps_its_mutant(rows: list[Row], size: int, block: int) -> None:
    table = made(rows)
    expected = targets(MutantBatch.from_table(table))
    assert targets(MutantBatch.grouped(table)) == expected
    loader = MutantLoader(table, size, shuffle=True)
    loader.block = max(block // size, 1) * size
    batches = list(loader)
    assert set().union(*map(targets, batches)) == expected
    assert sum(map(len, batches)) == len(loader.rows)
    distinct = {target[:-2] for target in expected}
    if len(set(table.phenotype.tolist())) > 1:
        assert len(loader.rows) == len(distinct)


def test_rows_of_one_phenotype_stay_as_they_are() -> None:
    table = MutantTable.from_sets([[0], [1], [0]], value=[0.0, 1.0, 2.0])
    assert grouping(table) is None
    assert MutantBatch.grouped(table).mutant is None
    two = MutantTable.from_sets([[0], [1], [0]], phenotype=[0, 0, 1])
    found = grouping(two)
    assert found is not None
    assert (found.first.tolist(), found.mutant.tolist()) == ([0, 1], [0, 1, 0])


PROFILES = np.arange(12, dtype=np.float32).reshape(3, 4)


def profiled() -> MutantTable:
    value = [np.nan, 5, np.nan, np.nan]
    return MutantTable.from_sets(
        [[0], [1], [1], [2]], phenotype=[1, 0, 1, 1], value=value, profile=[2, -1, 0, 1], profiles=PROFILES
    )


def test_profiles_follow_their_rows(tmp_path) -> None:
    table = profiled()
    part = table.take([2, 1])
    assert part.profiles is table.profiles  # shared, whatever is cut
    joined = MutantTable.concatenate([part, table, MutantTable.from_sets([[3]])])
    assert joined.profiles is table.profiles
    assert joined.profile is not None
    assert joined.profile.tolist() == [0, -1, 2, -1, 0, 1, -1]
    save_table(part, tmp_path / "t.npz")
    again, _ = read_table(tmp_path / "t.npz")
    assert again.profiles is not None
    np.testing.assert_array_equal(again.profiles, PROFILES[[0]])
    for batch in MutantLoader(table, 2, shuffle=True):
        assert batch.profile is not None
        assert batch.profiles is not None
        assert batch.mutant is not None
        for i, m in enumerate(batch.mutant.tolist()):
            if batch.profile[i] >= 0:
                gene = int(batch.gene[batch.offsets[m]])
                expected = PROFILES[{0: 2, 1: 0, 2: 1}[gene]]
                np.testing.assert_array_equal(batch.profiles[batch.profile[i]].numpy(), expected)


def test_profiles_on_another_gene_index() -> None:
    moved = profiled().remap(np.array([4, 0, 1, -1]), 5)
    assert moved.profiles is not None
    np.testing.assert_array_equal(moved.profiles[1], [5, 6, np.nan, np.nan, 4])
    assert moved.gene.tolist() == [4, 0, 0, 1]
    with pytest.raises(ShapeError, match="number of genes"):
        profiled().remap(np.arange(4))
    with pytest.raises(GeneSetError):
        profiled().remap(np.array([-1, 0, 1, 2]), 4)
    with pytest.raises(ShapeError, match="belong together"):
        MutantTable.from_sets([[0]], profile=[0])
