"""Differences of an ablation against their plain definition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wildtype.evaluation.ablation import AblationOutcome, level_results, score

GENES = [f"G{i}" for i in range(12)]
PAIRS = [(a, b) for i, a in enumerate(GENES) for b in GENES[i + 1 :]]


def outcome(seed: int, noise: float, *, validation: float = 0.5, seconds: float = 1.0) -> AblationOutcome:
    draw = np.random.default_rng(seed)
    chosen = [PAIRS[i] for i in np.sort(draw.choice(len(PAIRS), 40, replace=False))]
    value = draw.normal(size=40).astype(np.float32)
    frame = pd.DataFrame(
        {
            "genes": [",".join(pair) for pair in chosen],
            "kinds": "absent,absent",
            "condition": "reference",
            "value": value,
            "predicted": value + noise * np.random.default_rng(seed + 99).normal(size=40),
        }
    )
    return AblationOutcome(validation, frame, seconds, 100.0)


def plain(base: dict[int, AblationOutcome], level: dict[int, AblationOutcome], replicates: int) -> np.ndarray:
    """Draw genes of all seeds' rows with replacement; a row weighs the product of its genes' counts."""
    names = sorted({gene for run in base.values() for text in run.test["genes"] for gene in text.split(",")})
    from wildtype.seeds import generator

    rng, out = generator(0, "bootstrap/genes"), []
    for _ in range(replicates):
        counts = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        times = dict(zip(names, counts, strict=True))
        deltas = []
        for seed, run in base.items():
            weight = [np.prod([times[g] for g in text.split(",")]) for text in run.test["genes"]]
            repeat = np.repeat(np.arange(len(weight)), weight)
            r = [
                np.corrcoef(side.test["value"].iloc[repeat], side.test["predicted"].iloc[repeat])[0, 1]
                for side in (level[seed], run)
            ]
            deltas.append(r[0] - r[1])
        out.append(np.mean(deltas))
    return np.array(out)


def test_paired_difference_is_that_of_its_definition() -> None:
    base = {s: outcome(s, 1.0, validation=0.4 + 0.1 * s) for s in (0, 1)}
    level = {s: outcome(s, 0.3, validation=0.7) for s in (0, 1)}
    rows = level_results(base, {("base", ""): base, ("a", "b"): level}, replicates=60)
    assert (rows[0].test_difference.value, rows[0].validation_difference.runs) == (
        pytest.approx(np.nan, nan_ok=True),
        0,
    )
    found = rows[1]
    deltas = [score(level[s].test, "pearson") - score(base[s].test, "pearson") for s in (0, 1)]
    assert found.test_difference.value == pytest.approx(np.mean(deltas))
    assert (found.test_difference.low, found.test_difference.high) == pytest.approx(
        tuple(np.quantile(plain(base, level, 60), [0.025, 0.975])), abs=1e-6
    )
    assert found.validation_difference.mean == pytest.approx(0.25)
    assert found.validation_difference.sd == pytest.approx(np.std([0.3, 0.2], ddof=1))
    assert found.test.mean == pytest.approx(np.mean([score(level[s].test, "pearson") for s in (0, 1)]))


def test_only_seeds_of_both_are_compared() -> None:
    base = {s: outcome(s, 1.0, validation=0.4) for s in (0, 1)}
    level = {1: outcome(1, 0.3, validation=0.7), 2: outcome(2, 0.3, validation=0.1)}
    found = level_results(base, {("a", "b"): level}, replicates=20)[0]
    assert found.seeds == (1, 2)
    assert found.validation_difference.runs == 1
    assert found.validation_difference.mean == pytest.approx(0.3)
    one = score(level[1].test, "pearson") - score(base[1].test, "pearson")
    assert found.test_difference.value == pytest.approx(one)


def test_other_rows_and_missing_runs_are_told_and_give_no_difference() -> None:
    base = {0: outcome(0, 1.0)}
    other = {0: outcome(5, 0.3)}
    rows = level_results(
        base, {("a", "other"): other, ("a", "none"): {}}, replicates=20, remarks={("a", "none"): ["failed"]}
    )
    assert rows[0].remarks == ("seed 0: other test rows than the base, so no difference on them",)
    assert np.isnan(rows[0].test_difference.value)
    assert rows[0].validation_difference.runs == 1
    assert (rows[1].seeds, rows[1].remarks) == ((), ("failed",))
    assert np.isnan(rows[1].test.mean)


def test_a_constant_prediction_has_no_correlation() -> None:
    base, level = {0: outcome(0, 1.0)}, {0: outcome(0, 1.0)}
    level[0].test["predicted"] = 0.0
    found = level_results(base, {("a", "b"): level}, replicates=20)[0]
    assert np.isnan(found.test.mean)
    assert np.isnan(found.test_difference.value)
