"""Node masks against definitions written mutant by mutant."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutants.representations.cells import RULES, batch_of, cell, mutants
from wildtype.errors import ConfigError, GeneSetError
from wildtype.mutants import Kind
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.representations import NAMES, NeighborSubgraph, NodeMasks, Unperturbed, representation
from wildtype.mutants.representations.reach import reach_reference, unpack

N = 12
GRAPHS = [cell(N, seed, rule=rule) for seed in range(3) for rule in ("gpr", "all")]
REMOVES = st.sets(st.sampled_from([k.name.lower() for k in Kind])).map(sorted)


@settings(max_examples=60)
@given(st.sampled_from(GRAPHS), mutants(N), REMOVES)
def test_subgraphs_keep_all_but_the_removed_genes(graph: CellGraph, some: list, removes: list[str]) -> None:
    batch = batch_of(some)
    for name in ("subgraph", "lazy_subgraph"):
        masks = representation(name, graph, removes=removes).masks(batch)
        assert masks.gene.shape == (N, len(some))
        for b, mutant in enumerate(some):
            gone = {g for g, kind in mutant.items() if kind.name.lower() in removes}
            assert set(np.flatnonzero(~masks.gene[:, b].numpy())) == gone


@settings(max_examples=60)
@given(st.sampled_from(GRAPHS), mutants(N), st.integers(1, 3), REMOVES)
def test_neighbourhoods_are_those_of_the_wild_type(
    graph: CellGraph, some: list, hops: int, removes: list[str]
) -> None:
    batch = batch_of(some)
    kind = representation("neighbor_subgraph", graph, hops=hops, removes=removes)
    expected = reach_reference(graph.union, batch.gene.numpy(), batch.offsets.numpy(), hops)
    np.testing.assert_array_equal(unpack(kind.packed(batch), len(some)), expected)
    keep = kind.masks(batch).gene.numpy()
    for b, mutant in enumerate(some):
        gone = {g for g, what in mutant.items() if what.name.lower() in removes}
        assert set(np.flatnonzero(keep[:, b])) == set(np.flatnonzero(expected[:, b])) - gone


@settings(max_examples=60)
@given(st.sampled_from(["subgraph", "lazy_subgraph", "neighbor_subgraph"]), mutants(N), REMOVES)
def test_reactions_follow_their_rules(name: str, some: list, removes: list[str]) -> None:
    batch = batch_of(some)
    masks = {
        rule: representation(name, cell(N, rule=rule), removes=removes).masks(batch)
        for rule in ("gpr", "all")
    }
    for b, mutant in enumerate(some):
        present = {g: True for g in ["FOREIGN", *(f"G{i:02d}" for i in range(N))]}
        present |= {f"G{g:02d}": False for g, kind in mutant.items() if kind.name.lower() in removes}
        for r, text in enumerate(RULES):
            holds = eval(text, {}, present) if text else True
            listed = all(present[word.strip("()")] for word in text.split() if word not in ("and", "or"))
            assert masks["gpr"].reaction[r, b] == holds
            assert masks["all"].reaction[r, b] == listed


def test_default_removes_absent_and_reduced_only() -> None:
    batch = batch_of([{kind.value: kind for kind in Kind}])
    keep = representation("subgraph", cell(N)).masks(batch).gene[:, 0]
    assert (~keep).nonzero().flatten().tolist() == [Kind.ABSENT, Kind.REDUCED]


def test_unions_take_both_directions_of_directed_relations() -> None:
    graph = cell(N)
    rows, cols, _ = graph.relations["regulatory"].endpoints()
    for ends in ((rows, cols), (cols, rows)):
        batch = batch_of([{int(a): Kind.ABSENT} for a in ends[0]])
        keep = NeighborSubgraph(graph, hops=1).masks(batch).gene
        assert bool(keep[torch.from_numpy(ends[1]), torch.arange(len(rows))].all())


def test_perturbation_needs_no_graph_and_unperturbed_keeps_it_whole() -> None:
    graph, batch = cell(N), batch_of([{0: Kind.ABSENT}, {}])
    assert representation("perturbation", graph).masks(batch) is None
    masks = Unperturbed(graph).masks(batch)
    assert (masks.gene.shape, masks.reaction.shape) == ((N, 2), (len(RULES), 2))
    assert bool(masks.gene.all())
    assert bool(masks.reaction.all())
    assert masks.gene.untyped_storage().nbytes() == 1


def test_without_metabolism_there_are_no_reactions() -> None:
    whole = cell(N)
    graph = CellGraph(whole.genes, whole.relations)
    for name in NAMES[1:]:
        masks = representation(name, graph).masks(batch_of([{0: Kind.ABSENT}]))
        assert masks.reaction is None
        assert len(masks) == 1
        moved = masks.to("cpu")
        assert moved.reaction is None
        assert torch.equal(moved.gene, masks.gene)


def test_masks_move_together() -> None:
    masks = representation("subgraph", cell(N)).masks(batch_of([{0: Kind.ABSENT}]))
    moved = masks.to("meta")
    assert isinstance(moved, NodeMasks)
    assert moved.gene.device.type == moved.reaction.device.type == "meta"


def test_an_empty_batch_is_possible() -> None:
    for name in NAMES[1:]:
        masks = representation(name, cell(N)).masks(batch_of([{0: Kind.ABSENT}]).slice(0, 0))
        assert (masks.gene.shape, masks.reaction.shape) == ((N, 0), (len(RULES), 0))


def test_bad_requests_are_one_sentence() -> None:
    graph = cell(N)
    with pytest.raises(
        ConfigError, match=r"'graph' is not a representation .* known: perturbation, subgraph"
    ):
        representation("graph", graph)
    with pytest.raises(ConfigError, match="0 hops is none"):
        representation("neighbor_subgraph", graph, hops=0)
    with pytest.raises(ConfigError, match="'gone' is not a kind"):
        representation("subgraph", graph, removes=("gone",))
    for name in ("subgraph", "neighbor_subgraph"):
        with pytest.raises(GeneSetError, match=r"perturbs gene 12, outside 0 … 11"):
            representation(name, graph).masks(batch_of([{12: Kind.OVEREXPRESSED}]))
