"""What a whole run logs: Weights & Biases (the real package, offline), TensorBoard, figures, test rows."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.tiny import tiny_dataset
from wildtype.experiments.folder import changed_setting
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run

SMALL = [
    "data.name=tiny-growth", "training.epochs=2", "training.batch_size=64", "training.figures=2",
    "model.width=16", "model.layers=1", "model.heads=4", "model.trees.bags=0", "baselines=[mean]",
    "run.replicates=20", "run.progress=false",
]  # fmt: skip
WANDB = [
    "training.wandb=true", "training.wandb_project=cells", "training.wandb_tags=[tiny,night]",
    "training.members=2",
]  # fmt: skip


class WandbRun:
    """What Weights & Biases stored of an offline run, by its own reader."""

    def __init__(self, folder: Path) -> None:
        from wandb.proto import wandb_internal_pb2
        from wandb.sdk.internal.datastore import DataStore

        (file,) = folder.glob("offline-run-*/run-*.wandb")
        self.media = sorted(
            path.stem.rsplit("_", 2)[0] for path in file.parent.glob("files/media/images/**/*.png")
        )
        self.history: dict[str, list[Any]] = defaultdict(list)
        self.config: dict[str, Any] = {}
        self.finished = False
        store = DataStore()
        store.open_for_scan(str(file))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                self.run = record.run
                self.config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            elif kind == "history":
                for item in record.history.item:
                    self.history["/".join(item.nested_key) or item.key].append(json.loads(item.value_json))
            self.finished |= kind == "exit"


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("logged") / "night"
    return train(compose([*SMALL, *WANDB, f"run.folder={folder}"]), dataset=tiny_dataset())


def test_every_member_is_a_run_of_wandb_in_one_group(logged: Run) -> None:
    found = [WandbRun(folder / "logs" / "wandb") for folder in (logged.path, logged.path / "member-2")]
    assert [one.run.display_name for one in found] == ["night", "night/member-2"]
    assert len({one.run.run_id for one in found}) == 2
    for one in found:
        assert (one.run.project, one.run.run_group, list(one.run.tags)) == (
            "cells",
            "night",
            ["tiny", "night"],
        )
        assert one.finished
        assert one.config["training"]["epochs"] == 2
        assert one.config["model"]["width"] == 16
        assert one.config["dataset"]["sha256"]
        log = pd.read_csv(
            (logged.path if one is found[0] else logged.path / "member-2") / "logs" / "metrics.csv"
        )
        for name in ("loss", "learning_rate", "gradient_norm", "validation/pearson", "train/pearson"):
            np.testing.assert_allclose(one.history[name], log[name].dropna(), rtol=1e-6)
        assert len(one.history["validation/epsilon/rmse"]) == len(one.history["train/epsilon/mae"]) == 2
        assert one.media == ["learning curves", "predicted against measured"]
    # The test is of the whole ensemble: it stands beside the first member alone.
    score = logged.comparisons["epsilon"]["cell_transformer"]
    assert found[0].history["test/epsilon/pearson"] == [pytest.approx(score.pearson.value, rel=1e-6)]
    assert found[0].history["test/epsilon/rmse"] == [pytest.approx(score.mse.value**0.5, rel=1e-6)]
    assert "test/epsilon/pearson" not in found[1].history


def test_tensorboard_has_the_figures_and_the_test(logged: Run) -> None:
    events = EventAccumulator(str(logged.path / "logs"))
    events.Reload()
    assert set(events.Tags()["images"]) == {"validation/predicted against measured", "learning curves"}
    (image,) = events.Images("learning curves")
    assert min(image.width, image.height) > 100
    (found,) = events.Scalars("test/epsilon/mae")
    table = pd.read_csv(logged.path / "logs" / "epochs.csv")
    (row,) = table[table["rows"] == "test"].to_dict("records")
    assert row["mae"] == pytest.approx(found.value, rel=1e-6)
    assert row["count"] == len(pd.read_parquet(logged.path / "predictions.parquet"))
    own = table[table["rows"] == "validation"]["rmse"]
    assert [event.value for event in events.Scalars("validation/epsilon/rmse")] == pytest.approx(list(own))


def test_errors_are_in_the_unit_of_the_dataset(logged: Run) -> None:
    """Labels have an sd of some 0.07: the error of scaled labels would be near 1."""
    table = pd.read_csv(logged.path / "logs" / "epochs.csv")
    spread = pd.read_parquet(logged.path / "predictions.parquet")["value"].std()
    assert (table["rmse"].between(spread / 3, 3 * spread)).all()


def test_how_a_run_is_logged_may_change_when_it_is_resumed(logged: Run) -> None:
    other = [f"run.folder={logged.path}", "training.members=2", "training.wandb=false", "training.figures=0"]
    assert changed_setting(logged.path, compose([*SMALL[:3], *SMALL[4:], *other])) is None
    assert changed_setting(logged.path, compose([*SMALL, *other, "training.schedule=constant"])) is not None


def test_a_trace_of_a_step_lies_in_the_run_directory(tmp_path: Path) -> None:
    words = [*SMALL, "training.trace_step=3", "training.figures=0", f"run.folder={tmp_path / 'run'}"]
    train(compose(words), dataset=tiny_dataset())
    assert [path.name for path in (tmp_path / "run" / "traces").iterdir()] == ["step-3.json.gz"]
