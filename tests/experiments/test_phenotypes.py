"""Scalars, classes, vectors and numbers per gene in one run, from labels to predictions by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.tiny import mixed_dataset
from wildtype.datasets import Phenotype
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import ConfigError, DatasetError
from wildtype.experiments.data import prepare
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.stored import Run

WORDS = ["model.width=16", "model.layers=0", "model.head.heads=2", "model.head.rank=3", "training.epochs=2",
         "training.batch_size=32", "training.weighting=sd", "training.balance=heads", "baselines=[mean]",
         "run.progress=false", "run.replicates=20", "data.name=tiny-mixed"]  # fmt: skip


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("mixed") / "run"
    return train(compose([*WORDS, f"run.folder={folder}"]), dataset=mixed_dataset())


def test_every_phenotype_has_its_table(mixed: Run) -> None:
    assert set(mixed.comparisons) == {"fitness", "call", "shape", "mRNA"}
    shape = mixed.comparisons["shape"]
    assert shape.headline == "pearson_by_condition"
    members = pd.read_csv(mixed.path / "vectors.csv")
    assert members["phenotype"].tolist() == ["size", "round"]
    assert shape["cell_transformer"].pearson_by_condition.value == pytest.approx(
        members["cell_transformer"].mean()
    )
    assert "300" not in mixed.comparisons["mRNA"].notes[0]
    assert mixed.comparisons["mRNA"].notes[0].startswith("24 of 24")


def test_predictions_by_name(mixed: Run) -> None:
    model = wt.load(mixed.path)
    frame = model.predict([["G000", "G001"], ["G002"]])
    assert {"fitness", "call", "size", "round", "fitness_measured"} <= set(frame)
    assert "mRNA" not in frame
    assert frame["call"].between(0, 1).all()
    assert frame["round"].between(60, 120).all()  # in the trait's own unit
    genes = model.predict_profiles([["G000", "G001"], ["G002"]])
    assert genes.shape == (2, 25)
    assert genes["genes"].tolist() == ["G000,G001", "G002"]
    assert np.isfinite(genes.drop(columns="genes").to_numpy()).all()
    with pytest.raises(ConfigError, match="known: mRNA"):
        model.predict_profiles([["G000"]], "fitness")
    with pytest.raises(ConfigError, match="no number per gene"):
        model.checkpoint.predict_profiles(model.table([["G000"]]), 0)


def test_a_mutant_passes_the_model_once(tmp_path: Path) -> None:
    data = prepare(compose([*WORDS, f"run.folder={tmp_path}"]), mixed_dataset())
    assert data.mutants("train") * 5 == len(data.split.train)
    scaled = data.scaled("train")
    assert scaled.profiles is not None
    assert np.nanmean(scaled.profiles) == pytest.approx(0, abs=1e-5)
    assert np.nanstd(scaled.profiles) == pytest.approx(1, rel=1e-4)
    assert set(scaled.value[scaled.phenotype == 1].tolist()) == {0.0, 1.0}


def test_profiles_are_stored_and_hashed(tmp_path: Path) -> None:
    dataset = mixed_dataset()
    save_dataset(dataset, tmp_path / "d")
    assert json.loads((tmp_path / "d" / "dataset.json").read_text())["format_version"] == 4
    again = read_dataset(tmp_path / "d", dataset.organism)
    assert again.sha256 == dataset.sha256
    assert again.phenotypes == dataset.phenotypes
    order = np.random.default_rng(0).permutation(len(dataset))
    assert replace(dataset, table=dataset.table.take(order)).sha256 == dataset.sha256
    assert dataset.table.profiles is not None
    other = dataset.table.profiles.copy()
    other[3, 3] += 1
    assert replace(dataset, table=replace(dataset.table, profiles=other)).sha256 != dataset.sha256


def test_labels_of_another_form_are_refused() -> None:
    dataset = mixed_dataset()
    phenotypes = list(dataset.phenotypes)
    phenotypes[0] = replace(phenotypes[0], form="class")
    with pytest.raises(DatasetError, match="'fitness' is a class.*neither 0 nor 1"):
        replace(dataset, phenotypes=tuple(phenotypes))
    phenotypes[0] = replace(phenotypes[0], form="gene")
    with pytest.raises(DatasetError, match="have no profile"):
        replace(dataset, phenotypes=tuple(phenotypes))
    with pytest.raises(DatasetError, match="form 'vector'"):
        Phenotype("x", form="vector")
    with pytest.raises(DatasetError, match="leave the group out"):
        Phenotype("x", form="gene", group="g")


@pytest.mark.slow
def test_a_killed_run_of_many_targets_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wildtype.training.saved_weights import BestCheckpoint

    def settings(name: str, *words: str) -> TrainConfig:
        return compose([*WORDS, "training.deterministic=true", f"run.folder={tmp_path / name}", *words])

    whole = train(settings("whole"), dataset=mixed_dataset())
    save = BestCheckpoint._save

    def save_and_die(self: BestCheckpoint, *arguments: object) -> None:
        save(self, *arguments)  # type: ignore[arg-type]
        if self.epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BestCheckpoint, "_save", save_and_die)
        with pytest.raises(BaseException):  # noqa: B017 (an interrupt ends the process)
            train(settings("killed"), dataset=mixed_dataset())
    resumed = train(settings("killed", "run.resume=true"), dataset=mixed_dataset())
    for name in ("model.safetensors", "scaling.json"):
        a, b = ((run.path / "checkpoint" / name).read_bytes() for run in (whole, resumed))
        assert a == b
