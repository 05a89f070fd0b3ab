"""The whole organism."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import ConfigError, SourceError
from wildtype.organism import Organism
from wildtype.organism.storage import read_organism, save_organism
from wildtype.sources.yeast import build_organism
from wildtype.sources.yeast.genes.sequences import CODING
from wildtype.sources.yeast.genes.sgd import ESSENTIAL, FEATURES
from wildtype.sources.yeast.graphs.gene_ontology import GO
from wildtype.sources.yeast.graphs.pair_lists import IREFINDEX
from wildtype.sources.yeast.graphs.regulation import BOTH, DOCUMENTED
from wildtype.sources.yeast.metabolism import METABOLISM
from wildtype.sources.yeast.screens.single_fitness import FITNESS
from wildtype.sources.yeast.traits.single_deletions import STUDIES, measured_as

pytestmark = pytest.mark.slow
RELATIONS = [
    "physical", "regulatory", "regulatory_documented", "string_neighborhood", "string_fusion",
    "string_cooccurence", "string_coexpression", "string_experimental", "string_database",
]  # fmt: skip
BLOCKS = [
    "go_process",
    "phenotypes",
    "codon_usage",
    "codon_bias",
    "protein",
    "protein_properties",
    "abundance",
    "fitness",
    "essential",
    "degrees",
]
MODEL = """
---
!!omap
- metaData:
    id: "tiny"
- metabolites:
    - !!omap
      - id: "s_1"
      - name: "a"
      - compartment: "c"
- reactions:
    - !!omap
      - id: "r_1"
      - name: "uptake"
      - metabolites: !!omap
          - s_1: 1
      - lower_bound: 0
      - upper_bound: 1000
      - gene_reaction_rule: "YAL001C or YAL002W"
- genes:
    - !!omap
      - id: "YAL001C"
    - !!omap
      - id: "YAL002W"
- compartments: !!omap
    - c: "cytoplasm"
