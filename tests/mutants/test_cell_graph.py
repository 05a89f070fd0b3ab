"""The wiring that mutants share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.representations.cells import RULES, batch_of, cell, mutants, organism
from tests.tiny import tiny_organism
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism.gene_rules import rule_genes

N = 12


def test_union_takes_every_relation_in_both_directions() -> None:
    graph = cell(N, density=2.0)
    dense = sum(r.adjacency.toarray() for r in graph.relations.values()) > 0
    np.testing.assert_array_equal(graph.union.toarray(), dense | dense.T)
    assert graph.union.dtype == bool
    assert graph.edges == {name: r.nnz for name, r in graph.relations.items()}
    assert graph.edges["empty"] == 0


def test_metabolic_edges_are_those_of_the_network() -> None:
    graph = cell(N)
    gpr = graph.gpr.toarray()
    for r, text in enumerate(RULES):
        assert {graph.genes.names[g] for g in np.flatnonzero(gpr[r])} == rule_genes(text) - {"FOREIGN"}
    np.testing.assert_array_equal(
        graph.stoichiometry.toarray(), organism(N).metabolism.stoichiometry.toarray()
    )
    without = CellGraph.of(organism(N))
    assert (without.gpr.shape, without.stoichiometry.shape) == ((0, N), (0, 0))
    assert list(without.relations) == ["physical", "reaction", "regulatory"]


@given(mutants(N), st.sampled_from(["gpr", "all"]))
def test_dead_reactions_are_those_of_the_metabolism(some: list, rule: str) -> None:
    graph, batch = cell(N, rule=rule), batch_of(some)
    table = MutantTable.build(batch.gene.numpy(), batch.offsets.numpy(), kind=batch.kind.numpy())
    absent = np.flatnonzero(table.kind == Kind.ABSENT)
    dead = graph.dead_reactions(table.gene[absent], table.row[absent], len(table))
    expected = graph.metabolism.dead_reactions(graph.genes, table, rule=rule)
    np.testing.assert_array_equal(dead.toarray(), expected.toarray())


def test_without_metabolism_no_reaction_dies() -> None:
    graph = CellGraph.of(organism(N))
    assert graph.dead_reactions(np.array([0]), np.array([1]), 3).shape == (3, 0)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no metabolism"):
        CellGraph.of(tiny_organism(), metabolism=True)
    with pytest.raises(ConfigError, match="'some' is not a way to read gene rules"):
        cell(N, rule="some")
    with pytest.raises(DatasetError, match="no relation 'unknown'"):
        CellGraph.of(organism(N), ["physical", "unknown"])
