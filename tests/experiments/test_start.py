"""Runs that start from other runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import wildtype
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, ConfigError, SplitError
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build
from wildtype.models.checkpoint import load_checkpoint
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex

QUICK = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=1",
         "training.batch_size=64", "baselines=[]", "run.progress=false", "run.replicates=10",
         "data.name=tiny-growth", "model.table=false"]  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    train(compose([*QUICK, f"run.folder={folder}"]), dataset=tiny_dataset())
    return folder


def cousin() -> Dataset:
    """The tiny dataset of another organism: other names, columns in another order, relations renamed."""
    dataset = tiny_dataset(n=20, seed=5)
    organism = dataset.organism
    shape = organism.features["shape"]
    blocks = [
        FeatureBlock("new", shape.values[:, :1] ** 2, ("z",)),
        replace(shape, values=shape.values[:, [2, 0]], columns=("c", "a")),
    ]
    graphs = [replace(organism.graphs["regulatory"], name="its own"), organism.graphs["physical"]]
    names = GeneIndex([f"C{i}" for i in range(20)], organism="cousin")
    other = replace(
        organism, name="cousin", genes=names, features=GeneFeatures(blocks), graphs=GeneGraphs(graphs)
    )
    return replace(dataset, organism=other)


def config(first: Path, *words: str) -> TrainConfig:
    return compose([*QUICK, f"training.start={first}", *words])


def test_a_start_is_not_pre_trained(first: Path, tmp_path: Path) -> None:
    def lines(*words: str) -> list[str]:
        said: list[str] = []
        chosen = [*QUICK, "model.pretraining.steps=2", f"run.folder={tmp_path / str(len(words))}", *words]
        train(compose(chosen), dataset=tiny_dataset(), log=said.append)
        return [line for line in said if line.startswith("pre-training, 2 steps")]

    assert len(lines()) == 1
    assert lines(f"training.start={first}") == []


def test_weights_go_by_name_of_parameter_column_and_relation(first: Path) -> None:
    said: list[str] = []
    data = prepare(config(first), cousin())
    model, _ = build(config(first), data, 1, said.append)
    start = load_checkpoint(first)
    new, old = dict(model.named_parameters()), dict(start.model.named_parameters())
    for name in new:
        if name not in ("encoder.project.1.weight", "head.relations.logits.weight"):
            assert torch.equal(new[name], old[name]), name
    to, before = new["encoder.project.1.weight"], old["encoder.project.1.weight"]
    assert start.features is not None
    columns = start.features.columns
    assert columns == ("shape.a", "shape.b", "shape.c", "single_fitness.fitness")
    for at, column in enumerate(("new.z", "shape.c", "shape.a", "single_fitness.fitness")):
        expected = before[:, columns.index(column)] if column in columns else torch.zeros(32)
        assert torch.equal(to[:, at], expected)
    assert model.prior_heads == {"physical": start.model.prior_heads["physical"]}  # type: ignore[operator]
    text = "\n".join(said)
    assert "3 of 4 feature columns taken, the others 0; 1 of the start's 4 have no counterpart" in text
    assert "trained on tiny-growth; left as drawn: head.relations.logits.weight" in text


def test_what_is_frozen_does_not_change(first: Path, tmp_path: Path) -> None:
    said: list[str] = []
    settings = config(first, "training.frozen=[encoder]", f"run.folder={tmp_path / 'second'}")
    run = train(settings, dataset=cousin(), log=said.append)
    start = dict(load_checkpoint(first).model.named_parameters())
    end = dict(load_checkpoint(run.path).model.named_parameters())
    same = {
        name for name in end if end[name].shape == start[name].shape and torch.equal(end[name], start[name])
    }
    assert {name for name in end if name.startswith("encoder")} - same == {"encoder.project.1.weight"}
    assert any(name.startswith("head") for name in set(end) - same)
    assert any(text.startswith("frozen: encoder: ") for text in said)


def test_a_start_that_has_seen_the_test_rows_is_refused(first: Path) -> None:
    other_split = config(first, "seed=1")
    data = prepare(other_split, tiny_dataset())
    with pytest.raises(
        SplitError, match=r"validation or test rows are of mutants that this model was trained"
    ):
        build(other_split, data, 1)
    same = config(first)
    build(same, prepare(same, tiny_dataset()), 1)  # each row in the part where the start had it


def test_impossible_starts_are_refused(first: Path) -> None:
    data = prepare(config(first), cousin())
    with pytest.raises(
        ConfigError, match=r"names 'encoded', which the model does not have; parts: encoder, head"
    ):
        build(config(first, "training.frozen=[encoded]"), data, 0)
    with pytest.raises(ConfigError, match="leaves nothing to train"):
        build(config(first, "training.frozen=[encoder,head]"), data, 0)
    with pytest.raises(ConfigError, match=r"give training\.start=RUN"):
        compose([*QUICK, "training.frozen=[encoder]"]).training.check()
    dango = compose(["model=dango", "data.name=tiny-growth", f"training.start={first}"])
    with pytest.raises(ConfigError, match="is a cell_transformer, and the model is a dango"):
        build(dango, data, 0)
    with pytest.raises(ConfigError, match=r"give training\.start=RUN"):
        compose(["experiment=transfer"]).training.check()


def test_a_model_like_its_start(first: Path, tmp_path: Path) -> None:
    words = ["experiment=transfer", f"training.start={first}", "data.name=tiny-growth"]
    settings = compose(words)
    stored = load_checkpoint(first).model.config
    assert settings.model == stored
    assert compose([*words[1:], "model.width=32"]).model != stored  # only where it is asked for
    data = prepare(settings, cousin())
    model, _ = build(settings, data, 0)
    assert not any(p.requires_grad for p in model.encoder.parameters())  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match=r"model\.width: the model is that of training\.start="):
        compose([*words, "model.width=32"])
    with pytest.raises(CheckpointError, match="no trained model in"):
        compose(["experiment=transfer", f"training.start={tmp_path / 'nowhere'}"])
    with pytest.raises(ConfigError, match=r"like_start=true: give training\.start"):
        compose(["training.like_start=true"]).training.check()


def test_embeddings_become_a_block_of_the_run(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    path = tmp_path / "esm.csv"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(24, 4)))
    frame.insert(0, "gene", dataset.organism.genes.names)
    frame.to_csv(path, index=False)
    data = prepare(compose([*QUICK, f"data.embeddings=[{path}]"]), dataset)
    assert data.features([])["esm"].values.shape == (24, 4)
    assert "esm" not in data.features(["esm"])


def test_own_gene_graphs_become_relations_of_the_run_and_of_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "my_ppi.csv"
    path.write_text("a,b,note\nG001,abc5,x\nG002,G003,y\nG002,G999,z\n")
    folder = tmp_path / "run"
    words = [
        *QUICK,
        f"data.relations=['mine={path}']",
        "model.prior.relations=[mine]",
        f"run.folder={folder}",
    ]
    assert prepare(compose(words), tiny_dataset()).whole.organism.graphs["mine"].edges == 2
    run = train(compose(words), dataset=tiny_dataset())
    before = run.predictor.predict([["G001", "G002"]])
    path.unlink()
    after = wildtype.load(folder).predict([["G001", "G002"]])
    pd.testing.assert_frame_equal(before, after)
    assert "mine" in load_checkpoint(folder / "checkpoint").relations
