"""`organism.yaml`: read, written, and refused with the key and the remedy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from wildtype.errors import ConfigError
from wildtype.sources.user_organisms.description import (
    as_yaml,
    built_in,
    from_plain,
    guess_format,
    read_description,
    to_plain,
)
from wildtype.sources.user_organisms.template import TEMPLATE

PLAIN: dict[str, Any] = {
    "name": "human",
    "genes": {
        "files": [{"path": "genes.tsv"}],
        "names_from": ["relations", {"path": "a", "columns": ["x", 2]}],
    },
    "relations": [
        {"name": "ppi", "path": "ppi.tsv"},
        {"name": "string", "path": "9606.protein.links.v12.0.txt.gz", "cutoff": 400},
    ],
    "gene_sets": [{"name": "go", "path": "go.gmt", "as": ["features", "relation"]}],
}


def test_formats_are_found_by_the_names_of_files_and_everything_is_written_again(tmp_path: Path) -> None:
    description = from_plain(PLAIN, "x")
    assert [part.format for part in description.relations] == ["edges", "string"]
    assert description.gene_sets[0].made == ["features", "relation"]
    (tmp_path / "organism.yaml").write_text(as_yaml(description))
    assert read_description(tmp_path / "organism.yaml") == description
    assert to_plain(description)["gene_sets"][0]["as"] == ["features", "relation"]


@pytest.mark.parametrize(
    ("key", "path", "expected"),
    [
        ("genes", "x.gff3.gz", "gff3"),
        ("genes", "x.txt", "list"),
        ("genes", "x.xlsx", "table"),
        ("relations", "BIOGRID-ORGANISM-Homo.tab3.txt", "biogrid"),
        ("relations", "4932.protein.physical.links.v12.0.txt.gz", "string"),
        ("relations", "ppi.txt", "edges"),
        ("gene_sets", "goa_human.gaf.gz", "gaf"),
        ("gene_sets", "corum_complexes.tsv.gz", "complexes"),
        ("gene_sets", "terms.csv", "table"),
    ],
)
def test_formats_by_name(key: str, path: str, expected: str) -> None:
    assert guess_format(key, path) == expected


def _changed(path: str, value: Any) -> dict[str, Any]:
    plain = copy.deepcopy(PLAIN)
    *steps, last = path.split(".")
    at: Any = plain
    for step in steps:
        at = at[int(step)] if step.isdigit() else at[step]
    if value is None:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return plain


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("relation", [], "key 'relation' is not known; did you mean relations?"),
        ("relations.0.directd", True, "key 'relations.1.directd' is not known; did you mean directed?"),
        ("relations.0.format", "edge", "relations.1.format is 'edge', expected one of 'edges', 'string'"),
        ("relations.0.path", None, "key 'relations.1.path' is missing"),
        (
            "relations.1.cutoff",
            1200,
            "relations.2.cutoff is 1200: input should be less than or equal to 1000",
        ),
        ("relations.1.name", "ppi", "relations: the name 'ppi' is given twice: rename one"),
        ("name", "a/b", "name is 'a/b'"),
        ("genes.names_from.0", "relation", "genes.names_from.1 is 'relation': input should be 'relations'"),
        ("genes", {}, "genes: expected files, names_from or both: say where the genes are named"),
        ("relations.0.of", "units", "a part is of units, and there are none"),
        ("gene_sets.0.smallest", 400, "smallest 400 exceeds largest 300"),
        ("metabolism", "model.xml", "metabolism is 'model.xml'"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(path: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_plain(_changed(path, value), "organism.yaml")
    assert str(error.value).startswith("organism.yaml: ")
    assert message in str(error.value)


def test_several_wrong_keys_are_said_at_once() -> None:
    plain = _changed("relations.0.directd", True) | {"feature": []}
    with pytest.raises(ConfigError, match="directd.*'feature'"):
        from_plain(plain, "organism.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b\ngenes: {names_from: [relations]}\n", "line 2: the key 'name' is given twice"),
        ("name: [\n", "cannot be read as the description of an organism"),
        ("- a\n", "is no mapping of keys to values"),
        ("name: a\ngenes: !!python/object:os.system {}\n", "cannot be read as the description"),
    ],
)
def test_a_file_that_is_no_description(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "o.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_description(tmp_path / "o.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_description(tmp_path / "none.yaml")


def test_the_template_is_a_description() -> None:
    description = from_plain(yaml.safe_load(TEMPLATE), "template")
    assert {type(part).__name__ for _, part in description.parts()} == {
        "Edges", "String", "Biogrid", "Gmt", "Complexes", "Gaf",
        "FeaturesPart", "SequencesPart", "MetabolismPart",
    }  # fmt: skip
    assert description.units is not None


def test_an_organism_that_is_built_in_is_described() -> None:
    description = built_in("yeast", name="yeast-string12.0", string="12.0")
    assert description.publishers is not None
    assert (description.name, description.publishers.string) == ("yeast-string12.0", "12.0")
    assert built_in("yeast").publishers.string == ""
    assert from_plain(to_plain(description), "x") == description
    for name in ("ecoli-core", "../yeast"):
        with pytest.raises(ConfigError, match="only yeast is built from files"):
            built_in(name)


@pytest.mark.parametrize(
    ("plain", "needle"),
    [
        ({}, "key 'genes' is missing"),
        ({"publishers": {"readers": "yeast"}, "genes": {"files": [{"path": "a.txt"}]}}, "keep one"),
        (
            {"publishers": {"readers": "yeast"}, "metabolism": {"path": "m.xml"}},
            "publishers.metabolism: false",
        ),
        ({"publishers": {"readers": "wine"}}, "'yeast'"),
        ({"publishers": {"reader": "yeast"}}, "did you mean readers"),
    ],
)
def test_genes_are_listed_once(plain: dict[str, Any], needle: str) -> None:
    with pytest.raises(ConfigError, match=needle):
        from_plain({"name": "mine", **plain}, "x")
