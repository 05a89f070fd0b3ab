"""Triples drawn by what rules, singles and doubles say, and the dataset that holds all their parts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.insilico import in_silico
from wildtype.datasets.interactions import epsilon, tau
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import MutantTable
from wildtype.organism import Organism
from wildtype.organism.gene_rules import minimal_complexes, parse_rule
from wildtype.sources.insilico import build_dataset, build_triple_dataset
from wildtype.sources.insilico.simulate import simulate_growth
from wildtype.sources.insilico.triples import (
    STRATA,
    TripleSizes,
    draw_enriched_triples,
    neighbour_triples,
    rerouted_triples,
    rule_triples,
)

NAME = "ecoli-core-triples"
SMALL = {"rule": 60, "neighbours": 80, "rerouted": 40, "query": 60, "uniform": 40}


@pytest.fixture(scope="module")
def organism() -> Organism:
    return in_silico("ecoli-core")


def test_rule_triples_equal_their_definition(organism: Organism) -> None:
    m, genes = organism.metabolism, organism.genes
    assert m is not None
    viable = np.ones(len(genes), bool)
    viable[genes.find("b2276")] = False
    expected = set()
    for rule in filter(None, map(parse_rule, m.rules)):
        listed = sorted({genes.find(name) for members in minimal_complexes(rule) for name in members})
        expected |= {t for t in combinations(listed, 3) if viable[list(t)].all()}
    found = rule_triples(m, m.gene_columns(genes), viable)
    assert set(map(tuple, found.tolist())) == expected
    assert len(found) == len(expected) > 100


def test_neighbour_triples_have_two_interacting_pairs() -> None:
    pairs = np.array([[0, 1], [1, 2], [1, 3], [4, 5], [2, 3]])
    hot = np.array([True, True, True, True, False])
    found = set(map(tuple, neighbour_triples(pairs, hot).tolist()))
    assert found == {(0, 1, 2), (0, 1, 3), (1, 2, 3)}


def test_rerouted_triples_take_fresh_reactions_away() -> None:
    pairs = np.array([[0, 1], [2, 3]])
    fresh = np.array([[True, True, False], [False, False, False]])
    lost_by = [np.array([1, 4]), np.array([5, 2]), np.array([3])]
    viable = np.array([True] * 5 + [False])
    found = rerouted_triples(pairs, fresh, lost_by, viable)
    np.testing.assert_array_equal(found, [[0, 1, 2], [0, 1, 4]])


def test_draw_gives_every_stratum_its_number_and_no_triple_twice() -> None:
    listed = {"rule": np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]]), "neighbours": np.array([[0, 1, 2]])}
    sizes = TripleSizes(rule=2, neighbours=5, rerouted=5, query=4, uniform=6)
    everything = np.ones(30, bool)
    drawn = draw_enriched_triples(sizes, listed, np.array([[7, 9]]), everything, everything, seed=0)
    counts = dict(zip(STRATA, np.bincount(drawn.stratum, minlength=5), strict=True))
    assert counts["rule"] == 2
    assert counts["neighbours"] <= 1
    assert (counts["rerouted"], counts["query"], counts["uniform"]) == (0, 4, 6)
    assert len(np.unique(drawn.triples, axis=0)) == len(drawn.triples)
    assert (np.diff(drawn.triples, axis=1) > 0).all()
    query = drawn.triples[drawn.stratum == list(STRATA).index("query")]
    assert all({7, 9} <= set(triple) for triple in query.tolist())
    assert drawn.possible == {"rule": 3, "neighbours": 1}
    other = draw_enriched_triples(sizes, listed, np.array([[7, 9]]), everything, everything, seed=1)
    assert drawn.triples.tolist() != other.triples.tolist()


def test_every_part_of_a_triple_is_there_and_tau_follows(organism: Organism) -> None:
    d = build_triple_dataset(NAME, organism, progress=False, processes=1, **SMALL)
    t = d.table
    assert d.targets == ("tau",)
    f = {s: float(v) for s, v, p in zip(t.sets(), t.value, t.phenotype, strict=True) if p == 0}
    assert all((g,) in f for g in range(len(organism.genes)))
    taus = t.take(t.phenotype == 2)
    expected = [
        tau(f[a, b, c], f[a, b], f[a, c], f[b, c], f[(a,)], f[(b,)], f[(c,)]) for a, b, c in taus.sets()
    ]
    np.testing.assert_allclose(taus.value, expected, atol=4e-6)
    eps = t.take(t.phenotype == 1)
    np.testing.assert_allclose(
        eps.value, [epsilon(f[a, b], f[(a,)], f[(b,)]) for a, b in eps.sets()], atol=2e-6
    )
    assert {s for s in f if len(s) == 2} == set(eps.sets())
    rows = np.random.default_rng(0).choice(len(taus), 40, replace=False)
    plain = simulate_growth(organism, MutantTable.from_matrix(taus.matrix(3)[rows]))
    np.testing.assert_allclose([f[taus.sets()[r]] for r in rows], plain, atol=2e-6)
    # enriched: far more than the 4 % of uniform triples
    assert np.mean(taus.value != 0) > 0.4
    assert np.mean(np.abs(taus.value) > 0.05) > 0.15
    assert organism.essential is not None
    assert not organism.essential[taus.gene].any()
    notes = " ".join(d.notes)
    assert f"tau is not 0 in {np.mean(taus.value != 0):.1%}" in notes
    assert all(f"Stratum {name} (" in notes for name in STRATA)


def test_wrong_sizes_and_names_are_refused(organism: Organism) -> None:
    with pytest.raises(ConfigError, match="query is -1"):
        build_triple_dataset(NAME, organism, query=-1)
    with pytest.raises(DatasetError, match="known: rule, neighbours, rerouted, query, uniform"):
        build_triple_dataset(NAME, organism, quadruples=3)
    with pytest.raises(DatasetError, match="there is no in-silico dataset 'ecoli-core-quadruples'"):
        build_dataset("ecoli-core-quadruples", organism)


@pytest.mark.slow
def test_genome_scale_triples_are_enriched() -> None:
    organism = in_silico("ecoli-ijo1366")
    d = build_dataset("ecoli-ijo1366-triples", organism, progress=False)
    taus = d.table.value[d.table.phenotype == 2]
    assert len(taus) == 6_000
    assert np.mean(taus != 0) > 0.3
    assert np.mean(np.abs(taus) > 0.05) > 0.05
