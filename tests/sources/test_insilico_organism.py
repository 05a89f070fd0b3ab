"""Gene graphs, features and datasets of the in-silico organisms."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets import Dataset
from wildtype.datasets.interactions import epsilon, tau
from wildtype.errors import ConfigError, DatasetError
from wildtype.organism import Metabolism, Organism
from wildtype.organism.gene_rules import minimal_complexes, parse_rule, rule_genes
from wildtype.organism.metabolic_graphs import alternatives, currency_metabolites
from wildtype.sources.insilico import build_growth_dataset, build_organism

NAME = "ecoli-core-growth"


@pytest.fixture(scope="module")
def organism() -> Organism:
    return build_organism("ecoli-core")


@pytest.fixture(scope="module")
def metabolism(organism: Organism) -> Metabolism:
    assert organism.metabolism is not None
    return organism.metabolism


@pytest.fixture
def dataset(organism: Organism) -> Dataset:
    return build_growth_dataset(NAME, organism, progress=False)


def edges(organism: Organism, name: str) -> set[tuple[str, str]]:
    rows, cols, _ = organism.graphs[name].endpoints()
    names = organism.genes.names
    return {(names[a], names[b]) for a, b in zip(rows, cols, strict=True)}


def both_ways(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b}


def test_organism_says_that_it_is_simulated(organism: Organism) -> None:
    assert len(organism.genes) == 137
    assert organism.description.startswith("SIMULATED")
    assert organism.genes.find("adhE") == organism.genes.find("b1241")
    assert organism.essential is not None
    assert organism.essential.sum() == 7
    assert list(organism.graphs) == ["reaction", "complex", "isozyme", "backup", "metabolite", "consecutive"]
    for relation in organism.graphs.values():
        assert relation.edges > 0
        assert relation.directed == (relation.name == "consecutive")
        assert relation.source == "in-silico model ecoli-core"
        assert relation.version
        assert relation.note


def test_rule_graphs_equal_their_definitions(organism: Organism, metabolism: Metabolism) -> None:
    reaction, complexes, isozymes, backups = set(), set(), set(), set()
    for text in metabolism.rules:
        rule = parse_rule(text)
        if rule is None:
            continue
        sets = minimal_complexes(rule)
        reaction |= set(combinations(sorted(rule_genes(text)), 2))
        complexes |= {pair for s in sets for pair in combinations(sorted(s), 2)}
        for a, b in combinations(sorted(rule_genes(text)), 2):
            if any(a in s and b not in s for s in sets) and any(b in s and a not in s for s in sets):
                isozymes.add((a, b))
            lives = [any(not s & gone for s in sets) for gone in ({a}, {b}, {a, b})]
            if lives == [True, True, False]:
                backups.add((a, b))
    assert edges(organism, "reaction") == both_ways(reaction)
    assert edges(organism, "complex") == both_ways(complexes)
    assert edges(organism, "isozyme") == both_ways(isozymes)
    assert edges(organism, "backup") == both_ways(backups)
    assert edges(organism, "backup") <= edges(organism, "isozyme") <= edges(organism, "reaction")


def test_weights_count_reactions(organism: Organism, metabolism: Metabolism) -> None:
    relation = organism.graphs["reaction"]
    a, b = (int(x) for x in np.argwhere(relation.adjacency.toarray() == relation.adjacency.data.max())[0])
    names = {organism.genes.names[a], organism.genes.names[b]}
    assert relation.adjacency[a, b] == sum(names <= rule_genes(text) for text in metabolism.rules)


def test_metabolite_graphs_equal_their_definitions(organism: Organism, metabolism: Metabolism) -> None:
    s = metabolism.stoichiometry.toarray()
    keep = ~currency_metabolites(metabolism)
    shared, following = set(), set()
    for r, q in np.ndindex(len(metabolism.reactions), len(metabolism.reactions)):
        if r == q:
            continue
        pairs = {
            (a, b) for a in rule_genes(metabolism.rules[r]) for b in rule_genes(metabolism.rules[q]) if a != b
        }
        if not pairs:
            continue
        for t in np.flatnonzero(keep & (s[:, r] != 0) & (s[:, q] != 0)):
            made = (s[t, r] > 0 and metabolism.upper[r] > 0) or (s[t, r] < 0 and metabolism.lower[r] < 0)
            used = (s[t, q] < 0 and metabolism.upper[q] > 0) or (s[t, q] > 0 and metabolism.lower[q] < 0)
            shared |= pairs
            if made and used:
                following |= pairs
    assert edges(organism, "consecutive") == following
    assert edges(organism, "metabolite") == both_ways(shared)


def test_currency_is_left_out_and_named(organism: Organism, metabolism: Metabolism) -> None:
    out = currency_metabolites(metabolism)
    names = [metabolism.metabolites[t] for t in np.flatnonzero(out)]
    assert {"atp_c", "h2o_c", "h2o_e", "nadh_c"} <= set(names)
    assert not {"pyr_c", "g6p_c"} & set(names)
    assert "atp" in organism.graphs["consecutive"].note
    # phosphofructokinase makes what aldolase consumes, by no currency
    assert ("b3916", "b2097") in edges(organism, "consecutive")


def test_alternatives_of_partial_substitutes() -> None:
    shared_subunit = [np.array([0, 1]), np.array([0, 2])]
    assert alternatives(shared_subunit) == ({(1, 2)}, {(1, 2)})
    three = [np.array([0]), np.array([1]), np.array([2])]
    assert alternatives(three) == ({(0, 1), (0, 2), (1, 2)}, set())
    assert alternatives([np.array([0, 1])]) == (set(), set())


def test_features_come_from_the_wild_type_and_are_finite(organism: Organism) -> None:
    assert {"rules", "wild-type-flux", "degrees", "spectral.consecutive"} <= set(organism.features)
    for block in organism.features.values():
        assert block.measured == ()
        assert np.isfinite(block.values).any(axis=0).all()
    matrix, columns = organism.features.matrix(137)
    assert matrix.shape == (137, len(columns))
    assert np.isfinite(matrix).all()
    rules = organism.features["rules"]
    pfk_a = organism.genes.find("b3916")
    smallest = rules.values[:, rules.columns.index("smallest_complex")]
    other = rules.values[:, rules.columns.index("other_complexes")]
    lost = rules.values[:, rules.columns.index("reactions_lost")]
    assert smallest[pfk_a] == 1
    assert other[pfk_a] > 0
    assert lost[pfk_a] == 0
    assert np.expm1(lost[organism.genes.find("b2779")]) == pytest.approx(1.0)  # enolase has no isozyme


def test_dataset_holds_every_pair_and_a_trigenic_screen(dataset: Dataset) -> None:
    card = dataset.card()
    assert card["rows_by_phenotype_and_order"] == {
        "fitness": {"1": 137, "2": 9316, "3": 4000},
        "epsilon": {"2": 9316},
        "tau": {"3": 4000},
    }
    assert dataset.targets == ("epsilon",)
    assert [p.source for p in dataset.phenotypes] == [f"{NAME}:{p}" for p in ("fitness", "epsilon", "tau")]
    assert [p.min_order for p in dataset.phenotypes] == [1, 2, 3]
    eps = dataset.table.value[dataset.table.phenotype == 1]
    taus = dataset.table.value[dataset.table.phenotype == 2]
    assert 0.09 < np.mean(eps != 0) < 0.10
    assert 0.10 < np.mean(taus != 0) < 0.30
    assert np.abs(eps[eps != 0]).min() >= 0.99e-6
    notes = " ".join(dataset.notes)
    for fact in ("SIMULATED", "130 of 137 genes are viable", f"{np.mean(eps != 0):.1%} of epsilon"):
        assert fact in notes
    assert dataset.noise == "simulated, no measurement noise: everything is learnable in principle"


def test_interactions_follow_from_the_fitness_rows(dataset: Dataset) -> None:
    t = dataset.table
    f = {s: float(v) for s, v, p in zip(t.sets(), t.value, t.phenotype, strict=True) if p == 0}
    assert len(f) == 137 + 9316 + 4000
    assert dataset.single_fitness is not None
    np.testing.assert_array_equal(dataset.single_fitness, [np.float32(f[(g,)]) for g in range(137)])
    for p, order in ((1, 2), (2, 3)):
        rows = t.take(t.phenotype == p)
        sets = rows.matrix(order)
        f1 = [np.array([f[(int(g),)] for g in sets[:, i]]) for i in range(order)]
        whole = np.array([f[s] for s in rows.sets()])
        if order == 2:
            expected = epsilon(whole, *f1)
        else:
            ab, ac, bc = (
                np.array([f[(int(s[i]), int(s[j]))] for s in sets]) for i, j in ((0, 1), (0, 2), (1, 2))
            )
            expected = tau(whole, ab, ac, bc, *f1)
        np.testing.assert_allclose(rows.value, expected, atol=2e-6)


@pytest.mark.slow
def test_dataset_depends_on_neither_cache_nor_processes(
    organism: Organism, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    fresh = build_growth_dataset(NAME, organism, progress=False, processes=2)
    assert fresh.sha256 == dataset.sha256
    files = sorted(path for path in (tmp_path / "fba").rglob("*.npz") if path.name != "metabolism.npz")
    assert files
    files[0].unlink()
    resumed = build_growth_dataset(NAME, organism, progress=False, processes=1)
    assert resumed.sha256 == dataset.sha256
    assert resumed.notes == dataset.notes


def test_sampled_doubles_follow_the_stated_rule(organism: Organism) -> None:
    d = build_growth_dataset(NAME, organism, progress=False, seed=3, doubles=600, triples=90, array=10)
    assert organism.essential is not None
    doubles = d.table.take(d.table.phenotype == 1).matrix(2)
    triples = d.table.take(d.table.phenotype == 2).matrix(3)
    assert len(triples) == 90
    assert len(doubles) >= 600
    assert not organism.essential[doubles].any()
    assert not organism.essential[triples].any()
    known = set(map(tuple, doubles.tolist()))
    for triple in triples.tolist():
        assert set(combinations(triple, 2)) <= known
    assert "600 drawn among viable genes, 75% of them enriched" in " ".join(d.notes)
    other = build_growth_dataset(NAME, organism, progress=False, seed=4, doubles=600, triples=90, array=10)
    assert other.sha256 != d.sha256


def test_wrong_names_and_sizes_are_refused(organism: Organism) -> None:
    with pytest.raises(DatasetError, match="only 'ecoli-core' and 'ecoli-ijo1366' are packaged"):
        build_organism("textbook")
    with pytest.raises(DatasetError, match="there is no in-silico dataset 'ecoli'"):
        build_growth_dataset("ecoli", organism)
    with pytest.raises(DatasetError, match="is made of organism 'ecoli-ijo1366'"):
        build_growth_dataset("ecoli-ijo1366-growth", organism)
    with pytest.raises(DatasetError, match="known: doubles, random_share, triples, array"):
        build_growth_dataset(NAME, organism, quadruples=3)
    with pytest.raises(DatasetError, match="9,000 doubles cannot be drawn from"):
        build_growth_dataset(NAME, organism, doubles=9_000)
    with pytest.raises(ConfigError, match="random_share is 2"):
        build_growth_dataset(NAME, organism, random_share=2)
    with pytest.raises(ConfigError, match="triples is -1"):
        build_growth_dataset(NAME, organism, triples=-1)


@pytest.mark.slow
def test_genome_scale_organism() -> None:
    organism = build_organism("ecoli-ijo1366")
    assert len(organism.genes) == 1367
    assert organism.essential is not None
    assert organism.essential.sum() == 208
    assert organism.features["subsystems"].values.shape == (1367, 37)
    assert organism.genes.find("pgi") == organism.genes.find("b4025")
