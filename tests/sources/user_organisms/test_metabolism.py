"""Metabolic models of any organism; SBML is written by cobra."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import cobra
import numpy as np
import pytest

from tests.sources.user_organisms.files import data_folder, names_of, read, refused
from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.description import MetabolismPart

GENES = GeneIndex(
    ["ENSG1", "ENSG2", "ENSG-3", "ENSG4"], {"ENSG1": "HK1"}, {"ENSG2": ["2821"]}, organism="small"
)
RULES = ("HK1 and ENSG_3", "2821_AT1 or 2821_AT2", "ENSG9", "")


def model(*rules: str) -> cobra.Model:
    """A chain of reactions from an uptake, one for every rule."""
    out = cobra.Model("small")
    mets = [cobra.Metabolite(f"m{i}_c", compartment="c") for i in range(len(rules) + 1)]
    for i, rule in enumerate(rules):
        reaction = cobra.Reaction(f"R{i}", lower_bound=0, upper_bound=1000)
        reaction.add_metabolites({mets[i]: -1, mets[i + 1]: 1})
        reaction.gene_reaction_rule = rule
        out.add_reactions([reaction])
    out.add_boundary(mets[0], type="sink")
    out.objective = out.reactions[0]
    return out


def part(folder: Path, name: str, *rules: str) -> MetabolismPart:
    path, given = folder / name, model(*rules or RULES)
    plain = path.with_suffix("") if name.endswith(".gz") else path
    if ".xml" in name:
        cobra.io.write_sbml_model(given, str(plain))
    else:
        cobra.io.save_json_model(given, str(plain))
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    return MetabolismPart(path=name)


@pytest.mark.parametrize("name", ["model.xml", "model.xml.gz", "model.json"])
def test_genes_of_rules_are_found_by_any_name(tmp_path: Path, name: str) -> None:
    given = part(tmp_path, name)
    found = read("metabolism", given, tmp_path, GENES)
    assert found.metabolism is not None
    assert found.metabolism.genes == ("ENSG-3", "ENSG1", "ENSG2", "ENSG9")
    # both transcripts are of one gene
    assert found.metabolism.rules[1].replace("(", "").replace(")", "").strip() == "ENSG2 or ENSG2"
    assert {block.name for block in found.features} == {"rules", "network"}
    rules = found.features[0]
    assert np.isfinite(rules.values).any(1).tolist() == [True, True, True, False]
    (card,) = found.cards
    assert (card.rows, card.used) == (5, 4)
    assert card.dropped == {"gene of the model that is not in the index": 1}
    assert "4 of them with a gene rule" not in card.note
    assert "5 reactions, 3 of them with a gene rule, 5 metabolites" in card.note
    assert names_of("metabolism", given, tmp_path) == ["2821_AT1", "2821_AT2", "ENSG9", "ENSG_3", "HK1"]


@pytest.mark.parametrize(
    ("name", "rules", "message"),
    [
        ("model.xml", ("a or b",), "names no gene of organism 'small' (its first names: a, b)"),
        ("model.json", ("", ""), "no reaction has a gene rule: give a model with gene rules"),
    ],
)
def test_models_without_a_known_gene(tmp_path: Path, name: str, rules: tuple[str, ...], message: str) -> None:
    assert message in refused("metabolism", part(tmp_path, name, *rules), tmp_path, GENES)


@pytest.mark.parametrize(
    ("name", "content"), [("model.xml", "<html></html>"), ("model.json", "{"), ("model.txt", "x")]
)
def test_damage_is_one_sentence(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    line = refused("metabolism", MetabolismPart(path=name), tmp_path, GENES)
    assert re.match(rf"{name}: (cannot be parsed as|is no) ?a? metabolic model", line)
    assert "\n" not in line


@pytest.mark.real
@pytest.mark.slow
def test_a_real_model() -> None:
    folder = data_folder("yeast")
    given = MetabolismPart(path="yeast-GEM_9.0.2.yml.gz")
    names = names_of("metabolism", given, folder)
    assert len(names) > 1100
    found = read("metabolism", given, folder, GeneIndex(names, organism="yeast"))
    assert found.cards[0].used == found.cards[0].rows == len(names)
