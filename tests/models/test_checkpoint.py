from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import tiny_dataset, tiny_organism
from wildtype.errors import CheckpointError, OutputError, ShapeError
from wildtype.evidence.reference import PARTS
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.files import content_hash
from wildtype.models import checkpoint as checkpoint_module
from wildtype.models.checkpoint import FORMAT, OWN_HASH, Checkpoint, load_checkpoint
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import MetabolismTensors, OrganismTensors, message_operator
from wildtype.models.organism_tensors import from_tensors, to_tensors
from wildtype.models.validation_rows import ValidationRows
from wildtype.mutants import MutantTable
from wildtype.nn.sparse import SparseOperator

STORED = Path(__file__).parent / "stored"
SETS = [[0], [1, 2], [3, 4, 5]]
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
    assert first.known.coordinates is not None
    assert second.known.coordinates is not None
    for name, column in first.known.coordinates.to_arrays().items():
        np.testing.assert_array_equal(column, second.known.coordinates.to_arrays()[name])


def test_places_and_metabolic_genes_may_be_unknown(tiny_run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_run)
    without = replace(checkpoint, known=replace(checkpoint.known, coordinates=None))
    without.save(tmp_path / "without")
    known = load_checkpoint(tmp_path / "without").known
    assert known.coordinates is None
    assert known.metabolic is None
    metabolic = np.arange(len(checkpoint.genes)) < 3
    replace(checkpoint, known=replace(checkpoint.known, metabolic=metabolic)).save(tmp_path / "c")
    again = load_checkpoint(tmp_path / "c")
    np.testing.assert_array_equal(again.known.metabolic, metabolic)


def test_a_stored_checkpoint_of_every_released_format_predicts_as_it_did(tmp_path: Path) -> None:
    """Until the first release: WILDTYPE_STORED=write pytest tests/models/test_checkpoint.py -k stored."""
    name, table = f"format-{FORMAT}", MutantTable.from_sets(SETS)
    if os.environ.get("WILDTYPE_STORED") == "write":
        words = [
            "data.name=tiny-growth", f"run.folder={tmp_path / 'run'}", "run.progress=false",
            "run.replicates=10", "baselines=[]", "training.epochs=1", "model.width=8", "model.heads=4",
            "model.layers=1", "model.head.heads=1", "model.evidence.hidden=4", "model.evidence.tokens=4",
        ]  # fmt: skip
        made = train(compose(words), dataset=tiny_dataset(12)).predictor.checkpoint
        made.save(STORED / name)
        predicted = made.predict(table)[:, 0].tolist()
        (STORED / f"{name}.json").write_text(json.dumps({"predicted": predicted}) + "\n")
    expected = json.loads((STORED / f"{name}.json").read_text())["predicted"]
    predicted = load_checkpoint(STORED / name).predict(table)[:, 0]
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("version", [1, 5])
def test_a_format_from_before_the_first_release_is_refused(copy: Path, version: int) -> None:
    (copy / "format_version").write_text(f"{version}\n")
    with pytest.raises(CheckpointError, match=rf"format {version}, .* reads format {FORMAT}: train again"):
        load_checkpoint(copy)


def test_relations_and_metabolism_are_kept(tmp_path: Path) -> None:
    graph = tiny_organism().graphs
    ends = torch.tensor([[0, 1, 1], [2, 0, 3]])
    part = SparseOperator.from_edges(ends[0], ends[1], (3, 4), torch.tensor([1.0, -2.0, 0.5]))
    organism = OrganismTensors(
        torch.zeros(24, 0),
        relations={name: message_operator(graph, name) for name in graph},
        metabolism=MetabolismTensors(part, part.t(), part, part),
    )
    tensors, shapes = to_tensors(organism)
    again = from_tensors(tensors, json.loads(json.dumps(shapes)))
    assert again.metabolism is not None
    pairs = [(op, again.relations[name]) for name, op in organism.relations.items()]
    pairs += [(part, again.metabolism.complexes), (part.t(), again.metabolism.isozymes)]
    for before, after in pairs:
        assert before.shape == after.shape
        for a, b in zip((*before.edges(), before.values), (*after.edges(), after.values), strict=True):
            assert torch.equal(a, b)


def test_messages_flow_along_edges_whatever_their_weights() -> None:
    regulatory = tiny_organism().graphs["regulatory"]
    source, target, _ = regulatory.endpoints()
    x = torch.randn(24, 3, dtype=torch.float64)
    expected = torch.zeros_like(x).index_add(0, torch.from_numpy(target), x[torch.from_numpy(source)])
    torch.testing.assert_close(message_operator(tiny_organism().graphs, "regulatory") @ x, expected)


