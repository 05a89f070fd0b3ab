"""Metabolic models of yeast."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import ConfigError, SourceError
from wildtype.mutants import MutantTable
from wildtype.organism import GeneIndex
from wildtype.organism.metabolism import read_metabolism
from wildtype.sources.yeast.metabolism import (
    BIGG,
    METABOLISM,
    YEAST_GEM,
    find_model,
    read_model,
    read_model_file,
)

SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" xmlns:fbc="http://www.sbml.org/sbml/level3/version1/fbc/version2" level="3" version="1" fbc:required="false">
  <model id="tiny" fbc:strict="true">
    <listOfCompartments><compartment id="c" constant="true"/></listOfCompartments>
    <listOfSpecies><species id="M_s_1" name="a" compartment="c" hasOnlySubstanceUnits="false" boundaryCondition="false" constant="false"/></listOfSpecies>
    <listOfParameters><parameter id="lb" value="0" constant="true"/><parameter id="ub" value="1000" constant="true"/></listOfParameters>
    <listOfReactions>
      <reaction id="R_r_1" reversible="false" fast="false" fbc:lowerFluxBound="lb" fbc:upperFluxBound="ub">
        <listOfProducts><speciesReference species="M_s_1" stoichiometry="1" constant="true"/></listOfProducts>
        <fbc:geneProductAssociation><fbc:geneProductRef fbc:geneProduct="G_YAL001C"/></fbc:geneProductAssociation>
      </reaction>
    </listOfReactions>
    <fbc:listOfGeneProducts><fbc:geneProduct fbc:id="G_YAL001C" fbc:label="G_YAL001C"/></fbc:listOfGeneProducts>
  </model>
</sbml>
"""  # noqa: E501


def bigg_json(*rules: str) -> str:
    """Return a model in BiGG's JSON form, one uptake per rule."""
    genes = sorted(
        {
            word
            for rule in rules
            for word in rule.replace("(", " ").replace(")", " ").split()
            if word not in ("and", "or")
        }
    )
    reactions = [
        {
            "id": f"R{i}",
            "name": "uptake",
            "metabolites": {"a_c": 1.0},
            "lower_bound": 0.0,
            "upper_bound": 1000.0,
            "gene_reaction_rule": rule,
        }
        for i, rule in enumerate(rules)
    ]
    model = {
        "id": "iMM904", "version": "1", "compartments": {"c": "cytosol"}, "reactions": reactions,
        "metabolites": [{"id": "a_c", "name": "a", "compartment": "c"}],
        "genes": [{"id": gene, "name": gene} for gene in genes],
    }  # fmt: skip
    return json.dumps(model)


@pytest.fixture
def index() -> GeneIndex:
    return GeneIndex(
        ["YAL001C", "YAL002W", "YHR001W-A", "Q0045"], {"YAL002W": "VPS8"}, {"Q0045": ["OXI3"]}, "yeast"
    )


def test_genes_get_their_systematic_names(tmp_path: Path, index: GeneIndex) -> None:
    """The file is written by hand in BiGG's form: no mirror holds iMM904."""
    (tmp_path / "iMM904.json").write_text(
        bigg_json("YAL001C and (VPS8 or YHR001W_A)", "OXI3", "YZZ999W or YAL001C")
    )
    metabolism, reading = read_model(tmp_path, index, "imm904")
    assert metabolism.rules == ("YAL001C and (YAL002W or YHR001W-A)", "Q0045", "YZZ999W or YAL001C")
    assert metabolism.genes == ("Q0045", "YAL001C", "YAL002W", "YHR001W-A", "YZZ999W")
    assert (reading.rows, reading.kept, reading.renamed) == (5, 4, 3)
    assert reading.dropped == {"gene of the model that is not in the index": 1}
    mutants = MutantTable.from_sets(
        [index.find_set(s) for s in (["VPS8", "YHR001W-A"], ["YAL001C"], ["OXI3"])]
    )
    alive = metabolism.alive(index, mutants)
    np.testing.assert_array_equal(alive, [[False, True, True], [False, True, True], [True, False, True]])


