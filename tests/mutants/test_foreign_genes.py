"""A gene that the wild type does not have is absent from every mutant that does not carry it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import tiny_organism
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import GENERATORS
from wildtype.mutants.precomputed.write import graph_sha256
from wildtype.mutants.representations.fast import representation
from wildtype.mutants.representations.pyg import GraphTensors, Reference
from wildtype.mutants.wiring import Wiring
from wildtype.organism import Metabolism, Organism
from wildtype.organism.storage import read_organism, save_organism

MUTANTS = (
    ([0, 3], [Kind.ABSENT, Kind.REDUCED]),
    ([24], [Kind.ADDED]),
    ([1, 24, 25], [Kind.ABSENT, Kind.OVEREXPRESSED, Kind.ADDED]),
    ([], []),
    ([24, 25], [Kind.ABSENT, Kind.PRESENT]),
)


def foreign_organism() -> Organism:
    """The tiny organism with two foreign genes, a relation of theirs, and reactions that they catalyse."""
    organism = tiny_organism()
    names = organism.genes.names
    network = Metabolism.build(
        ["R1", "R2", "R3"], ["m"], np.array([[1.0, -1.0, 0.0]]), np.zeros(3), np.full(3, 10.0), np.zeros(3),
        [names[0], f"{names[1]} and {names[2]}", names[3]],
    )  # fmt: skip
    organism = Organism(
        organism.name, organism.genes, organism.graphs, organism.features, network, organism.essential
    )
    organism = organism.add_gene("NEW1", edges={"physical": ["G001", "G003"]}, reactions=["R1"])
    return organism.add_gene("NEW2", edges={"physical": ["NEW1"]}, reactions=[("R2", "NEW1 and NEW2")])


def batch() -> MutantBatch:
    genes, kinds = ([x for mutant in MUTANTS for x in mutant[i]] for i in (0, 1))
    offsets = np.cumsum([0, *(len(mutant[0]) for mutant in MUTANTS)])
    return MutantBatch.from_table(MutantTable.build(genes, offsets, kind=np.array(kinds, np.uint8)))


def present() -> np.ndarray:
    """Which genes each mutant has [b, n], by definition."""
    out = np.zeros((len(MUTANTS), 26), bool)
    out[:, :24] = True
    for row, (genes, kinds) in enumerate(MUTANTS):
        for gene, kind in zip(genes, kinds, strict=True):
            out[row, gene] = kind not in (Kind.ABSENT, Kind.REDUCED)
    return out


def alive() -> np.ndarray:
    """Which reactions each mutant has [b, 3]: R1 g0 or NEW1, R2 (g1 and g2) or (NEW1 and NEW2), R3 g3."""
    p = present()
    return np.stack([p[:, 0] | p[:, 24], (p[:, 1] & p[:, 2]) | (p[:, 24] & p[:, 25]), p[:, 3]], axis=1)


@pytest.mark.parametrize("name", ["subgraph", "lazy_subgraph"])
def test_masks_keep_the_genes_and_reactions_that_a_mutant_has(name: str) -> None:
    masks = representation(name, CellGraph.of(foreign_organism(), metabolism=True)).masks(batch())
    assert masks is not None
    np.testing.assert_array_equal(masks.gene.T, present())
    assert masks.reaction is not None
    np.testing.assert_array_equal(masks.reaction.T, alive())


def test_neighbours_that_a_mutant_lacks_are_no_neighbours() -> None:
    graph = CellGraph.of(foreign_organism(), metabolism=True)
    masks = representation("neighbor_subgraph", graph, hops=2).masks(batch())
    assert masks is not None
    assert not (masks.gene.T.numpy() & ~present()).any()
    assert masks.gene[24, 1]


def test_the_unperturbed_wild_type_has_no_foreign_gene() -> None:
    masks = representation("unperturbed", CellGraph.of(foreign_organism(), metabolism=True)).masks(batch())
    assert masks is not None
    assert not masks.gene[24:].any()
    assert masks.gene[:24].all()
    assert masks.reaction is not None
    assert masks.reaction.all()  # every rule holds without the foreign genes


@pytest.mark.parametrize("metabolism", [True, False])
def test_edges_of_lacking_genes_are_masked(metabolism: bool) -> None:
    organism = foreign_organism()
    wiring = Wiring(CellGraph.of(organism, metabolism=metabolism))
    keeps = wiring.keeps(wiring.removed(batch())).numpy()
    np.testing.assert_array_equal(keeps[:, :26], present())
    rows, columns, _ = organism.graphs["physical"].endpoints()
    for make in GENERATORS.values():
        masks = make(wiring).masks(batch())["physical"]
        np.testing.assert_array_equal(masks, present()[:, rows] & present()[:, columns])


@pytest.mark.parametrize("name", ["subgraph", "lazy_subgraph", "neighbor_subgraph", "unperturbed"])
def test_the_reference_pipelines_keep_the_same(name: str) -> None:
    pytest.importorskip("torch_geometric")
    graph = CellGraph.of(foreign_organism(), metabolism=True)
    masks = representation(name, graph, hops=2).masks(batch())
    assert masks is not None
    reference = Reference(name, GraphTensors.of(graph), hops=2)
    for i, data in enumerate(reference.samples(batch())):
        own = data["gene"]
        kept = torch.zeros(26, dtype=torch.bool)
        if "mask" in own:
            kept = own.mask
        else:
            kept[own.node_ids] = True
        np.testing.assert_array_equal(kept, masks.gene[:, i])


def test_foreign_genes_are_stored_and_distinguish_graphs(tmp_path: Path) -> None:
    organism = foreign_organism()
    save_organism(organism, tmp_path / "tiny")
    again = read_organism(tmp_path / "tiny")
    np.testing.assert_array_equal(again.foreign, organism.foreign)
    assert again.restrict(np.array([0, 25])).foreign.tolist() == [False, True]
    graph = CellGraph.of(organism)
    native = CellGraph(graph.genes, graph.relations)
    assert graph_sha256(graph) != graph_sha256(native)
    assert tiny_organism().foreign is None
