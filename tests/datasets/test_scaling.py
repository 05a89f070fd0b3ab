from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets import Phenotype
from wildtype.datasets.scaling import LabelScaler
from wildtype.errors import CheckpointError, DatasetError, ShapeError
from wildtype.mutants import MutantTable


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 40))
def test_training_labels_become_standard_and_come_back(seed: int, phenotypes: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    phenotype = rng.integers(0, phenotypes, rows)
    values = rng.normal(3.0, 0.2, rows).astype(np.float32)
    scaler = LabelScaler.fit(values, phenotype, phenotypes)
    scaled = scaler.transform(values, phenotype)
    np.testing.assert_allclose(scaler.inverse(scaled, phenotype), values, rtol=1e-6)
    for p in range(phenotypes):
        own = phenotype == p
        assert scaler.count[p] == own.sum()
        if own.sum() and np.ptp(values[own]) > 0:
            assert scaled[own].mean() == pytest.approx(0.0, abs=1e-6)
            assert scaled[own].std() == pytest.approx(1.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 40))
def test_flipped_labels_are_turned_round_and_come_back(seed: int, phenotypes: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    phenotype = rng.integers(0, phenotypes, rows)
    values = rng.normal(3.0, 0.2, rows)
    plain = LabelScaler.fit(values, phenotype, phenotypes)
    flipped = LabelScaler.fit(values, phenotype, phenotypes, flip=True)
    scaled = flipped.transform(values, phenotype)
    np.testing.assert_array_equal(scaled, -plain.transform(values, phenotype))
    np.testing.assert_allclose(flipped.inverse(scaled, phenotype), values, rtol=1e-12)
    # as predictions are made from a model's output
    np.testing.assert_array_equal(
        flipped.mean[phenotype] + flipped.sd[phenotype] * scaled, flipped.inverse(scaled, phenotype)
    )
    spread = rng.random(rows)
    np.testing.assert_array_equal(flipped.inverse_sd(spread, phenotype), plain.inverse_sd(spread, phenotype))
    assert (flipped.inverse_sd(spread, phenotype) >= 0).all()
    assert flipped.flipped.all()
    assert not plain.flipped.any()


def test_a_flipped_scaler_is_restored() -> None:
    scaler = LabelScaler.fit([1.0, 3.0, 2.0], [0, 0, 1], 3, flip=True)
    again = LabelScaler.from_json(json.loads(json.dumps(scaler.to_json())))
    np.testing.assert_array_equal(again.sd, [-1.0, -1.0, -1.0])
    np.testing.assert_array_equal(again.transform([4.0], [0]), [-2.0])
    older = LabelScaler.from_json(
        {"mean": [2.0], "sd": [1.0], "count": [2]}
    )  # from before labels were flipped
    np.testing.assert_array_equal(older.transform([4.0], [0]), [2.0])


def test_equal_labels_and_absent_phenotypes_have_unit_sd() -> None:
    scaler = LabelScaler.fit([0.1] * 7, [1] * 7, 3)
    np.testing.assert_array_equal(scaler.sd, 1.0)
    np.testing.assert_allclose(scaler.mean, [0.0, 0.1, 0.0])
    np.testing.assert_array_equal(scaler.count, [0, 7, 0])
    assert np.isfinite(scaler.transform([0.1, 5.0], [1, 2])).all()


def test_sd_is_scaled_but_not_shifted() -> None:
    scaler = LabelScaler.fit([1.0, 3.0], [0, 0], 1)
    np.testing.assert_allclose(scaler.inverse_sd([0.5], [0]), [0.5])
    scaler = LabelScaler.fit([10.0, 30.0], [0, 0], 1)
    np.testing.assert_allclose(scaler.inverse_sd([0.5], [0]), [5.0])


def test_json_restores_every_bit() -> None:
    rng = np.random.default_rng(1)
    scaler = LabelScaler.fit(rng.normal(size=9), rng.integers(0, 2, 9), 2)
    again = LabelScaler.from_json(json.loads(json.dumps(scaler.to_json())))
    np.testing.assert_array_equal(again.mean, scaler.mean)
    np.testing.assert_array_equal(again.sd, scaler.sd)
    np.testing.assert_array_equal(again.count, scaler.count)


def test_refusals() -> None:
    with pytest.raises(DatasetError, match="training label 1 is nan"):
        LabelScaler.fit([0.0, np.nan], [0, 0], 1)
    with pytest.raises(ShapeError, match="same"):
        LabelScaler.fit([0.0, 1.0], [0], 1)
    with pytest.raises(ShapeError, match="phenotype 3 is outside"):
        LabelScaler.fit([0.0], [3], 2)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"mean": [0.0], "sd": [0.0], "count": [1]},
        {"mean": [0.0], "sd": [-0.0], "count": [1]},
        {"mean": [0.0, 1.0], "sd": [1.0], "count": [1]},
        {"mean": [None], "sd": [1.0], "count": [1]},
    ],
)
def test_damaged_records_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="not a stored label scaling"):
        LabelScaler.from_json(record)


def test_a_weighted_row_counts_as_the_rows_that_it_stands_for() -> None:
    phenotypes = (Phenotype("a"), Phenotype("b"), Phenotype("c", form="class"))
    counts = np.array([1, 3, 2, 5])
    one = MutantTable.from_sets(
        [[0], [1], [2], [3]], value=[0.0, 1.0, 2.5, 1.0], phenotype=[0, 0, 1, 2], weight=counts
    )
    many = replace(one.take(np.repeat(np.arange(4), counts)), weight=None)
    found, expected = (LabelScaler.of_table(table, phenotypes) for table in (one, many))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.sd, expected.sd, rtol=1e-12)
    assert found.count.tolist() == [2, 1, 1]
