"""What a cross that was screened and not listed is expected to have."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from tests.screened import screened_dataset, with_cut_offs
from wildtype.mutants.unlisted import UnlistedMean

RULE = UnlistedMean(effect=0, negative=1, positive=2, low=-0.08, high=0.06, sd=0.05)


def answers(mean: np.ndarray, rule: UnlistedMean = RULE) -> np.ndarray:
    """Return predictions of crosses whose values are normal with these means."""
    return np.stack(
        [mean, norm.cdf(rule.low, mean, rule.sd), norm.sf(rule.high, mean, rule.sd), mean + 7.0], axis=1
    )


def test_it_is_the_mean_of_the_normal_between_the_cut_offs() -> None:
    mean = np.linspace(-0.17, 0.15, 33)  # beyond, the smaller chance is below the least one
    a, b = (RULE.low - mean) / RULE.sd, (RULE.high - mean) / RULE.sd
    want = truncnorm.mean(a, b, mean, RULE.sd)
    np.testing.assert_allclose(RULE(answers(mean)), want, rtol=0, atol=1e-9)


def test_it_is_the_mean_of_simulated_crosses_that_were_not_listed() -> None:
    draw = np.random.default_rng(0)
    for mean in (-0.1, -0.02, 0.05):
        value = draw.normal(mean, RULE.sd, 400_000)
        kept = value[(value > RULE.low) & (value < RULE.high)]
        error = kept.std() / np.sqrt(kept.size)
        assert RULE(answers(np.array([mean])))[0] == pytest.approx(kept.mean(), abs=5 * error)


def test_it_lies_between_the_cut_offs_and_follows_both_chances() -> None:
    chances = np.array([0.0, 1e-12, 0.01, 0.3, 0.9, 1.0])
    down, up = (x.reshape(-1) for x in np.meshgrid(chances, chances, indexing="ij"))
    found = RULE(np.stack([0 * down, down, up, 0 * down], 1)).reshape(6, 6)
    assert np.isfinite(found).all()
    assert (found > RULE.low).all()
    assert (found < RULE.high).all()
    # The likelier it was that a cross is listed as negative, the lower; as positive, the higher.
    assert (np.diff(found[1:-1], axis=0) < 0).all()
    assert (np.diff(found[:, 1:-1], axis=1) > 0).all()
    # Chances alike on both sides of cut-offs alike: the middle.
    even = UnlistedMean(0, 1, 2, -0.08, 0.08, 0.05)
    assert even(np.array([[0.5, 0.2, 0.2, 0.0]]))[0] == pytest.approx(0.0, abs=1e-12)


def test_a_pair_without_chances_has_none() -> None:
    assert np.isnan(RULE(np.full((1, 4), np.nan))).all()


def test_a_screen_tells_its_cut_offs_and_what_it_did_not_list() -> None:
    dataset = screened_dataset()
    told = [json.loads(json.dumps(p.to_json())) for p in with_cut_offs(dataset).phenotypes]
    assert UnlistedMean.of(told) == UnlistedMean(0, 1, 2, -0.08, 0.08, 0.05)
    assert UnlistedMean.of(told[::-1]) == UnlistedMean(3, 2, 1, -0.08, 0.08, 0.05)
    for lacking in range(4):
        assert UnlistedMean.of(told[:lacking] + told[lacking + 1 :]) is None
    assert UnlistedMean.of([p.to_json() for p in dataset.phenotypes]) is None  # nobody told
    other = [*told[:3], {**told[3], "selection": {**told[3]["selection"], "negative": -0.12}}]
    assert UnlistedMean.of(other) is None  # what lies between other cut-offs
