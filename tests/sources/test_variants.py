"""Variants of an organism: another version of STRING under a name of its own, for every dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset, tiny_organism
from wildtype.datasets.storage import save_dataset
from wildtype.errors import DatasetError
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.organism import GeneGraphs, Organism
from wildtype.organism.storage import save_organism
from wildtype.sources import catalogue, yeast

NAME = "yeast-digenic-costanzo2010"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with a small yeast, whose graphs of another version are fewer."""
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    whole = replace(tiny_organism(), name="yeast")
    save_organism(whole, catalogue.organism_folder("yeast"))
    save_dataset(replace(tiny_dataset(), name=NAME, organism=whole), catalogue.dataset_folder(NAME))

    def build_organism(folder: Path, *, string: str, **options: Any) -> Organism:
        assert string == "9.1"
        return replace(whole, graphs=GeneGraphs([whole.graphs["physical"]]))

    monkeypatch.setattr(yeast, "build_organism", build_organism)


@pytest.mark.usefixtures("own_cache")
def test_a_dataset_is_put_on_a_variant(tmp_path: Path) -> None:
    said = wildtype("data", "build", "yeast", "--from", str(tmp_path), "--string", "9.1", "--json")
    assert said.returncode == 0, said.stderr
    assert '"yeast-string9.1"' in said.stdout
    assert catalogue.variants("yeast") == ["yeast-string9.1"]
    whole, variant = (
        prepare(compose([f"data={NAME}", "data.tokens=all", *words])).dataset
        for words in ([], ["data.organism=yeast-string9.1"])
    )
    assert list(whole.organism.graphs) == ["physical", "regulatory"]
    assert (list(variant.organism.graphs), variant.organism.name) == (["physical"], "yeast-string9.1")
    assert variant.sha256 == whole.sha256  # the measurements are the same


@pytest.mark.usefixtures("own_cache")
def test_what_is_no_variant_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'yeast-string9.1' is no variant of 'yeast'.*built: none yet"):
        catalogue.load_dataset(NAME, organism="yeast-string9.1")
    assert_one_sentence(wildtype("data", "build", "yeast", "--string", "9.1"), "--from FOLDER")
    said = wildtype("data", "build", "ecoli-core", "--string", "9.1", "--from", str(tmp_path))
    assert_one_sentence(said, "'ecoli-core' has no graphs of STRING")
