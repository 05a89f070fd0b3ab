"""All generators of edge masks against the definition, and the loan of masks that are reset in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.wirings import small_graph, small_table
from wildtype.errors import ConfigError, GeneSetError, ShapeError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import (
    GENERATORS,
    CsrMasks,
    EdgeMasks,
    FilteredEdges,
    MaskError,
    PaddedMasks,
    ResetMasks,
    Wiring,
)

graphs = st.builds(
    small_graph,
    n=st.integers(1, 14),
    seed=st.integers(0, 50),
    metabolism=st.booleans(),
    rule=st.sampled_from(["gpr", "all"]),
)
kinds = st.sets(st.sampled_from([kind.name.lower() for kind in Kind]))


def definition(graph: CellGraph, table: MutantTable, removes: set[str]) -> dict[str, np.ndarray]:
    """Say edge by edge and mutant by mutant what is kept, from the adjacency and the rules' own reading."""
    codes = {Kind.parse(name) for name in removes}
    counts = np.array([kind in codes for kind in table.kind], bool)
    kept = np.ones((len(table), graph.n), bool)
    kept[table.row[counts], table.gene[counts]] = False
    out = {}
    for name, relation in graph.relations.items():
        rows, columns, _ = relation.endpoints()
        out[name] = kept[:, rows] & kept[:, columns]
    if graph.metabolism is not None:
        sets = [np.flatnonzero(~row) for row in kept]
        alive = graph.metabolism.alive(graph.genes, MutantTable.from_sets(sets), rule=graph.rule)
        reaction, gene = graph.gpr.nonzero()
        out["gpr"] = kept[:, gene] & alive[:, reaction]
        out["stoichiometry"] = alive[:, graph.stoichiometry.nonzero()[1]]
    return out


@given(graph=graphs, mutants=st.integers(1, 6), seed=st.integers(0, 99), removes=kinds)
def test_every_generator_keeps_what_the_definition_keeps(
    graph: CellGraph, mutants: int, seed: int, removes: set[str]
) -> None:
    table = small_table(mutants, graph.n, seed)
    batch = MutantBatch.from_table(table)
    expected = definition(graph, table, removes)
    wiring = Wiring(graph, removes=removes)
    for name, generator in GENERATORS.items():
        masks = generator(wiring).masks(batch)
        assert list(masks) == list(expected)
        for relation, mask in masks.items():
            assert mask.dtype == torch.bool
            np.testing.assert_array_equal(mask.numpy(), expected[relation], err_msg=f"{name} {relation}")
    for mutant, edges in enumerate(FilteredEdges(wiring).edges(batch)):
        for relation, mask in expected.items():
            assert torch.equal(edges[relation], wiring.ends[relation].positions[:, mask[mutant]])


@given(graph=graphs, seed=st.integers(0, 99))
def test_vectorised_writing_is_the_compiled_one(graph: CellGraph, seed: int) -> None:
    batch = MutantBatch.from_table(small_table(4, graph.n, seed))
    wiring = Wiring(graph)
    removed = wiring.removed(batch)
    for relation, mask in CsrMasks(wiring).masks(batch).items():
        row, position = wiring.incidence[relation].edges_of(removed)
        assert (row.diff() >= 0).all()
        plain = torch.ones_like(mask)
        plain[row, position] = False
        assert torch.equal(mask, plain)


def test_filtered_positions_are_valid_for_their_node_kinds() -> None:
    graph = small_graph()
    batch = MutantBatch.from_table(small_table(5))
    sizes = {"gpr": (graph.n, 5), "stoichiometry": (5, 3)}
    reaction, gene = graph.gpr.nonzero()
    assert Wiring(graph).ends["gpr"].positions.tolist() == [gene.tolist(), reaction.tolist()]
    for edges in FilteredEdges(graph).edges(batch):
        for relation, pair in edges.items():
            source, target = sizes.get(relation, (graph.n, graph.n))
            assert pair.shape[0] == 2
            assert ((pair >= 0) & (pair < torch.tensor([[source], [target]]))).all()


def test_only_the_named_kinds_remove() -> None:
    graph = small_graph(metabolism=False)
    hub = int(np.bincount(graph.relations["physical"].adjacency.indices).argmax())
    table = MutantTable.from_sets([[hub]] * 5, kind=np.arange(5))
    batch = MutantBatch.from_table(table)
    assert [bool(row.all()) for row in CsrMasks(graph).masks(batch)["physical"]] == [False] * 2 + [True] * 3
    only = CsrMasks(graph, removes=["overexpressed"]).masks(batch)["physical"]
    assert [bool(row.all()) for row in only] == [True] * 4 + [False]
    with pytest.raises(ConfigError, match="'gone' is not a kind"):
        CsrMasks(graph, removes=["gone"])


def test_a_slice_of_a_batch_gives_its_rows() -> None:
    whole = MutantBatch.from_table(small_table(9))
    generator = CsrMasks(small_graph())
    for relation, mask in generator.masks(whole.slice(2, 6)).items():
        assert torch.equal(mask, generator.masks(whole)[relation][2:6])


