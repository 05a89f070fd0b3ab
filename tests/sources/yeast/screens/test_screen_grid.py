"""The grid of the screen of 2010: which crosses of its strains were measured, and which are unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.datasets.crosses import CrossSplit, expand
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.plans import make_plan
from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.datasets.stages.build import build_dataset
from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.mutants.grid import CrossSides, gene_hashes, pair_codes
from wildtype.organism import Coordinates, GeneIndex, Organism
from wildtype.sources.yeast.facts import linked_rows, whole_screen
from wildtype.sources.yeast.screens.costanzo2010 import (
    INTERMEDIATE,
    INTERMEDIATE_CUT,
    RAW_TABLE,
    RESERVED,
    STRINGENT,
    STRINGENT_CUT,
    CutOff,
)
from wildtype.sources.yeast.screens.parts import EPSILON
from wildtype.sources.yeast.screens.screen_grid import (
    cut_of,
    grid_2010,
    linked_crosses,
    unreserved,
    with_grid,
    within,
)

ORFS = ("YAL001C", "YAL002W", "YAL003W", "YAL005C", "YAR042W", "YBL093C", "YDL227C", "YFL039C")
OLD = "YAR044W"
"""The name that the screen has for YAR042W."""
STUDY = Study(name="costanzo2010", publication=Publication(citation="nobody"), organism="yeast")


def screen_organism(starts: Sequence[float] | None = None) -> Organism:
    """Return an organism of eight genes of 1 kb on one chromosome; without starts, 1,000 kb apart."""
    n = len(ORFS)
    start = np.array(starts if starts is not None else np.arange(n) * 1000.0, float)
    chromosome = np.where(np.isnan(start), 0, 1)
    places = Coordinates(chromosome, start, start + 1, np.ones(n, np.int8), "invented")
    return Organism("yeast", GeneIndex(ORFS, {}, {"YAR042W": [OLD]}, "yeast"), coordinates=places)


def measured(rows: Sequence[tuple[str, str, float, float]], organism: Organism) -> Measurements:
    """Return epsilon and p of query and array strains as the reader gives them: names are resolved."""
    find = organism.genes.find
    pairs = np.array([[find(name.partition("_")[0]) for name in row[:2]] for row in rows])
    kinds = np.where(
        [["_" in name for name in row[:2]] for row in rows],
        PerturbationKind.TEMPERATURE_SENSITIVE,
        PerturbationKind.DELETION,
    )
    # A perturbation set has no order: every other row has its array strain first.
    turned = np.arange(len(rows)) % 2 == 1
    pairs[turned], kinds[turned] = pairs[turned][:, ::-1], kinds[turned][:, ::-1]
    return Measurements.build(
        STUDY,
        genes=organism.genes.names,
        gene=pairs,
        kind=kinds,
        value=[row[2] for row in rows],
        p=[row[3] for row in rows],
        phenotypes=(EPSILON,),
        replicate=[f"query {row[0]}" for row in rows],
    )


def set_aside(sets: Sequence[Sequence[str]], organism: Organism) -> Measurements:
    position = [[organism.genes.find(name) for name in names] for names in sets]
    return Measurements.build(
        STUDY,
        genes=organism.genes.names,
        gene=[gene for one in position for gene in one],
        offsets=np.cumsum([0, *map(len, position)]),
        value=np.ones(len(sets)),
        phenotypes=(RESERVED,),
    )


LIST = [
    ("YAL001C_tsq5", "YAL002W", -0.3, 0.01),
    ("YAL001C_tsq5", "YAL003W", 0.2, 0.02),
    ("YAL005C", "YAL002W", -0.1, 0.04),
    (OLD, "YAL002W", -0.08, 0.05),
    ("YAL005C", "YBL093C", 0.09, 0.01),
    ("YAL003W", "YAR042W", -0.2, 0.01),
]


def code(organism: Organism, *pairs: tuple[str, str]) -> list[int]:
    find = organism.genes.find
    sides = np.array([[find(name) for name in pair] for pair in pairs], np.int64).reshape(-1, 2)
    return sorted(pair_codes(sides[:, 0], sides[:, 1], len(ORFS)).tolist())


def test_strains_of_the_list_span_the_grid_under_the_names_of_today() -> None:
    organism = screen_organism()
    find = organism.genes.find
    grid = grid_2010(measured(LIST, organism), organism).grid
    strains = sorted(zip(grid.query_gene.tolist(), grid.query_kind.tolist(), strict=True))
    assert strains == sorted(
        [
            (find("YAL001C"), int(Kind.REDUCED)),
            *((find(name), int(Kind.ABSENT)) for name in ("YAL003W", "YAL005C", "YAR042W")),
        ]
    )
    names = {ORFS[gene] for gene in grid.array_gene.tolist()}
    assert names == {"YAL002W", "YAL003W", "YAR042W", "YBL093C"}
    assert set(grid.array_kind.tolist()) == {int(Kind.ABSENT)}
    assert not grid.unknown.size
    # the deletion of a gene whose query has an allele was never crossed
    pair = np.array([find("YAL001C")]), np.array([find("YBL093C")])
    absent, reduced = (np.array([kind], np.uint8) for kind in (Kind.ABSENT, Kind.REDUCED))
    assert grid.crossed(*pair, reduced, absent).tolist() == [True]
    assert grid.crossed(*pair, absent, absent).tolist() == [False]


def test_linked_crosses_are_unknown_and_their_rows_are_left_out() -> None:
    # Genes of 1 kb: a gap of 200 kb is linked, of 200.5 kb is not; a gene without a place is linked to none.
    organism = screen_organism([0.0, 201.0, 402.5, np.nan, 2000.0, 2001.5, 4000.0, 5000.0])
    screen = measured(LIST, organism)
    found = grid_2010(screen, organism)
    assert found.linked.tolist() == code(organism, ("YAL001C", "YAL002W"), ("YAR042W", "YBL093C"))
    assert found.grid.unknown.tolist() == found.linked.tolist()
    kept, report = within(screen, found, organism.genes)
    assert report.dropped == {"cross of linked genes": 1}
    assert len(kept) == len(LIST) - 1
    assert -0.3 not in kept.value
    wider = grid_2010(screen, organism, linked_kb=201.0)
    assert set(wider.linked.tolist()) > set(found.linked.tolist())


def test_what_is_set_aside_is_no_row_and_no_known_cross() -> None:
    organism = screen_organism()
    screen = measured(LIST, organism)
    reserved = set_aside([("YAL005C", "YAL002W"), ("YAL005C", "YAR042W"), ("YAL001C",)], organism)
    found = grid_2010(screen, organism, reserved)
    assert found.grid.unknown.tolist() == code(organism, ("YAL005C", "YAL002W"), ("YAL005C", "YAR042W"))
    assert organism.genes.find("YAL001C") not in found.grid.strains[0]
    # YAL003W was an array of the reserved gene only, and is a query still
    assert organism.genes.find("YAL003W") not in found.grid.array_gene
    assert organism.genes.find("YAL003W") in found.grid.query_gene
    kept, report = within(screen, found, organism.genes)
    assert report.dropped == {"gene set aside for a blind test": 2, "cross set aside for a blind test": 1}
    assert sorted(kept.value) == pytest.approx([-0.2, -0.08, 0.09])


def test_a_list_without_a_grid_leaves_out_what_is_set_aside_and_keeps_linked_rows() -> None:
    organism = screen_organism([0.0, 201.0, 402.5, np.nan, 2000.0, 2001.5, 4000.0, 5000.0])
    screen = measured(LIST, organism)
    reserved = set_aside([(OLD, "YAL002W"), ("YAL005C", "YAR042W"), ("YBL093C",)], organism)
    kept, report = unreserved(screen, reserved, organism.genes)
    assert report.dropped == {"gene set aside for a blind test": 1, "cross set aside for a blind test": 1}
    assert (report.rows_in, report.rows_out) == (len(LIST), len(kept))
    assert sorted(kept.value) == pytest.approx([-0.3, -0.2, -0.1, 0.2])
    dataset = build_dataset(kept, organism, name="list")
    assert linked_rows(dataset).startswith("1 rows are of genes within 200 kb on one chromosome")
    assert "not counted" in linked_rows(replace(dataset, organism=replace(organism, coordinates=None)))


def test_what_is_set_aside_of_other_studies_is_a_pair_without_neutral_loci() -> None:
    organism = screen_organism()
    reserved = set_aside([("YAL002W", "YAL005C"), ("YAL002W", "YDL227C"), ("YAL001C",)], organism)
    # A control query and an array are a pair; neither they nor a single mutant with HO are one of HO.
    mutants = [
        ("YAL002W", "YDL227C", "YAL005C"),
        ("YAL002W", "YDL227C"),
        ("YAL005C",),
        ("YAL001C", "YDL227C"),
        ("YAL002W", "YAL005C", "YAR042W"),
        ("YAL002W", "YAR042W"),
    ]
    screen = set_aside(mutants, organism)
    kept, report = unreserved(screen, reserved, organism.genes, ("YDL227C",))
    assert report.dropped == {"gene set aside for a blind test": 1, "cross set aside for a blind test": 1}
    assert np.diff(kept.offsets).tolist() == [2, 1, 3, 2]
    _, report = unreserved(screen, reserved, organism.genes)
    assert report.dropped == {"gene set aside for a blind test": 1, "cross set aside for a blind test": 1}
    assert unreserved(screen.take(np.array([], int)), reserved, organism.genes)[1].rows_in == 0


def test_a_reserved_pair_outside_the_grid_needs_no_code() -> None:
    organism = screen_organism()
    reserved = set_aside([("YFL039C", "YDL227C"), ("YAL002W", "YBL093C")], organism)
    found = grid_2010(measured(LIST, organism), organism, reserved)
    assert found.reserved.size == 2
    assert not found.grid.unknown.size  # two arrays were not crossed, and the other genes have no strain


def test_crosses_of_the_raw_table_without_a_score_are_unknown() -> None:
    organism = screen_organism()
    scored = [*LIST, ("YAL001C_tsq5", "YBL093C", 0.01, 0.4)]
    grid = grid_2010(measured(scored, organism), organism).grid
    rows = {tuple(sorted((row[0].partition("_")[0].replace(OLD, "YAR042W"), row[1]))) for row in scored}
    queries, arrays = (
        ("YAL001C", "YAL003W", "YAL005C", "YAR042W"),
        ("YAL002W", "YAL003W", "YAR042W", "YBL093C"),
    )
    pairs = {tuple(sorted((q, a))) for q in queries for a in arrays if q != a}
    assert grid.unknown.tolist() == code(organism, *(pairs - rows))
    assert len(grid.unknown) == len(pairs) - len(rows) > 0


def test_the_dataset_of_a_screen_has_five_answers_and_rows_of_one() -> None:
    organism = screen_organism()
    screen = measured(LIST, organism)
    dataset = build_dataset(screen, organism, name="screen")
    whole = with_grid(dataset, grid_2010(screen, organism).grid)
    assert {(p.name, p.form, p.of_cross) for p in whole.phenotypes} == {
        ("epsilon", "scalar", "effect"),
        ("negative", "class", "negative"),
        ("positive", "class", "positive"),
        ("epsilon_listed", "scalar", "listed"),
        ("epsilon_stringent", "scalar", "listed"),
    }
    assert whole.targets == ("epsilon", "negative", "positive", "epsilon_listed", "epsilon_stringent")
    assert {p.source for p in whole.phenotypes} == {"costanzo2010:epsilon"}
    assert set(whole.table.phenotype) == {whole.phenotype_index("epsilon")}
    np.testing.assert_array_equal(whole.table.value, dataset.table.value)
    # 4 queries × 4 arrays, less 2 of a gene with itself and 1 that is there in both orders
    assert whole.cross_counts() == {"listed": 6, "unlisted": 7, "unknown": 0}


@pytest.mark.parametrize(
    ("file", "cut"),
    [(RAW_TABLE.name, INTERMEDIATE_CUT), (INTERMEDIATE, INTERMEDIATE_CUT), (STRINGENT, STRINGENT_CUT)],
)
def test_the_cut_offs_are_those_of_the_list_that_was_read(file: str, cut: CutOff) -> None:
    assert cut_of([file]) == cut
    organism = screen_organism()
    screen = measured(LIST, organism)
    dataset = build_dataset(screen, organism, name="screen")
    whole = with_grid(dataset, grid_2010(screen, organism).grid, cut_of([file]))
    by_name = {p.name: p for p in whole.phenotypes}
    assert f"<= {cut.negative:g}" in by_name["negative"].description
    assert f">= {cut.positive:g}" in by_name["positive"].description
    selection = by_name["epsilon_listed"].selection
    assert selection is not None
    assert (selection.negative, selection.positive) == cut
    assert by_name["epsilon"].selection is None  # of any cross
    stringent = by_name["epsilon_stringent"]
    assert stringent.selection is not None
    assert (stringent.selection.negative, stringent.selection.positive) == STRINGENT_CUT
    assert stringent.description == "epsilon of a cross, given that it is listed at the stringent cut-off"
    named = [f"column {name} only: E[{name} given listed at" for name in whole.targets[3:]]
    remarks = whole.selection_remarks()
    assert len(remarks) == 2
    assert all(remark.startswith(name) for remark, name in zip(remarks, named, strict=True))
    assert f"rows are the crosses listed at <= {cut.negative:g}" in whole_screen(whole)
    assert "7 more that were measured and not listed, and 0 that are unknown" in whole_screen(whole)


def test_rows_of_epsilon_stringent_are_the_listed_crosses_beyond_its_cut_offs() -> None:
    organism = screen_organism()
    on_cut = [("YAL005C", "YAL003W", -0.12, 0.01), ("YAL003W", "YBL093C", 0.159, 0.01)]
    screen = measured([*LIST, *on_cut], organism)
    dataset = build_dataset(screen, organism, name="screen")
    whole = with_grid(dataset, grid_2010(screen, organism).grid)
    sides = CrossSides(gene_hashes(organism.genes.names, 0), test=0.3, validation=0.3)
    plan, options = make_plan("random", 0.3, 0.3, None, None, None, None, None, None)
    run, _, _ = expand(whole, whole.targets, CrossSplit("random", 0, sides, plan, options))
    values = {
        name: sorted(run.table.value[run.table.phenotype == at].tolist())
        for at, name in enumerate(whole.targets)
    }
    assert values["epsilon_stringent"] == pytest.approx([-0.3, -0.2, -0.12, 0.2])
    assert values["epsilon_listed"] == pytest.approx([-0.3, -0.2, -0.12, -0.1, -0.08, 0.09, 0.159, 0.2])
    assert sum(values["negative"]) == 5
    assert sum(values["positive"]) == 3


def test_measurements_without_a_query_are_refused() -> None:
    organism = screen_organism()
    screen = measured(LIST, organism)
    with pytest.raises(DatasetError, match="replicate 'query YFL039C' names no gene of its pair"):
        grid_2010(
            replace(screen, replicates=("query YFL039C",), replicate=np.zeros(len(screen), np.int64)),
            organism,
        )
    with pytest.raises(DatasetError, match="made from pairs of strains"):
        grid_2010(set_aside([("YAL001C",)], organism), organism)
    with pytest.raises(DatasetError, match="has no coordinates, by which linked genes are found"):
        grid_2010(screen, replace(organism, coordinates=None))


@given(starts=st.lists(st.floats(0, 1500), min_size=len(ORFS), max_size=len(ORFS)), kb=st.floats(0, 500))
def test_linked_genes_are_those_with_a_small_gap(starts: list[float], kb: float) -> None:
    organism = screen_organism(starts)
    grid = grid_2010(measured(LIST, organism), organism).grid
    genes = sorted({*grid.query_gene.tolist(), *grid.array_gene.tolist()})
    gap = {(a, b): max(abs(starts[a] - starts[b]) - 1, 0) for a in genes for b in genes if a < b}
    expected = [a * len(ORFS) + b for (a, b), apart in sorted(gap.items()) if apart <= kb]
    near = {a * len(ORFS) + b for (a, b), apart in gap.items() if abs(apart - kb) < 1e-9}
    found = linked_crosses(grid, organism, kb).tolist()
    assert set(found) ^ set(expected) <= near  # a gap at the limit is rounded either way
