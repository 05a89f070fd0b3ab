"""The shared graph, the first layer's correction and early gradients, against one graph per mutant."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch_geometric")

from tests.models.difference_gnn.problems import RELATIONS, N, batch_of, build, organism
from tests.models.difference_gnn.test_metabolism import metabolic, tensors
from wildtype.errors import ConfigError
from wildtype.models.difference_gnn.reference import ReferenceDifferenceGNN, edge_index
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import Kind
from wildtype.nn.sparse import SparseOperator

SETS = [
    ([3], [Kind.ABSENT]),
    ([0, 7], [Kind.ABSENT, Kind.REDUCED]),
    ([2, 9, 5], [Kind.ABSENT, Kind.OVEREXPRESSED, Kind.ABSENT]),
    ([1, 4, 8, 11], [Kind.REDUCED] * 4),
    ([6], [Kind.OVEREXPRESSED]),
    ([N - 1, 0], [Kind.ABSENT] * 2),  # the last gene has no neighbours
    ([], []),
]


def compare(model, tensors, batch, *, moving: int = 10) -> None:
    reference = ReferenceDifferenceGNN.from_model(model)
    edges = {name: edge_index(op) for name, op in tensors.relations.items()}
    network = tensors.metabolism
    weight = torch.randn(len(batch), model.phenotypes, dtype=torch.float64)
    grads = []
    outputs = []
    for predict in (
        lambda: model(model.encode(tensors), batch).mean,
        lambda: reference(edges, batch, network),
    ):
        model.zero_grad()
        outputs.append(predict())
        (outputs[-1] * weight).sum().backward()
        grads.append(
            {
                name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
                for name, p in model.named_parameters()
            }
        )
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*grads, rtol=1e-6, atol=1e-9)
    assert sum(bool(grad.abs().max() > 0) for grad in grads[1].values()) >= moving


@pytest.mark.parametrize("combination", ["concat", "gating", "global", "local"])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "attention", "pairwise"])
def test_predictions_and_gradients_are_equal(aggregation, combination):
    model = build(aggregation=aggregation, combination=combination, tile=1)
    compare(model, organism(), batch_of(SETS))


@pytest.mark.parametrize("tile", [0, 1, 2, 3])
@pytest.mark.parametrize("phenotypes", [1, 3])
def test_tiles_change_nothing(tile, phenotypes):
    model = build(tile=tile, phenotypes=phenotypes, combination="gating")
    compare(model, organism(), batch_of(SETS))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_any_number_of_layers(layers):
    compare(build(layers=layers, tile=1), organism(), batch_of(SETS))


def test_conditions():
    model = build(conditions=3, tile=1)
    batch = batch_of(SETS)
    batch.condition = torch.arange(len(batch)) % 3
    compare(model, organism(), batch)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_activations(activation):
    compare(build(activation=activation, aggregation="pairwise", tile=1), organism(), batch_of(SETS))


def test_without_norm_and_with_other_widths():
    model = build(aggregation_norm=False, aggregation="pairwise", bottleneck=3, gin_layers=1, tile=1)
    compare(model, organism(), batch_of(SETS))


REPRESENTATIONS = ["perturbation", "lazy_subgraph", "1-hop", "2-hop", "3-hop"]


@pytest.mark.parametrize(("tile", "phenotypes"), [(1, 1), (2, 1), (0, 2)])
@pytest.mark.parametrize("convolution", ["gin", "sage"])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_every_representation_and_convolution(representation, convolution, tile, phenotypes):
    model = build(representation=representation, convolution=convolution, tile=tile, phenotypes=phenotypes)
    # Three edges: the neighbourhoods of one, two and three hops differ.
    compare(model, organism(edges=9), batch_of(SETS))


@pytest.mark.parametrize("convolution", ["gin", "sage"])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_metabolism_is_kept(representation, convolution):
    model = metabolic(representation=representation, convolution=convolution, tile=1, combination="gating")
    compare(model, tensors(), batch_of(SETS))


def test_metabolism_that_is_missing_is_named():
    model = metabolic()
    edges = {name: edge_index(op) for name, op in organism().relations.items()}
    with pytest.raises(ConfigError, match="give the reference the organism's metabolism"):
        ReferenceDifferenceGNN.from_model(model)(edges, batch_of(SETS))


def test_representations_differ():
    """The settings are read: no two of the five predict the same."""
    tensors, batch, found = organism(edges=9), batch_of(SETS), {}
    for name in REPRESENTATIONS:
        model = build(representation=name, combination="global")
        found[name] = model(model.encode(tensors), batch).mean
    for one, two in combinations(REPRESENTATIONS, 2):
        assert not torch.allclose(found[one], found[two]), (one, two)


def test_a_neighbourhood_that_is_the_cell_is_the_subgraph():
    """On a ring of six genes, three hops reach every gene."""
    ring = SparseOperator.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0], 6)
    tensors = OrganismTensors(torch.zeros(6, 0), relations=dict.fromkeys(RELATIONS, ring))
    batch = batch_of([([2], [Kind.ABSENT]), ([0, 5], [Kind.ABSENT, Kind.OVEREXPRESSED])])
    of = [build(n=6, representation=name) for name in ("lazy_subgraph", "3-hop")]
    torch.testing.assert_close(*(model(model.encode(tensors), batch).mean for model in of))


@pytest.mark.slow
@settings(max_examples=15)
@given(data=st.data())
def test_any_graph_and_any_mutants(data):
    seed = data.draw(st.integers(0, 999))
    edges = data.draw(st.integers(0, 3 * N))
    kind = st.sampled_from(list(Kind))
    gene = st.integers(0, N - 1)
    drawn = data.draw(st.lists(st.lists(gene, max_size=N, unique=True), min_size=1, max_size=4), label="sets")
    sets = [(genes, [data.draw(kind) for _ in genes]) for genes in drawn]
    tile = data.draw(st.integers(0, 2))
    model = build(
        tile=tile,
        layers=2,
        seed=seed,
        representation=data.draw(st.sampled_from(REPRESENTATIONS)),
        convolution=data.draw(st.sampled_from(["gin", "sage"])),
    )
    compare(model, organism(seed=seed, edges=edges), batch_of(sets), moving=0)


def test_no_gene_is_left():
    compare(build(tile=1), organism(), batch_of([(list(range(N)), [Kind.ABSENT] * N)]))


def test_weighted_relations_are_used_with_their_weights_where_given():
    """The first layer's correction subtracts weighted messages, too."""
    tensors = organism(weighted=True)
    batch = batch_of(SETS)
    model = build(tile=1)
    got = model(model.encode(tensors), batch).mean
    dense = {name: op @ torch.eye(N, dtype=torch.float64) for name, op in tensors.relations.items()}
    wild = model.encode(tensors)
    for b, (genes, kinds) in enumerate(SETS):
        gone = torch.zeros(N, dtype=torch.bool)
        gone[[g for g, k in zip(genes, kinds, strict=True) if k in (Kind.ABSENT, Kind.REDUCED)]] = True
        kept = (~gone).nonzero().flatten()
        x = model.preprocess(model.table)[kept]
        for layer in model.layers:
            x = layer.aggregate(
                [
                    gin(x, dense[name][kept][:, kept] @ x)
                    for gin, name in zip(layer.gins, model.relations, strict=True)
                ]
            )
        overall = model.global_head(wild.cls - model.pool(x))
        local = model.local_head(wild.genes[genes], torch.tensor([0, len(genes)]))[0]
        torch.testing.assert_close(got[b], 0.5 * overall + 0.5 * local)
