"""Members that are experts for so many unseen genes answer for mutants that have as many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError
from wildtype.evidence.out_of_fold import OutOfFold
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build, loaders, of_member
from wildtype.models.ensemble import Ensemble
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch


def settings(folder: Path, *more: str) -> TrainConfig:
    return compose(
        [
            "model.width=16",
            "model.heads=4",
            "model.layers=0",
            "model.head.heads=0",
            "model.evidence.tokens=6",
            "data.name=tiny-growth",
            "split.name=one-unseen",
            "split.genes=4",
            "training.epochs=1",
            "training.batch_size=64",
            "baselines=[mean]",
            "run.progress=false",
            "run.replicates=10",
            f"run.folder={folder}",
            *more,
        ]
    )


EXPERTS = ("model.evidence.experts=[seen,seen,one,none]", "training.members=4")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "experts"
    train(
        settings(folder, *EXPERTS, "model.trees.bags=1", "model.trees.iterations=5"), dataset=tiny_dataset()
    )
    return folder


@pytest.mark.slow
def test_a_mutant_is_answered_by_its_experts(run: Path) -> None:
    checkpoint = wt.load(run).checkpoint
    model = checkpoint.model
    assert isinstance(model, Ensemble)
    assert model.experts == ["seen", "seen", "one", "none"]
    trained = checkpoint.known.table.take(checkpoint.known.part == 0)
    seen, unseen = (
        np.flatnonzero(np.isin(np.arange(24), trained.gene) == there)[:3] for there in (True, False)
    )
    sets = [[seen[0], seen[1]], [seen[0], unseen[0]], [unseen[0], unseen[1]], [seen[2], unseen[1], unseen[2]]]
    batch = MutantBatch.from_table(MutantTable.from_sets(sets))
    assert checkpoint.evidence is not None
    batch.evidence = checkpoint.evidence.tokens_of(batch)
    wild_type = checkpoint.encode()
    said = model(wild_type, batch)
    each = torch.stack(
        [m(w, batch).mean[:, 0] for m, w in zip(model.members, wild_type.members, strict=True)]
    )  # type: ignore[attr-defined]
    assert len(each.unique(dim=0)) == 4
    expected = torch.stack([each[:2, 0].mean(), each[2, 1], each[3, 2], each[2, 3]])
    assert torch.allclose(said.mean[:, 0], expected, atol=1e-7)
    assert said.sd is not None
    assert torch.allclose(said.sd[:, 0], each.std(0))


def test_an_expert_learns_and_is_judged_as_it_will_be_asked(tmp_path: Path) -> None:
    config = settings(tmp_path, *EXPERTS)
    data = prepare(config, tiny_dataset())
    tensors = build(config, data, 0)[1]
    for number, scheme in enumerate(["seen", "seen", "one", "none"]):
        found = loaders(of_member(config, number, 4), data, tensors, 0)
        hiding = found.train.evidence  # type: ignore[attr-defined]
        assert isinstance(hiding, OutOfFold)
        assert hiding.fractions == {scheme: 1.0}
        judged = found.validation.evidence  # type: ignore[attr-defined]
        assert isinstance(judged, OutOfFold) == (scheme != "seen")
    assert of_member(config, 5, 8).model.evidence.holdout == {"one": 1.0}  # type: ignore[union-attr]
    assert config.model.evidence.holdout == {}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["model.evidence.experts=[seen,some]", "training.members=2"],
            "names 'some': choose seen, one, none",
        ),
        (["model.evidence.experts=[seen,one]"], "has 2 entries, one for each member, and training.members=1"),
        (
            ["model.evidence.experts=[one]", "model.evidence.holdout.seen=1"],
            "leave out model.evidence.holdout",
        ),
        (["model.evidence.experts=[one]", "model.evidence.tokens=0"], "keep model.evidence.tokens above 0"),
    ],
)
def test_settings_that_make_no_sense(words: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        train(settings(tmp_path / "run", *words), dataset=tiny_dataset())
    assert not (tmp_path / "run").exists()