def test_an_ambiguous_gene_is_counted_and_stays(tmp_path: Path) -> None:
    index = GeneIndex(["YAL001C", "YAL002W"], None, {"YAL001C": ["DOUBLE"], "YAL002W": ["DOUBLE"]}, "yeast")
    (tmp_path / "iMM904.json").write_text(bigg_json("DOUBLE"))
    metabolism, reading = read_model(tmp_path, index, "imm904")
    assert metabolism.rules == ("DOUBLE",)
    assert reading.dropped == {"ambiguous gene name": 1}


def test_any_sbml_file_is_read(tmp_path: Path, index: GeneIndex) -> None:
    (tmp_path / "yeast-GEM.xml").write_text(SBML)
    metabolism, reading = read_model(tmp_path, index)
    assert (metabolism.reactions, metabolism.genes) == (("r_1",), ("YAL001C",))
    assert (reading.file, reading.kept, reading.dropped) == ("yeast-GEM.xml", 1, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"reactions": 3}', bigg_json("YAL001C and")])
def test_damaged_json_is_refused(tmp_path: Path, index: GeneIndex, text: str) -> None:
    (tmp_path / "iMM904.json").write_text(text)
    with pytest.raises(SourceError, match=r"iMM904\.json' cannot be parsed as a metabolic model"):
        read_model_file(tmp_path / "iMM904.json", index)


def test_a_damaged_rule_of_a_yaml_model_is_refused_not_left_out(tmp_path: Path, index: GeneIndex) -> None:
    text = (
        '---\n!!omap\n- metaData:\n    id: "tiny"\n- metabolites:\n    - !!omap\n      - id: "s_1"\n'
        '      - name: "a"\n      - compartment: "c"\n- reactions:\n    - !!omap\n      - id: "r_1"\n'
        '      - name: "uptake"\n      - metabolites: !!omap\n          - s_1: 1\n      - lower_bound: 0\n'
        '      - upper_bound: 1000\n      - gene_reaction_rule: "YAL001C or"\n- genes:\n    - !!omap\n'
        '      - id: "YAL001C"\n- compartments: !!omap\n    - c: "cytoplasm"\n'
    )
    (tmp_path / "yeast-GEM.yml").write_text(text)
    with pytest.raises(SourceError, match="Malformed gene_reaction_rule 'YAL001C or'"):
        read_model(tmp_path, index)
    (tmp_path / "yeast-GEM.yml").write_text(text.replace(" or", ""))
    assert read_model(tmp_path, index)[0].genes == ("YAL001C",)


def test_unknown_models_and_missing_files_are_named(tmp_path: Path, index: GeneIndex) -> None:
    assert find_model(tmp_path) is None
    with pytest.raises(ConfigError, match="no metabolic model 'yeast10'; known models: yeast-gem, imm904"):
        read_model(tmp_path, index, "yeast10")
    with pytest.raises(SourceError, match=r"iMM904\.json is not in .*bigg\.ucsd\.edu"):
        read_model(tmp_path, index, "imm904")


def test_every_address_is_https() -> None:
    for publisher in (YEAST_GEM, BIGG):
        for file in publisher.files:
            assert file.urls
            assert all(url.startswith("https://") for url in file.urls)


@pytest.mark.real
@pytest.mark.slow
def test_real_model_names_only_known_genes(mirror: Path, real_genes: GeneIndex) -> None:
    path = find_model(mirror)
    assert path is not None
    assert path.name == METABOLISM
    metabolism, reading = read_model(mirror, real_genes)
    published = YEAST_GEM.published
    assert len(metabolism.reactions) == published["9.0.2 reactions"] == 4131
    assert len(metabolism.metabolites) == published["9.0.2 metabolites"] == 2806
    assert (reading.rows, reading.kept, reading.renamed) == (1161, 1161, 0)
    assert metabolism.sha256 == read_metabolism(path).sha256
