"""E[ε] as P(listed) · E[ε | listed]: when it holds, and what it is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from wildtype.models.described_pairs import PairRows
from wildtype.models.interface import Output
from wildtype.models.pair_screen.two_part import TwoPart
from wildtype.mutants import MutantTable

OUTPUTS = (
    Output("epsilon", of_cross="effect"),
    Output("stringent", of_cross="listed"),
    Output("negative", "class", of_cross="negative"),
    Output("positive", "class", of_cross="positive"),
    Output("listed", of_cross="listed"),
)
VALUE = np.array([0, 0.0, -0.3, 0.2, -0.1, 0.0])
"""Of six pairs; beyond .15 is stringent."""
SCALED: Any = SimpleNamespace(mean=np.array([0.01, 0, 0, 0, -0.05]), sd=np.array([0.1, 1, 1, 1, 0.2]))
"""What `RunRows` says of the scaling."""


def learn(value: np.ndarray = VALUE) -> PairRows:
    """Return training rows of six pairs, as a screen's grid gives them."""
    pairs = np.stack([np.arange(6), np.arange(6) + 6], 1)
    rows = []
    for i, x in enumerate(value):
        rows += [(i, 0, x), (i, 2, float(x < 0)), (i, 3, float(x > 0))]
        rows += [(i, 4, x)] if x else []
        rows += [(i, 1, x)] if abs(x) > 0.15 else []
    pair, phenotype, label = (np.array(column) for column in zip(*rows, strict=True))
    table = MutantTable.build(
        pairs[pair].ravel(),
        np.arange(0, 2 * len(pair) + 1, 2),
        phenotype=phenotype,
        value=label.astype(np.float32),
    )
    return PairRows.of(table, "pair_screen")


def test_it_is_the_mean_of_the_forest_and_of_the_product() -> None:
    part = TwoPart.of(OUTPUTS, learn(), SCALED)
    assert part.place.tolist() == [2, 3, 4]
    found = torch.from_numpy(np.random.default_rng(0).standard_normal((50, 5)))
    raw = found.numpy()
    forest = 0.01 + 0.1 * raw[:, 0]
    product = (expit(raw[:, 2]) + expit(raw[:, 3])) * (-0.05 + 0.2 * raw[:, 4])
    expected = ((forest + product) / 2 - 0.01) / 0.1
    np.testing.assert_allclose(part(found).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "outputs",
    [
        OUTPUTS[:1],
        OUTPUTS[:4],  # its only listed value is that of another cut-off
        OUTPUTS[:2] + OUTPUTS[3:],
        (replace(OUTPUTS[0], of_cross=""), *OUTPUTS[1:]),
    ],
)
def test_without_all_outputs_of_one_cut_off_there_is_none(outputs: tuple[Output, ...]) -> None:
    part = TwoPart.of(outputs, learn(), SCALED)
    found = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 5)))
    assert not len(part.place)
    assert torch.equal(part(found), found[:, 0])


def test_a_screen_whose_other_crosses_have_values_has_none() -> None:
    rows = learn()
    value = rows.table.value.copy()
    first = np.flatnonzero((rows.table.phenotype == 0) & (rows.pair == 0))
    value[first] = -0.02  # measured, and no interaction
    part = TwoPart.of(OUTPUTS, replace(rows, table=replace(rows.table, value=value)), SCALED)
    assert not len(part.place)


def test_it_is_stored_and_models_of_before_predict_as_they_did() -> None:
    part, other, older = TwoPart.of(OUTPUTS, learn(), SCALED), TwoPart(), TwoPart()
    other.load_state_dict(part.state_dict())
    found = torch.from_numpy(np.random.default_rng(1).standard_normal((5, 5)))
    assert torch.equal(other(found), part(found))
    older.load_state_dict({}, strict=False)
    assert torch.equal(older(found), found[:, 0])
