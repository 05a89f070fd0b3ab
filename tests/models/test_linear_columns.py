"""The weighted sum of columns against its plain definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from wildtype.models.linear_columns import PENALTIES, LinearColumns


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5)).astype(np.float32)
    x[::7, 1] = np.nan
    y = np.nan_to_num(x) @ [1.0, 2.0, -1.0, 0.5, 3.0] + 4 + rng.normal(size=200)
    return x, y, rng.integers(1, 4, 200).astype(float)


def test_weights_of_rising_columns_are_non_negative_least_squares() -> None:
    x, y, weights = problem()
    used = np.array([True, True, True, True, False])
    model = LinearColumns.fit(x, y, weights, used, rising=True)
    filled = np.nan_to_num(x).astype(np.float64)[:, :4]
    root = np.sqrt(weights)[:, None]
    both = np.hstack([filled, np.ones((200, 1)), -np.ones((200, 1))])
    plain = nnls(both * root, y * root[:, 0])[0]
    np.testing.assert_allclose(model.weight.numpy(), [*plain[:4], 0], atol=1e-4)
    assert plain[2] == 0 == model.weight[2]
    expected = filled @ plain[:4] + plain[4] - plain[5]
    np.testing.assert_allclose(model(torch.from_numpy(x)).numpy(), expected, atol=1e-3)


def test_ridge_has_weights_of_both_signs_and_answers_within_what_training_had() -> None:
    x, y, weights = problem()
    model = LinearColumns.fit(x, y, weights, np.ones(5, bool), rising=False)
    np.testing.assert_allclose(model.weight.numpy(), [1, 2, -1, 0.5, 3], atol=0.3)
    far = torch.full((1, 5), 1e6)
    most = torch.from_numpy(np.nan_to_num(x).max(axis=0))[None]
    assert model(far) == model(most)


def test_constant_columns_and_no_columns_give_the_mean() -> None:
    x, y, weights = problem()
    x[:] = 1
    for used in (np.ones(5, bool), np.zeros(5, bool)):
        model = LinearColumns.fit(x, y, weights, used, rising=True)
        np.testing.assert_allclose(model(torch.zeros(1, 5)).numpy(), np.average(y, weights=weights))


def test_it_is_loaded_with_its_sizes_and_older_models_have_none() -> None:
    x, y, weights = problem()
    model = LinearColumns.fit(x, y, weights, np.ones(5, bool), rising=True)
    other, older = LinearColumns(), LinearColumns()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(torch.from_numpy(x)), model(torch.from_numpy(x)))
    older.load_state_dict({})
    assert not len(older)


def test_a_column_that_is_not_a_number_is_read_from_the_one_that_stands_in_for_it() -> None:
    x, y, weights = problem()
    x[::3, 3] = np.nan
    x[::21, 4] = np.nan  # in some rows the stand-in's stand-in is read, and in some there is none either
    stand_in = np.array([-1, 3, -1, 4, -1])
    filled = x.copy()
    filled[:, 3] = np.where(np.isnan(x[:, 3]), x[:, 4], x[:, 3])
    filled[:, 1] = np.where(np.isnan(x[:, 1]), filled[:, 3], x[:, 1])
    assert np.isnan(filled[:, 1]).any()
    for rising in (True, False):
        model = LinearColumns.fit(x, y, weights, np.ones(5, bool), rising=rising, stand_in=stand_in)
        plain = LinearColumns.fit(filled, y, weights, np.ones(5, bool), rising=rising)
        assert torch.equal(model.weight, plain.weight)
        asked = torch.from_numpy(x)
        assert torch.equal(model(asked), plain(torch.from_numpy(filled)))
        assert np.array_equal(asked.numpy(), x, equal_nan=True), "columns that are read are written over"
    other = LinearColumns()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(torch.from_numpy(x)), model(torch.from_numpy(x)))


def test_a_model_of_before_there_were_stand_ins_counts_what_is_no_number_as_0() -> None:
    x, y, weights = problem()
    model = LinearColumns.fit(x, y, weights, np.ones(5, bool), rising=True)
    stored = {name: value for name, value in model.state_dict().items() if name != "stand_in"}
    other = LinearColumns()
    other.load_state_dict(stored)
    assert torch.equal(other(torch.from_numpy(x)), model(torch.from_numpy(x)))


@pytest.mark.parametrize("stand_in", [[-1, 3, -1, 5, -1], [-1, 0, -1, -1, -1], [-2] * 5, [-1] * 4])
def test_a_stored_column_that_there_is_not_is_refused(stand_in: list[int]) -> None:
    x, y, weights = problem()
    model = LinearColumns.fit(x, y, weights, np.ones(5, bool), rising=True)
    stored = model.state_dict() | {"stand_in": torch.tensor(stand_in)}
    with pytest.raises(ValueError, match="in place of another that there is not"):
        LinearColumns().load_state_dict(stored)


def test_errors_of_left_out_rows_are_those_of_a_fit_without_them() -> None:
    x, y, _ = problem()
    model = LinearColumns.fit(x, y, np.ones(200), np.ones(5, bool), rising=False)
    values = np.nan_to_num(x).astype(np.float64)
    standard, centred = (values - values.mean(0)) / values.std(0), y - y.mean()
    errors = []
    for penalty in PENALTIES:
        found = []
        for row in range(200):
            rest = np.arange(200) != row
            inner = standard[rest].T @ standard[rest] + penalty * np.eye(5)
            weight = np.linalg.solve(inner, standard[rest].T @ centred[rest])
            found.append((centred[row] - standard[row] @ weight) ** 2)
        errors.append(np.array(found))
    best = min(errors, key=lambda found: found.mean())
    np.testing.assert_allclose(model.left_out, best, rtol=1e-9)


def test_more_columns_are_clearly_better_only_beyond_chance() -> None:
    x, y, _ = problem()
    fits = {
        name: LinearColumns.fit(x[rows], y[rows], np.ones(rows.size), used, rising=False)
        for name, rows, used in (
            ("all", np.arange(200), np.ones(5, bool)),
            ("without the strongest", np.arange(200), np.arange(5) < 4),
            ("without a weak one", np.arange(12), np.arange(5) != 3),
            ("all of few rows", np.arange(12), np.ones(5, bool)),
        )
    }
    assert fits["all"].clearly_better(fits["without the strongest"])
    assert not fits["all of few rows"].clearly_better(fits["without a weak one"])
    assert not fits["without the strongest"].clearly_better(fits["all"])
