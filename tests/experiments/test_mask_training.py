"""Training from stored masks and from masks made per batch: the same losses to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import tiny_dataset
from tests.training.test_oversmoothing import settings
from wildtype.errors import ConfigError
from wildtype.experiments.mask_training import GENERATED, SHARED, train_from_masks
from wildtype.experiments.settings.compose import compose
from wildtype.mutants.precomputed import LAYOUTS, PrecomputedMasks

SMALL = settings("difference_gnn", "training.batch_size=8", "model.dropout=0.1")


def test_losses_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    report = train_from_masks(
        compose(SMALL), steps=4, layouts=LAYOUTS, folder=tmp_path / "masks", dataset=tiny_dataset()
    )
    rows = {row["masks"]: row for row in report["rows"]}
    assert list(rows) == [GENERATED, *LAYOUTS, SHARED]
    assert report["equal"]
    for name in (GENERATED, *LAYOUTS):
        assert rows[name]["last_loss"] == rows[GENERATED]["last_loss"] != rows[name]["first_loss"]
        assert rows[name]["batch_bytes"] == 8 * report["problem"]["edges"]
    # A bit instead of a byte, up to the headers of the files and the last byte of each row.
    assert rows["uint8"]["disk_bytes"] > 5 * rows["bits"]["disk_bytes"]
    assert rows[SHARED]["batch_bytes"] == rows[GENERATED]["disk_bytes"] == 0


def test_without_dropout_the_shared_adjacency_differs_by_rounding_alone() -> None:
    words = [*SMALL, "model.dropout=0", "model.convolution=sage"]
    report = train_from_masks(compose(words), steps=3, layouts=["bits"], dataset=tiny_dataset())
    assert 0 <= report["rows"][-1]["largest_difference"] < 1e-4


def test_stored_masks_of_others_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: masks that keep every edge train to other losses."""

    def everything(self, rows):  # type: ignore[no-untyped-def]
        return {name: mask | True for name, mask in masks(self, rows).items()}

    masks = PrecomputedMasks.masks
    monkeypatch.setattr(PrecomputedMasks, "masks", everything)
    report = train_from_masks(compose(SMALL), steps=2, layouts=["bits"], dataset=tiny_dataset())
    assert not report["equal"]
    assert report["rows"][1]["largest_difference"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (settings("dango"), "model=dango has no reference that takes edge masks"),
        ([*SMALL, "model.representation=1-hop"], "stored masks are those of lazy_subgraph"),
    ],
)
def test_models_without_masks_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_from_masks(compose(words), dataset=tiny_dataset())


def test_no_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="steps=0: it must be positive"):
        train_from_masks(compose(SMALL), steps=0, dataset=tiny_dataset())
