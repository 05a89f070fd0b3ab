"""Curated interactions, physical and genetic apart; the files are written by hand in the published layouts,
since no mirror holds them.
"""

from __future__ import annotations

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.biogrid import HEADER
from wildtype.sources.yeast.graphs.interactions import (
    BIOGRID_FILE,
    SGD_FILE,
    find_biogrid,
    read_biogrid,
    read_sgd_interactions,
)

TAB3 = BIOGRID_FILE.name
TAB = SGD_FILE.name


def test_biogrid_keeps_kinds_and_organisms_apart(raw, genes: GeneIndex) -> None:
    (physical, first), (genetic, second) = read_biogrid(raw.path, genes)
    assert (physical.name, genetic.name) == ("biogrid_physical", "biogrid_genetic")
    assert physical.version == "5.0.261"
    assert physical.adjacency[0, 1] == physical.adjacency[1, 0] == 1
    assert physical.adjacency[genes.find("SWH1"), genes.find("HO")] == 1  # the file says YAR044W
    assert physical.adjacency[genes.find("TFC3"), genes.find("SSA1")] == 1  # no systematic name: by symbol
    assert first.dropped == {
        "partner of another organism": 1,
        "genetic interaction": 1,
        "unknown gene": 1,
        "ambiguous gene name": 1,
        "self-loop": 1,
        "duplicate": 1,
    }
    assert (first.renamed, first.kept) == (1, 3)
    assert second.dropped == {"partner of another organism": 1, "physical interaction": 7}
    assert genetic.adjacency[genes.find("EFB1"), genes.find("SSA1")] == 1
    assert (genetic.edges, genetic.directed) == (1, False)
    for reading in (first, second):
        assert reading.rows == 9 == reading.kept + sum(reading.dropped.values())


def test_genetic_relations_say_that_they_leak(raw, genes: GeneIndex) -> None:
    for reader in (read_biogrid, read_sgd_interactions):
        (physical, _), (genetic, _) = reader(raw.path, genes)
        assert "leaks" in genetic.note
        assert "leaks" not in physical.note


def test_biogrid_is_found_by_its_release_or_among_all_organisms(raw, genes: GeneIndex) -> None:
    (raw.path / TAB3).rename(raw.path / "BIOGRID-ALL-4.4.1.tab3.txt")
    found = find_biogrid(raw.path)
    assert found is not None
    assert found[1] == "4.4.1"
    assert read_biogrid(raw.path, genes)[0][0].version == "4.4.1"
    raw.remove("BIOGRID-ALL-4.4.1.tab3.txt")
    with pytest.raises(SourceError, match=r"BIOGRID-ORGANISM.*is not in .*fetch it from https"):
        read_biogrid(raw.path, genes)


def test_biogrid_header_has_37_columns_in_the_published_order() -> None:
    assert len(HEADER) == 37
    assert HEADER[0] == "#BioGRID Interaction ID"
    assert HEADER[5:7] == ("Systematic Name Interactor A", "Systematic Name Interactor B")
    assert HEADER[11:15] == (
        "Experimental System",
        "Experimental System Type",
        "Author",
        "Publication Source",
    )
    assert HEADER[35:] == ("Organism Name Interactor A", "Organism Name Interactor B")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Throughput\tScore", "Score\tThroughput", "line 1: received the header"),
        ("\tgenetic\t", "\tpsychic\t", "line 6: received 'psychic', expected physical or genetic"),
        ("\t9606\t", "\t9606", "line 10: received 36 fields, expected 37"),
    ],
)
def test_damage_of_biogrid_names_the_line(raw, genes: GeneIndex, old: str, new: str, message: str) -> None:
    raw.replace(TAB3, old, new)
    with pytest.raises(SourceError, match=message):
        read_biogrid(raw.path, genes)


def test_a_file_of_another_organism_is_refused(raw, genes: GeneIndex) -> None:
    raw.write(TAB3, raw.text(TAB3).replace("\t559292\t", "\t9606\t"))
    with pytest.raises(SourceError, match="no interaction within taxon 559292"):
        read_biogrid(raw.path, genes)


def test_sgd_interactions(raw, genes: GeneIndex) -> None:
    (physical, first), (genetic, second) = read_sgd_interactions(raw.path, genes)
    assert (physical.name, physical.edges) == ("sgd_physical", 1)
    assert first.dropped == {"genetic interaction": 3, "duplicate": 1}
    assert (genetic.name, genetic.edges) == ("sgd_genetic", 2)
    assert second.dropped == {"physical interaction": 2, "unknown gene": 1}
    assert "costanzo2010:epsilon" in genetic.measured
    assert not physical.measured
    for reading in (first, second):
        assert reading.rows == 5 == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YCL074W\tname", "YCL074W", "line 5: received 11 fields, expected 12"),
        (
            "YCL074W\tname\tYAL001C\tname\tSynthetic Lethality\tgenetic interactions",
            "YCL074W\tname\tYAL001C\tname\tSynthetic Lethality\tmental",
            "line 5: received 'mental', expected a genetic or physical interaction",
        ),
    ],
)
def test_damage_of_sgd_interactions_names_the_line(
    raw, genes: GeneIndex, old: str, new: str, message: str
) -> None:
    raw.replace(TAB, old, new)
    with pytest.raises(SourceError, match=message):
        read_sgd_interactions(raw.path, genes)


def test_the_order_of_rows_does_not_matter(raw, genes: GeneIndex) -> None:
    before = [relation.adjacency for relation, _ in read_sgd_interactions(raw.path, genes)]
    raw.write(TAB, "\n".join(reversed(raw.text(TAB).rstrip("\n").split("\n"))) + "\n")
    after = [relation.adjacency for relation, _ in read_sgd_interactions(raw.path, genes)]
    assert all((one != other).nnz == 0 for one, other in zip(before, after, strict=True))
