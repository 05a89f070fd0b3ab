"""An organism as HeteroData and back, exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.mutants.representations.cells import organism as small_organism
from tests.organism.test_added_genes import assert_same_appended
from tests.tiny import same_places, tiny_organism
from wildtype.errors import ConfigError, DatasetError, GeneSetError, SourceError
from wildtype.organism import GeneFeatures, GeneIndex, Organism
from wildtype.organism.sequence_features import coding_blocks
from wildtype.sources.insilico import build_organism


def assert_equal(a: Organism, b: Organism) -> None:
    assert (a.name, a.description) == (b.name, b.description)
    assert a.genes.to_json() == b.genes.to_json()
    assert a.graphs.sha256 == b.graphs.sha256
    for one, other in zip(a.graphs.values(), b.graphs.values(), strict=True):
        facts = ("name", "directed", "weighted", "source", "version", "note", "dropped", "measured")
        assert [getattr(one, fact) for fact in facts] == [getattr(other, fact) for fact in facts]
        assert one.adjacency.dtype == other.adjacency.dtype
    assert list(a.features) == list(b.features)
    for one, other in zip(a.features.values(), b.features.values(), strict=True):
        for fact in ("columns", "source", "measured", "note"):
            assert getattr(one, fact) == getattr(other, fact)
        np.testing.assert_array_equal(one.values, other.values)
        assert one.values.dtype == other.values.dtype
    assert (a.essential is None) == (b.essential is None)
    if a.essential is not None:
        np.testing.assert_array_equal(a.essential, b.essential)
    assert same_places(a, b)
    assert (a.metabolism is None) == (b.metabolism is None)
    if a.metabolism is not None:
        assert a.metabolism.sha256 == b.metabolism.sha256
        stored, again = a.metabolism.to_arrays(), b.metabolism.to_arrays()
        assert list(stored) == list(again)
        for key, array in stored.items():
            np.testing.assert_array_equal(array, again[key], err_msg=key)


@pytest.fixture(scope="module")
def ecoli() -> Organism:
    return build_organism("ecoli-core")


def test_round_trip_of_the_in_silico_organism(ecoli: Organism) -> None:
    data = ecoli.to_pyg()
    data.validate(raise_on_error=True)
    assert data.node_types == ["gene", "reaction", "metabolite"]
    assert_equal(ecoli, Organism.from_pyg(data))


def test_round_trip_keeps_weights_aliases_and_missing_values() -> None:
    organism = tiny_organism()
    names = organism.genes.names
    genes = GeneIndex(names, {names[0]: "abc"}, {names[1]: ("x", "y"), names[2]: ("z",)}, "another")
    organism.features["shape"].values[0] = np.nan
    assert_equal(replace(organism, genes=genes), Organism.from_pyg(replace(organism, genes=genes).to_pyg()))
    assert_equal(small_organism(), Organism.from_pyg(small_organism().to_pyg()))
    bare = Organism("bare", GeneIndex(["a", "b"]))
    assert_equal(bare, Organism.from_pyg(bare.to_pyg()))


def test_round_trip_keeps_appended_genes() -> None:
    codons = np.random.default_rng(1).integers(1, 9, (24, 64))
    blocks = coding_blocks(codons, np.arange(24), 24, count=5)
    edges = {"physical": ["G001"], "regulatory": [("G002", 0.5)]}
    wider = replace(tiny_organism(), features=GeneFeatures(blocks)).add_gene("NEW1", edges=edges)
    again = Organism.from_pyg(wider.to_pyg())
    assert_equal(wider, again)
    assert_same_appended(again, wider)


def test_edges_are_source_to_target_and_rules_to_reactions() -> None:
    organism = small_organism()
    data = organism.to_pyg()
    regulatory = data["gene", "regulatory", "gene"]
    dense = organism.graphs["regulatory"].adjacency.toarray()
    for a, b, weight in zip(*regulatory.edge_index.tolist(), regulatory.edge_weight.tolist(), strict=True):
        assert dense[a, b] == np.float32(weight)
    assert data["gene", "empty", "gene"].edge_index.shape == (2, 0)
    network = organism.metabolism
    pairs = set(zip(*data["gene", "gpr", "reaction"].edge_index.tolist(), strict=True))
    listed = {
        (g, r)
        for g, name in enumerate(organism.genes.names)
        for r, text in enumerate(network.rules)
        if name in text
    }
    assert pairs == listed
    stoichiometry = data["reaction", "stoichiometry", "metabolite"]
    assert stoichiometry.edge_attr.dtype == torch.float64
    again = np.zeros(network.stoichiometry.shape)
    again[stoichiometry.edge_index[1], stoichiometry.edge_index[0]] = stoichiometry.edge_attr[:, 0]
    np.testing.assert_array_equal(again, network.stoichiometry.toarray())


def test_the_order_of_edges_does_not_matter() -> None:
    organism = small_organism()
    data = organism.to_pyg()
    for kind in data.edge_types:
        edges = data[kind]
        order = torch.randperm(edges.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
        for name in ("edge_index", "edge_weight", "edge_attr"):
            if name in edges:
                edges[name] = edges[name][:, order] if name == "edge_index" else edges[name][order]
    assert_equal(organism, Organism.from_pyg(data))


def test_exported_arrays_are_copies() -> None:
    organism = small_organism()
    before = organism.features["shape"].values.copy()
    organism.to_pyg()["gene"].x_shape.zero_()
    np.testing.assert_array_equal(organism.features["shape"].values, before)


def test_what_is_no_organism_is_refused_in_one_sentence() -> None:
    from torch_geometric.data import HeteroData

    def damaged(change: object) -> HeteroData:
        data = small_organism().to_pyg()
        change(data)  # type: ignore[operator]
        return data

    def one_way(data: HeteroData) -> None:
        edges = data["gene", "physical", "gene"]
        edges.edge_index = edges.edge_index[:, 1:]

    def twice(data: HeteroData) -> None:
        edges = data["gene", "physical", "gene"]
        edges.edge_index = torch.cat([edges.edge_index, edges.edge_index[:, :1]], dim=1)

    def outside(data: HeteroData) -> None:
        data["gene", "physical", "gene"].edge_index[0, 0] = 99

    def renamed(data: HeteroData) -> None:
        data["gene"].names = ["other", *data["gene"].names[1:]]

    def short(data: HeteroData) -> None:
        data["reaction"].rules = data["reaction"].rules[1:]

    def no_facts(data: HeteroData) -> None:
        del data["gene", "physical", "gene"]["directed"]

    for change, error, words in (
        (one_way, DatasetError, "'physical' is undirected but lacks"),
        (twice, DatasetError, "'physical' holds an edge twice"),
        (outside, DatasetError, "no organism as to_pyg writes it"),
        (renamed, GeneSetError, "does not match its sha256"),
        (short, SourceError, "do not fit"),
        (no_facts, DatasetError, "directed"),
    ):
        with pytest.raises(error, match=words) as caught:
            Organism.from_pyg(damaged(change))
        assert "\n" not in str(caught.value)
    with pytest.raises(DatasetError, match="no organism"):
        Organism.from_pyg(HeteroData())


def test_without_torch_geometric_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wildtype.organism.pyg.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"wildtype\[pyg\]"):
        small_organism().to_pyg()
