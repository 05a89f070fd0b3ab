from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.errors import CheckpointError, ConfigError
from wildtype.experiments import reproduce as module
from wildtype.experiments.reproduce import reproduce
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.stored import read_settings
from wildtype.files import sha256_of_file

WORDS = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=2",
         "training.batch_size=64", "baselines=[mean,additive_ridge]", "run.progress=false",
         "run.replicates=10",         "data.name=tiny-growth", "training.deterministic=true"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "then"
    train(compose([*WORDS, f"run.folder={folder}"]), dataset=tiny_dataset())
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def test_stored_settings_are_the_settings(run: Path) -> None:
    assert read_settings(run / "settings.json") == compose([*WORDS, f"run.folder={run}"])


def test_the_record_says_what_the_run_was_about(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    dataset = tiny_dataset()
    assert record["seed"] == 0
    assert record["dataset"]["name"] == "tiny-growth"
    assert record["organism"]["genes_sha256"] == dataset.organism.genes.sha256
    assert record["organism"]["graphs_sha256"] == dataset.organism.graphs.sha256
    assert len(record["split_sha256"]) == 64
    assert record["git"]
    assert record["packages"]["torch"]


def test_a_deterministic_run_is_made_again_to_the_bit(run: Path, tmp_path: Path) -> None:
    found = reproduce(run, tmp_path / "now", dataset=tiny_dataset())
    assert found.verdict == "identical"
    assert found.same_weights
    assert found.success
    assert {m.model for m in found.models} == {"cell_transformer", "mean", "additive_ridge"}
    assert all(m.largest == 0 and m.difference == 0 for m in found.models)
    weights = "checkpoint/model.safetensors"
    assert sha256_of_file(run / weights) == sha256_of_file(tmp_path / "now" / weights)


@pytest.mark.slow
def test_other_weights_are_found(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads((copy / "settings.json").read_text())
    record["settings"]["training"]["learning_rate"] *= 3
    (copy / "settings.json").write_text(json.dumps(record))
    found = reproduce(copy, tmp_path / "now", tolerance=2.0, dataset=tiny_dataset())
    assert found.verdict == "close"
    assert not found.same_weights
    assert found.promised
    assert not found.success  # it says that it is deterministic, and is not
    network, mean = (
        next(m for m in found.models if m.model == name) for name in ("cell_transformer", "mean")
    )
    assert network.largest > 0
    assert mean.largest == 0
    monkeypatch.setattr(module, "environment", lambda: {**kept(), "python": "3.99"})
    elsewhere = reproduce(copy, tmp_path / "elsewhere", tolerance=2.0, dataset=tiny_dataset())
    assert elsewhere.changed["python"][1] == "3.99"
    assert elsewhere.success  # on other versions, close is what can be had
    strict = reproduce(copy, tmp_path / "strict", tolerance=0.0, dataset=tiny_dataset())
    assert strict.verdict == "different"
    assert not strict.success


kept = module.environment


def test_other_data_are_refused_before_training(run: Path, tmp_path: Path) -> None:
    dataset = tiny_dataset()
    value = dataset.table.value.copy()
    value[0] += 1
    other = replace(dataset, table=replace(dataset.table, value=value))
    with pytest.raises(ConfigError, match="the dataset of 'tiny-growth' is not what it was"):
        reproduce(run, tmp_path / "now", dataset=other)
    assert not (tmp_path / "now").exists()


@pytest.mark.parametrize("name", ["settings.json", "record.json", "comparison.json", "predictions.parquet"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_run_is_one_sentence(copy: Path, tmp_path: Path, name: str, damage: str) -> None:
    content = (copy / name).read_bytes()
    (copy / name).unlink()
    if damage == "cut":
        (copy / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError) as caught:
        reproduce(copy, tmp_path / "now", dataset=tiny_dataset())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "now").exists()


def test_settings_of_another_version(copy: Path, tmp_path: Path) -> None:
    record = json.loads((copy / "settings.json").read_text())
    record["settings"]["training"]["momentum"] = 0.5
    (copy / "settings.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="no settings that this version of wildtype knows"):
        reproduce(copy, tmp_path / "now", dataset=tiny_dataset())


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    words = ["model.layers=0", "model.width=16", "training.epochs=1", "training.deterministic=true",
             "data.rows=400", "model.trees.bags=0", "model.evidence.tokens=4", "baselines=[mean]",
             "run.replicates=10"]  # fmt: skip
    said = wildtype("train", "data=ecoli-core-growth", *words, f"run.folder={tmp_path / 'a'}")
    assert said.returncode == 0, said.stderr
    said = wildtype("reproduce", str(tmp_path / "a"))
    assert said.returncode == 0, said.stdout + said.stderr
    assert "identical" in said.stdout
    assert "weights equal to the bit: yes" in said.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    said = wildtype("reproduce", str(tmp_path / "a"), "--folder", str(tmp_path / "b"), "--json")
    assert json.loads(said.stdout)["verdict"] == "identical"
    assert (tmp_path / "b" / "comparison.json").is_file()
    assert_one_sentence(wildtype("reproduce", str(tmp_path / "c")), "there is no run", str(tmp_path / "c"))
