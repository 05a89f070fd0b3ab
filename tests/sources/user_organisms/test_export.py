"""An organism as tables, and the equal organism that is imported from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.sources.user_organisms.small import build, folder_of, small
from tests.tiny import tiny_organism
from wildtype.errors import OutputError
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.insilico import build_organism as simulate
from wildtype.sources.user_organisms.build import build_organism
from wildtype.sources.user_organisms.description import read_description
from wildtype.sources.user_organisms.export import export_organism


def returned(organism: Organism, folder: Path) -> Organism:
    export_organism(organism, folder)
    return build_organism(read_description(folder / "organism.yaml"), folder).organism


def assert_equal(one: Organism, other: Organism) -> None:
    assert (one.name, one.description) == (other.name, other.description)
    for key in ("names", "standard", "aliases", "descriptions"):
        assert getattr(one.genes, key) == getattr(other.genes, key)
    assert list(one.graphs) == list(other.graphs)
    for name, relation in one.graphs.items():
        back = other.graphs[name]
        assert (relation.adjacency != back.adjacency).nnz == 0
        # What has no source is from the file.
        facts = relation.facts | {"dropped": {}, "source": relation.source or f"{name}.tsv"}
        assert facts == back.facts | {"dropped": {}}
    assert list(one.features) == list(other.features)
    for name, block in one.features.items():
        back = other.features[name]
        np.testing.assert_array_equal(block.values, back.values)
        facts = block.facts | {"basis": []}
        assert {key: value for key, value in facts.items() if value} == {
            key: value for key, value in back.facts.items() if facts[key]
        }
    for key in ("essential", "dubious"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))
    for part in ("coordinates", "metabolism"):
        mine, theirs = getattr(one, part), getattr(other, part)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            for key, values in mine.to_arrays().items():
                np.testing.assert_array_equal(values, theirs.to_arrays()[key])


def test_an_imported_organism(tmp_path: Path) -> None:
    organism = build(small(tmp_path / "mini"), tmp_path / "mini").organism
    assert_equal(organism, returned(organism, tmp_path / "out"))


def test_an_organism_of_units(tmp_path: Path) -> None:
    folder = tmp_path / "mini"
    plain = small(folder) | {"units": {"path": "u.tsv", "unit": "guide", "genes": "tags"}}
    folder_of(folder, u_tsv="guide\ttags\ng1\tM0001,M0002\ng2\tM0003\ng3\tM0002,M0001\n")
    organism = build(plain, folder).organism
    assert organism.genes.aliases["g1"][:2] == ("M0001,M0002", "g3")
    back = returned(organism, tmp_path / "out")
    assert_equal(organism, back)
    assert organism.units is not None
    assert back.units is not None
    assert (organism.units.table != back.units.table).nnz == 0
    assert organism.units.genes.aliases == back.units.genes.aliases


def test_a_simulated_organism_with_its_metabolism(tmp_path: Path) -> None:
    organism = simulate("ecoli-core")
    assert organism.metabolism is not None
    assert_equal(organism, returned(organism, tmp_path / "out"))


def test_names_and_descriptions_that_are_hard_to_write(tmp_path: Path) -> None:
    organism = replace(tiny_organism(), description="a: 'b' #c")
    names = organism.genes.names
    index = GeneIndex(
        ["NA", *names[1:]],
        {"NA": "nan", names[1]: "1e5"},
        {"NA": ["a b", 'q"uote', "1,2"]},
        "tiny",
        {"NA": "- or #N/A;  two  blanks"},
    )
    organism = replace(organism, genes=index)
    assert_equal(organism, returned(organism, tmp_path / "out"))
    marked = GeneIndex(names, aliases={names[0]: ["a|b"]})
    with pytest.raises(OutputError, match=r"the alias 'a\|b' holds '\|'"):
        export_organism(replace(organism, genes=marked), tmp_path / "marked")
    assert not (tmp_path / "marked").exists()
    with pytest.raises(OutputError, match="exists already: name a new folder"):
        export_organism(organism, tmp_path / "out")