@pytest.mark.parametrize("generator", GENERATORS.values())
def test_masks_overwrite_those_of_an_earlier_batch(generator: type[EdgeMasks]) -> None:
    made = generator(small_graph())
    first, second = (MutantBatch.from_table(small_table(m, seed=m)) for m in (7, 4))
    expected = made.masks(second)
    used = made.masks(first)
    found = made.masks(second, used)
    for name, mask in expected.items():
        assert torch.equal(found[name], mask)
        assert found[name].data_ptr() == used[name].data_ptr()
    for wrong in (
        {name: mask[:3] for name, mask in used.items()},
        {name: mask[:, 1:] for name, mask in used.items()},
        {name: mask.byte() for name, mask in used.items()},
        {name: mask.T.contiguous().T for name, mask in used.items()},
        {},
    ):
        with pytest.raises(ShapeError, match=r"out\['.*expected contiguous torch.bool"):
            made.masks(second, wrong)


def test_csr_keeps_two_positions_an_edge_and_padding_keeps_the_largest_degree() -> None:
    graph = small_graph(metabolism=False)
    star = replace(graph, relations={"star": star_relation(40)}, genes=small_graph(40).genes)
    assert CsrMasks(star).kept_bytes == 4 * 2 * 39 + 8 * 41
    assert PaddedMasks(star).kept_bytes == 8 * 40 * 39


def star_relation(n: int):  # type: ignore[no-untyped-def]
    from wildtype.organism import Relation

    return Relation.from_edges("star", np.zeros(n - 1), np.arange(1, n), n, directed=True)


@pytest.mark.parametrize("generator", [*GENERATORS.values(), FilteredEdges])
def test_a_gene_outside_the_index_is_refused(generator: type[EdgeMasks]) -> None:
    batch = MutantBatch.from_table(MutantTable.from_sets([[12]]))
    made = generator(small_graph())
    with pytest.raises(GeneSetError):
        list(made.edges(batch)) if isinstance(made, FilteredEdges) else made.masks(batch)


def test_metabolic_names_are_reserved() -> None:
    graph = small_graph()
    graph = replace(graph, relations={"gpr": graph.relations["none"]})
    with pytest.raises(ConfigError, match="'gpr'.*rename"):
        Wiring(graph)
    Wiring(replace(graph, metabolism=None))


# --- masks on loan


@pytest.mark.slow
@given(sizes=st.lists(st.integers(1, 7), min_size=2, max_size=5), seed=st.integers(0, 99))
def test_loans_one_after_the_other_leave_nothing_behind(sizes: list[int], seed: int) -> None:
    wiring = Wiring(small_graph())
    generator, plain = ResetMasks(wiring), CsrMasks(wiring)
    for at, mutants in enumerate(sizes):
        batch = MutantBatch.from_table(small_table(mutants, seed=seed + at))
        with generator.lent(batch) as masks:
            expected = plain.masks(batch)
            assert all(torch.equal(masks[name], expected[name]) for name in expected)


def test_what_was_lent_is_empty_afterwards() -> None:
    generator = ResetMasks(small_graph())
    with generator.lent(MutantBatch.from_table(small_table(3))) as masks:
        held = masks["physical"]
        assert held.shape == (3, generator.wiring.edges["physical"])
    assert held.numel() == 0
    assert masks == {}


def test_a_second_loan_is_refused_and_the_first_stays_right() -> None:
    generator = ResetMasks(small_graph())
    first, second = (MutantBatch.from_table(small_table(3, seed=s)) for s in (1, 2))
    expected = CsrMasks(generator.wiring).masks(first)["physical"]
    with generator.lent(first) as masks:
        with pytest.raises(MaskError, match="on loan"), generator.lent(second):
            pass
        with pytest.raises(MaskError, match="on loan"):
            generator.masks(second)
        assert torch.equal(masks["physical"], expected)
    assert torch.equal(generator.masks(first)["physical"], expected)


def test_writing_to_a_lent_mask_is_an_error_and_does_not_last() -> None:
    generator = ResetMasks(small_graph())
    batch = MutantBatch.from_table(small_table(3))
    with pytest.raises(MaskError, match="'regulatory' was written to"), generator.lent(batch) as masks:
        masks["regulatory"].fill_(False)
    expected = CsrMasks(generator.wiring).masks(batch)
    again = generator.masks(batch)
    assert all(torch.equal(again[name], expected[name]) for name in expected)


def test_an_error_inside_a_loan_ends_it() -> None:
    generator = ResetMasks(small_graph())
    batch = MutantBatch.from_table(small_table(3))
    with pytest.raises(ZeroDivisionError), generator.lent(batch):
        raise ZeroDivisionError
    copy = generator.masks(batch)
    copy["physical"].zero_()  # a copy may be changed
    assert torch.equal(
        generator.masks(batch)["physical"], CsrMasks(generator.wiring).masks(batch)["physical"]
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_everything_runs_on_a_gpu() -> None:
    graph, batch = small_graph(), MutantBatch.from_table(small_table(6))
    expected = CsrMasks(graph).masks(batch)
    wiring = Wiring(graph, device="cuda")
    for generator in GENERATORS.values():
        masks = generator(wiring).masks(batch.to("cuda"))
        assert all(
            masks[name].is_cuda and torch.equal(masks[name].cpu(), expected[name]) for name in expected
        )
    for mutant, edges in enumerate(FilteredEdges(wiring).edges(batch.to("cuda"))):
        for name, mask in expected.items():
            assert edges[name].is_cuda
            assert edges[name].shape[1] == int(mask[mutant].sum())
