"""`data estimate` and `data precompute` on a small dataset of the user's cache."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command import wildtype
from tests.tiny import tiny_dataset
from wildtype.cli.data.estimate import human_bytes, human_seconds, load
from wildtype.datasets.storage import save_dataset
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.precomputed import PrecomputedMasks
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import dataset_folder, organism_folder


@pytest.fixture
def tiny_in_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Keep the tiny dataset in the cache under the name of one that is otherwise simulated for minutes."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    dataset = tiny_dataset()
    organism = replace(dataset.organism, name="ecoli-core")
    save_organism(organism, organism_folder("ecoli-core"))
    save_dataset(
        replace(dataset, name="ecoli-core-growth", organism=organism), dataset_folder("ecoli-core-growth")
    )
    return "ecoli-core-growth"


def test_estimate_then_precompute(tiny_in_cache: str, tmp_path: Path) -> None:
    place = ["--output", str(tmp_path / "masks"), "--json"]
    said = wildtype("data", "estimate", tiny_in_cache, "--seconds", "0", *place)
    assert said.returncode == 0, said.stderr
    rows = {row["layout"]: row for row in json.loads(said.stdout)}
    assert list(rows) == ["uint8", "bits", "indices", "nodes"]
    for row in rows.values():
        assert type(row["bytes"]) is int
        assert type(row["build_seconds"]) is float
        assert row["fits"] is True
    done = wildtype("data", "precompute", tiny_in_cache, "--layout", "indices", *place)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["bytes"] == rows["indices"]["bytes"]
    assert report["bytes"] == sum(path.stat().st_size for path in (tmp_path / "masks").glob("*.npy"))
    assert report["compared_with_generated"] == 256
    dataset, graph = load(tiny_in_cache, None, False)
    masks = PrecomputedMasks.open(tmp_path / "masks", graph, dataset.table)
    masks.check(np.arange(len(masks)))
    again = wildtype("data", "precompute", tiny_in_cache, "--layout", "bits", *place)
    assert again.returncode == 1
    assert "the folder is not empty" in again.stderr.splitlines()[-1]


def test_estimate_for_people_and_of_chosen_relations(tiny_in_cache: str, tmp_path: Path) -> None:
    words = ["--relations", " physical ", "--layout", "bits", "--seconds", "0", "-o", str(tmp_path)]
    said = wildtype("data", "estimate", tiny_in_cache, *words)
    assert said.returncode == 0, said.stderr
    assert "576 mutants, 1 relations" in said.stdout
    assert "16 mutants" in said.stdout
    assert "bits" in said.stdout
    assert "uint8" not in said.stdout
    _, graph = load(tiny_in_cache, "regulatory,physical", False)
    assert isinstance(graph, CellGraph)
    assert list(graph.relations) == ["regulatory", "physical"]


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (["--layout", "lmdb"], "'lmdb' is not a layout"),
        (["--relations", "phisical"], "no relation 'phisical'"),
        (["--metabolism"], "no metabolism"),
    ],
)
def test_bad_requests_are_one_sentence(tiny_in_cache: str, words: list[str], needle: str) -> None:
    said = wildtype("data", "estimate", tiny_in_cache, *words)
    assert said.returncode == 1
    (line,) = said.stderr.splitlines()
    assert needle in line


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_600, "1 MB"),
        (840_751_890_000, "841 GB"),
        (2.5e15, "2.5e+03 TB"),
    ],
)
def test_bytes_for_people(count: float, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.012 s"), (59, "59 s"), (90, "1.5 min"), (5400, "1.5 h"), (1e6, "11.6 d")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text
