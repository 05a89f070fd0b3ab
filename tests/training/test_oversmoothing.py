"""Over-smoothing is logged of every epoch, for every model whose genes pass layers, and drawn."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.tiny import tiny_dataset
from wildtype.evaluation.training_record import learning_curves
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.setup import build
from wildtype.report.figures.learning import learning_panels

SMALL = {
    "cell_transformer": ["model.layers=2", "model.head.heads=2", "model.trees.bags=0"],
    "dango": [],
    "difference_gnn": ["model.layers=2", "model.gin_layers=1"],
}
LAYERS = {
    "cell_transformer": ["tokens", "layer_1", "layer_2"],
    "dango": ["table", *(f"{r}_layer_{i}" for r in ("physical", "regulatory") for i in (1, 2)), "meta"],
    "difference_gnn": ["table", "preprocess", "layer_1", "layer_2"],
}


def settings(model: str, *words: str) -> list[str]:
    size = ["model.width=8", "model.heads=2", "training.epochs=2", "training.batch_size=64"]
    return [f"model={model}", *size, *SMALL[model], "baselines=[]", "run.progress=false", *words]


@pytest.mark.parametrize("model", list(SMALL))
def test_every_epoch_logs_and_draws_it(model: str, tmp_path: Path) -> None:
    config = compose(settings(model, f"run.folder={tmp_path / 'run'}"))
    run = train(config, dataset=tiny_dataset())
    log = pd.read_csv(run.path / "logs" / "metrics.csv")
    for kind in ("cosine", "energy"):
        columns = [f"oversmoothing/{kind}/{layer}" for layer in LAYERS[model]]
        assert [name for name in log if name.startswith(f"oversmoothing/{kind}/")] == sorted(columns)
        assert log[columns].notna().sum().tolist() == [2] * len(columns)
    events = EventAccumulator(str(run.path / "logs"))
    events.Reload()
    assert len(events.Scalars(f"oversmoothing/cosine/{LAYERS[model][-1]}")) == 2
    curves = learning_curves(log)
    assert curves is not None
    panels = {panel.title: panel for panel in learning_panels(curves)}
    assert len(panels["cosine of gene states"].head) == 1 + len(LAYERS[model])
    assert "energy of gene states" in panels


def test_it_can_be_left_out_and_changes_no_weight(tmp_path: Path) -> None:
    runs = [
        train(
            compose(settings("dango", f"training.oversmoothing={on}", f"run.folder={tmp_path / on}")),
            dataset=tiny_dataset(),
        )
        for on in ("true", "false")
    ]
    assert not any("oversmoothing" in name for name in pd.read_csv(runs[1].path / "logs" / "metrics.csv"))
    with_it, without = (run.predictor.checkpoint.model.state_dict() for run in runs)
    for name, tensor in with_it.items():
        assert torch.equal(tensor, without[name]), name


def test_last_states_are_those_that_the_head_reads() -> None:
    config = compose(settings("dango"))
    model, organism = build(config, prepare(config, tiny_dataset()), 0)
    torch.testing.assert_close(model.layer_states(organism)["meta"], model.encode(organism).genes)
    config = compose(settings("cell_transformer"))
    model, organism = build(config, prepare(config, tiny_dataset()), 0)
    model.eval()
    last = model.encoder.norm(model.layer_states(organism)["layer 2"])
    torch.testing.assert_close(last, model.encode(organism).genes)


def test_a_model_without_layers_has_nothing_to_watch() -> None:
    config = compose(settings("cell_transformer", "model.layers=0"))
    model, organism = build(config, prepare(config, tiny_dataset()), 0)
    assert model.layer_states(organism) == {}
