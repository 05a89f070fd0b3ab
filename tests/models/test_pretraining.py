"""Pre-training of the encoder: what is hidden, what is told of it, and that training goes on from there."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.tiny import tiny_dataset, tiny_organism
from wildtype.errors import ConfigError, DivergedError
from wildtype.experiments import fitting
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.inference.predictor import load
from wildtype.models.cell_transformer.config import CellTransformerConfig, PretrainingConfig, assign_heads
from wildtype.models.cell_transformer.config import check as check_settings
from wildtype.models.cell_transformer.encoder import Encoder
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.cell_transformer.pretraining import TIMED, FeatureBlocks, pretrain
from wildtype.models.interface import OrganismTensors, message_operator
from wildtype.organism import FeatureBlock, GeneFeatures, Organism
from wildtype.organism.features import FeatureScaling
from wildtype.training.fit import FitReport

WORDS = [
    "model=cell_transformer", "model.table=false", "model.evidence.tokens=0", "model.trees.bags=0",
    "model.width=16", "model.layers=2", "model.heads=4", "training.epochs=3", "training.threads=1",
    "baselines=[]", "run.progress=false", "run.replicates=20", "model.pretraining.steps=4",
]  # fmt: skip


def planted(n: int = 300) -> Organism:
    """Return an organism, three blocks of which say the same in other words; a fifth lack the last."""
    draw = np.random.default_rng(5)
    said = draw.normal(size=(n, 3))
    blocks = []
    for name, size in (("proteins", 6), ("sequence", 5), ("growth", 4)):
        values = (said @ draw.normal(size=(3, size)) + 0.1 * draw.normal(size=(n, size))).astype(np.float32)
        if name == "growth":
            values[: n // 5] = np.nan
        blocks.append(FeatureBlock(name, values, tuple(f"c{i}" for i in range(size))))
    return replace(tiny_organism(n), features=GeneFeatures(blocks))


def seen(organism: Organism) -> tuple[FeatureScaling, Tensor]:
    scaling = FeatureScaling.fit(organism.features)
    return scaling, torch.from_numpy(scaling.transform(organism.features, len(organism.genes)))


def test_a_hidden_block_looks_like_one_that_the_gene_lacks() -> None:
    organism = planted(40)
    scaling, features = seen(organism)
    table = FeatureBlocks(scaling.blocks, features)
    hidden = torch.zeros(40, 3, dtype=torch.bool)
    hidden[10:, 0] = hidden[30, 2] = hidden[::3, 2] = True
    lacking = []
    for i, block in enumerate(organism.features.values()):
        values = block.values.copy()
        values[hidden[:, i].numpy()] = np.nan
        lacking.append(replace(block, values=values))
    expected = torch.from_numpy(scaling.transform(GeneFeatures(lacking), 40))
    torch.testing.assert_close(table.without(features, hidden), expected, rtol=0, atol=0)
    assert table.names == ("proteins", "sequence", "growth")
    assert table.present.sum(0).tolist() == [40, 40, 32]


def test_errors_are_means_over_the_values_asked() -> None:
    organism = planted(30)
    scaling, features = seen(organism)
    features = features.double()
    table = FeatureBlocks(scaling.blocks, features)
    draw = torch.Generator().manual_seed(1)
    told = torch.randn(features.shape, generator=draw, dtype=torch.float64).requires_grad_()
    asked = (torch.rand(30, 3, generator=draw) < 0.4) & table.present
    asked[:, 1] = False
    error, of_zero = table.errors(told, features, asked)
    first, expected, expected_of_zero = 0, [], []
    for i, block in enumerate(scaling.blocks):
        columns = range(first, first + len(block.columns))
        cells = [(g, c) for g in torch.nonzero(asked[:, i]).flatten().tolist() for c in columns]
        expected.append(sum((told[c] - features[c]) ** 2 for c in cells) / max(1, len(cells)))
        expected_of_zero.append(sum(float(features[c]) ** 2 for c in cells) / max(1, len(cells)))
        first += len(block.inputs)
    torch.testing.assert_close(error[[0, 2]], torch.stack([expected[0], expected[2]]))
    assert error[1] == 0
    torch.testing.assert_close(of_zero, torch.tensor(expected_of_zero, dtype=torch.float64))
    gradient = torch.autograd.grad(error.sum(), told)[0]
    plain = torch.autograd.grad(expected[0] + expected[2], told)[0]
    torch.testing.assert_close(gradient, plain)


def pretrained(
    organism: Organism, settings: PretrainingConfig, seed: int = 0
) -> tuple[dict[str, Tensor], str]:
    config = CellTransformerConfig(width=16, heads=4, layers=1, table=False, feature_dropout=0.0)
    scaling, features = seen(organism)
    heads = assign_heads(config, list(organism.graphs))
    torch.manual_seed(3)
    model = CellTransformer(
        config, genes=len(features), features=features.shape[1], phenotypes=1, relations=list(organism.graphs)
    )
    tensors = OrganismTensors(features, model.priors(organism.graphs))
    edges = {name: message_operator(organism.graphs, name) for name in organism.graphs}
    said: list[str] = []
    pretrain(model.encoder, settings, tensors, scaling.blocks, edges, heads, seed, said.append)
    assert len(said) == (2 if settings.steps > TIMED else 1)
    return dict(model.encoder.state_dict()), said[-1]


def explained(text: str) -> dict[str, float]:
    listed = text.split("never told: ")[1].split(";")[0]
    return {name: float(value) for name, value in (part.rsplit(" ", 1) for part in listed.split(", "))}


LONG = PretrainingConfig(steps=150, learning_rate=0.01)


@pytest.fixture(scope="module")
def learned() -> str:
    """What is said of a pre-training that is long enough to learn."""
    return pretrained(planted(), LONG)[1]


@pytest.mark.slow
def test_blocks_that_say_the_same_are_told_from_each_other(learned: str) -> None:
    """Blocks of genes that were never told to the decoder; without the rest, nothing can be told."""
    of_planted = explained(learned)
    assert of_planted.keys() == {"proteins", "sequence", "growth"}
    assert min(of_planted.values()) > 0.5
    organism = planted()
    draw = np.random.default_rng(6)
    apart = [
        replace(b, values=draw.permuted(b.values, axis=0)) for b in organism.features.values()
    ]  # columns of every block, each in another order of genes: what is told would be made up
    of_noise = explained(pretrained(replace(organism, features=GeneFeatures(apart)), LONG)[1])
    assert max(of_noise.values()) < 0.1


@pytest.mark.slow
def test_edges_are_told(learned: str) -> None:
    assert float(learned.split("edges ")[1].split(" ")[0]) < math.log(2)
    assert "edges" not in pretrained(planted(60), PretrainingConfig(steps=2, edges=0))[1]


def test_the_same_seed_gives_the_same_weights() -> None:
    settings = PretrainingConfig(steps=3)
    one, again, other = (pretrained(planted(60), settings, seed)[0] for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_loss_that_is_no_number_stops_it() -> None:
    with pytest.raises(DivergedError, match=r"pre-training diverged at step \d+: .*learning_rate=1e\+30"):
        pretrained(planted(60), PretrainingConfig(steps=20, learning_rate=1e30))


def test_hidden_features_need_features() -> None:
    config = CellTransformerConfig(features=False, pretraining=PretrainingConfig(steps=3))
    with pytest.raises(ConfigError, match=r"model\.pretraining\.steps=3 hides features of genes"):
        check_settings(config)


def trained(folder: Path, *words: str) -> Run:
    return train(compose([*WORDS, f"run.folder={folder}", *words]), dataset=tiny_dataset())


def test_training_goes_on_from_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a run that was stopped after an epoch: it does not learn from the wild type once more."""
    begun: list[Tensor] = []
    plain = fitting.fit_model

    def listening(model: CellTransformer, *arguments: object, **more: object) -> FitReport:
        begun.append(model.encoder.norm.weight.detach().clone())
        return plain(model, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting, "fit_model", listening)
    whole = trained(tmp_path / "whole")
    assert not torch.equal(begun[0], torch.ones(16))
    asked: list[str] = []

    def counted(encoder: Encoder, *arguments: object) -> None:
        asked.append("once")
        pretrain(encoder, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("wildtype.models.cell_transformer.model.pretrain", counted)

    def stopped(model: CellTransformer, *arguments: object, **more: object) -> FitReport:
        config = arguments[3]
        report = plain(model, *arguments[:3], replace(config, epochs=2), *arguments[4:], **more)  # type: ignore
        raise KeyboardInterrupt(report)

    monkeypatch.setattr(fitting, "fit_model", stopped)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "parts")
    monkeypatch.setattr(fitting, "fit_model", plain)
    parts = trained(tmp_path / "parts", "run.resume=true")
    assert asked == ["once"]
    both = [dict(load(run.path).checkpoint.model.named_parameters()) for run in (whole, parts)]
    assert all(torch.equal(weight, both[1][name]) for name, weight in both[0].items())


def test_every_member_learns_from_the_wild_type(tmp_path: Path) -> None:
    said: list[str] = []
    words = [*WORDS, f"run.folder={tmp_path / 'run'}", "training.members=2", "training.epochs=1"]
    train(compose(words), dataset=tiny_dataset(), log=said.append)
    assert sum("pre-training, 4 steps: " in line for line in said) == 2
