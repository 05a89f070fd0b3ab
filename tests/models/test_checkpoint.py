from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import CheckpointError, OutputError
from wildtype.models.checkpoint import load_checkpoint
from wildtype.mutants import MutantTable

TABLE = MutantTable.from_sets([[1, 2], [3], [4, 5, 6]])


@pytest.fixture
def copy(tiny_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_run / "checkpoint", tmp_path / "c")
    return tmp_path / "c"


def test_round_trip_predicts_the_same(tiny_run: Path, tmp_path: Path) -> None:
    first = load_checkpoint(tiny_run)
    first.save(tmp_path / "again")
    second = load_checkpoint(tmp_path / "again")
    np.testing.assert_array_equal(first.predict(TABLE), second.predict(TABLE))
    assert second.genes == first.genes
    assert second.origin == first.origin


def test_doses_of_known_mutants_are_kept(tiny_run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_run)
    dose = np.linspace(0, 4, len(checkpoint.known.table.gene), dtype=np.float32)
    checkpoint.known.table = replace(checkpoint.known.table, dose=dose)
    checkpoint.save(tmp_path / "dosed")
    known = load_checkpoint(tmp_path / "dosed").known
    np.testing.assert_array_equal(known.table.dose, dose)
    np.testing.assert_array_equal(known.part, checkpoint.known.part)


def test_chunks_change_nothing(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = load_checkpoint(tiny_run)
    whole = checkpoint.predict(TABLE)
    monkeypatch.setattr("wildtype.models.checkpoint.BATCH", 2)
    np.testing.assert_allclose(checkpoint.predict(TABLE), whole, rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "organism.safetensors", "known.npz", "genes.json", "scaling.json"]
)
def test_one_flipped_bit_is_found(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{name}.*damaged"):
        load_checkpoint(copy)


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "organism.safetensors", "known.npz", "genes.json", "scaling.json", "metrics.json"],
)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_checkpoint(copy)


@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
def test_truncated_json_is_damage(copy: Path, name: str) -> None:
    text = (copy / name).read_text()
    (copy / name).write_text(text[: len(text) // 2])
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(copy)


def test_other_format_is_refused(copy: Path) -> None:
    (copy / "format_version").write_text("2\n")
    with pytest.raises(CheckpointError, match="format 2.*update wildtype"):
        load_checkpoint(copy)


def test_unknown_setting_in_a_config_is_refused(copy: Path) -> None:
    record = json.loads((copy / "config.json").read_text())
    record["settings"]["_target_"] = "os.system"
    (copy / "config.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(copy)


def test_missing_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no run at"):
        load_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load_checkpoint(tmp_path)


def test_folder_in_the_way_of_nothing_half_written(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        load_checkpoint(tiny_run).save(tmp_path / "file" / "c")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
