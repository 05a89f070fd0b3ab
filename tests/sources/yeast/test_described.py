"""Yeast as a description: the same organism as by its readers, and own files that join it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import DatasetError, MissingFileError
from wildtype.organism import Organism
from wildtype.organism.storage import save_organism
from wildtype.sources import catalogue, yeast
from wildtype.sources.text import Collector
from wildtype.sources.user_organisms.build import Built, build_organism
from wildtype.sources.user_organisms.description import built_in, from_plain
from wildtype.sources.user_organisms.problems import OrganismProblems
from wildtype.sources.user_organisms.register import read_card, register
from wildtype.sources.yeast import build_organism as build_yeast

PLAIN = {
    "name": "my-yeast",
    "publishers": {"readers": "yeast", "folder": "yeast", "metabolism": False},
    "relations": [{"name": "ours", "path": "ours.csv"}],
}


@pytest.fixture
def folder(small, tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/yeast").symlink_to(small.path)
    (tmp_path / "own/ours.csv").write_text("a,b\nTFC3,VPS8\nACT1,TFC3\nNOPE,VPS8\n")
    return tmp_path / "own"


def mine(folder: Path) -> Built:
    return build_organism(from_plain(PLAIN, "organism.yaml"), folder)


def test_its_description_gives_what_its_readers_give(small, tmp_path: Path) -> None:
    ours, theirs = build_organism(built_in("yeast"), small.path), build_yeast(small.path)
    assert ours.organism.description == theirs.description
    folders = [tmp_path / "a", tmp_path / "b"]
    for organism, where in zip((ours.organism, theirs), folders, strict=True):
        save_organism(organism, where)
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == sorted(path.name for path in folders[1].iterdir())
    assert [
        name for name in names if Path(folders[0], name).read_bytes() != Path(folders[1], name).read_bytes()
    ] == []
    cards = ours.card["files"]
    assert {"genes", "physical", "fitness"} <= {card["use"] for card in cards}
    for card in cards:
        assert card["rows"] == card["used"] + sum(card["dropped"].values())
        assert len(card["sha256"]) == 64


def test_own_gene_graphs_join_it_with_their_degrees(folder: Path) -> None:
    built = mine(folder)
    without = build_yeast(folder / "yeast", metabolism=False)
    assert list(built.organism.graphs) == [*without.graphs, "ours"]
    degrees = built.organism.features["degrees"]
    assert degrees.columns == (*without.features["degrees"].columns, "ours")
    genes = built.organism.genes
    assert degrees.values[genes.find("YAL001C"), -1] == np.float32(np.log1p(2))
    rows = {card["use"]: card for card in built.card["files"]}
    assert (rows["relation ours"]["used"], rows["relation ours"]["file"]) == (2, "ours.csv")
    assert rows["genes"]["file"].startswith("yeast/SGD_features")


def test_datasets_of_yeast_are_put_on_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    register(mine(folder), from_plain(PLAIN, "organism.yaml"), origin=folder)
    assert catalogue.variants("yeast") == ["my-yeast"]
    assert "ours" in catalogue.load_variant("yeast", "my-yeast").graphs
    assert read_card("my-yeast")["files"]
    with pytest.raises(DatasetError, match="is no variant of 'yeast' that is built; built: my-yeast"):
        catalogue.load_variant("yeast", "other")


def test_a_file_that_is_reported_under_its_published_name_has_no_hash(
    small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads(folder: Path, *, collect: Collector, **options: Any) -> Organism:
        collect(ReadReport("published.tsv", "relation published", 1, 1))
        return build_yeast(folder, collect=collect)

    monkeypatch.setattr(yeast, "build_organism", reads)
    first, *others = build_organism(built_in("yeast"), small.path).card["files"]
    assert (first["file"], first["sha256"]) == ("published.tsv", "")
    assert all(len(card["sha256"]) == 64 for card in others)


def test_what_is_missing_is_named(small, folder: Path) -> None:
    (folder / "ours.csv").unlink()
    with pytest.raises(OrganismProblems, match=r"ours\.csv"):
        mine(folder)
    (folder / "yeast").unlink()
    with pytest.raises(MissingFileError, match="SGD_features"):
        mine(folder)
