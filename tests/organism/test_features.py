"""Feature blocks, and a model's input by the names of columns."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wildtype.errors import DatasetError, ShapeError
from wildtype.organism import FeatureBlock, GeneFeatures
from wildtype.organism.features import BlockScaling, FeatureScaling, feature_cards

NAN = float("nan")


def block(name: str, values: list[list[float]], measured: tuple[str, ...] = ()) -> FeatureBlock:
    columns = tuple(f"c{i}" for i in range(len(values[0])))
    return FeatureBlock(name, np.array(values, np.float32), columns, measured=measured)


def test_matrix_is_standardised_over_known_values_and_marks_missing() -> None:
    matrix, names = GeneFeatures([block("x", [[1.0, 5.0], [3.0, 5.0], [NAN, NAN]])]).matrix(3)
    assert names == ("x.c0", "x.missing")  # a constant column carries nothing
    np.testing.assert_allclose(matrix, [[-1, 0], [1, 0], [0, 1]])


def test_no_features_give_an_empty_matrix() -> None:
    assert GeneFeatures().matrix(4)[0].shape == (4, 0)


def test_block_made_from_the_target_is_refused() -> None:
    features = GeneFeatures([block("smf", [[1.0]], ("costanzo2016:fitness",)), block("go", [[1.0]])])
    assert list(features.allowed_for(["costanzo2016:fitness"])) == ["go"]
    assert list(features.allowed_for(["costanzo2010:epsilon"])) == ["smf", "go"]


def test_wrong_column_count_is_refused() -> None:
    with pytest.raises(DatasetError, match="do not fit 1 column"):
        FeatureBlock("x", np.zeros((2, 2), np.float32), ("a",))


def test_cards_say_what_a_block_is_and_for_what_it_is_refused() -> None:
    missing = block("smf", [[1.0, NAN], [NAN, NAN], [2.0, 3.0]], ("costanzo2016:fitness", "other:fitness"))
    features = GeneFeatures([missing, block("go", [[1.0], [2.0], [3.0]])])
    first, second = feature_cards(features, ["costanzo2016:fitness", "costanzo2016:epsilon"])
    assert (first["columns"], first["genes"]) == (2, 2)
    assert first["refused"] == ["costanzo2016:fitness"]
    assert first["measured"] == ["costanzo2016:fitness", "other:fitness"]
    assert (second["refused"], second["genes"]) == ([], 3)
    assert [card["refused"] for card in feature_cards(features)] == [[], []]


def test_a_column_may_not_be_called_as_the_mark_of_missing_rows() -> None:
    with pytest.raises(DatasetError, match="'missing', which marks rows that have no value"):
        FeatureBlock("x", np.zeros((2, 1), np.float32), ("missing",))


NUMBERS = st.one_of(st.floats(-1e3, 1e3, width=32), st.just(float("nan")))
VALUES = arrays(np.float32, (7, 3), elements=NUMBERS)


def abc(values: np.ndarray, name: str = "x", columns: tuple[str, ...] = ("a", "b", "c")) -> FeatureBlock:
    return FeatureBlock(name, values.astype(np.float32), columns)


@given(VALUES)
def test_columns_are_standardised_over_what_is_known(values: np.ndarray) -> None:
    features = GeneFeatures([abc(values)])
    scaling = FeatureScaling.fit(features)
    matrix = scaling.transform(features, 7)
    expected, names = [], []
    for i, name in enumerate("abc"):
        column = values[:, i].astype(np.float64)
        known = column[np.isfinite(column)]
        if known.size and known.std() > 1e-9:
            scaled = (column - known.mean()) / known.std()
            expected.append(np.where(np.isfinite(scaled), scaled, 0.0))
            names.append(f"x.{name}")
    empty = ~np.isfinite(values).any(1)
    if empty.any():
        expected.append(empty.astype(float))
        names.append("x.missing")
    assert scaling.columns == tuple(names)
    np.testing.assert_allclose(matrix, np.reshape(expected, (-1, 7)).T, rtol=1e-3, atol=1e-4)
    again = FeatureScaling.from_json(json.loads(json.dumps(scaling.to_json())))
    np.testing.assert_array_equal(again.transform(features, 7), matrix)


@given(VALUES, st.permutations(["a", "b", "c"]))
def test_other_genes_are_scaled_as_the_first_whatever_the_order_of_columns(
    values: np.ndarray, order: list[str]
) -> None:
    features = GeneFeatures([abc(values)])
    scaling = FeatureScaling.fit(features)
    at = ["abc".index(c) for c in order]
    extra = np.array([[5.0, 6.0, 7.0]], np.float32)
    longer = abc(np.vstack([values, extra])[:, at], columns=tuple(order))
    other = abc(np.zeros((8, 1)), "unknown to the model", ("z",))
    matrix = scaling.transform(GeneFeatures([other, longer]), 8)
    np.testing.assert_array_equal(matrix[:7], scaling.transform(features, 7))
    for name, value in zip("abc", extra[0], strict=True):
        if f"x.{name}" in scaling.columns:
            column = values[:, "abc".index(name)].astype(np.float64)
            known = column[np.isfinite(column)]
            found = matrix[7, scaling.columns.index(f"x.{name}")]
            assert found == pytest.approx((value - known.mean()) / known.std(), rel=1e-3)


def test_what_is_absent_is_zero_and_marked_and_said() -> None:
    values = np.array([[1.0, 2.0], [3.0, 5.0], [np.nan, np.nan]])
    features = GeneFeatures([abc(values, columns=("a", "b")), abc(values[:, :1], "y", ("a",))])
    scaling = FeatureScaling.fit(features)
    assert scaling.columns == ("x.a", "x.b", "x.missing", "y.a", "y.missing")
    only = GeneFeatures([abc(np.array([[2.0]]), columns=("b",))])
    matrix = scaling.transform(only, 1)
    np.testing.assert_allclose(matrix, [[0, -1, 0, 0, 1]])
    assert scaling.absent(only) == {"x": 1, "y": 1}
    assert scaling.absent(features) == {}
    assert scaling.absent(features, among=["x"]) == {"y": 1}
    np.testing.assert_array_equal(scaling.transform(features, 3, among=["x"])[:, 3:], [[0, 1]] * 3)


def test_a_record_that_does_not_fit_is_refused() -> None:
    part = BlockScaling("x", ("a",), np.zeros(1), np.ones(1), False, True)
    with pytest.raises(ShapeError, match="1 columns, 2 means"):
        replace(part, mean=np.zeros(2))
