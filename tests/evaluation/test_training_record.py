from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wildtype.evaluation.training_record import count_sides, learning_curves
from wildtype.evidence.reference import PARTS
from wildtype.models.checkpoint import load_checkpoint


def test_learning_curves_are_means_over_steps() -> None:
    log = pd.DataFrame(
        {
            "epoch": [0, 0, 0, 1, 1, 1],
            "loss": [3.0, 1.0, None, 1.0, 1.0, None],
            "loss/data": [2.0, 1.0, None, 0.5, 0.1, None],
            "share/data": [0.5, 0.7, None, 0.2, 0.4, None],
            "validation/pearson": [None, None, 0.8, None, None, 0.7],
        }
    )
    found = learning_curves(log)
    assert found is not None
    assert found.epochs.tolist() == [1, 2]
    assert found.total.tolist() == [2, 1]
    assert found.terms["data"].tolist() == pytest.approx([1.5, 0.3])
    assert found.shares["data"].tolist() == pytest.approx([0.6, 0.3])
    assert found.best == 0
    assert np.isnan(found.error).all()
    assert learning_curves(log.iloc[:0]) is None


def test_sides_are_counted_on_the_rows(tiny_run: Path) -> None:
    known = load_checkpoint(tiny_run).known
    found = count_sides(known)
    assert found.on_two_sides == 0
    assert sum(found.rows.values()) == (known.part < 3).sum()
    leaking = known.part.copy()
    test = np.flatnonzero(known.part == PARTS.index("test"))
    same = np.flatnonzero((known.table.set_id == known.table.set_id[test[0]]) & (known.part > 2))
    leaking[same[0]] = PARTS.index("train")
    assert count_sides(replace(known, part=leaking)).on_two_sides == 1
