"""Checkpoints changed on purpose, with hashes that match: a sentence, at once, from few bytes of memory."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from wildtype.errors import CheckpointError, ConfigError, ShapeError
from wildtype.files import content_hash, sha256_of_file
from wildtype.models.checkpoint import HASHED, HASHED_IF_THERE, OWN_HASH, load_checkpoint
from wildtype.models.organism_tensors import from_tensors
from wildtype.models.parameter_budget import within
from wildtype.organism import GeneIndex


@pytest.fixture
def copy(tiny_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_run / "checkpoint", tmp_path / "c")
    return tmp_path / "c"


def change(folder: Path, act: Callable[[dict[str, Any]], object]) -> None:
    """Change the record, and make its hashes match again."""
    record = json.loads((folder / "config.json").read_text())
    del record[OWN_HASH]
    act(record)
    for name in record["sha256"]:
        if name in HASHED or name in HASHED_IF_THERE:
            record["sha256"][name] = sha256_of_file(folder / name)
    (folder / "config.json").write_text(json.dumps(record | {OWN_HASH: content_hash(record)}))


def refused(folder: Path, words: str) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("name", ["/dev/zero", "../../../etc/passwd", "model_card.md", "x" * 10_000])
def test_no_file_is_read_because_a_record_names_it(copy: Path, name: str) -> None:
    change(copy, lambda record: record["sha256"].update({name: "0" * 64}))
    refused(copy, "which is no file of a checkpoint")


def test_every_file_has_a_hash(copy: Path) -> None:
    change(copy, lambda record: record["sha256"].pop("known.npz"))
    refused(copy, r"no sha256 of known\.npz")


@pytest.mark.parametrize("name", ["known.npz", "genes.json", "metrics.json", "calibration.npz"])
@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_devices_and_pipes_are_not_read(copy: Path, name: str, kind: str) -> None:
    """A reader that opened them would wait for ever."""
    (copy / name).unlink()
    if kind == "fifo":
        os.mkfifo(copy / name)
    elif kind == "folder":
        (copy / name).mkdir()
    else:
        (copy / name).symlink_to("/dev/zero")
    refused(copy, "no regular file")


@pytest.mark.parametrize(
    ("key", "value"),
    [("width", 10**9), ("width", 2**14), ("layers", 10**6), ("layers", 10**30), ("width", "${oc.env:HOME}")],
)
def test_a_model_larger_than_its_weights_is_not_built(
    copy: Path, key: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "secret")
    change(copy, lambda record: record["settings"].update({key: value}))
    refused(copy, "damaged")
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(copy)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("members", [10**9, 0, -1, "3", None, 2])
def test_members_that_there_are_no_weights_of(copy: Path, members: object) -> None:
    change(copy, lambda record: record.update({"members": members}))
    refused(copy, "damaged")


@pytest.mark.parametrize(
    ("row", "shape"), [(0, (10**11, 10**11)), (0, (-1, 3)), (-7, (3, 3)), (2**31 - 1, (3, 3))]
)
def test_operators_of_absurd_size_or_with_indices_out_of_range(row: int, shape: tuple[int, int]) -> None:
    tensors = {
        "features": torch.zeros(3, 1),
        "relation/a/rows": torch.tensor([row], dtype=torch.int32),
        "relation/a/cols": torch.tensor([1], dtype=torch.int32),
    }
    with pytest.raises((ValueError, ConfigError, ShapeError)):
        from_tensors(tensors, {"relation/a": shape})


@pytest.mark.parametrize("name", ["known.npz"])
@pytest.mark.parametrize("column", ["gene", "offsets"])
def test_damaged_columns_of_tables(copy: Path, name: str, column: str) -> None:
    with np.load(copy / name) as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays[column] = np.full_like(arrays[column], 2**30)
    np.savez(copy / name, **arrays)
    change(copy, lambda record: None)
    refused(copy, "damaged")


def test_arrays_that_unpack_to_gigabytes(copy: Path) -> None:
    with (
        zipfile.ZipFile(copy / "known.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("gene.npy", "w") as member,
    ):
        header = {"descr": "<i8", "fortran_order": False, "shape": (100 << 17,)}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(100):
            member.write(bytes(1 << 20))
    change(copy, lambda record: None)
    refused(copy, "unpacks to more than")


def test_an_array_that_states_more_than_it_holds(copy: Path) -> None:
    with zipfile.ZipFile(copy / "known.npz", "w") as archive, archive.open("gene.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<i8", "fortran_order": False, "shape": (10**12,)}
        )
    change(copy, lambda record: None)
    refused(copy, "more than it holds")


def test_the_budget_ends_with_its_block() -> None:
    with pytest.raises(ValueError, match="larger"), within(1, 10):
        nn.Linear(10_000, 200)
    nn.Linear(10_000, 200)


def rewrite(path: Path, act: Callable[[dict[str, Any]], object]) -> None:
    """Change the arrays of a file."""
    with np.load(path) as stored:
        arrays = dict(stored)
    act(arrays)
    with open(path, "wb") as handle:
        np.savez(handle, **arrays)


@pytest.mark.parametrize("name", ["essential", "single_fitness", "single_fitness_sd", "part"])
def test_columns_beside_known_mutants_have_a_row_for_each(copy: Path, name: str) -> None:
    rewrite(copy / "known.npz", lambda arrays: arrays.update({name: arrays[name][:-1]}))
    change(copy, lambda record: None)
    refused(copy, f"{name} of known.npz is .*, expected [0-9,]+ numbers")


def put(name: str, row: int, value: float) -> Callable[[dict[str, Any]], None]:
    """Return what puts a number into a row of an array."""

    def act(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][row] = value

    return act


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (put("phenotype", 0, 10**9), "names phenotypes beyond"),
        (put("phenotype", -1, -1), "names phenotypes beyond"),
        (put("condition", 0, -1), "names a condition below 0"),
        (put("kind", 0, 250), "names kinds beyond"),
        (put("part", 0, 200), "names parts of the split beyond"),
        (put("offsets", 1, 10**6), "offsets must rise from 0"),
        (put("value", 0, 3e38), r"value of known\.npz has entries beyond"),
        (put("sd", 0, -3e38), r"sd of known\.npz has entries beyond"),
    ],
)
def test_known_mutants_are_those_of_the_model(
    copy: Path, act: Callable[[dict[str, Any]], None], words: str
) -> None:
    rewrite(copy / "known.npz", act)
    change(copy, lambda record: None)
    refused(copy, words)


@pytest.mark.parametrize("value", [3e38, -3e38, np.nan, np.inf])
def test_an_organism_that_no_number_comes_out_of(copy: Path, value: float) -> None:
    path = copy / "organism.safetensors"
    tensors = load_file(path)
    name = next(name for name, x in tensors.items() if x.is_floating_point())
    tensors[name].view(-1)[0] = value
    save_file(tensors, path)
    change(copy, lambda record: None)
    refused(copy, f"{name} of organism.safetensors has entries beyond")


@pytest.mark.parametrize("sd", [0, -1e300, 1e300])
def test_a_scaling_that_cannot_be_undone(copy: Path, sd: float) -> None:
    scaling = json.loads((copy / "scaling.json").read_text())
    scaling[next(iter(scaling))]["sd"] = sd
    (copy / "scaling.json").write_text(json.dumps(scaling))
    change(copy, lambda record: None)
    refused(copy, "an sd of 0")


SCREEN = {
    "0.gene": np.array([0, 1, 2]),
    "0.kind": np.zeros(3, np.uint8),
    "0.first": np.array([0, 1], np.int32),
    "0.second": np.array([1, 2], np.int32),
    "0.value": np.array([0.1, -0.1], np.float32),
}


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("gene", np.array([0, 1, 10**6]), "names genes beyond"),
        ("gene", np.array([0, 1, -1]), "names genes beyond"),
        ("gene", np.array([0, 0, 1]), "not in ascending order"),
        ("gene", np.array([0.0, 1.0, 2.0]), "expected whole numbers"),
        ("kind", np.array([0, 0, 200], np.uint8), "names kinds beyond"),
        ("kind", np.zeros(2, np.uint8), "expected 3 numbers"),
        ("second", np.array([1, 3], np.int32), "names strains beyond"),
        ("second", np.array([1], np.int32), "expected 2 numbers"),
        ("value", np.array([0.1, np.inf], np.float32), "values that are no numbers"),
        ("value", np.array(["a", "b"]), "expected 2 numbers"),
        ("crossed", np.zeros(1, np.uint8), "no bit for each of 3 times 3 crosses"),
        ("crossed", np.zeros(2, np.int64), "no bit for each of 3 times 3 crosses"),
    ],
)
def test_pairs_of_other_screens_fit_their_strains(
    copy: Path, name: str, array: np.ndarray[Any, Any], words: str
) -> None:
    def add(record: dict[str, Any]) -> None:
        record["screens"] = ["another"]
        record["sha256"]["screens.npz"] = ""

    np.savez(copy / "screens.npz", **SCREEN)
    change(copy, add)
    assert [screen.name for screen in load_checkpoint(copy).known.screens] == ["another"]
    np.savez(copy / "screens.npz", **(SCREEN | {f"0.{name}": array}))
    change(copy, add)
    refused(copy, words)


@pytest.mark.parametrize("name", ["single_fitness", "essential", "metabolic"])
def test_what_is_known_of_other_genes_has_a_row_for_each(copy: Path, name: str) -> None:
    def add(record: dict[str, Any]) -> None:
        record["others"] = {"known_by": "nothing"}
        record["sha256"].update({"others.json": "", "others.npz": ""})

    names = [*GeneIndex.from_json(json.loads((copy / "genes.json").read_text())).names, "other1", "other2"]
    (copy / "others.json").write_text(json.dumps(GeneIndex(names).to_json()))
    known: dict[str, Any] = dict.fromkeys(("single_fitness", "single_fitness_sd"), np.ones(2, np.float32))
    known |= dict.fromkeys(("essential", "metabolic", "dubious"), np.zeros(2, bool))
    np.savez(copy / "others.npz", **known)
    change(copy, add)
    assert load_checkpoint(copy).others is not None
    np.savez(copy / "others.npz", **(known | {name: np.zeros(1)}))
    change(copy, add)
    refused(copy, f"{name} of others.npz is .*, expected 2 numbers")


def test_calibration_has_a_row_for_each_validation_row(copy: Path) -> None:
    rewrite(
        copy / "calibration.npz",
        lambda arrays: arrays.update({name: array[:-1] for name, array in arrays.items()}),
    )
    change(copy, lambda record: None)
    refused(copy, "predicted of calibration.npz is .*, expected [0-9,]+ numbers")
