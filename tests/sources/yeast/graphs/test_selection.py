"""Which gene graphs an organism gets from what is in a folder."""

from __future__ import annotations

import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import ConfigError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import ignore
from wildtype.sources.yeast.graphs import interactions, regulation
from wildtype.sources.yeast.graphs.pair_lists import IREFINDEX
from wildtype.sources.yeast.graphs.selection import FURTHER, read_graphs
from wildtype.sources.yeast.graphs.string import PAIRS

USUAL = ["physical", "regulatory", "regulatory_documented"]
CHANNELS = [
    f"string_{c}"
    for c in ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database")
]
RAW_MATRIX = "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_2020511.csv"
RAW_PAIRS = "RegulationTwoColumnTable_Documented_2013927.tsv"


def test_genetic_interactions_are_never_there_unasked(raw, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    graphs, absent = read_graphs(raw.path, genes, collect=readings.append)
    assert list(graphs) == [*USUAL, *CHANNELS, "tflink"]
    assert absent == []
    assert graphs["physical"].source == "iRefIndex"
    assert [reading.use for reading in readings] == list(graphs)


@pytest.mark.parametrize(
    ("removed", "source"), [((IREFINDEX,), "BioGRID"), ((IREFINDEX, interactions.BIOGRID_FILE.name), "SGD")]
)
def test_another_publisher_takes_the_place_of_physical(
    raw, genes: GeneIndex, removed: tuple[str, ...], source: str
) -> None:
    for file in removed:
        raw.remove(file)
    readings: list[ReadReport] = []
    graphs, _ = read_graphs(raw.path, genes, collect=readings.append)
    assert graphs["physical"].source == source
    assert next(r for r in readings if r.use == "physical").kept == graphs["physical"].edges
    raw.remove(interactions.SGD_FILE.name)
    if source == "SGD":
        with pytest.raises(
            SourceError, match=f"no physical interactions.*{IREFINDEX}.*BIOGRID.*interaction_data"
        ):
            read_graphs(raw.path, genes, collect=ignore)


def test_regulation_is_what_is_there_and_the_rest_is_listed(raw, genes: GeneIndex) -> None:
    for file in (regulation.BOTH, RAW_MATRIX):
        raw.remove(file)
    graphs, absent = read_graphs(raw.path, genes, collect=ignore)
    assert "regulatory" not in graphs
    assert absent == [f"regulatory ({regulation.BOTH})"]
    for file in (regulation.DOCUMENTED, RAW_PAIRS):
        raw.remove(file)
    assert list(read_graphs(raw.path, genes, collect=ignore)[0]) == ["physical", *CHANNELS, "tflink"]
    raw.remove(regulation.TFLINK_FILE.name)
    with pytest.raises(SourceError, match="no regulation of transcription"):
        read_graphs(raw.path, genes, collect=ignore)


def test_the_version_of_string_is_the_one_that_is_there(raw, genes: GeneIndex) -> None:
    assert read_graphs(raw.path, genes, collect=ignore)[0]["string_fusion"].version == "11.5"
    assert read_graphs(raw.path, genes, string="9.1", collect=ignore)[0]["string_fusion"].version == "9.1"
    raw.remove(PAIRS)
    assert read_graphs(raw.path, genes, collect=ignore)[0]["string_fusion"].version == "12.0"


def test_further_relations_come_by_name_and_in_order(raw, genes: GeneIndex) -> None:
    raw.write(
        "UP000002311_559292.fasta",
        ">sp|P34111|TFC3_YEAST x OS=S OX=559292 GN=TFC3 PE=1 SV=2\nMV\n"
        ">sp|P39702|VPS8_YEAST x OS=S OX=559292 GN=VPS8 PE=1 SV=2\nMV\n",
    )
    readings: list[ReadReport] = []
    wanted = ("sgd_genetic", "same_complex", "biogrid_genetic", "biogrid_physical", "ppi_dip", "ppi_dip")
    graphs, _ = read_graphs(raw.path, genes, further=wanted, collect=readings.append)
    assert list(graphs) == [*USUAL, *CHANNELS, "tflink", *dict.fromkeys(wanted)]
    assert "leaks" in graphs["sgd_genetic"].note
    assert graphs["same_complex"].adjacency[0, 1] == 1
    assert [r.use for r in readings] == ["UniProt accessions", *graphs]
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_every_relation_on_request_is_read_under_its_name(raw, genes: GeneIndex, accessions) -> None:
    for name, reader in FURTHER.items():
        if name.startswith("ppi_") and name != "ppi_dip":
            continue  # the same reader for each; their real files are tested by name
        assert name in [relation.name for relation, _ in reader(raw.path, genes, accessions)]


def test_complexes_without_accessions_and_unknown_relations_are_refused(raw, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=r"UP000002311_559292\.fasta\.gz is not in"):
        read_graphs(raw.path, genes, further=("same_complex",), collect=ignore)
    with pytest.raises(ConfigError, match="no gene graph 'genetic': choose from tflink"):
        read_graphs(raw.path, genes, further=("genetic",), collect=ignore)
