"""`wildtype data features`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tiny import tiny_dataset
from wildtype.cli.data.features import features
from wildtype.errors import DatasetError
from wildtype.organism import GeneFeatures


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = tiny_dataset()
    (shape,) = dataset.organism.features.values()
    blocks = [
        replace(shape, note="a [note]", source="somewhere"),
        replace(shape, name="leaky", measured=("tiny:epsilon",), comparable=False),
    ]
    organism = replace(dataset.organism, features=GeneFeatures(blocks))
    monkeypatch.setattr("wildtype.sources.catalogue.load_organism", lambda name: organism)
    monkeypatch.setattr(
        "wildtype.sources.catalogue.load_dataset", lambda name: replace(dataset, organism=organism)
    )


def test_every_block_has_its_card(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "esm.csv"
    path.write_text("gene,e0\nG001,1\nNOPE,2\n")
    features("tiny", for_="tiny-growth", embeddings=[path], json=True)
    cards = {card["block"]: card for card in json.loads(capsys.readouterr().out)}
    assert list(cards) == ["shape", "leaky", "esm"]
    assert cards["leaky"]["refused"] == ["tiny:epsilon"]
    assert cards["shape"]["refused"] == []
    assert "NOPE" in cards["esm"]["note"]
    features("tiny", for_="tiny-growth")
    out = capsys.readouterr().out
    for said in ("somewhere", "own axes", "shape: a [note]", "REFUSED for tiny:epsilon"):
        assert said in out


def test_a_dataset_of_another_organism_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = tiny_dataset()
    other = replace(other, organism=replace(other.organism, name="other"))
    monkeypatch.setattr("wildtype.sources.catalogue.load_dataset", lambda name: other)
    with pytest.raises(DatasetError, match="is of organism 'other', not of 'tiny'"):
        features("tiny", for_="other-growth")
