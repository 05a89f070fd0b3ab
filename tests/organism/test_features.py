from __future__ import annotations

import numpy as np
import pytest

from wildtype.errors import DatasetError
from wildtype.organism import FeatureBlock, GeneFeatures
from wildtype.organism.features import feature_cards

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
    with pytest.raises(DatasetError, match="'missing', which stands for rows that have no value"):
        FeatureBlock("x", np.zeros((2, 1), np.float32), ("missing",))