"""


def test_graphs_features_and_essential_genes(small) -> None:
    readings: list[ReadReport] = []
    organism = build_organism(small.path, collect=readings.append)
    assert list(organism.graphs) == RELATIONS
    assert list(organism.features) == BLOCKS
    assert organism.essential is not None
    np.testing.assert_array_equal(organism.features["essential"].values[:, 0], organism.essential)
    assert organism.graphs["regulatory"].directed
    assert not organism.graphs["physical"].directed
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert {reading.use for reading in readings} >= {
        "genes",
        "essential",
        *RELATIONS,
        "go_process",
        "fitness",
    }


def test_version_91_of_string_brings_its_four_channels_only(small) -> None:
    graphs = build_organism(small.path, string="9.1").graphs
    assert {r.version for r in graphs.values() if r.source == "STRING"} == {"9.1"}
    assert "string_coexpression" not in graphs
    assert "string_experimental" not in graphs
    with pytest.raises(ConfigError, match="STRING '10' is not known"):
        build_organism(small.path, string="10")


@pytest.mark.parametrize(
    ("file", "named"),
    [(FEATURES, "SGD_features.tab"), (ESSENTIAL, ESSENTIAL.removesuffix(".gz")), (IREFINDEX, IREFINDEX)],
)
def test_a_missing_required_file_is_named_with_its_folder(small, file: str, named: str) -> None:
    small.remove(file)
    with pytest.raises(SourceError) as caught:
        build_organism(small.path)
    assert named in str(caught.value)
    assert str(small.path) in str(caught.value)


def test_missing_feature_files_leave_their_block_out_and_are_listed(small) -> None:
    for file in (GO, FITNESS, *(study.file for study in STUDIES[1:])):
        small.remove(file)
    organism = build_organism(small.path)
    assert list(organism.features) == [name for name in BLOCKS if name not in ("go_process", "fitness")]
    assert organism.features["phenotypes"].measured == measured_as(STUDIES[0])
    for file in (GO, FITNESS, STUDIES[1].file, METABOLISM):
        assert f"({file})" in organism.description
    assert STUDIES[0].file not in organism.description
    small.remove(STUDIES[0].file)
    assert "phenotypes" not in build_organism(small.path).features


def test_metabolism_is_read_where_its_file_is(small) -> None:
    small.write(METABOLISM, MODEL)
    organism = build_organism(small.path)
    assert organism.metabolism is not None
    assert METABOLISM not in organism.description
    assert build_organism(small.path, metabolism=False).metabolism is None


def test_further_relations_come_on_request(small) -> None:
    small.write("ppi_dip_2017.csv", "YAL001C,YAL002W\n")
    readings: list[ReadReport] = []
    organism = build_organism(small.path, relations=("ppi_dip",), collect=readings.append)
    assert list(organism.graphs) == [*RELATIONS, "ppi_dip"]
    assert "ppi_dip" in organism.features["degrees"].columns
    assert "ppi_dip" in {reading.use for reading in readings}
    with pytest.raises(ConfigError, match="no gene graph 'ppi'"):
        build_organism(small.path, relations=("ppi",))


OBO = "format-version: 1.2\ndata-version: releases/2024-01-01\n\n" + "\n".join(
    f"[Term]\nid: GO:{i}\nname: process {i}\nnamespace: biological_process\n" for i in range(1, 4)
)


def test_publishers_own_files_take_the_place_of_prepared_ones(small) -> None:
    """The publishers' files are written by hand in their layouts: no mirror holds them."""
    annotated = [("YAL001C", 1), ("YAL002W", 1), ("YAL003W", 1), ("YAL005C", 2), ("YEL009C", 2), ("HO", 2)]
    rows = [
        "\t".join(
            [
                "SGD",
                "S1",
                gene,
                "",
                f"GO:{term}",
                "PMID:1",
                "IDA",
                "",
                "P",
                "",
                gene,
                "protein",
                "taxon:559292",
                "20240101",
                "SGD",
                "",
                "",
            ]
        )
        for gene, term in annotated
    ]
    for file in (GO, CODING, BOTH, DOCUMENTED, IREFINDEX, FEATURES):
        if file == FEATURES:
            small.write("SGD_features.tab", small.text(file))
        small.remove(file)
    small.write("go-basic.obo", OBO)
    small.write("gene_association.sgd.gaf", "!gaf-version: 2.2\n" + "\n".join(rows) + "\n")
    small.write("orf_trans_all.fasta", ">YAL001C TFC3\nMVLT*\n>YAL002W VPS8\nMKK*\n")
    small.write(
        "interaction_data.tab",
        "\t".join(
            [
                "YAL001C",
                "TFC3",
                "YAL002W",
                "VPS8",
                "Two-hybrid",
                "physical interactions",
                "",
                "",
                "",
                "",
                "",
                "",
            ]
        )
        + "\n",
    )
    small.write("RegulationTwoColumnTable_Documented_2013927.tsv", "Gcn4p;YAL001C\n")
    readings: list[ReadReport] = []
    organism = build_organism(small.path, collect=readings.append)
    assert list(organism.graphs) == [name for name in RELATIONS if name != "regulatory"]
    assert organism.graphs["physical"].source == "SGD"
    assert "stand-in for TFLink" in organism.graphs["regulatory_documented"].note
    assert organism.features["go_process"].source == "Gene Ontology 2024-01-01, annotations of SGD"
    assert organism.features["protein"].source == "SGD translations of ORFs"
    assert list(organism.features) == [name for name in BLOCKS if not name.startswith("codon_")]
    for file in (CODING, BOTH):
        assert f"({file})" in organism.description
    assert DOCUMENTED not in organism.description
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_building_twice_and_storing_give_the_same(small, tmp_path: Path) -> None:
    first, second = build_organism(small.path), build_organism(small.path)
    save_organism(second, tmp_path / "kept")
    for other in (second, read_organism(tmp_path / "kept")):
        assert other.genes == first.genes
        assert other.graphs.sha256 == first.graphs.sha256
        for name, block in first.features.items():
            np.testing.assert_array_equal(other.features[name].values, block.values)


def test_blocks_made_from_a_target_are_refused(small) -> None:
    features = build_organism(small.path).features
    assert "fitness" not in features.allowed_for(["costanzo2016:fitness"])
    assert "phenotypes" not in features.allowed_for(["costanzo2021:growth"])
    assert set(features.allowed_for(["costanzo2010:epsilon"])) == set(features)


@pytest.mark.real
def test_real_organism(real_build: tuple[Organism, list[ReadReport]]) -> None:
    organism, readings = real_build
    assert list(organism.graphs) == RELATIONS
    assert set(BLOCKS) < set(organism.features)
    assert "spectral.string_experimental" in organism.features
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert "left out, since the file" not in organism.description
    assert organism.graphs.sha256.startswith("83ec1546e96a")  # unchanged since the first datasets were built
    matrix, columns = organism.features.matrix(len(organism.genes))
    assert np.isfinite(matrix).all()
    assert matrix.shape == (6604, len(columns))
    assert len(organism.features["phenotypes"].columns) == 32
    fitness = organism.features["fitness"].values[:, 0]
    assert organism.essential is not None
    assert np.nanmean(fitness[organism.essential]) < np.nanmean(fitness[~organism.essential])
    places, find = organism.coordinates, organism.genes.find
    assert places is not None
    assert places.known.mean() > 0.99
    # SGD, release R64: YAL002W 143707-147531 and YAL001C 147594-151166 are neighbours.
    near = places.distance(
        np.array([find("YAL002W"), find("YAL001C")]), np.array([find("YAL001C"), find("YBR160W")])
    )
    assert near[0] == pytest.approx(0.063)
    assert np.isinf(near[1])