def test_an_ensemble_predicts_the_mean_of_its_members(tiny_run: Path, tmp_path: Path) -> None:
    first = load_checkpoint(tiny_run)
    second = load_checkpoint(tiny_run)
    for p in second.model.parameters():
        p.data += 0.1
    both = replace(first, model=Ensemble([first.model, second.model]).eval())
    mean = (first.predict(TABLE) + second.predict(TABLE)) / 2
    np.testing.assert_allclose(both.predict(TABLE), mean, rtol=1e-5)
    values, sd = both.predict_with_sd(TABLE)
    np.testing.assert_array_equal(values, both.predict(TABLE))
    apart = np.abs(first.predict(TABLE) - second.predict(TABLE)) / np.sqrt(2)
    np.testing.assert_allclose(sd, apart, rtol=1e-4)
    assert np.isnan(first.predict_with_sd(TABLE)[1]).all()
    both.save(tmp_path / "both")
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "both").predict(TABLE), both.predict(TABLE))


def test_doses_of_known_mutants_are_kept(tiny_run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_run)
    dose = np.linspace(0, 4, len(checkpoint.known.table.gene), dtype=np.float32)
    known = checkpoint.known
    dosed = replace(known, table=replace(known.table, dose=dose))
    replace(checkpoint, known=dosed).save(tmp_path / "dosed")
    known = load_checkpoint(tmp_path / "dosed").known
    np.testing.assert_array_equal(known.table.dose, dose)
    np.testing.assert_array_equal(known.part, checkpoint.known.part)


def test_kinds_of_single_fitness_are_kept(tiny_run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_run)
    assert checkpoint.known.single_fitness_kind is None
    kind = np.arange(len(checkpoint.genes), dtype=np.uint8) % 3
    replace(checkpoint, known=replace(checkpoint.known, single_fitness_kind=kind)).save(tmp_path / "kinds")
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "kinds").known.single_fitness_kind, kind)


def test_validation_rows_are_kept(tiny_run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(tiny_run)
    rows = checkpoint.validation
    assert rows is not None
    known = checkpoint.known
    held_out = known.table.take(known.part == PARTS.index("validation"))
    np.testing.assert_allclose(rows.predicted, checkpoint.predict(held_out)[:, 0], rtol=1e-6)
    assert np.isnan(rows.sd).all()
    checkpoint.validation = None
    checkpoint.save(tmp_path / "without")
    assert not (tmp_path / "without" / "calibration.npz").exists()
    assert load_checkpoint(tmp_path / "without").validation is None
    with pytest.raises(ShapeError, match="columns of shapes"):
        ValidationRows(np.zeros(2), np.zeros(3), np.zeros(2, np.int64))


def test_chunks_change_nothing(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = load_checkpoint(tiny_run)
    whole = checkpoint.predict(TABLE)
    for name in ("BATCH", "WITH_EVIDENCE"):
        monkeypatch.setattr(f"wildtype.models.trained.{name}", 2)
    np.testing.assert_allclose(checkpoint.predict(TABLE), whole, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "organism.safetensors",
        "known.npz",
        "genes.json",
        "scaling.json",
        "calibration.npz",
    ],
)
def test_one_flipped_bit_is_found(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{name}.*damaged"):
        load_checkpoint(copy)


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "organism.safetensors",
        "known.npz",
        "genes.json",
        "scaling.json",
        "metrics.json",
        "calibration.npz",
    ],
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
    (copy / "format_version").write_text("7\n")
    with pytest.raises(CheckpointError, match="format 7.*update wildtype"):
        load_checkpoint(copy)


def test_a_changed_record_is_damage(copy: Path) -> None:
    record = json.loads((copy / "config.json").read_text())
    record["origin"]["split"] = "rendom"
    (copy / "config.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=r"config\.json.*damaged"):
        load_checkpoint(copy)


def test_unknown_setting_in_a_config_is_refused(copy: Path) -> None:
    record = json.loads((copy / "config.json").read_text())
    record["settings"]["_target_"] = "os.system"
    del record[OWN_HASH]
    record[OWN_HASH] = content_hash(record)
    (copy / "config.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=r"damaged.*_target_") as caught:
        load_checkpoint(copy)
    assert "\n" not in str(caught.value)


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


def spoil(checkpoint: Checkpoint, what: str) -> None:
    if what == "weights":
        with torch.no_grad():
            next(checkpoint.model.parameters()).fill_(torch.inf)
    else:
        getattr(checkpoint, what)[:] = np.nan


@pytest.mark.parametrize("what", ["weights", "mean", "sd"])
def test_what_is_not_finite_is_neither_written_nor_loaded(
    tiny_run: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = load_checkpoint(tiny_run)
    spoil(checkpoint, what)
    with pytest.raises(CheckpointError, match="is not finite: train again"):
        checkpoint.save(tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    with monkeypatch.context() as patch:  # as an earlier version wrote it
        patch.setattr(checkpoint_module, "first_not_finite", lambda tensors: None)
        checkpoint.save(tmp_path / "written")
    with pytest.raises(CheckpointError, match="is not finite: train again"):
        load_checkpoint(tmp_path / "written")


def test_a_checkpoint_that_may_not_be_read_is_not_called_damaged(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(checkpoint_module, "_tensors", refused)
    with pytest.raises(CheckpointError, match=r"cannot be read \(.*ermission denied.*\): ask its owner"):
        load_checkpoint(tiny_run / "checkpoint")
