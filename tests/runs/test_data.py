"""How a run's rows are split: drawn, in folds, or taken from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.config.compose import compose
from wildtype.errors import SplitError
from wildtype.runs.data import prepare

BASE = ["data.name=tiny-growth", "run.progress=false"]


def test_folds_test_every_row_once() -> None:
    dataset = tiny_dataset()
    parts = [prepare(compose([*BASE, "split.folds=3", f"split.fold={i}"]), dataset) for i in range(3)]
    tested = np.concatenate([part.split.test for part in parts])
    assert sorted(tested.tolist()) == list(range(len(parts[0].dataset)))


def test_a_pinned_split_is_taken_as_it_is(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    drawn = prepare(compose([*BASE, "seed=3"]), dataset)
    path = tmp_path / "pinned.json"
    drawn.split.to_pinned(path, drawn.dataset)
    again = prepare(compose([*BASE, "seed=9", f"split.pinned={path}"]), dataset)
    for side in ("train", "validation", "test"):
        assert np.array_equal(getattr(again.split, side), getattr(drawn.split, side))
    assert again.split.seed == 3


def test_an_option_of_another_split_is_refused() -> None:
    with pytest.raises(SplitError, match="order"):
        prepare(compose([*BASE, "split.order=2"]), tiny_dataset())
