from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wildtype.errors import CheckpointError, ConfigError
from wildtype.evaluation.agreement import KEYS, TestPredictions, agreement, read_predictions


def predictions(run: str, rows: range, noise: float, sha: str = "x") -> TestPredictions:
    """Return predictions of the rows of one table, whose labels are the same in every run."""
    truth = np.random.default_rng(0).normal(size=100)[list(rows)]
    said = truth + np.random.default_rng(len(run)).normal(0, noise, len(rows))
    index = pd.MultiIndex.from_tuples(
        [("epsilon", f"A,B{i}", "absent,absent", "reference") for i in rows], names=KEYS
    )
    frame = pd.DataFrame({"value": truth, "predicted": said}, index=index)
    return TestPredictions(run, "m", "toy", sha, frame)


def test_pairs_and_all_on_the_rows_they_share() -> None:
    runs = [
        predictions(name, range(a, b), 0.5) for name, a, b in (("r", 0, 60), ("rr", 20, 80), ("rrr", 30, 100))
    ]
    found = agreement(runs)
    assert [(one.runs, one.rows) for one in found] == [
        (("r", "rr"), 40),
        (("r", "rrr"), 30),
        (("rr", "rrr"), 50),
        (("r", "rr", "rrr"), 30),
    ]
    a, b = runs[0].frame["predicted"].to_numpy()[20:], runs[1].frame["predicted"].to_numpy()[:40]
    truth = runs[1].frame["value"].to_numpy()[:40]
    first = found[0]
    assert first.between == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert first.difference == pytest.approx(np.abs(a - b).mean())
    assert first.alone == pytest.approx((np.corrcoef(a, truth)[0, 1], np.corrcoef(b, truth)[0, 1]))
    assert first.together == pytest.approx(np.corrcoef((a + b) / 2, truth)[0, 1])
    assert found[3].together > max(found[3].alone)


def test_order_of_rows_does_not_matter() -> None:
    one, other = predictions("r", range(50), 0.5), predictions("rr", range(50), 0.5)
    shuffled = TestPredictions("rr", "m", "toy", "x", other.frame.sample(frac=1, random_state=0))
    assert agreement([one, shuffled])[0].between == pytest.approx(agreement([one, other])[0].between)


def test_runs_that_share_nothing() -> None:
    found = agreement([predictions("r", range(10), 0.5), predictions("rr", range(10, 20), 0.5)])[0]
    assert found.rows == 0
    assert math.isnan(found.between)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least two runs, and there is 1"):
        agreement([predictions("r", range(10), 0.5)])
    with pytest.raises(ConfigError, match="rr is of toy and r of toy"):
        agreement([predictions("r", range(10), 0.5), predictions("rr", range(10), 0.5, sha="y")])
    with pytest.raises(CheckpointError, match=r"settings\.json is missing"):
        read_predictions(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        read_predictions(tmp_path)


def test_predictions_of_a_run(tiny_run: Path) -> None:
    found = read_predictions(tiny_run)
    stored = pd.read_parquet(tiny_run / "predictions.parquet")
    assert found.model == "cell_transformer"
    assert len(found.frame) == len(stored)
    assert agreement([found, found])[0].between == pytest.approx(1.0)
