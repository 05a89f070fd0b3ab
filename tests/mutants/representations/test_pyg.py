"""The torch_geometric samples, and that node masks keep the same nodes and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutants.representations.cells import batch_of, cell, mutants
from wildtype.errors import ConfigError, GeneSetError, ShapeError
from wildtype.mutants import Kind
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations import NAMES, representation
from wildtype.mutants.representations.pyg import (
    GPR,
    STOICHIOMETRY,
    GraphTensors,
    MutantData,
    Reference,
    lazy_batch,
    pyg_batch,
)

N = 12
X = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
WIRINGS = [
    GraphTensors.of(cell(N, seed, density=density, rule=rule), X)
    for seed, density, rule in ((0, 1.0, "gpr"), (1, 0.4, "all"), (2, 2.5, "gpr"))
]
GRAPH_NAMES = NAMES[1:]
SOME = batch_of(
    [
        {0: Kind.ABSENT, 3: Kind.REDUCED},
        {},
        {1: Kind.OVEREXPRESSED, 2: Kind.ABSENT, 11: Kind.ABSENT},
        dict.fromkeys(range(N), Kind.ABSENT),
        {5: Kind.PRESENT},
    ]
)


def kept(
    sample: MutantData, wiring: GraphTensors
) -> tuple[dict[str, set[int]], dict[Any, set[tuple[float, ...]]]]:
    """Nodes and edges (with weights) of a sample, in the numbers of the wild type."""
    graph = wiring.graph
    sizes = {"gene": graph.n, "reaction": graph.stoichiometry.shape[1],
             "metabolite": graph.stoichiometry.shape[0]}  # fmt: skip
    ids = {}
    for node in sample.node_types:
        store = sample[node]
        ids[node] = store.node_ids if "node_ids" in store else torch.arange(sizes[node])
    nodes = {}
    for node, numbers in ids.items():
        there = sample[node].mask if "mask" in sample[node] else torch.ones(len(numbers), dtype=torch.bool)
        nodes[node] = set(numbers[there].tolist())
    edges = {}
    for edge in sample.edge_types:
        store = sample[edge]
        rows, cols = ids[edge[0]][store.edge_index[0]], ids[edge[2]][store.edge_index[1]]
        columns = [rows, cols]
        for name in ("edge_weight", "edge_attr"):
            if name in store:
                columns.append(store[name].reshape(-1))
        there = store.mask if "mask" in store else torch.ones(len(rows), dtype=torch.bool)
        listed = list(zip(*(column[there].tolist() for column in columns), strict=True))
        edges[edge] = set(listed)
        assert len(edges[edge]) == len(listed)
    return nodes, edges


def kept_by_masks(
    masks: Any, b: int, wiring: GraphTensors
) -> tuple[dict[str, set[int]], dict[Any, set[Any]]]:
    """The same, from node masks: an edge is kept iff both its ends are."""
    graph = wiring.graph
    metabolites = graph.stoichiometry.shape[0]
    keep = {"gene": masks.gene[:, b].numpy(), "reaction": masks.reaction[:, b].numpy(),
            "metabolite": np.ones(metabolites, bool)}  # fmt: skip
    edges = {}
    for name, relation in graph.relations.items():
        edges["gene", name, "gene"] = relation.endpoints() if relation.weighted else relation.endpoints()[:2]
    rules, network = graph.gpr.tocoo(), graph.stoichiometry.tocoo()
    edges[GPR] = (rules.col, rules.row)
    edges[STOICHIOMETRY] = (network.col, network.row, network.data)
    found = {}
    for edge, columns in edges.items():
        there = keep[edge[0]][columns[0]] & keep[edge[2]][columns[1]]
        found[edge] = set(zip(*(column[there].tolist() for column in columns), strict=True))
    return {node: set(np.flatnonzero(mask)) for node, mask in keep.items()}, found


@settings(max_examples=120)
@given(
    st.sampled_from(WIRINGS),
    st.sampled_from(GRAPH_NAMES),
    mutants(N, count=3),
    st.integers(1, 3),
    st.sampled_from([("absent", "reduced"), ("absent",), ("overexpressed", "added"), ()]),
)
def test_masks_keep_what_the_reference_keeps(
    wiring: GraphTensors, name: str, some: list, hops: int, removes: tuple[str, ...]
) -> None:
    batch = batch_of(some)
    masks = representation(name, wiring.graph, hops=hops, removes=removes).masks(batch)
    for b, sample in enumerate(Reference(name, wiring, hops=hops, removes=removes).samples(batch)):
        assert kept(sample, wiring) == kept_by_masks(masks, b, wiring)


def test_masks_and_reference_agree_on_an_organism_with_relations_named_like_nodes() -> None:
    from wildtype.sources.insilico import build_organism

    graph = CellGraph.of(build_organism("ecoli-core"), metabolism=True)
    assert {"reaction", "metabolite"} < set(graph.relations)
    wiring, draw = GraphTensors.of(graph), np.random.default_rng(0)
    some = [
        dict.fromkeys(draw.choice(graph.n, k, replace=False).tolist(), Kind.ABSENT) for k in (1, 2, 3, 30)
    ]
    batch = batch_of([dict(sorted(m.items())) for m in some])
    for name, hops in (("lazy_subgraph", 1), ("subgraph", 1), ("neighbor_subgraph", 1), ("unperturbed", 1)):
        masks = representation(name, graph, hops=hops).masks(batch)
        for b, sample in enumerate(Reference(name, wiring, hops=hops).samples(batch)):
            assert kept(sample, wiring) == kept_by_masks(masks, b, wiring)
    assert not masks.gene.logical_not().any()


@given(st.sampled_from(WIRINGS), st.sampled_from(GRAPH_NAMES), mutants(N, count=2))
@settings(max_examples=60)
def test_indices_are_valid_beside_their_features(wiring: GraphTensors, name: str, some: list) -> None:
    batch = batch_of(some)
    for mutant, sample in zip(some, Reference(name, wiring).samples(batch), strict=True):
        sample.validate(raise_on_error=True)
        gene = sample["gene"]
        assert len(gene.x) == gene.num_nodes
        for edge in sample.edge_types:
            for side, node in ((0, edge[0]), (1, edge[2])):
                ends = sample[edge].edge_index[side]
                assert not len(ends) or int(ends.max()) < sample[node].num_nodes
        # Indices and removed genes together are the mutant, each with its own features.
        index = gene.perturbation_indices
        ids = gene.node_ids[index] if "node_ids" in gene else index
        stated = dict(zip(ids.tolist(), gene.perturbation_kind.tolist(), strict=True))
        assert torch.equal(gene.x[index], X[ids])
        if "removed_ids" in gene:
            stated |= dict(zip(gene.removed_ids.tolist(), gene.removed_kind.tolist(), strict=True))
            assert torch.equal(gene.removed_x, X[gene.removed_ids])
        assert stated == {g: int(kind) for g, kind in mutant.items()}


def test_perturbation_holds_indices_and_values_only() -> None:
    samples = Reference("perturbation", WIRINGS[0]).samples(SOME)
    for i, sample in enumerate(samples):
        assert sample.edge_types == []
        assert sample.node_types == ["gene"]
        assert set(sample["gene"].keys()) == {"perturbation_indices", "perturbation_kind"}
        assert sample.value.item() == float(i)
    batch = pyg_batch(samples)
    assert torch.equal(batch["gene"].perturbation_indices, SOME.gene)
    counts = SOME.offsets.diff()
    owners = torch.repeat_interleave(torch.arange(len(SOME)), counts)
    assert torch.equal(batch["gene"].perturbation_indices_batch, owners)


def test_lazy_and_unperturbed_samples_share_the_wild_type() -> None:
    wiring = WIRINGS[0]
    for name in ("lazy_subgraph", "unperturbed"):
        for sample in Reference(name, wiring).samples(SOME):
            assert sample["gene"].x.data_ptr() == X.data_ptr()
            for edge, index in wiring.edge_index.items():
                assert sample[edge].edge_index is index
                assert sample[edge].edge_index.data_ptr() == index.data_ptr()


def test_edges_of_a_removed_gene_go_in_both_directions() -> None:
    wiring = WIRINGS[2]
    rows, _ = wiring.edge_index["gene", "physical", "gene"]
    gene = int(rows[0])
    for name in ("subgraph", "lazy_subgraph"):
        (sample,) = Reference(name, wiring).samples(batch_of([{gene: Kind.ABSENT}]))
        _, edges = kept(sample, wiring)
        for name_ in ("physical", "regulatory"):
            assert all(gene not in pair[:2] for pair in edges["gene", name_, "gene"])


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_taken_apart_again(name: str) -> None:
    wiring = WIRINGS[0]
    samples = Reference(name, wiring, hops=2).samples(SOME)
    batch = pyg_batch(samples)
    assert batch.num_graphs == len(samples)
    for sample, again in zip(samples, batch.to_data_list(), strict=True):
        for store in sample.stores:
            other = again if store._key is None else again[store._key]
            for key, value in store.items():
                if isinstance(value, torch.Tensor):
                    assert torch.equal(other[key], value), (store._key, key)
                else:
                    assert other[key] == value


@pytest.mark.parametrize("name", ["subgraph", "neighbor_subgraph", "unperturbed"])
def test_indices_of_a_batch_are_rows_of_its_features(name: str) -> None:
    samples = Reference(name, WIRINGS[0], hops=2).samples(SOME)
    gene = pyg_batch(samples)["gene"]
    expected = torch.cat([s["gene"].x[s["gene"].perturbation_indices] for s in samples])
    assert torch.equal(gene.x[gene.perturbation_indices], expected)
    assert torch.equal(gene.batch[gene.perturbation_indices], gene.perturbation_indices_batch)
    if name != "unperturbed":
        removed = torch.zeros(len(SOME), dtype=torch.int64).index_add(
            0, gene.removed_ids_batch, torch.ones_like(gene.removed_ids)
        )
        assert removed.tolist() == [2, 0, 2, N, 0]


def test_lazy_batch_is_one_graph_and_all_masks() -> None:
    wiring = WIRINGS[0]
    samples = Reference("lazy_subgraph", wiring).samples(SOME)
    batch = lazy_batch(samples)
    assert batch.num_graphs == len(SOME)
    assert batch["gene"].x.data_ptr() == X.data_ptr()
    assert torch.equal(batch["gene"].x[batch["gene"].perturbation_indices], X[SOME.gene])
    assert torch.equal(batch.value, SOME.value)
    owner = batch["gene"].perturbation_indices_batch
    assert torch.equal(torch.bincount(owner, minlength=len(SOME)), SOME.offsets.diff())
    masks = representation("lazy_subgraph", wiring.graph).masks(SOME)
    assert torch.equal(batch["gene"].mask.reshape(len(SOME), N).T, masks.gene)
    assert torch.equal(batch["reaction"].mask.reshape(len(SOME), -1).T, masks.reaction)
    for edge, index in wiring.edge_index.items():
        assert batch[edge].edge_index.data_ptr() == index.data_ptr()
        mask = batch[edge].mask.reshape(len(SOME), index.shape[1])
        for b, sample in enumerate(samples):
            assert torch.equal(mask[b], sample[edge].mask)


def test_without_features_and_metabolism() -> None:
    whole = cell(N)
    wiring = GraphTensors.of(CellGraph(whole.genes, whole.relations))
    for name in GRAPH_NAMES:
        sample = Reference(name, wiring).sample(SOME, 0)
        assert sample.node_types == ["gene"]
        assert "x" not in sample["gene"]
        assert sample["gene"].num_nodes <= N
    batch = lazy_batch(Reference("lazy_subgraph", wiring).samples(SOME))
    assert batch["gene"].num_nodes == N


def test_bad_requests_are_one_sentence() -> None:
    wiring = WIRINGS[0]
    with pytest.raises(ConfigError, match="'graph' is not a representation"):
        Reference("graph", wiring)
    with pytest.raises(ShapeError, match=r"x: received 3 rows, expected one per gene, 12"):
        GraphTensors.of(wiring.graph, X[:3])
    with pytest.raises(GeneSetError, match="perturbs gene 12"):
        Reference("subgraph", wiring).sample(batch_of([{12: Kind.ABSENT}]), 0)
    for collate in (pyg_batch, lazy_batch):
        with pytest.raises(ShapeError, match="received none"):
            collate([])
    with pytest.raises(ShapeError, match="no mask of gene"):
        lazy_batch(Reference("unperturbed", wiring).samples(SOME))
    other = Reference("lazy_subgraph", GraphTensors.of(wiring.graph, X)).samples(SOME)
    with pytest.raises(ShapeError, match="do not share the edges"):
        lazy_batch([*Reference("lazy_subgraph", wiring).samples(SOME), *other])
