"""The ontology; the file is written by hand in the layout of go-basic.obo, which no mirror holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from wildtype.errors import SourceError
from wildtype.sources.obo import Ontology, read_obo
from wildtype.sources.yeast.graphs.gene_ontology import ONTOLOGY as FILE


@pytest.fixture
def ontology(raw) -> Ontology:
    return read_obo(raw.path / FILE.name)


def above(ontology: Ontology, term: str) -> set[str]:
    row = ontology.position[term]
    a = ontology.ancestors
    return {ontology.ids[i] for i in a.indices[a.indptr[row] : a.indptr[row + 1]]}


def test_terms_and_what_they_are_part_of(ontology: Ontology) -> None:
    assert ontology.version == "2024-11-03"
    assert len(ontology.ids) == 6  # two are obsolete
    assert ontology.names[ontology.position["GO:0000001"]] == "repair ! of things"
    assert above(ontology, "GO:0000002") == {"GO:0000002", "GO:0000001", "GO:0000005", "GO:0008150"}
    assert above(ontology, "GO:0008150") == {"GO:0008150"}
    assert above(ontology, "GO:0003674") == {"GO:0003674"}  # the other namespace is not followed


def test_alternative_and_obsolete_ids_are_resolved(ontology: Ontology) -> None:
    here = ontology.position["GO:0000002"]
    assert ontology.resolve("GO:0000002") == (here, "")
    assert ontology.resolve("GO:0000022") == (here, "alternative id")
    assert ontology.resolve("GO:0000009") == (here, "replaced term")
    assert ontology.resolve("GO:0000010") == (-1, "obsolete term")
    assert ontology.resolve("GO:0000099") == (-1, "unknown term")


def test_replacements_in_a_circle_end(raw) -> None:
    raw.replace(FILE.name, "replaced_by: GO:0000002", "replaced_by: GO:0000009")
    assert read_obo(raw.path / FILE.name).resolve("GO:0000009") == (-1, "obsolete term")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format-version: 1.2\n", "", "line 1: received 'data-version"),
        ("id: GO:0000005\n", "id: GO:0000001\n", "line 27: received GO:0000001 a second time"),
        ("is_a: GO:0000001 {", "is_a: GO:7777777 {", "line 23: received the parent 'GO:7777777', expected a"),
        ("is_a: GO:0000001 {", "is_a: GO:0000009 {", "line 23: received the parent 'GO:0000009', expected a"),
        ("[Typedef]", "[Typedef", r"line 58: received '\[Typedef', expected a stanza"),
        ("name: translation", "translation", "line 35: received 'translation', expected a tag"),
        ("id: GO:0000005\n", "", "line 27: received a term without id or namespace"),
    ],
)
def test_damage_names_the_line(raw, old: str, new: str, message: str) -> None:
    raw.replace(FILE.name, old, new)
    with pytest.raises(SourceError, match=message):
        read_obo(raw.path / FILE.name)


def test_a_circle_of_parents_is_refused(raw) -> None:
    raw.replace(
        FILE.name,
        "name: translation\nnamespace: biological_process\nis_a: GO:0008150",
        "name: translation\nnamespace: biological_process\nis_a: GO:0000006",
    )
    with pytest.raises(SourceError, match="GO:0000006 is in, or below, a circle of is_a and part_of"):
        read_obo(raw.path / FILE.name)


def test_a_file_without_terms_is_refused(tmp_path: Path) -> None:
    (tmp_path / "go.obo").write_text("format-version: 1.2\n\n[Typedef]\nid: part_of\n")
    with pytest.raises(SourceError, match=r"holds no \[Term\]"):
        read_obo(tmp_path / "go.obo")


@given(st.integers(1, 9), st.data())
def test_ancestors_are_all_that_can_be_reached(t: int, data: st.DataObject) -> None:
    pairs = [(i, j) for i in range(t) for j in range(i)]  # parents have smaller numbers: no circle
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    order = np.array(data.draw(st.permutations(range(t))))
    dense = np.zeros((t, t))
    for i, j in chosen:
        dense[order[i], order[j]] = 1
    ontology = Ontology(tuple(map(str, range(t))), ("",) * t, ("p",) * t, sparse.csr_array(dense), {}, {}, "")
    reached = np.linalg.matrix_power(dense + np.eye(t), t) > 0
    np.testing.assert_array_equal(ontology.ancestors.toarray() > 0, reached)
