"""A study that is stored and read in parts and in blocks of rows is the one that is taken at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.store.examples import READINGS, assert_same_columns, drawn
from wildtype.datasets import measurements
from wildtype.datasets.measurements import Measurements, coded, coded_by
from wildtype.datasets.store import Store, ingest, selection
from wildtype.datasets.store.canonical import canonical, canonical_blocks
from wildtype.seeds import generator

ROWS = 400


def in_parts(rows: Measurements) -> list[Measurements]:
    return [rows.take(part) for part in np.array_split(generator(0, "parts").permutation(len(rows)), 3)]


def test_blocks_one_after_the_other_are_the_canonical_rows() -> None:
    rows = drawn(ROWS, genes=40)
    blocks = list(canonical_blocks(in_parts(rows), 30))
    assert len(blocks) > 5
    assert max(map(len, blocks)) < ROWS / 3
    assert_same_columns(canonical(Measurements.concatenate(blocks)), canonical(rows))
    order = [record.genotype.id for block in blocks for record in block.records()]
    assert order == [record.genotype.id for record in canonical(rows).records()]


@pytest.mark.slow
def test_the_store_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, query = drawn(ROWS, genes=40), "SELECT id FROM measurements WHERE phenotype <> 'size'"

    def contents(name: str, given: Measurements | list[Measurements]) -> tuple[object, Measurements]:
        with Store.create(tmp_path / name) as store:
            store.ingest(drawn(50, name="other2025"))
            store.ingest(given, READINGS)
            with store.query("SELECT * FROM measurements ORDER BY id") as batches:
                seen = batches.read_all().to_pylist()
            hashes = store.content_hash(), store.content_hash(query)
            return (repr(seen), hashes, store.studies()), store.select(query)

    whole, selected = contents("whole.duckdb", rows)
    monkeypatch.setattr(ingest, "canonical_blocks", partial(canonical_blocks, most=30))
    for module, most in ((selection, 7), (measurements, 16)):
        monkeypatch.setattr(module, "BLOCK", most)
    apart, selected_apart = contents("apart.duckdb", in_parts(rows))
    assert apart == whole
    assert_same_columns(selected_apart, selected)


def test_texts_of_strains_are_those_of_their_rows() -> None:
    texts = [np.array([["b"], ["a"], ["never used"]], object), np.array(["", "c", "a"], object)]
    codes = [np.array([0, 1, 1, 0]), np.array([2, 0, 1, 1])]
    beside = np.stack([texts[0][codes[0], 0], texts[1][codes[1]]], axis=1)
    names, code = coded(beside.reshape(-1))
    found = coded_by(list(zip(texts, codes, strict=True)))
    assert found.names == names
    np.testing.assert_array_equal(found.code, code)


def test_a_column_of_one_number_takes_the_memory_of_one() -> None:
    rows = drawn(ROWS)
    assert rows.study.strides == (0,)
    assert rows.take(np.arange(50, 150)).study.strides == (0,)
    twice = Measurements.concatenate([rows, rows])
    assert twice.study.strides == (0,)
    assert len(twice.study) == 2 * ROWS
    assert rows.gene.dtype == rows.replicate.dtype == np.int32
